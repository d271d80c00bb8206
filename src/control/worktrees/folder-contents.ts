// Everything in the folder of a worktree, read from the file system: repositories and mounts inside it that are not its own, and
// the state of every file, so that only files that were seen are deleted.
import { type BigIntStats, chmodSync, lstatSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { Failure } from "../../core/failure.ts";
import { failureText, isGone } from "../../lib/errors.ts";
import { mountPoints } from "../../observe/mounts.ts";
import { realLocation } from "./admin-folder.ts";

export interface FolderLook {
  /** By path below the folder, parents first. Names are bytes (latin1): not every name is UTF-8. */
  entries: Map<string, FolderEntry>;
  bytes: number;
  repositories: { path: string; kind: "checked-out" | "bare" }[];
  mounts: string[];
  unread: { path: string; detail: string }[];
}

interface FolderEntry {
  kind: "folder" | "file" | "special";
  stamp: string;
  /** It has other hard links; removing one of them changes its ctime. */
  isShared: boolean;
  times: Times;
}

export interface Times {
  modified: bigint;
  changed: bigint;
}

/** Repositories of other tools may also hold commits that exist nowhere else. */
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
      // A file that disappears during the walk cannot be lost; a folder that cannot be read can.
      if (!isGone(error)) look.unread.push({ path: shown(below), detail: failureText(error) });
    }
  };
  visitSafely("", null);
  return look;
}

const pathOf = (root: string, below: string): Buffer =>
  below === "" ? Buffer.from(root) : Buffer.concat([Buffer.from(`${root}/`), Buffer.from(below, "latin1")]);

export const shown = (below: string): string => Buffer.from(below, "latin1").toString("utf8");

function entryOf(stat: BigIntStats): FolderEntry {
  const kind = stat.isDirectory() ? "folder" : stat.isFile() || stat.isSymbolicLink() ? "file" : "special";
  const isShared = stat.nlink > 1n;
  const times = { modified: stat.mtimeNs, changed: stat.ctimeNs };
  return { kind, isShared, stamp: stampOf(stat, { isShared }), times };
}

/** Deleting the contents of a folder changes the folder, and deleting one hard link changes the ctime of the others. */
function stampOf(stat: BigIntStats, { isShared }: Pick<FolderEntry, "isShared">): string {
  if (stat.isDirectory()) return `folder ${stat.dev}:${stat.ino}`;
  const changed = isShared ? "" : stat.ctimeNs;
  return `${stat.mode} ${stat.dev}:${stat.ino} ${stat.size} ${stat.mtimeNs} ${changed}`;
}

function repositoryAmong(names: readonly string[], below: string, root: string): "checked-out" | "bare" | null {
  const isRoot = below === "";
  const isRepository = (name: string): boolean => repositoryNames.has(name.toLowerCase());
  // The worktree's own `.git` does not count.
  if (names.some((name) => isRepository(name) && !(isRoot && name === ".git"))) return "checked-out";
  if (below.split("/").some(isRepository) || !["HEAD", "objects", "refs"].every((name) => names.includes(name)))
    return null;
  // Repositories that share their objects have symbolic links here (Android's `repo`), whose targets may not be mounted now.
  const isFolderOrLink = (name: string): boolean => {
    const stat = lstatSync(pathOf(root, isRoot ? name : `${below}/${name}`), { throwIfNoEntry: false });
    return stat?.isDirectory() === true || stat?.isSymbolicLink() === true;
  };
  return isFolderOrLink("objects") && isFolderOrLink("refs") ? "bare" : null;
}

/** Paths that are new, changed or gone since an earlier walk. */
export function differencesBetween(earlier: FolderLook, later: FolderLook): string[] {
  const paths = new Set([...earlier.entries.keys(), ...later.entries.keys()]);
  return [...paths].filter((path) => earlier.entries.get(path)?.stamp !== later.entries.get(path)?.stamp).map(shown);
}

/**
 * Deletes only what was seen: it stops at a file that has changed since, or at a folder with a new entry. The `.git` is deleted
 * last, because with it git still recognizes the folder.
 */
export function deleteSeen(root: string, { entries }: FolderLook): void {
  const others = [...entries].filter(([below]) => below !== ".git").reverse();
  for (const [below, entry] of others) deleteOne(root, below, entry);
  const own = entries.get(".git");
  if (own !== undefined) deleteOne(root, ".git", own);
  attempt("its folder", () => rmdirSync(root));
}

function deleteOne(root: string, below: string, entry: FolderEntry): void {
  const path = pathOf(root, below);
  attempt(shown(below), () => {
    if (stampOf(lstatSync(path, { bigint: true }), entry) !== entry.stamp)
      throw new Failure("changed-during-removal", { path: shown(below) });
    if (entry.kind === "folder") rmdirSync(path);
    else unlinkSync(path);
  });
}

function attempt(name: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (isGone(error)) return;
    if (error instanceof Failure) throw error;
    throw new Failure("remove-failed", { path: name, detail: failureText(error) }, { cause: error });
  }
}

/** Some tools create folders that even their owner may not write to (Go's module cache). */
export function openFolders(root: string, { entries }: FolderLook): void {
  for (const [below, { kind }] of entries) {
    if (kind !== "folder") continue;
    const path = pathOf(root, below);
    const mode = lstatSync(path).mode & 0o7777;
    if ((mode & 0o300) !== 0o300) chmodSync(path, mode | 0o300);
  }
}
