// Worktrees for sessions: made by plain git beside the repository, removed only when nothing would be lost.
import { lstatSync, mkdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { failureText } from "../observe/failure.ts";
import { type Environment, readSettings } from "../observe/homes.ts";
import { type GitAnswer, git, gitAsPerson } from "./git.ts";
import { deleteBranch } from "./lasting-refs.ts";
import { commonFolder, type Repository, repositoryAround, repositoryAt } from "./repository.ts";
import { adminFolders, isFolder, listWorktrees, realLocation } from "./worktree-admin.ts";
import { presenceOf } from "./worktree-presence.ts";

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
  /** The commit that it began at. */
  base: string;
  repository: Repository;
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
  checkSurroundings(repository, env);
  const base = await commitOf(wish.base ?? "HEAD", root, env);
  await checkBranch(wish.branch ?? `agentctl/${wish.name}`, root, env);
  const { branch, isNewBranch, path } = await freeNames(wish, folderFor(main, env), root, env);
  if (!isNewBranch && wish.base !== null)
    throw new AgentctlError("refused", `the branch ${branch} exists already; --base would not change it`, {
      hint: "without --base it goes on there; --worktree=BRANCH takes another one",
    });
  await checkReach(dirname(path), repository, env);
  makeRoom(path);
  const words = isNewBranch ? ["-b", branch, "--", path, base] : ["--", path, branch];
  const begin = isNewBranch ? base : await commitOf(`refs/heads/${branch}`, root, env);
  const { ok, err } = await gitAsPerson(root, ["worktree", "add", "--quiet", ...words], env);
  if (!ok) {
    const isTaken = /\balready\b/.test(err);
    // Git makes the branch first, and leaves it. Of somebody else's with the same name it says that it is there. One that has
    // moved on from the base is somebody's work, whoever made it.
    if (isNewBranch && !isTaken) await deleteBranch(branch, base, "may-lose-their-name", repository, env);
    throw new AgentctlError(isTaken ? "refused" : "failed", `git made no worktree at ${path}:\n${err}`);
  }
  const inside = repository.isBare ? "" : relative(root, wish.cwd);
  const cwd = inside !== "" && !inside.startsWith("..") && isFolder(join(path, inside)) ? join(path, inside) : path;
  const warnings = await missingIn(path, repository, env);
  return { path, branch, isNewBranch, base: begin, repository, cwd, warnings };
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

/** Git removes what is inside of a repository together with it, and with a worktree the repositories of its submodules. */
function checkSurroundings(repository: Repository, env: Environment): void {
  if (readSettings(env).settings.worktrees !== null) return;
  const around = repositoryAround(repository);
  if (around === null) return;
  const why = `a worktree of ${repository.root} would be inside of another repository: ${around}`;
  throw new AgentctlError("refused", why, { hint: ownFolder });
}

const ownFolder = 'name a folder of yours in agentctl\'s config.json: {"worktrees": "~/worktrees"}';

/**
 * A disk that is not mounted takes all of its worktrees along. A new folder in its place would look as if they had been deleted,
 * and git would be told to forget them.
 */
async function checkReach(folder: string, repository: Repository, env: Environment): Promise<void> {
  const real = dirname(realLocation(join(folder, "any")));
  const admins = adminFolders(commonFolder(repository));
  const entries = (await listWorktrees(repository, env)).filter(({ path }) => dirname(path) === real);
  const seen = entries.map((entry) => presenceOf(entry, admins.get(entry.path) ?? null));
  if (seen.some(({ kind }) => kind === "there") || !seen.some(({ kind }) => kind === "out-of-reach")) return;
  const count = entries.length === 1 ? "the worktree" : `the ${entries.length} worktrees`;
  throw new AgentctlError("refused", `${count} in ${folder} cannot be reached: a disk may not be mounted`, {
    hint: "mount it; or, if they were deleted, git worktree prune",
  });
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
  const folder = dirname(path);
  const isTheirs = [lstatSync(folder), statSync(folder)].some(({ uid }) => uid !== process.geteuid?.() && uid !== 0);
  const { mode } = statSync(folder);
  const isOpen = (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
  if (!isTheirs && !isOpen) return;
  // In a shared parent folder anybody can make `<repo>.worktrees`, and would then own the ground under the session.
  const why = isTheirs ? "belongs to another user" : "may be written to by everybody";
  throw new AgentctlError("refused", `cannot make a worktree in ${folder}: it ${why}`, {
    hint: ownFolder,
  });
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
