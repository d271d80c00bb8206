// Runs git commands that read files in a view of their repository.
import { join } from "node:path";
import type { Environment } from "../../observe/homes.ts";
import { actingMs, askGitQuietly, commandIn, type GitAnswer, graceMs } from "./git.ts";
import { inView, isThere, type View } from "./git-view.ts";
import { filledSubmodules, plainStatus, statusIn } from "./view-files.ts";

export async function gitInView(
  root: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>>,
): Promise<GitAnswer> {
  const { command, words } = commandIn(args);
  const isComparable = command === "status" && words.includes("-z") && words.includes("--no-renames");
  const ask = (view: View): Promise<GitAnswer> =>
    isComparable ? statusIn(view, args, more) : view.git(args, { env: more });
  const answer = await inView(root, env, ask);
  return answer.ok ? answer.value : { ok: false, out: "", err: answer.why };
}

/** Git would run `git status` in the worktree, with filters. So the status is asked in a view, and git removes with --force. */
export async function removeIfClean(directory: string, args: readonly string[], env: Environment): Promise<GitAnswer> {
  const path = args.at(-1) ?? "";
  const refused = (why: string): GitAnswer => ({ ok: false, out: "", err: `fatal: ${path}: ${why}` });
  const remove = (words: readonly string[]): Promise<GitAnswer> =>
    askGitQuietly({ directory, args: words, env, maxMs: actingMs, graceMs });
  // The folder is gone: git only removes its own data.
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
