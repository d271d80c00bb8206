// Starts many sessions for one request, each with its own worktree. A failed start does not affect the others.
import { type StartedLaunch, startLaunch } from "../control/start-launch.ts";
import { waitFor } from "../control/wait.ts";
import type { Confirmed } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";
import { exitOf } from "../core/failure-kinds.ts";
import { exitCodes } from "../core/problem.ts";
import { failureText } from "../lib/errors.ts";
import { failureMessage } from "../words/failures.ts";
import type { Call } from "./call.ts";
import { checkConfirmed } from "./confirmation.ts";
import { launchJson } from "./launch.ts";
import { type LaunchRequest, planLaunch } from "./launch-plan.ts";
import { launchedSessions, lookAtRows } from "./look.ts";

export interface Slot {
  number: number;
  label: string;
  request: LaunchRequest;
}

export interface LaunchManyRequest {
  slots: readonly Slot[];
  /** The number of sessions that may run at the same time; null: no limit. */
  maxParallel: number | null;
  confirmed: Confirmed;
}

export type SlotResult = { slot: Slot; started: StartedLaunch } | { slot: Slot; error: Error };

const maxUnconfirmed = 64;
const startsAtOnce = 4;

/** `onResult` is called as soon as a session has started or failed. */
export async function launchMany(
  request: LaunchManyRequest,
  call: Call,
  onResult: (result: SlotResult) => void,
): Promise<{ results: SlotResult[]; exitCode: number }> {
  const { slots, maxParallel } = request;
  const count = slots.length;
  if (count > maxUnconfirmed)
    checkConfirmed([{ code: "many-launches", key: `many-launches ${count}`, count }], request.confirmed);
  const results: SlotResult[] = [];
  const queue = [...slots];
  const work = async (): Promise<void> => {
    for (let slot = queue.shift(); slot !== undefined && !call.signal.aborted; slot = queue.shift()) {
      const result = await start(slot, maxParallel, results, call);
      results.push(result);
      onResult(result);
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: maxParallel === null ? startsAtOnce : 1 }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  results.sort((a, b) => a.slot.number - b.slot.number);
  const isCutShort = call.signal.aborted && results.length < count;
  return { results, exitCode: isCutShort ? exitCodes.interrupted : exitCodeOf(results) };
}

async function start(
  slot: Slot,
  maxParallel: number | null,
  before: readonly SlotResult[],
  call: Call,
): Promise<SlotResult> {
  try {
    if (maxParallel !== null) await untilFewer(maxParallel, before, call);
    const plan = planLaunch(slot.request, call, false);
    return { slot, started: await startLaunch(plan, call) };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { slot, error };
  }
}

/** Waits until fewer than `limit` of the started sessions are running. */
async function untilFewer(limit: number, results: readonly SlotResult[], call: Call): Promise<void> {
  const started = new Set(results.flatMap((each) => ("started" in each ? [each.started.launched.launch] : [])));
  if (started.size < limit) return;
  await waitFor({
    look: async () =>
      (await lookAtRows(call, launchedSessions(call))).rows.filter(
        ({ launch, session }) => launch !== null && started.has(launch.id) && session.status.state !== "stopped",
      ),
    isEnough: (live) => live.length < limit,
    sessions: (live) => live.map(({ session }) => session),
    timeoutMs: null,
    signal: call.signal,
  });
}

const isInterrupted = (result: SlotResult): boolean =>
  "error" in result && result.error instanceof Failure && exitOf(result.error) === "interrupted";

function exitCodeOf(results: readonly SlotResult[]): number {
  if (results.some(isInterrupted)) return exitCodes.interrupted;
  const [code = exitCodes.failed, another] = new Set(results.map(codeOf));
  return another === undefined ? code : exitCodes.failed;
}

function codeOf(result: SlotResult): number {
  if ("started" in result) return 0;
  return exitCodes[result.error instanceof Failure ? exitOf(result.error) : "failed"];
}

export const slotErrorText = (error: Error): string =>
  error instanceof Failure ? failureMessage(error) : `this should not happen: ${failureText(error)}`;

export async function launchManyJson(results: readonly SlotResult[], call: Call) {
  const { rows } = await lookAtRows(call, launchedSessions(call));
  return results.map((result) => {
    const { number: slot, label } = result.slot;
    if ("error" in result) return { slot, label, error: slotErrorText(result.error) };
    const row = rows.find(({ launch }) => launch?.id === result.started.launched.launch) ?? null;
    return { slot, ...launchJson(result.started, row) };
  });
}
