// Plain git, asked with arguments. The caller's environment must not turn it to another repository. `git` looks: it runs no program
// that a repository names, and never touches the network. `gitAsPerson` acts: filters and hooks run as in the person's own git.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../observe/homes.ts";
import { askGitAsPerson, askGitQuietly, commandIn, type GitAnswer, textOf } from "./git-process.ts";
import { inView, lookingMs, type View } from "./git-view.ts";
import { filledSubmodules, plainStatus, statusIn } from "./view-files.ts";

export type { GitAnswer } from "./git-process.ts";

/** A checkout may fetch large files through a filter. */
const actingMs = 10 * 60_000;
const graceMs = 1_000;

/** Looks. `place`: where it is asked; for a command that looks at files, the root of a worktree. */
export async function git(
  place: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<GitAnswer> {
  const { command, words } = commandIn(args);
  if (command === "worktree" && words[0] === "remove" && !words.includes("--force"))
    return await removeIfClean(place, args, env);
  if (isPlain(command, words)) return await askGitQuietly({ place, args, env, more, mostMs: lookingMs, graceMs });
  const isComparable = command === "status" && words.includes("-z") && words.includes("--no-renames");
  const ask = (view: View): Promise<GitAnswer> =>
    isComparable ? statusIn(view, args, more) : view.git(args, { env: more });
  const answer = await inView(place, env, ask);
  return answer.ok ? answer.value : { ok: false, out: "", err: answer.why };
}

/** What it answered, without the newline at its end; an error with its own words if it refused. */
export const gitText = async (place: string, args: readonly string[], env: Environment): Promise<string> =>
  textOf(args, await git(place, args, env));

/** Acts as the person's own git would. */
export const gitAsPerson = (place: string, args: readonly string[], env: Environment): Promise<GitAnswer> =>
  askGitAsPerson({ place, args, env, mostMs: actingMs, graceMs });

/** These commands read and write refs, objects and git's own files. Without hooks and network no setting makes them run a program. */
const plain = new Set([
  ...["rev-parse", "rev-list", "merge-base", "cat-file", "ls-tree", "commit-tree", "hash-object", "config", "worktree"],
  ...["for-each-ref", "show-ref", "symbolic-ref", "check-ref-format", "update-ref", "branch"],
]);

/** These look at files. They are asked in a view of the repository, which has none of its settings, and write nowhere else. */
const comparing = new Set([
  ...["status", "diff", "diff-files", "diff-index", "ls-files", "add", "check-attr", "check-ignore"],
]);

function isPlain(command: string, words: readonly string[]): boolean {
  const has = (word: string): boolean => words.includes(word);
  if (command === "diff-index" && has("--cached") && has("--name-only")) return true;
  const isFiltered = command === "hash-object" ? !has("--no-filters") && !has("tree") : has("--filters");
  if (plain.has(command) && !isFiltered && !has("--textconv")) return true;
  if (comparing.has(command) || plain.has(command)) return false;
  throw new Error(`git ${command}: nobody has checked which programs it would run`);
}

/** Git would start `git status` in the worktree, filters included. The same is asked in a view, and git is told to remove it. */
async function removeIfClean(place: string, args: readonly string[], env: Environment): Promise<GitAnswer> {
  const path = args.at(-1) ?? "";
  const refused = (why: string): GitAnswer => ({ ok: false, out: "", err: `fatal: ${path}: ${why}` });
  const remove = (words: readonly string[]): Promise<GitAnswer> =>
    askGitQuietly({ place, args: words, env, mostMs: actingMs, graceMs });
  // Then git only forgets it.
  if (!isThere(path)) return await remove(args);
  const found = await inView(path, env, async (view) => {
    const hasModules = isThere(join(view.gitDir, "modules")) || (await filledSubmodules(view)).length > 0;
    return { status: await statusIn(view, plainStatus), hasModules };
  });
  if (!found.ok) return refused(found.why);
  const { status, hasModules } = found.value;
  if (hasModules) return refused("worktrees that contain submodules cannot be removed");
  if (!status.ok) return refused(status.err);
  if (status.out !== "") return refused("it contains modified or untracked files");
  const { options, command, words } = commandIn(args);
  return await remove([...options, command, ...words.slice(0, 1), "--force", ...words.slice(1)]);
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
