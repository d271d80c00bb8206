// Worktrees for sessions: made by plain git beside the repository, removed only when nothing would be lost.
import { lstatSync, mkdirSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import { type Environment, readSettings } from "../observe/homes.ts";
import { type GitAnswer, git, gitAsPerson, gitText } from "./git.ts";

export interface Repository {
  /** The main worktree, or the repository itself where it is bare. */
  main: string;
  /** The worktree that we are in; of a bare repository itself. */
  root: string;
  isBare: boolean;
}

/** An error that says what is there instead, where it is no repository. */
export async function repositoryAt(cwd: string, env: Environment): Promise<Repository> {
  // One question at a time: a path may hold a newline.
  const { ok, out, err } = await git(cwd, ["rev-parse", "--path-format=absolute", "--git-common-dir"], env);
  if (!ok) {
    if (/dubious ownership/.test(err))
      throw new AgentctlError("refused", `${cwd} is in a git repository of somebody else's\n${err}`);
    throw new AgentctlError("usage", `${cwd} is in no git repository\n${err}`, { hint: "git init" });
  }
  const common = out.replace(/\n$/, "");
  const main = basename(common) === ".git" ? dirname(common) : common;
  const top = await git(cwd, ["rev-parse", "--show-toplevel"], env);
  // Without a worktree around us: a bare repository, or the inside of `.git`.
  return top.ok
    ? { main, root: top.out.replace(/\n$/, ""), isBare: main === common }
    : { main, root: main, isBare: main === common };
}

/** The commit that a directory is at; null: no repository, or nothing was ever committed. */
export async function commitAt(cwd: string, env: Environment): Promise<string | null> {
  try {
    const { ok, out } = await git(cwd, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], env);
    return ok ? out.trim() : null;
  } catch (error) {
    // Without git there are no commits either.
    if (error instanceof AgentctlError) return null;
    throw error;
  }
}

export interface WorktreeWish {
  cwd: string;
  /** null: a new one, called after the worktree. */
  branch: string | null;
  base: string | null;
  /** What the folder is called. */
  name: string;
  /** Whose word that is: agentctl's gets a number where a folder has it already. */
  namedBy: "person" | "agentctl";
}

export interface MadeWorktree {
  path: string;
  branch: string;
  /** The branch was made with it. */
  isNewBranch: boolean;
  main: string;
  /** The same directory as the one that was asked for, in there. */
  cwd: string;
  /** What somebody may miss in it. */
  warnings: string[];
}

let last: Promise<unknown> = Promise.resolve();

/** One after the other: two at once in one repository get into each other's way. */
export function addWorktree(wish: WorktreeWish, env: Environment): Promise<MadeWorktree> {
  const next = last.then(() => makeWorktree(wish, env));
  last = next.catch(() => {});
  return next;
}

async function makeWorktree(wish: WorktreeWish, env: Environment): Promise<MadeWorktree> {
  const repository = await repositoryAt(wish.cwd, env);
  const { main, root } = repository;
  const base = await commitOf(wish.base ?? "HEAD", root, env);
  await checkBranch(wish.branch ?? `agentctl/${wish.name}`, root, env);
  const { branch, isNewBranch, path } = await freeNames(wish, folderFor(main, env), root, env);
  if (!isNewBranch && wish.base !== null)
    throw new AgentctlError("refused", `the branch ${branch} exists already; --base would not change it`, {
      hint: "without --base it goes on there; --worktree=BRANCH takes another one",
    });
  makeRoom(path);
  const words = isNewBranch ? ["-b", branch, "--", path, base] : ["--", path, branch];
  const { ok, err } = await gitAsPerson(root, ["worktree", "add", "--quiet", ...words], env);
  if (!ok) {
    const isTaken = /\balready\b/.test(err);
    // Git makes the branch first, and leaves it. Of somebody else's with the same name it says that it is there.
    if (isNewBranch && !isTaken) await git(root, ["branch", "--quiet", "-D", "--", branch], env);
    throw new AgentctlError(isTaken ? "refused" : "failed", `git made no worktree at ${path}:\n${err}`);
  }
  const inside = repository.isBare ? "" : relative(root, wish.cwd);
  const cwd = inside !== "" && !inside.startsWith("..") && isFolder(join(path, inside)) ? join(path, inside) : path;
  return { path, branch, isNewBranch, main, cwd, warnings: await missingIn(path, repository, env) };
}

/** What agentctl has chosen gets the next free number; what a person has named stays as it is. */
async function freeNames(
  wish: WorktreeWish,
  folder: string,
  root: string,
  env: Environment,
): Promise<Pick<MadeWorktree, "branch" | "isNewBranch" | "path">> {
  for (let number = 1; ; number += 1) {
    const numbered = number === 1 ? wish.name : `${wish.name}-${number}`;
    const branch = wish.branch ?? `agentctl/${numbered}`;
    const path = join(folder, wish.namedBy === "agentctl" ? numbered : wish.name);
    const isNewBranch = !(await git(root, ["show-ref", "--verify", "--quiet", `refs/heads/${branch}`], env)).ok;
    const isTaken = (!isNewBranch && wish.branch === null) || (wish.namedBy === "agentctl" && isThere(path));
    if (!isTaken) return { branch, isNewBranch, path };
  }
}

