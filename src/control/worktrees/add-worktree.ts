// Creates the worktree of a session with plain git, beside its repository.
import { existsSync, lstatSync, mkdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { Failure } from "../../core/failure.ts";
import type { Notice } from "../../core/notice.ts";
import { failureText } from "../../lib/errors.ts";
import { type Environment, readSettings } from "../../observe/homes.ts";
import { git, gitAsPerson, namesIn, plainStatus } from "../git/git.ts";
import { deleteBranch } from "../git/lasting-refs.ts";
import { commonFolder, type Repository, repositoryAt } from "../git/repository.ts";
import { adminFolders, isFolder, listWorktrees, realLocation } from "./admin-folder.ts";
import { presenceOf } from "./worktree-presence.ts";

/** The HEAD commit of a directory; null: not in a repository, or the repository has no commit. */
export async function commitAt(cwd: string, env: Environment): Promise<string | null> {
  try {
    const { ok, out } = await git(cwd, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], env);
    return ok ? out.trim() : null;
  } catch (error) {
    // Git is not installed.
    if (error instanceof Failure) return null;
    throw error;
  }
}

export interface NewWorktree {
  /** null: a new branch with the name of the worktree. */
  branch: string | null;
  base: string | null;
  name: string;
  /** A name that agentctl chose gets a number if a folder already has it; a person's name is refused then. */
  namedBy: "person" | "agentctl";
  setup: string | null;
}

export interface MadeWorktree {
  path: string;
  branch: string;
  isNewBranch: boolean;
  /** The commit that its branch began at. */
  base: string;
  repository: Repository;
  /** The directory in the worktree that corresponds to the requested one. */
  cwd: string;
  /** Warnings about files that are not in the new worktree. */
  warnings: Notice[];
}

let last: Promise<unknown> = Promise.resolve();

/** One at a time: of two git commands in one repository, one fails if the other holds a lock. */
export function addWorktree(wanted: NewWorktree, cwd: string, env: Environment): Promise<MadeWorktree> {
  const next = last.then(() => makeWorktree(wanted, cwd, env));
  last = next.catch(() => {});
  return next;
}

async function makeWorktree(wanted: NewWorktree, requested: string, env: Environment): Promise<MadeWorktree> {
  const repository = await repositoryAt(requested, env);
  const { main, root } = repository;
  checkSurroundings(repository);
  const base = await commitOf(wanted.base ?? "HEAD", root, env);
  await checkBranch(wanted.branch ?? `agentctl/${wanted.name}`, root, env);
  const { branch, isNewBranch, path } = await freeNames(wanted, folderFor(main, env), root, env);
  if (!isNewBranch && wanted.base !== null) throw new Failure("branch-exists", { branch });
  await checkReach(dirname(path), repository);
  makeParentFolder(path);
  const words = isNewBranch ? ["-b", branch, "--", path, base] : ["--", path, branch];
  const startCommit = isNewBranch ? base : await commitOf(`refs/heads/${branch}`, root, env);
  const { ok, err } = await gitAsPerson(root, ["worktree", "add", "--quiet", ...words], env);
  if (!ok) {
    const isTaken = /\balready\b/.test(err);
    // Git creates the branch first, and does not remove it when it fails. A branch that another process created makes git say
    // "already exists". deleteBranch keeps a branch that is no longer at its base, because it holds work.
    if (isNewBranch && !isTaken) await deleteBranch(branch, base, "may-lose-their-name", repository);
    throw new Failure(isTaken ? "worktree-taken" : "worktree-not-created", { path, detail: err });
  }
  const inside = repository.isBare ? "" : relative(root, requested);
  const cwd = inside !== "" && !inside.startsWith("..") && isFolder(join(path, inside)) ? join(path, inside) : path;
  const warnings = await missingIn(path, repository);
  return { path, branch, isNewBranch, base: startCommit, repository, cwd, warnings };
}

/** A name that agentctl chose gets the next free number; a person's name stays as it is. */
async function freeNames(wanted: NewWorktree, folder: string, root: string, env: Environment) {
  for (let number = 1; ; number += 1) {
    const numbered = number === 1 ? wanted.name : `${wanted.name}-${number}`;
    const branch = wanted.branch ?? `agentctl/${numbered}`;
    const path = join(folder, wanted.namedBy === "agentctl" ? numbered : wanted.name);
    const isNewBranch = !(await git(root, ["show-ref", "--verify", "--quiet", `refs/heads/${branch}`], env)).ok;
    const isTaken = (!isNewBranch && wanted.branch === null) || (wanted.namedBy === "agentctl" && isThere(path));
    if (!isTaken) return { branch, isNewBranch, path };
  }
}

