// Files that a view of a repository cannot show as git would: those that go through a filter, and those inside of submodules.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../observe/homes.ts";
import { inView, textOf } from "./git.ts";
import type { View } from "./git-view.ts";

export const namesIn = (list: string): string[] => list.split("\0").filter((name) => name !== "");

/** Of these files the ones that the person's own git would send through a filter (like Git LFS), by the filter's name. */
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

const mostAsked = 1_000;

/**
 * Of these files the ones that nobody has touched since git wrote the index. A file that a filter wrote in the second of the index
 * looks changed without the filter; its times, to the nanosecond, and its size say that it is not.
 */
export async function untouchedAmong(paths: readonly string[], view: View): Promise<Set<string>> {
  if (paths.length === 0 || paths.length > mostAsked) return new Set();
  const args = ["ls-files", "--debug", "-z", "--", ...paths.map((path) => `:(literal)${path}`)];
  const facts = textOf(args, await view.git(args));
  const entry =
    /([^\0]+)\0 {2}ctime: (\d+:\d+)\n {2}mtime: (\d+:\d+)\n {2}dev: .*\n {2}uid: .*\n {2}size: (\d+)\t.*(?:\n|$)/y;
  const untouched = new Set<string>();
  for (let found = entry.exec(facts); found !== null; found = entry.exec(facts)) {
    const [, path = "", ctime, mtime, size] = found;
    const now = lstatSync(join(view.root, path), { bigint: true, throwIfNoEntry: false });
    if (now === undefined) continue;
    // The index keeps the lower 32 bits of a size.
    const isSame =
      inIndex(now.ctimeNs) === ctime && inIndex(now.mtimeNs) === mtime && now.size % 2n ** 32n === BigInt(size ?? -1);
    if (isSame) untouched.add(path);
  }
  return untouched;
}

const inIndex = (ns: bigint): string => `${ns / 1_000_000_000n}:${ns % 1_000_000_000n}`;

const deepest = 5;

/** The submodules that hold uncommitted work, each looked at in a view of its own. */
export async function dirtySubmodules(view: View, env: Environment, depth = 0): Promise<string[]> {
  const args = ["ls-files", "--stage", "-z"];
  const entries = namesIn(textOf(args, await view.git(args)));
  const dirty: string[] = [];
  for (const entry of entries) {
    if (!entry.startsWith("160000 ")) continue;
    const path = entry.slice(entry.indexOf("\t") + 1);
    const root = join(view.root, path);
    if (lstatSync(join(root, ".git"), { throwIfNoEntry: false }) === undefined) continue;
    const found = await inView(root, env, async (inside) => {
      const status = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"];
      const isDirty = textOf(status, await inside.git(status)) !== "";
      return isDirty || (depth < deepest && (await dirtySubmodules(inside, env, depth + 1)).length > 0);
    });
    // One that cannot be looked at may hold anything.
    if (!found.ok || found.value) dirty.push(path);
  }
  return dirty;
}
