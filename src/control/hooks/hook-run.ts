// The record of one hook's run: a small file beside the launch note, written when the hook begins and again when it ends.

import { countIn, fieldsOf, textIn } from "../../agents/fields.ts";
import { type ProcessIdentity, parseIdentity } from "../../core/process.ts";
import { writeFileAtomically } from "../../lib/atomic-file.ts";
import { isError, tryOr } from "../../lib/errors.ts";
import { readOwnJson } from "../../observe/own-files.ts";
import { readIfLive } from "../../observe/processes.ts";

export const hookKinds = ["start", "exit"] as const;
export type HookKind = (typeof hookKinds)[number];

export interface HookRun {
  /** The agentctl process that runs the hook. */
  runner: ProcessIdentity;
  /** The hook's own process: it may outlive a runner that was killed. null: not begun yet. */
  process: ProcessIdentity | null;
  /** How often the hook was begun: if a runner is killed, the next runner begins the hook again. */
  attempts: number;
  begunAt: string;
  endedAt: string | null;
  /** The exit status of its shell. null: it has not ended, or was never begun. */
  status: number | null;
  timedOut: boolean;
  /** A later command ran it, because the holder was killed. */
  late: boolean;
  problem: string | null;
}

/** Cut-off: the hook and its runner are gone, and its end was not recorded. */
export type HookState = "running" | "ended" | "cut-off" | "unknown";

export interface ReadHookRun extends HookRun {
  state: HookState;
}

const schema = 1;
const maxBytes = 64 * 1024;

export function writeHookRun(path: string, run: HookRun): void {
  writeFileAtomically(path, `${JSON.stringify({ schema, ...run })}\n`);
}

/** null: it was never begun, or the file is not a record that agentctl wrote. */
export const readHookRun = (path: string): ReadHookRun | null =>
  tryOr(
    null,
    () => {
      const run = parseHookRun(readOwnJson(path, maxBytes));
      return run === null ? null : { ...run, state: run.endedAt === null ? openState(run) : "ended" };
    },
    isError,
  );

function parseHookRun(value: unknown): HookRun | null {
  const fields = fieldsOf(value);
  const runner = parseIdentity(fields?.["runner"]);
  if (fields === null || fields["schema"] !== schema || runner === null) return null;
  const begunAt = textIn(fields, "begunAt");
  if (begunAt === null) return null;
  return {
    runner,
    process: parseIdentity(fields["process"]),
    attempts: countIn(fields, "attempts") ?? 1,
    begunAt,
    endedAt: textIn(fields, "endedAt"),
    status: countIn(fields, "status"),
    timedOut: fields["timedOut"] === true,
    late: fields["late"] === true,
    problem: textIn(fields, "problem"),
  };
}

function openState({ runner, process }: HookRun): HookState {
  const isRunning = () => readIfLive(runner) !== null || (process !== null && readIfLive(process) !== null);
  return tryOr("unknown", () => (isRunning() ? "running" : "cut-off"), isError);
}
