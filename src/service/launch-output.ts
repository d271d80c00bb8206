// The captured output of launched agents and of their hooks.
import { lastLines } from "../control/agent-output.ts";
import { launchFiles } from "../control/notes.ts";
import type { LookContext, SessionRow } from "./look.ts";

/** The last lines that a launched agent wrote: to its standard error, else to its standard output. */
export function lastOutput({ launch }: SessionRow, { env }: LookContext): string {
  if (launch === null) return "";
  const { out, err } = launchFiles(env, launch.id);
  return lastLines(err) || lastLines(out);
}

export function hookLog(launch: string, kind: "start" | "exit", { env }: LookContext): string {
  const { startLog, exitLog } = launchFiles(env, launch);
  return kind === "start" ? startLog : exitLog;
}
