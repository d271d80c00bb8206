// Everything in the folder of a worktree, by the file system's word: what lies inside that is not the worktree's own, and
// the state of every file, so that nothing is deleted but what was seen.
import { chmodSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { AgentctlError } from "../core/problem.ts";
import { failureText, isGone } from "../observe/failure.ts";
import { mountPoints } from "../observe/mounts.ts";
import { realLocation } from "./worktree-admin.ts";

export interface FolderLook {
  /** By path below the folder, parents before what is in them. Names are bytes (latin1): not every name is UTF-8. */
  entries: Map<string, Entry>;
  bytes: number;
  repositories: { path: string; kind: "checked-out" | "bare" }[];
  mounts: string[];
  /** What could not be read, and why. */
  unread: string[];
}

interface Entry {
  kind: "folder" | "file" | "special";
  /** The same as long as nobody has changed it. */
  stamp: string;
  /** It has other names, whose removal changes its change time. */
  isShared: boolean;
  times: Times;
}

export interface Times {
  modified: bigint;
  changed: bigint;
}

/** Repositories of other tools hold commits that are nowhere else, too. */
const repositoryNames = new Set([".git", ".hg", ".jj", ".sl", ".bzr", "_darcs", ".pijul"]);

export function lookAtFolder(root: string): FolderLook {
  const look: FolderLook = { entries: new Map(), bytes: 0, repositories: [], mounts: [], unread: [] };
  const real = `${realLocation(root)}/`;
  const mounts = new Set(mountPoints().filter((path) => path.startsWith(real)));
  look.mounts = [...mounts].map((path) => path.slice(real.length));
  const counted = new Set<string>();
  const visit = (below: string, device: bigint | null): void => {
    const path = pathOf(root, below);
    const stat = lstatSync(path, { bigint: true });
    if (device !== null && stat.dev !== device) {
      if (!look.mounts.includes(shown(below))) look.mounts.push(shown(below));
      return;
    }
    const identity = `${stat.dev}:${stat.ino}`;
    if (!counted.has(identity)) look.bytes += Number(stat.blocks) * 512;
    if (stat.nlink > 1n) counted.add(identity);
    if (below !== "") look.entries.set(below, entryOf(stat));
    if (!stat.isDirectory()) return;
    const names = readdirSync(path, { encoding: "buffer" }).map((name) => name.toString("latin1"));
    const repository = repositoryAmong(names, below, root);
    if (repository !== null) look.repositories.push({ path: shown(below), kind: repository });
    for (const name of names) visitSafely(below === "" ? name : `${below}/${name}`, stat.dev);
  };
  const visitSafely = (below: string, device: bigint | null): void => {
    try {
      visit(below, device);
    } catch (error) {
      // A file that is removed during the walk is no longer there to lose; a folder that cannot be read is.
      if (!isGone(error)) look.unread.push(`${shown(below) || "its folder"}: ${failureText(error)}`);
    }
  };
  visitSafely("", null);
  return look;
}

const pathOf = (root: string, below: string): Buffer =>
  below === "" ? Buffer.from(root) : Buffer.concat([Buffer.from(`${root}/`), Buffer.from(below, "latin1")]);

export const shown = (below: string): string => Buffer.from(below, "latin1").toString("utf8");

type BigStat = ReturnType<typeof lstatBig>;
const lstatBig = (path: Buffer) => lstatSync(path, { bigint: true });

function entryOf(stat: BigStat): Entry {
  const kind = stat.isDirectory() ? "folder" : stat.isFile() || stat.isSymbolicLink() ? "file" : "special";
  const isShared = stat.nlink > 1n;
  const times = { modified: stat.mtimeNs, changed: stat.ctimeNs };
  return { kind, isShared, stamp: stampOf(stat, isShared ? "shared" : "single"), times };
}

/** Deleting what is in a folder changes the folder, and deleting one name of a file its change time under the others. */
function stampOf(stat: BigStat, names: "shared" | "single"): string {
  if (stat.isDirectory()) return `folder ${stat.dev}:${stat.ino}`;
  const changed = names === "shared" ? "" : stat.ctimeNs;
  return `${stat.mode} ${stat.dev}:${stat.ino} ${stat.size} ${stat.mtimeNs} ${changed}`;
}

function repositoryAmong(names: readonly string[], below: string, root: string): "checked-out" | "bare" | null {
  const isRoot = below === "";
  const isRepository = (name: string): boolean => repositoryNames.has(name.toLowerCase());
  // The `.git` of the worktree itself is no other repository.
  if (names.some((name) => isRepository(name) && !(isRoot && name === ".git"))) return "checked-out";
  if (below.split("/").some(isRepository) || !["HEAD", "objects", "refs"].every((name) => names.includes(name)))
    return null;
  // Repositories that share their objects have links here (Android's `repo`). Where one leads may be out of reach now.
  const isFolderOrLink = (name: string): boolean => {
    const stat = lstatSync(pathOf(root, isRoot ? name : `${below}/${name}`), { throwIfNoEntry: false });
    return stat?.isDirectory() === true || stat?.isSymbolicLink() === true;
  };
  return isFolderOrLink("objects") && isFolderOrLink("refs") ? "bare" : null;
}

/** What is new, changed or gone since an earlier look. */
export function differencesBetween(earlier: FolderLook, later: FolderLook): string[] {
  const paths = new Set([...earlier.entries.keys(), ...later.entries.keys()]);
  return [...paths].filter((path) => earlier.entries.get(path)?.stamp !== later.entries.get(path)?.stamp).map(shown);
}

/**
 * Deletes what was seen and nothing else: a file that has changed since, or a folder with something new in it, ends it. The
 * `.git` goes last: until then git knows whose folder it is.
 */
export function deleteSeen(root: string, { entries }: FolderLook): void {
  const others = [...entries].filter(([below]) => below !== ".git").reverse();
  for (const [below, entry] of others) deleteOne(root, below, entry);
  const own = entries.get(".git");
  if (own !== undefined) deleteOne(root, ".git", own);
  attempt("its folder", () => rmdirSync(root));
}

function deleteOne(root: string, below: string, { kind, stamp, isShared }: Entry): void {
  const path = pathOf(root, below);
  attempt(shown(below), () => {
    if (stampOf(lstatBig(path), isShared ? "shared" : "single") !== stamp)
      throw new AgentctlError("refused", `${shown(below)} was changed while it was being removed`);
    if (kind === "folder") rmdirSync(path);
    else unlinkSync(path);
  });
}

function attempt(name: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (isGone(error)) return;
    if (error instanceof AgentctlError) throw error;
    throw new AgentctlError("failed", `cannot remove ${name}: ${failureText(error)}`, { cause: error });
  }
}

/** Some tools leave folders that even their owner may not write to (Go's module cache). */
export function openFolders(root: string, { entries }: FolderLook): void {
  for (const [below, { kind }] of entries) {
    if (kind !== "folder") continue;
    const path = pathOf(root, below);
    const mode = lstatSync(path).mode & 0o7777;
    if ((mode & 0o300) !== 0o300) chmodSync(path, mode | 0o300);
  }
}
