// Ends everything that a launch started: its session by the rules of stop, and what carries its tag without one.
import { adapterNamed } from "../adapters/registry.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import type { Environment } from "../observe/homes.ts";
import { endProcesses } from "./end.ts";
import { callerOf } from "./guard.ts";
import { type Stopped, stopSessions } from "./stop.ts";
import { lookAround } from "./surroundings.ts";

const graceMs = 10_000;

/** `how` now: without a gentle signal. */
export async function endLaunch(
  launch: string,
  env: Environment,
  how: "gently" | "now" = "gently",
): Promise<Stopped[]> {
  const around = await lookAround(env);
  const carriesTag = (row: ProcessRow) => row.detail?.env?.["AGENTCTL_TAG"] === launch && isLive(row);
  const sessions = around.list.sessions.filter(
    ({ status, processes, agent }) =>
      status.state === "running" &&
      status.owner.kind === "process" &&
      processes.some(carriesTag) &&
      adapterNamed(agent) !== null,
  );
  const { pids } = callerOf(around, env);
  const targets = sessions.map((session) => ({ session, launches: [launch] }));
  const options = { graceMs, now: how === "now", leftovers: false, host: false };
  const stopped = await stopSessions(targets, options, around, pids, env);
  if (sessions.length > 0) return stopped;
  // Nothing that is a session yet: a wrapper, or an agent that hangs at its start.
  const steps = [
    { signal: "SIGTERM", patienceMs: 2_000 },
    { signal: "SIGKILL", patienceMs: 2_000 },
  ] as const;
  const rows = around.table.rows.filter((row) => carriesTag(row) && !pids.has(row.identity.pid));
  await endProcesses(rows.map((row) => ({ process: row.identity, steps })));
  return stopped;
}
