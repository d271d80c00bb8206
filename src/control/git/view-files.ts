// Git commands that read files, in a view of their repository. A view cannot compare files with a filter and files in
// submodules as git would.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../observe/homes.ts";
import {
  actingMs,
  askGitQuietly,
  commandIn,
  type GitAnswer,
  graceMs,
  lostByte,
  namesIn,
  plainStatus,
  textOf,
} from "./git.ts";
import { inView, isThere, type View } from "./git-view.ts";

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

/** The files to which the person's own git would apply a filter (like Git LFS), by the name of the filter. */
export async function filteredAmong(paths: readonly string[], view: View): Promise<Map<string, string[]>> {
  if (view.filters.size === 0 || paths.length === 0) return new Map();
  const args = ["check-attr", "-z", "--stdin", "filter"];
  const fields = textOf(args, await view.git(args, { input: `${paths.join("\0")}\0` })).split("\0");
  const filtered = paths.flatMap((_, at) => {
    const [path = "", , filter = ""] = fields.slice(at * 3, at * 3 + 3);
    return view.filters.has(filter) ? [{ path, filter }] : [];
  });
  const groups = Map.groupBy(filtered, ({ filter }) => filter);
  return new Map([...groups].map(([filter, files]) => [filter, files.map(({ path }) => path)]));
}

const maxAsked = 1_000;

/**
 * The files that have not been written since git wrote the index. A file that a filter wrote in the second of the index looks
 * changed without the filter; its times in nanoseconds and its size prove that it is not.
 */
export async function untouchedAmong(paths: readonly string[], view: View): Promise<Set<string>> {
  if (paths.length === 0 || paths.length > maxAsked) return new Set();
  const args = ["ls-files", "--debug", "-z", "--", ...paths.map((path) => `:(literal)${path}`)];
  const facts = textOf(args, await view.git(args));
  const entry =
    /([^\0]+)\0 {2}ctime: (\d+:\d+)\n {2}mtime: (\d+:\d+)\n {2}dev: .*\n {2}uid: .*\n {2}size: (\d+)\t.*(?:\n|$)/y;
  const untouched = new Set<string>();
  for (let found = entry.exec(facts); found !== null; found = entry.exec(facts)) {
    const [, path = "", ctime, mtime, size] = found;
    if (path.includes(lostByte)) continue;
    const now = lstatSync(join(view.root, path), { bigint: true, throwIfNoEntry: false });
    if (now === undefined) continue;
    // The index has only the lower 32 bits of a size.
    const isSame =
      inIndex(now.ctimeNs) === ctime && inIndex(now.mtimeNs) === mtime && now.size % 2n ** 32n === BigInt(size ?? -1);
    if (isSame) untouched.add(path);
  }
  return untouched;
}

const inIndex = (ns: bigint): string => `${ns / 1_000_000_000n}:${ns % 1_000_000_000n}`;

/**
 * `git status --porcelain -z --no-renames …` without files that look changed only because their filter is not run. A file that
 * was written after git wrote the index is kept.
 */
export async function statusIn(view: View, args: readonly string[], env = {}): Promise<GitAnswer> {
  const answer = await view.git(args, { env });
  if (!answer.ok || view.filters.size === 0) return answer;
  const lines = namesIn(answer.out);
  const changed = lines.filter((line) => line.startsWith(" M ")).map((line) => line.slice(3));
  const filtered = [...(await filteredAmong(changed, view)).values()].flat();
  const untouched = await untouchedAmong(filtered, view);
  const left = lines.filter((line) => !line.startsWith(" M ") || !untouched.has(line.slice(3)));
  return { ...answer, out: left.map((line) => `${line}\0`).join("") };
}

async function filledSubmodules(view: View): Promise<string[]> {
  const args = ["ls-files", "--stage", "-z"];
  const links = namesIn(textOf(args, await view.git(args))).filter((entry) => entry.startsWith("160000 "));
  const paths = links.map((entry) => entry.slice(entry.indexOf("\t") + 1));
  return paths.filter((path) => isThere(join(view.root, path, ".git")));
}

const deepest = 5;

/** The submodules with uncommitted work, each read in its own view. */
export async function dirtySubmodules(view: View, env: Environment, depth = 0): Promise<string[]> {
  const dirty: string[] = [];
  for (const path of await filledSubmodules(view)) {
    const found = await inView(join(view.root, path), env, async (inside) => {
      const { ok, out } = await statusIn(inside, plainStatus);
      return !ok || out !== "" || (depth < deepest && (await dirtySubmodules(inside, env, depth + 1)).length > 0);
    });
    // A submodule that cannot be read counts as changed.
    if (!found.ok || found.value) dirty.push(path);
  }
  return dirty;
}
