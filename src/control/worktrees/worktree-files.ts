// The files of a worktree besides its commits, by git and by the file system.

import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, isGone } from "../../lib/errors.ts";
import type { Environment } from "../../observe/homes.ts";
import { CannotTell, gitFact, lostByte, namesIn, plainStatus, unreadable } from "../git/git.ts";
import { realLocation } from "./admin-folder.ts";
import { type FolderLook, shown, type Times } from "./folder-contents.ts";

export interface Files {
  /** Changed, staged and new. */
  dirty: string[];
  /** New files that are not staged. */
  untracked: string[];
  /** A folder counts as one. */
  ignored: string[];
  /** Files that differ from the index without git's notice: an option tells git not to check them, or git relies on their times. */
  hidden: string[];
  /** Files in a place that git does not search (an empty submodule): they are neither tracked nor ignored nor untracked. */
  unseen: string[];
}

/** Throws if git or the file system cannot tell. */
export async function filesIn(root: string, look: FolderLook, env: Environment): Promise<Files> {
  const [first] = look.unread;
  const status = namesIn(
    await ask(root, [...unconditional, ...plainStatus, "--ignore-submodules=none", "--ignored=traditional"], env),
  );
  if (first !== undefined) throw new CannotTell({ problem: "unreadable", ...first });
  const tracked = trackedIn(await ask(root, ["ls-files", "-v", "-s", "-z", "--debug"], env));
  const paths = (isWanted: (kind: string) => boolean): string[] =>
    status.filter((line) => isWanted(line.slice(0, 2))).map((line) => line.slice(3));
  const dirty = paths((kind) => kind !== "!!");
  const ignored = paths((kind) => kind === "!!");
  const byName = Map.groupBy(look.entries, ([below]) => shown(below));
  const timesAt = (path: string): Times[] => (byName.get(path) ?? []).map(([, { times }]) => times);
  const doubtful = tracked.filter((each) => each.isFlagged || timesAt(each.path).some((now) => wasTouched(each, now)));
  // A name that has lost bytes finds no file. Such a file must not count as missing.
  const nameless = doubtful.find(({ path }) => path.includes(lostByte) && byName.has(path));
  if (nameless !== undefined) throw new CannotTell({ problem: "name-not-utf8", path: nameless.path });
  // Git itself shows a plain edit in the second of the checkout.
  const hidden = (await differingAmong(doubtful, root, env)).filter((path) => !dirty.includes(path));
  const untracked = paths((kind) => kind === "??");
  const unseen = unseenIn(look, [...tracked.map(({ path }) => path), ...dirty, ...ignored]);
  return { dirty, untracked, ignored, hidden, unseen };
}

/** The setting core.worktree may make git look at another folder. */
export async function checkFolder(root: string, env: Environment): Promise<void> {
  const top = (await ask(root, ["rev-parse", "--show-toplevel"], env)).replace(/\n$/, "");
  if (top !== realLocation(root)) throw new CannotTell({ problem: "other-folder", path: top });
}

/** If the worktree's `.git` is gone, git must not find a repository around it. */
const ask = (root: string, words: readonly string[], env: Environment): Promise<string> =>
  gitFact(root, words, env, { GIT_CEILING_DIRECTORIES: dirname(root) });

/** Overrides settings that make git look less closely. */
const unconditional = [
  ...["-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "core.untrackedCache=false"],
  // Any warning keeps the worktree, so git must not warn about line endings.
  ...["-c", "core.safecrlf=false"],
];

interface TrackedFile {
  path: string;
  mode: string;
  object: string;
  /** assume-unchanged or skip-worktree: git does not check it. */
  isFlagged: boolean;
  /** The times of the file in the index; null: this version of git does not print them. */
  modified: Time | null;
  changed: Time | null;
}

type Time = readonly [seconds: bigint, nanoseconds: bigint];

/** The output of --debug has not changed for many versions, but git does not document it. */
const trackedLine = /(.) (\d+) ([0-9a-f]+) \d\t([^\0]+)\0((?: {2}.*\n)*)/gy;

function trackedIn(out: string): TrackedFile[] {
  const found: TrackedFile[] = [];
  trackedLine.lastIndex = 0;
  for (let end = 0; end < out.length; end = trackedLine.lastIndex) {
    const match = trackedLine.exec(out);
    if (match === null)
      throw new CannotTell({ problem: "unexpected-answer", command: "ls-files", detail: out.slice(end, end + 200) });
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
 * Git compares whole seconds and the size, and does not read a file if both are unchanged. Nanoseconds also reveal a file that
 * was changed in the second of its checkout and then got its old time again.
 */
function wasTouched({ modified, changed }: TrackedFile, now: Times): boolean {
  if (modified === null || changed === null) return false;
  if (now.modified / second !== modified[0] || now.changed / second !== changed[0]) return false;
  return now.modified % second !== modified[1] || now.changed % second !== changed[1];
}

const second = 1_000_000_000n;

const atOnce = 200;

async function differingAmong(flagged: readonly TrackedFile[], root: string, env: Environment): Promise<string[]> {
  const differing: string[] = [];
  const regular: TrackedFile[] = [];
  const areModesKept = flagged.length > 0 && (await keepsModes(root, env));
  for (const each of flagged) {
    const path = join(root, each.path);
    const stat = statOf(path);
    // Not checked out (a sparse checkout) or deleted: nothing can be lost.
    if (stat === null || each.mode === "160000") continue;
    if (stat.isSymbolicLink() && each.mode === "120000") {
      const target = readlinkSync(path);
      // Different names that are not UTF-8 may look the same here.
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

/** False on file systems without modes (core.fileMode=false). */
const keepsModes = async (root: string, env: Environment): Promise<boolean> =>
  (await ask(root, ["config", "--type=bool", "--default=true", "--get", "core.fileMode"], env)) !== "false\n";

/** The only part of a mode that git records. */
const modeOf = ({ mode }: Stats): string => ((mode & 0o100) === 0 ? "100644" : "100755");

function statOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    if (isGone(error) || errorCode(error) === "ENOTDIR") return null;
    if (errorCode(error) === "") throw error;
    throw unreadable(path, error);
  }
}

/** Bare repositories that are tracked as plain files (test fixtures) belong to the worktree. */
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
