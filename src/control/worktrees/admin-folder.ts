// The admin folder of a worktree (.git/worktrees/NAME in the repository): where it is, and what would be lost with it.
import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { UnfinishedWork } from "../../core/keep-reason.ts";
import { errorCode, isGone, tryOr } from "../../lib/errors.ts";
import { readText } from "../../observe/files.ts";
import type { Environment } from "../../observe/homes.ts";
import { gitFact, gitText, namesIn, unreadable } from "../git/git.ts";
import type { Repository } from "../git/repository.ts";
import { isOurLock } from "./hold-worktree.ts";

export interface WorktreeEntry {
  path: string;
  commit: string | null;
  /** null: a detached HEAD. */
  branch: string | null;
  isBare: boolean;
  isLocked: boolean;
  /** Git considers its folder gone. */
  isPrunable: boolean;
}

/** The main worktree comes first. */
export async function listWorktrees({ main, env }: Repository): Promise<WorktreeEntry[]> {
  const out = await gitText(main, ["worktree", "list", "--porcelain", "-z"], env);
  return out.split("\0\0").flatMap((text) => parseEntry(text) ?? []);
}

function parseEntry(text: string): WorktreeEntry | null {
  const lines = namesIn(text);
  const value = (key: string): string | null =>
    lines.find((line) => line.startsWith(`${key} `))?.slice(key.length + 1) ?? null;
  const has = (key: string): boolean => lines.some((line) => line === key || line.startsWith(`${key} `));
  const path = value("worktree");
  if (path === null) return null;
  const branch = value("branch")?.replace(/^refs\/heads\//, "") ?? null;
  const marks = { isBare: has("bare"), isLocked: has("locked"), isPrunable: has("prunable") };
  return { path, commit: value("HEAD"), branch, ...marks };
}

/** The admin folders by the path of their worktree in git's data. If two admin folders name one path, neither has an entry. */
export function adminFolders(common: string): Map<string, string> {
  const found = new Map<string, string>();
  const doubled = new Set<string>();
  for (const name of entriesOf(join(common, "worktrees"))) {
    const folder = join(common, "worktrees", name);
    const path = worktreeOf(folder);
    if (path === null) continue;
    if (found.has(path)) doubled.add(path);
    found.set(path, realpathSync(folder));
  }
  for (const path of doubled) found.delete(path);
  return found;
}

const worktreeOf = (admin: string): string | null =>
  tryOr(null, () => realLocation(dirname(resolve(admin, readText(join(admin, "gitdir")).replace(/\n$/, "")))));

/** The real path of a folder, also if the folder itself is gone. */
export const realLocation = (path: string): string =>
  tryOr(path, () => join(realpathSync(dirname(path)), basename(path)));

/** The admin folder that the `.git` file of a folder names; null: no `.git`, or a repository of its own. */
export const adminNamedBy = (folder: string): string | null =>
  tryOr(null, () => {
    const file = join(folder, ".git");
    if (!lstatSync(file).isFile()) return null;
    const target = /^gitdir: (.*)\n?$/s.exec(readText(file))?.[1]?.replace(/\n$/, "");
    return target === undefined ? null : realpathSync(resolve(folder, target));
  });

export interface AdminFacts {
  unfinished: UnfinishedWork[];
  /** It has checked-out submodules, whose repositories would be removed with it. */
  hasModules: boolean;
  /** Staged but not committed files, for a worktree whose folder is gone. */
  staged: string[];
}

const inProgress: Record<string, UnfinishedWork["work"]> = {
  "rebase-merge": "rebase",
  "rebase-apply": "rebase-or-am",
  MERGE_HEAD: "merge",
  MERGE_AUTOSTASH: "merge-stash",
  CHERRY_PICK_HEAD: "cherry-pick",
  REVERT_HEAD: "revert",
  sequencer: "sequence",
  BISECT_LOG: "bisect",
  BISECT_START: "bisect",
  NOTES_MERGE_WORKTREE: "notes-merge",
};

const plainFolders = new Set(["logs", "refs", "info", "modules", "reftable", "fsmonitor--daemon"]);

export async function adminFacts(admin: string, env: Environment): Promise<AdminFacts> {
  // A bisect has two files: count it once.
  const names = entriesOf(admin).filter((name, _, all) => name !== "BISECT_START" || !all.includes("BISECT_LOG"));
  const ask = (words: readonly string[]): Promise<string> => gitFact(admin, words, env, { GIT_DIR: admin });
  const refs = await ask(["for-each-ref", "--format=%(refname)", "refs/worktree", "refs/bisect", "refs/rewritten"]);
  // A bisect is reported by its own files.
  const ownRefs = refs.split("\n").filter((ref) => ref !== "" && !ref.startsWith("refs/bisect/"));
  return {
    unfinished: [
      ...names.flatMap((name) => unfinishedBy(name, admin)),
      ...ownRefs.map((name) => ({ work: "own-ref" as const, hasStash: false, name })),
    ],
    hasModules: entriesOf(join(admin, "modules")).length > 0,
    staged: namesIn(await ask(["diff-index", "--cached", "--name-only", "-z", "HEAD"])),
  };
}

/** Commits that are lost with the admin folder unless a ref has them: in its reflog, the branch's reflog and git's own files. */
export async function commitsNamedIn(admin: string, branch: string | null, env: Environment): Promise<string[]> {
  const walk = (ref: string): Promise<string> =>
    gitFact(admin, ["rev-list", "--walk-reflogs", "--ignore-missing", ref, "--"], env, { GIT_DIR: admin });
  const logged = await Promise.all(["HEAD", ...(branch === null ? [] : [`refs/heads/${branch}`])].map(walk));
  const ids = [...logged, ...textsBelow(admin)].flatMap((text) => text.match(objectId) ?? []);
  return [...new Set(ids)].filter((id) => !/^0+$/.test(id));
}

const objectId = /\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b/g;

function unfinishedBy(name: string, admin: string): UnfinishedWork[] {
  const path = join(admin, name);
  const work = inProgress[name];
  if (work !== undefined) return [{ work, hasStash: entriesOf(path).includes("autostash"), name: null }];
  if (name.endsWith(".lock")) return isOurLock(path) ? [] : [{ work: "git-lock", hasStash: false, name: path }];
  const isPlain = !isFolder(path) || plainFolders.has(name);
  return isPlain ? [] : [{ work: "unknown-file", hasStash: false, name: path }];
}

const maxBytes = 16 * 1024 * 1024;
/** Fetched commits are on the remote, an index names no commits, and submodules have object stores of their own. */
const notRead = new Set(["FETCH_HEAD", "index", "modules"]);

function textsBelow(folder: string): string[] {
  return entriesOf(folder).flatMap((name) => {
    const path = join(folder, name);
    if (notRead.has(name)) return [];
    return isFolder(path) ? textsBelow(path) : textsIn(path);
  });
}

function textsIn(path: string): string[] {
  try {
    const stat = lstatSync(path);
    return stat.isFile() && stat.size <= maxBytes ? [readText(path, "latin1")] : [];
  } catch (error) {
    if (isGone(error)) return [];
    throw unreadable(path, error);
  }
}

/** Empty if there is no such folder. */
function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error) || errorCode(error) === "ENOTDIR") return [];
    throw unreadable(folder, error);
  }
}

export const isFolder = (path: string): boolean => tryOr(false, () => lstatSync(path).isDirectory());
