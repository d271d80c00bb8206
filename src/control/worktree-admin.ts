// The folder that git keeps for a worktree inside of the repository (.git/worktrees/NAME): where it is, and what goes with it.
import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { readText } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { gitText } from "./git.ts";
import { CannotTell, gitFact } from "./git-fact.ts";
import { isOurMark } from "./hold-worktree.ts";
import type { Repository } from "./repository.ts";

export interface WorktreeEntry {
  path: string;
  commit: string | null;
  /** null: a detached HEAD. */
  branch: string | null;
  isBare: boolean;
  isLocked: boolean;
  /** Git, too, finds its folder gone. */
  isPrunable: boolean;
}

/** The main worktree is the first one. */
export async function listWorktrees({ main }: Repository, env: Environment): Promise<WorktreeEntry[]> {
  const out = await gitText(main, ["worktree", "list", "--porcelain", "-z"], env);
  return out
    .split("\0\0")
    .map(parseEntry)
    .filter((entry) => entry !== null);
}

function parseEntry(text: string): WorktreeEntry | null {
  const lines = text.split("\0").filter((line) => line !== "");
  const value = (key: string): string | null =>
    lines.find((line) => line.startsWith(`${key} `))?.slice(key.length + 1) ?? null;
  const has = (key: string): boolean => lines.some((line) => line === key || line.startsWith(`${key} `));
  const path = value("worktree");
  if (path === null) return null;
  const branch = value("branch")?.replace(/^refs\/heads\//, "") ?? null;
  return {
    path,
    commit: value("HEAD"),
    branch,
    isBare: has("bare"),
    isLocked: has("locked"),
    isPrunable: has("prunable"),
  };
}

/** By the path of the worktree that git believes it belongs to. Two for one path have no entry: which is meant is unknown. */
export function adminFolders(common: string): Map<string, string> {
  const found = new Map<string, string>();
  const doubled = new Set<string>();
  for (const name of namesIn(join(common, "worktrees"))) {
    const folder = join(common, "worktrees", name);
    const path = worktreeOf(folder);
    if (path === null) continue;
    if (found.has(path)) doubled.add(path);
    found.set(path, realpathSync(folder));
  }
  for (const path of doubled) found.delete(path);
  return found;
}

/** Where git believes that the worktree of an admin folder is. */
function worktreeOf(admin: string): string | null {
  try {
    return realLocation(dirname(resolve(admin, readText(join(admin, "gitdir")).replace(/\n$/, ""))));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

/** The same name for the same place, also where the folder itself is gone. */
export function realLocation(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return path;
  }
}

/** Which admin folder the `.git` file of a folder names; null: it has none, or a repository of its own. */
export function adminNamedBy(folder: string): string | null {
  try {
    const file = join(folder, ".git");
    if (!lstatSync(file).isFile()) return null;
    const target = /^gitdir: (.*)\n?$/s.exec(readText(file))?.[1]?.replace(/\n$/, "");
    return target === undefined ? null : realpathSync(resolve(folder, target));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

export interface AdminFacts {
  /** What git was in the middle of, in words. */
  unfinished: string[];
  /** Its submodules are filled: they have repositories of their own, which go with it. */
  hasModules: boolean;
  /** What is staged but not committed, for a worktree without its folder. */
  staged: string[];
}

const inProgress: Record<string, string> = {
  "rebase-merge": "a rebase is in progress",
  "rebase-apply": "a rebase or a git am is in progress",
  MERGE_HEAD: "a merge is in progress",
  MERGE_AUTOSTASH: "a merge has stashed changes away",
  CHERRY_PICK_HEAD: "a cherry-pick is in progress",
  REVERT_HEAD: "a revert is in progress",
  sequencer: "a cherry-pick or a revert of several commits is in progress",
  BISECT_LOG: "a bisect is in progress",
  BISECT_START: "a bisect is in progress",
  NOTES_MERGE_WORKTREE: "a merge of notes is in progress",
};

const plainFolders = new Set(["logs", "refs", "info", "modules", "reftable", "fsmonitor--daemon"]);

export async function adminFacts(admin: string, env: Environment): Promise<AdminFacts> {
  const names = namesIn(admin);
  const own = { GIT_DIR: admin };
  const refs = await gitFact(
    admin,
    ["for-each-ref", "--format=%(objectname) %(refname)", "refs/worktree", "refs/bisect", "refs/rewritten"],
    env,
    own,
  );
  return {
    unfinished: [...new Set(names.flatMap((name) => unfinishedBy(name, admin))), ...ownRefs(refs)],
    hasModules: names.includes("modules") && namesIn(join(admin, "modules")).length > 0,
    staged: (await gitFact(admin, ["diff-index", "--cached", "--name-only", "-z", "HEAD"], env, own))
      .split("\0")
      .filter((path) => path !== ""),
  };
}

/** Commits that go with the folder unless a ref has them: those of its reflog, of the branch's, and of what git has put aside. */
export async function commitsNamedIn(admin: string, branch: string | null, env: Environment): Promise<string[]> {
  const logs = ["HEAD", ...(branch === null ? [] : [`refs/heads/${branch}`])];
  const logged = await Promise.all(
    logs.map((ref) =>
      gitFact(admin, ["rev-list", "--walk-reflogs", "--ignore-missing", ref, "--"], env, { GIT_DIR: admin }),
    ),
  );
  const ids = [...logged, ...textsBelow(admin)].flatMap((text) => text.match(objectId) ?? []);
  return [...new Set(ids)].filter((id) => !/^0+$/.test(id));
}

const objectId = /\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b/g;

const ownRefs = (refs: string): string[] =>
  refs
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    // A bisect says so by its own files.
    .filter((ref) => ref !== "" && !ref.startsWith("refs/bisect/"))
    .map((ref) => `it has a ref of its own: ${ref}`);

function unfinishedBy(name: string, admin: string): string[] {
  const path = join(admin, name);
  const said = inProgress[name];
  if (said !== undefined) return [namesIn(path).includes("autostash") ? `${said}, and has stashed changes away` : said];
  if (name.endsWith(".lock")) return isOurMark(path) ? [] : [`a git command is at work in it, or was killed: ${path}`];
  const isPlain = !isFolder(path) || plainFolders.has(name);
  return isPlain ? [] : [`git's folder for it has something unknown in it: ${path}`];
}

const mostBytes = 16 * 1024 * 1024;
/** Fetched commits are nobody's work here, an index names no commits, and submodules have object stores of their own. */
const notRead = new Set(["FETCH_HEAD", "index", "modules"]);

/** The texts of everything in it that may name commits. */
function textsBelow(folder: string): string[] {
  return namesIn(folder).flatMap((name) => {
    const path = join(folder, name);
    if (notRead.has(name)) return [];
    return isFolder(path) ? textsBelow(path) : textsIn(path);
  });
}

function textsIn(path: string): string[] {
  try {
    const stat = lstatSync(path);
    return stat.isFile() && stat.size <= mostBytes ? [readText(path, "latin1")] : [];
  } catch (error) {
    if (isGone(error)) return [];
    throw new CannotTell(`${path}: ${failureText(error)}`);
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error) || errorCode(error) === "ENOTDIR") return [];
    throw new CannotTell(`${folder}: ${failureText(error)}`);
  }
}

export function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return false;
  }
}
