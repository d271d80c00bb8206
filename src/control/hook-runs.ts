// How the hooks of a launch went: a small file for each, beside the note, written when it begins and when it has ended.
import { fieldsOf, textIn } from "../adapters/fields.ts";
import { isLive, type ProcessIdentity, sameProcess } from "../core/process.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { readWhole } from "../observe/files.ts";
import { withOwnFile } from "../observe/own-files.ts";
import { readProcess } from "../observe/processes.ts";

export const hookKinds = ["start", "exit"] as const;
export type HookKind = (typeof hookKinds)[number];

export interface HookRun {
  /** The process that runs it, or did. */
  runner: ProcessIdentity;
  /** The command itself: it may outlive a runner that was killed. null: not begun yet. */
  process: ProcessIdentity | null;
  /** How often it was begun: a runner that was killed leaves it to the next one. */
  attempts: number;
  begunAt: string;
  endedAt: string | null;
  /** The shell's word. null: it has not ended, or was never begun. */
  status: number | null;
  /** It was ended when its time was over. */
  timedOut: boolean;
  /** The holder could not run it; a later command did. */
  late: boolean;
  /** Why it could not be run. */
  problem: string | null;
}

/** Cut off: it is gone, its runner is gone, and nobody wrote its end. */
export type HookState = "running" | "ended" | "cut-off" | "unknown";

export interface ReadHookRun extends HookRun {
  state: HookState;
}

const schema = 1;
const mostBytes = 64 * 1024;

export function writeHookRun(path: string, run: HookRun): void {
  writeFileAtomically(path, `${JSON.stringify({ schema, ...run })}\n`);
}

/** null: it was never begun, or what stands there is nothing of ours. */
export function readHookRun(path: string): ReadHookRun | null {
  try {
    const run = parseHookRun(withOwnFile(path, (file) => JSON.parse(readWhole(file, mostBytes).toString("utf8"))));
    return run === null ? null : { ...run, state: run.endedAt === null ? openState(run) : "ended" };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}

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
  try {
    return isThere(runner) || (process !== null && isThere(process)) ? "running" : "cut-off";
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return "unknown";
  }
}
