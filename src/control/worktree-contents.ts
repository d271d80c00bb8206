// What is in the folder of a worktree beside its commits, by git's word and by the file system's.

import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { CannotTell, gitFact } from "./git-fact.ts";
import { realLocation } from "./worktree-admin.ts";
import { type FolderLook, shown, type Times } from "./worktree-folder.ts";

export interface Files {
  /** Changed, staged and new. */
  dirty: string[];
  /** Those of them that are new, and not staged. */
  untracked: string[];
  /** Folders as one. */
  ignored: string[];
  /** Different from what is staged, where git does not look: it was told not to, or takes the time for proof. */
  hidden: string[];
  /** Neither tracked nor ignored nor new for git: it does not look there at all (an empty submodule). */
  unseen: string[];
}

/** Throws where git cannot say, or where the file system cannot. */
export async function filesIn(root: string, look: FolderLook, env: Environment): Promise<Files> {
  const [first] = look.unread;
  const status = entriesIn(await ask(root, [...unconditional, "status", ...statusWords], env));
  if (first !== undefined) throw new CannotTell(first);
  const tracked = trackedIn(await ask(root, ["ls-files", "-v", "-s", "-z", "--debug"], env));
  const paths = (isWanted: (kind: string) => boolean): string[] =>
    status.filter(({ kind }) => isWanted(kind)).map(({ path }) => path);
  const dirty = paths((kind) => kind !== "!!");
  const ignored = paths((kind) => kind === "!!");
  const byName = Map.groupBy(look.entries, ([below]) => shown(below));
  const timesAt = (path: string): Times[] => (byName.get(path) ?? []).map(([, { times }]) => times);
  const doubtful = tracked.filter((each) => each.isFlagged || timesAt(each.path).some((now) => wasTouched(each, now)));
  // Neither the file system nor git finds a file by a name that has lost bytes. It must not be taken for one that is not there.
  const nameless = doubtful.find(({ path }) => path.includes(lostByte) && byName.has(path));
  if (nameless !== undefined)
    throw new CannotTell(`the name of ${nameless.path} is not UTF-8, and it may be changed where git does not look`);
  // A plain edit in the second of its checkout is not hidden: git shows it.
  const hidden = (await differingAmong(doubtful, root, env)).filter((path) => !dirty.includes(path));
  const untracked = paths((kind) => kind === "??");
  const unseen = unseenIn(look, [...tracked.map(({ path }) => path), ...dirty, ...ignored]);
  return { dirty, untracked, ignored, hidden, unseen };
}

/** What stands in a text for bytes that are not UTF-8. */
const lostByte = "\ufffd";

/** A setting may lead git to the files of another folder. */
export async function checkFolder(root: string, env: Environment): Promise<void> {
  const top = (await ask(root, ["rev-parse", "--show-toplevel"], env)).replace(/\n$/, "");
  if (top !== realLocation(root)) throw new CannotTell(`git takes ${top} for its folder (core.worktree)`);
}

/** Of this worktree or of none: where its `.git` is gone, a repository around it is not meant. */
const ask = (root: string, words: readonly string[], env: Environment): Promise<string> =>
  gitFact(root, words, env, { GIT_CEILING_DIRECTORIES: dirname(root) });

/** A person's settings may make git look less closely. */
const unconditional = [
  ...["-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.untrackedCache=false"],
  // Where it would only warn about the ends of lines, every warning would keep the worktree.
  ...["-c", "core.safecrlf=false"],
];

const statusWords = [
  ...["--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=none"],
  "--ignored=traditional",
];

const entriesIn = (out: string): { kind: string; path: string }[] =>
  out
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => ({ kind: line.slice(0, 2), path: line.slice(3) }));

interface Tracked {
  path: string;
  mode: string;
  object: string;
  /** git was told not to look at it. */
  isFlagged: boolean;
  /** As git has seen the file; null: this git does not say. */
  modified: Time | null;
  changed: Time | null;
}

/** Seconds and nanoseconds. */
type Time = readonly [bigint, bigint];

/** What --debug adds has stayed the same for many versions, but is promised to nobody. */
const trackedLine = /(.) (\d+) ([0-9a-f]+) \d\t([^\0]+)\0((?: {2}.*\n)*)/gy;