/** Only what git itself takes for a commit; nothing that it could take for an option. */
async function commitOf(ref: string, root: string, env: Environment): Promise<string> {
  const asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`];
  const { ok, out } = await git(root, asked, env);
  if (ok) return out.trim();
  if (ref === "HEAD")
    throw new AgentctlError("refused", `${root} has no commits yet: a worktree needs one`, { hint: "git commit" });
  throw new AgentctlError("usage", `no such commit: ${oneLine(ref)}`);
}

async function checkBranch(branch: string, root: string, env: Environment): Promise<void> {
  const isOdd = branch.startsWith("-") || branch === "HEAD";
  if (isOdd || !(await git(root, ["check-ref-format", `refs/heads/${branch}`], env)).ok)
    throw new AgentctlError("usage", `not the name of a branch: ${oneLine(branch)}`);
}

/** `../<repo>.worktrees`, or a folder per repository where a person wants them. */
export function folderFor(main: string, env: Environment): string {
  const name = basename(main).replace(/\.git$/, "") || "repository";
  const { worktrees } = readSettings(env).settings;
  return worktrees === null ? join(dirname(main), `${name}.worktrees`) : join(worktrees, name);
}

/** Never over anything that is there. */
function makeRoom(path: string): void {
  if (isThere(path))
    throw new AgentctlError("refused", `${path} is there already`, { hint: "--name gives it another name" });
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    throw cannotMake(path, error);
  }
}

/** Also an empty folder, or a link that leads nowhere. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw cannotMake(path, error);
  }
}

const cannotMake = (path: string, error: unknown): AgentctlError =>
  new AgentctlError("failed", `cannot make a worktree in ${dirname(path)}: ${failureText(error)}`, { cause: error });

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return false;
  }
}

async function missingIn(path: string, { root, isBare }: Repository, env: Environment): Promise<string[]> {
  const warnings: string[] = [];
  const dirty = (isBare ? null : await dirtyFiles(root, env)) ?? [];
  if (dirty.length > 0)
    warnings.push(
      dirty.length === 1
        ? `1 uncommitted file of ${root} is not in it`
        : `${dirty.length} uncommitted files of ${root} are not in it`,
    );
  if ((await git(path, ["ls-files", "--error-unmatch", "--", ".gitmodules"], env)).ok)
    warnings.push("its submodules are empty: --setup 'git submodule update --init' fills them");
  return warnings;
}

/** Changed, staged and new files; ignored ones are nobody's work. null: git cannot say. */
async function dirtyFiles(root: string, env: Environment): Promise<string[] | null> {
  const { ok, out } = await statusOf(root, [], env);
  return ok ? entriesIn(out).map(({ path }) => path) : null;
}

/** What is in a worktree beside its commits. */
export type Contents =
  | {
      known: true;
      dirty: string[];
      /** Folders as one. */
      ignored: string[];
      /** Its submodules are filled: they have repositories of their own, which go with it. */
      hasModules: boolean;
    }
  | { known: false; why: string };

export async function contentsOf(root: string, env: Environment): Promise<Contents> {
  const { ok, out, err } = await statusOf(root, ["--ignored=traditional"], env);
  if (!ok) return { known: false, why: err || "git status failed" };
  const own = await gitText(root, ["rev-parse", "--absolute-git-dir"], env);
  const isIgnored = ({ kind }: { kind: string }): boolean => kind === "!!";
  const entries = entriesIn(out);
  const paths = (some: typeof entries): string[] => some.map(({ path }) => path);
  return {
    known: true,
    dirty: paths(entries.filter((entry) => !isIgnored(entry))),
    ignored: paths(entries.filter(isIgnored)),
    hasModules: isFolder(join(own, "modules")),
  };
}

/** Nobody's settings hide a new file from us. */
const whole = ["--untracked-files=normal", "--ignore-submodules=none"];

/** Of this worktree or of none: where its `.git` is gone, a repository around it is not meant. */
const statusOf = (root: string, words: readonly string[], env: Environment): Promise<GitAnswer> =>
  git(root, ["status", "--porcelain", "-z", "--no-renames", ...whole, ...words], env, {
    GIT_CEILING_DIRECTORIES: dirname(root),
  });

const entriesIn = (out: string): { kind: string; path: string }[] =>
  out
    .split("\0")
    .filter((line) => line !== "")
    .map((line) => ({ kind: line.slice(0, 2), path: line.slice(3) }));

/** After a start that failed. Git's words where it stays: somebody has worked in it after all. */
export async function undoWorktree(
  { path, branch, isNewBranch, main }: MadeWorktree,
  how: "with what is in it" | "if nothing is in it",
  env: Environment,
): Promise<string | null> {
  const force = how === "with what is in it" ? ["--force"] : [];
  const { ok, err } = await git(main, ["worktree", "remove", ...force, "--", path], env);
  if (!ok) return err || "git worktree remove failed";
  if (isNewBranch) await git(main, ["branch", "--quiet", "-D", "--", branch], env);
  return null;
}

/** The branch that went with it; null: it stays. */
export async function removeWorktree(
  { path, branch, isGone, isMerged }: { path: string; branch: string | null; isGone: boolean; isMerged: boolean },
  { main }: Repository,
  discard: boolean,
  env: Environment,
): Promise<string | null> {
  await gitText(main, ["worktree", "remove", ...(discard || isGone ? ["--force"] : []), "--", path], env);
  if (branch === null || !branch.startsWith("agentctl/") || !(isMerged || discard)) return null;
  return (await git(main, ["branch", "--quiet", "-D", "--", branch], env)).ok ? branch : null;
}
