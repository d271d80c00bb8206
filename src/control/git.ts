// Plain git, asked with arguments. The caller's environment must not turn it to another repository. `git` looks: it runs no program
// that a repository names, and never touches the network. `gitAsPerson` acts: filters and hooks run as in the person's own git.
import { join } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import type { Environment } from "../observe/homes.ts";
import { openScratch } from "../sys/scratch.ts";
import { askGitAsPerson, askGitQuietly, commandIn, type GitAnswer } from "./git-process.ts";
import { type Opened, openView, type View } from "./git-view.ts";

export type { GitAnswer } from "./git-process.ts";

/** A large repository on a slow disk takes its time. One that never answers, like a pipe for a configuration, is given up. */
const lookingMs = 60_000;
/** A checkout may fetch large files through a filter. */
const actingMs = 10 * 60_000;
const graceMs = 1_000;

/**
 * These commands read refs, commits and git's own files. Without hooks and network no setting makes them run a program. All others
 * are asked in a view of the repository, which has none of its settings.
 */
const plain = new Set([
  ...["rev-parse", "rev-list", "merge-base", "cat-file", "hash-object", "config"],
  ...[
    "for-each-ref",
    "show-ref",
    "symbolic-ref",
    "check-ref-format",
    "update-ref",
    "branch",
    "worktree",
    "commit-tree",
  ],
]);

/** With --cached it compares the index with a commit, and no file. */
const isPlain = (words: readonly string[]): boolean =>
  plain.has(words[0] ?? "") || (words[0] === "diff-index" && words.includes("--cached"));

/** Looks. `place`: where it is asked; for a command that looks at files, the root of a worktree. */
export async function git(
  place: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<GitAnswer> {
  const words = commandIn(args);
  if (isPlain(words)) {
    const isRemoval = words[0] === "worktree" && words[1] === "remove";
    const settings = isRemoval ? await withoutFilters(args.at(-1) ?? "", env) : [];
    const mostMs = isRemoval ? actingMs : lookingMs;
    return await askGitQuietly({ place, args, env, more, settings, mostMs, graceMs });
  }
  const answer = await inView(place, env, (view) => view.git(args, { env: more }));
  return answer.ok ? answer.value : { ok: false, out: "", err: answer.why };
}

/** What it answered, without the newline at its end; an error with its own words if it refused. */
export async function gitText(place: string, args: readonly string[], env: Environment): Promise<string> {
  return textOf(args, await git(place, args, env));
}

/** Acts as the person's own git would. */
export const gitAsPerson = (place: string, args: readonly string[], env: Environment): Promise<GitAnswer> =>
  askGitAsPerson({ place, args, env, mostMs: actingMs, graceMs });

/** Several questions about one worktree, in one view of it. */
export async function inView<T>(
  root: string,
  env: Environment,
  ask: (view: View) => Promise<T>,
): Promise<{ ok: true; value: T } | Extract<Opened, { ok: false }>> {
  const scratch = openScratch();
  try {
    const opened = await openView(root, { folder: join(scratch.folder, "git"), env, mostMs: lookingMs });
    return opened.ok ? { ok: true, value: await ask(opened.view) } : opened;
  } finally {
    scratch.remove();
  }
}

export function textOf(args: readonly string[], { ok, out, err }: GitAnswer): string {
  if (!ok) throw new AgentctlError("failed", `git ${args[0]}: ${err || "failed"}`);
  return out.replace(/\n$/, "");
}

/** Before it removes a worktree, git starts `git status` in it. An empty command switches a filter off. */
async function withoutFilters(root: string, env: Environment): Promise<[string, string][]> {
  const known = await inView(root, env, (view) => Promise.resolve(view.filters));
  return (known.ok ? [...known.value] : []).flatMap((name): [string, string][] => [
    ...["clean", "smudge", "process"].map((key): [string, string] => [`filter.${name}.${key}`, ""]),
    [`filter.${name}.required`, "false"],
  ]);
}
