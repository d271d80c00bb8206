// Deletes the files of launches that are over, and the cache. Files of live sessions stay.
import { rmSync } from "node:fs";
import { refuseInside } from "../control/guard.ts";
import { withLaunchLock } from "../control/launch-lock.ts";
import { forgetKept, forgetTemporaries, type Kept, keptLaunches, unreadKept } from "../control/note-retention.ts";
import { takeSnapshot } from "../control/snapshot.ts";
import type { Confirmed } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";
import { bytesBelow } from "../observe/disk-usage.ts";
import { cacheFolder } from "../observe/homes.ts";
import { distrustOf } from "../observe/own-files.ts";
import type { Call } from "./call.ts";
import { checkConfirmed } from "./confirmation.ts";

export interface PruneRequest {
  /** Selects launches that ended longer ago than this. */
  olderMs: number;
  dryRun: boolean;
}

export interface PrunePlan {
  over: Kept[];
  /** The number of launches that are in use and stay. */
  inUse: number;
  cacheBytes: number;
}

export async function planLaunchPrune({ olderMs, dryRun }: PruneRequest, call: Call): Promise<PrunePlan> {
  if (!dryRun) await refuseInside("prune", call.caller, call.env);
  // A note that cannot be read may name files that are in use.
  const [unread] = unreadKept(call.env);
  if (unread !== undefined) throw new Failure("launch-files-unreadable", unread);
  return await findOver(olderMs, call);
}

/** Deletes what the plan names, unless it came into use meanwhile. Returns the number of bytes. */
export async function pruneLaunches(
  { plan, olderMs, confirmed }: { plan: PrunePlan; olderMs: number; confirmed: Confirmed },
  call: Call,
): Promise<number> {
  const { env } = call;
  await refuseInside("prune", call.caller, env);
  const ids = plan.over.map(({ id }) => id);
  const key = ["remove-launches", ...ids].join(" ");
  checkConfirmed([{ code: "remove-launches", key, count: ids.length }], confirmed);
  return await withLaunchLock(env, async () => {
    const now = await findOver(olderMs, call);
    const chosen = now.over.filter(({ id }) => ids.includes(id));
    for (const { id } of chosen) forgetKept(env, id);
    forgetTemporaries(env, Date.now());
    if (distrustOf(cacheFolder(env)) === null) rmSync(cacheFolder(env), { recursive: true, force: true });
    return chosen.reduce((sum, { bytes }) => sum + bytes, now.cacheBytes);
  });
}

async function findOver(olderMs: number, { env }: Call): Promise<PrunePlan> {
  const around = await takeSnapshot(env);
  const kept = keptLaunches(env, around);
  return {
    over: kept.filter(({ inUse, endedAt }) => !inUse && endedAt <= around.list.at - olderMs),
    inUse: kept.filter(({ inUse }) => inUse).length,
    cacheBytes: distrustOf(cacheFolder(env)) === null ? bytesBelow(cacheFolder(env)) : 0,
  };
}
