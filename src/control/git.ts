// Plain git, asked with arguments. The caller's environment must not turn it to another repository. `git` looks: it runs no program
// that a repository names, and never touches the network. `gitAsPerson` acts: filters and hooks run as in the person's own git.
import type { Environment } from "../observe/homes.ts";
import {
  actingMs,
  askGitAsPerson,
  askGitQuietly,
  commandIn,
  type GitAnswer,
  graceMs,
  lookingMs,
  textOf,
} from "./git-process.ts";

export type { GitAnswer } from "./git-process.ts";

/** Looks. `place`: where it is asked; for a command that looks at files, the root of a worktree. */
export async function git(
  place: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<GitAnswer> {
  const { command, words } = commandIn(args);
  const isRemoval = command === "worktree" && words[0] === "remove" && !words.includes("--force");
  if (!isRemoval && isPlain(command, words))
    return await askGitQuietly({ place, args, env, more, mostMs: lookingMs, graceMs });
  // Most launches ask only for a commit.
  const { gitInView, removeIfClean } = await import("./git-in-view.ts");
  return isRemoval ? await removeIfClean(place, args, env) : await gitInView(place, args, env, more);
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