function trackedIn(out: string): Tracked[] {
  const found: Tracked[] = [];
  trackedLine.lastIndex = 0;
  for (let end = 0; end < out.length; end = trackedLine.lastIndex) {
    const match = trackedLine.exec(out);
    if (match === null) throw new CannotTell(`git ls-files said ${out.slice(end, end + 200)}`);
    const [, tag = "", mode = "", object = "", path = "", debug = ""] = match;
    const isFlagged = tag === "S" || tag !== tag.toUpperCase();
    found.push({ path, mode, object, isFlagged, changed: timeIn(debug, "ctime"), modified: timeIn(debug, "mtime") });
  }
  return found;
}

function timeIn(debug: string, name: string): Time | null {
  const [, seconds, nanoseconds] = new RegExp(`^  ${name}: (\\d+):(\\d+)$`, "m").exec(debug) ?? [];
  return seconds === undefined || nanoseconds === undefined ? null : [BigInt(seconds), BigInt(nanoseconds)];
}

/**
 * Git compares whole seconds and then the size, and does not read a file where both are as they were. Nanoseconds tell more:
 * a file that was changed in the second of its checkout, and given its old time again.
 */
function wasTouched({ modified, changed }: Tracked, now: Times): boolean {
  if (modified === null || changed === null) return false;
  if (now.modified / second !== modified[0] || now.changed / second !== changed[0]) return false;
  return now.modified % second !== modified[1] || now.changed % second !== changed[1];
}

const second = 1_000_000_000n;

const atOnce = 200;

async function differingAmong(flagged: readonly Tracked[], root: string, env: Environment): Promise<string[]> {
  const differing: string[] = [];
  const regular: Tracked[] = [];
  const areModesKept = flagged.length > 0 && (await keepsModes(root, env));
  for (const each of flagged) {
    const path = join(root, each.path);
    const stat = statOf(path);
    // Not checked out: a sparse checkout, or a deletion, which loses nothing.
    if (stat === null || each.mode === "160000") continue;
    if (stat.isSymbolicLink() && each.mode === "120000") {
      const target = readlinkSync(path);
      // A name that is not UTF-8 has lost what would tell it from another.
      const isSame = target === (await ask(root, ["cat-file", "blob", each.object], env)) && !target.includes(lostByte);
      if (!isSame) differing.push(each.path);
    } else if (!stat.isFile() || each.mode === "120000" || (areModesKept && modeOf(stat) !== each.mode))
      differing.push(each.path);
    else regular.push(each);
  }
  for (let first = 0; first < regular.length; first += atOnce) {
    const some = regular.slice(first, first + atOnce);
    const words = ["hash-object", "--no-filters", "--", ...some.map(({ path }) => path)];
    const now = (await ask(root, words, env)).split("\n");
    differing.push(...some.filter(({ object }, index) => now[index] !== object).map(({ path }) => path));
  }
  return differing;
}

/** Not on file systems without modes, where git was told so. */
const keepsModes = async (root: string, env: Environment): Promise<boolean> =>
  (await ask(root, ["config", "--type=bool", "--default=true", "--get", "core.fileMode"], env)) !== "false\n";

/** Of a mode git keeps nothing but this. */
const modeOf = ({ mode }: Stats): string => ((mode & 0o100) === 0 ? "100644" : "100755");

/** null: nothing is there. */
function statOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (isGone(error) || errorCode(error) === "ENOTDIR") return null;
    if (errorCode(error) === "") throw error;
    throw new CannotTell(`${path}: ${failureText(error)}`);
  }
}

/** Bare repositories that are tracked as plain files (fixtures of tests) are the worktree's own. */
export function isTracked(folder: string, look: FolderLook, { unseen, ignored, dirty }: Files): boolean {
  const isOther = (path: string): boolean => `${path}/`.startsWith(`${folder}/`) || `${folder}/`.startsWith(path);
  return look.entries.size > 0 && ![...unseen, ...ignored, ...dirty].some(isOther);
}

function unseenIn({ entries }: FolderLook, known: readonly string[]): string[] {
  const seen = new Set(known);
  const isSeen = (path: string): boolean => {
    if (seen.has(path)) return true;
    for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1))
      if (seen.has(path.slice(0, end + 1))) return true;
    return false;
  };
  return [...entries]
    .filter(([, { kind }]) => kind === "file")
    .map(([below]) => shown(below))
    .filter((path) => path !== ".git" && !isSeen(path));
}