/** Accepts only a name that git resolves to a commit, and no option. */
async function commitOf(ref: string, root: string, env: Environment): Promise<string> {
  const asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", `${ref}^{commit}`];
  const { ok, out } = await git(root, asked, env);
  if (ok) return out.trim();
  throw ref === "HEAD" ? new Failure("no-commits", { root }) : new Failure("commit-not-found", { commit: ref });
}

async function checkBranch(branch: string, root: string, env: Environment): Promise<void> {
  const isReserved = branch.startsWith("-") || branch === "HEAD";
  if (isReserved || !(await git(root, ["check-ref-format", `refs/heads/${branch}`], env)).ok)
    throw new Failure("not-a-branch-name", { branch });
}

/** `../<repo>.worktrees`, or a folder per repository below the folder of the setting. */
export function folderFor(main: string, env: Environment): string {
  const name = basename(main).replace(/\.git$/, "") || "repository";
  const { worktrees } = readSettings(env).settings;
  return worktrees === null ? join(dirname(main), `${name}.worktrees`) : join(worktrees, name);
}

/**
 * Refuses a repository inside another one: that of a submodule is inside the `.git` of its superproject, or in the admin folder of
 * a worktree. A folder beside it would be deleted with the outer one.
 */
function checkSurroundings(repository: Repository): void {
  if (readSettings(repository.env).settings.worktrees !== null) return;
  for (let around = dirname(commonFolder(repository)); dirname(around) !== around; around = dirname(around)) {
    const has = (name: string): boolean => existsSync(join(around, name));
    if (basename(around) === ".git" || (has("HEAD") && (has("commondir") || (has("objects") && has("refs")))))
      throw new Failure("inside-repository", { root: repository.root, around });
  }
}

/**
 * If a disk is not mounted, all of its worktrees are missing. A new folder at its mount point would make them look deleted,
 * and `git worktree prune` would forget them.
 */
async function checkReach(folder: string, repository: Repository): Promise<void> {
  const real = dirname(realLocation(join(folder, "any")));
  const admins = adminFolders(commonFolder(repository));
  const entries = (await listWorktrees(repository)).filter(({ path }) => dirname(path) === real);
  const seen = entries.map((entry) => presenceOf(entry, admins.get(entry.path) ?? null));
  if (seen.some(({ kind }) => kind === "there") || !seen.some(({ kind }) => kind === "out-of-reach")) return;
  throw new Failure("worktrees-out-of-reach", { folder, count: entries.length });
}

function makeParentFolder(path: string): void {
  if (isThere(path)) throw new Failure("path-exists", { path });
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    throw cannotMake(path, error);
  }
  const folder = dirname(path);
  const owners = [lstatSync(folder), statSync(folder)].map(({ uid }) => uid);
  const isTheirs = owners.some((uid) => uid !== process.geteuid?.() && uid !== 0);
  const { mode } = statSync(folder);
  const isOpen = (mode & 0o002) !== 0 && (mode & 0o1000) === 0;
  if (!isTheirs && !isOpen) return;
  // In a shared parent folder another user can create `<repo>.worktrees` first, and would then own the session's parent folder.
  throw new Failure("worktree-folder-untrusted", { folder, problem: isTheirs ? "other-owner" : "writable-by-others" });
}

/** True also for an empty folder and for a broken symbolic link. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw cannotMake(path, error);
  }
}

const cannotMake = (path: string, error: unknown): Failure =>
  new Failure("worktree-folder-unusable", { folder: dirname(path), detail: failureText(error) }, { cause: error });

async function missingIn(path: string, { root, isBare, env }: Repository): Promise<Notice[]> {
  const warnings: Notice[] = [];
  const { ok, out } = isBare ? { ok: false, out: "" } : await git(root, plainStatus, env);
  const count = ok ? namesIn(out).length : 0;
  if (count > 0) warnings.push({ code: "worktree-without-files", facts: { path, root, count } });
  if ((await git(path, ["ls-files", "--error-unmatch", "--", ".gitmodules"], env)).ok)
    warnings.push({ code: "worktree-without-submodules", facts: { path } });
  return warnings;
}
