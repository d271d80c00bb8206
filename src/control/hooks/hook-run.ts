// The record of one hook's run: a small file beside the launch note, written when the hook begins and again when it ends.

import { fieldsOf, textIn } from "../../agents/fields.ts";
import { isLive, type ProcessIdentity, sameProcess } from "../../core/process.ts";
import { writeFileAtomically } from "../../lib/atomic-file.ts";
import { isError, tryOr } from "../../lib/errors.ts";
import { readWhole } from "../../observe/files.ts";
import { withOwnFile } from "../../observe/own-files.ts";
import { readProcess } from "../../observe/processes.ts";

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
      const run = parseHookRun(withOwnFile(path, (file) => JSON.parse(readWhole(file, maxBytes).toString("utf8"))));
      return run === null ? null : { ...run, state: run.endedAt === null ? openState(run) : "ended" };
    },
    isError,
  );

function parseHookRun(value: unknown): HookRun | null {
  const fields = fieldsOf(value);
  const runner = identityIn(fieldsOf(fields?.["runner"]));
  if (fields === null || fields["schema"] !== schema || runner === null) return null;
  const begunAt = textIn(fields, "begunAt");
  if (begunAt === null) return null;
  const number = (key: string): number | null => {
    const found = fields[key];
    return typeof found === "number" && Number.isInteger(found) && found >= 0 ? found : null;
  };
  return {
    runner,
    process: identityIn(fieldsOf(fields["process"])),
    attempts: number("attempts") ?? 1,
    begunAt,
    endedAt: textIn(fields, "endedAt"),
    status: number("status"),
    timedOut: fields["timedOut"] === true,
    late: fields["late"] === true,
    problem: textIn(fields, "problem"),
  };
}

function identityIn(fields: Record<string, unknown> | null): ProcessIdentity | null {
  if (fields === null) return null;
  const [pid, start, boot] = [fields["pid"], textIn(fields, "start"), textIn(fields, "boot")];
  const isPid = typeof pid === "number" && Number.isInteger(pid) && pid > 0 && pid <= 0x7fffffff;
  return isPid && start !== null && boot !== null ? { pid, start, boot } : null;
}

function openState({ runner, process }: HookRun): HookState {
  const isThere = (identity: ProcessIdentity): boolean => {
    const row = readProcess(identity.pid);
    return row !== null && isLive(row) && sameProcess(row.identity, identity);
  };
  const isRunning = () => isThere(runner) || (process !== null && isThere(process));
  return tryOr("unknown", () => (isRunning() ? "running" : "cut-off"), isError);
}
