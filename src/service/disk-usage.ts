// The size of agentctl's own files, and how many of them are in use.

import { join } from "node:path";
import { type Kept, keptLaunches, unreadKept } from "../control/note-retention.ts";
import { agentctlHome } from "../control/notes.ts";
import { takeSnapshot } from "../control/snapshot.ts";
import type { Problem } from "../core/problem.ts";
import { bytesBelow } from "../observe/disk-usage.ts";
import { cacheFolder, type Environment } from "../observe/homes.ts";

/** null: not known, because something could not be read. */
interface DiskUsage {
  what: string;
  where: string;
  count: number | null;
  inUse: number | null;
  bytes: number | null;
}

export async function measureDiskUsage(
  env: Environment,
): Promise<{ usage: DiskUsage[]; unread: Pick<Problem, "source" | "detail">[] }> {
  const unread = unreadKept(env);
  const usage = await measured(env);
  // Each folder has a part of every launch, and only the notes name the worktrees.
  const unknown = { count: null, inUse: null, bytes: null };
  const known = usage.map((each) => {
    if (unread.length === 0 || each.what === "cache") return each;
    return { ...each, ...unknown, where: each.what === "worktrees" ? "?" : each.where };
  });
  return { usage: known, unread };
}

async function measured(env: Environment): Promise<DiskUsage[]> {
  const kept = keptLaunches(env, await takeSnapshot(env));
  const home = agentctlHome(env);
  const launches = { count: kept.length, inUse: kept.filter(({ inUse }) => inUse).length };
  const trees = worktreesIn(kept);
  const cache = cacheFolder(env);
  return [
    { what: "notes", where: join(home, "launches"), ...launches, bytes: bytesBelow(join(home, "launches")) },
    { what: "logs", where: join(home, "logs"), ...launches, bytes: bytesBelow(join(home, "logs")) },
    {
      what: "worktrees",
      where: trees[0] === undefined ? "none" : trees.length === 1 ? trees[0].path : `${trees[0].path}, …`,
      count: trees.length,
      inUse: trees.filter(({ inUse }) => inUse).length,
      bytes: trees.reduce((sum, { path }) => sum + bytesBelow(path), 0),
    },
    { what: "cache", where: cache, count: bytesBelow(cache) > 0 ? 1 : 0, inUse: 0, bytes: bytesBelow(cache) },
  ];
}

/** The worktrees that launch notes name and that still exist. */
function worktreesIn(kept: readonly Kept[]): { path: string; inUse: boolean }[] {
  const found = new Map<string, boolean>();
  for (const { note, inUse } of kept)
    if (note?.worktree != null && bytesBelow(note.worktree) > 0)
      found.set(note.worktree, (found.get(note.worktree) ?? false) || inUse);
  return [...found].map(([path, inUse]) => ({ path, inUse })).sort((a, b) => (a.path < b.path ? -1 : 1));
}
