// Ends everything that a launch started: its session by the rules of stop, and what carries its tag without one.
import { launchOf } from "../core/family.ts";
import { isLive, type ProcessRow, sameProcess } from "../core/process.ts";
import type { Session } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { endProcesses } from "./end.ts";
import { callerOf } from "./guard.ts";
import { readNotes } from "./notes.ts";
import { type Stopped, stopSessions } from "./stop.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

const graceMs = 10_000;

/** `how` now: without a gentle signal. */
export async function endLaunch(
  launch: string,
  env: Environment,
  how: "gently" | "now" = "gently",
): Promise<Stopped[]> {
  const around = await lookAround(env);
  const { pids } = callerOf(around, env);
  const isOfLaunch = (row: ProcessRow): boolean => launchOf(row) === launch && isLive(row);
  const sessions = sessionsOf(launch, around, env, isOfLaunch);
  const targets = sessions.map((session) => ({ session, launches: [launch] }));
  const options = { graceMs, now: how === "now", leftovers: false, host: false };
  const stopped = await stopSessions(targets, options, around, pids, env);
  // What is not a session yet: a wrapper, or an agent that hangs at its start.
  const owners = sessions.flatMap(({ processes }) => processes);
  const rest = around.table.rows.filter((row) => isOfLaunch(row) && !pids.has(row.identity.pid));
  const unowned = rest.filter((row) => !owners.some((owner) => sameProcess(owner.identity, row.identity)));
  await endProcesses(unowned.map((row) => ({ process: row.identity, steps })));
  return stopped;
}

const steps = [
  { signal: "SIGTERM", patienceMs: 2_000 },
  { signal: "SIGKILL", patienceMs: 2_000 },
] as const;

/** The one that its process has; else the one that its note names: over, but its tools may have left something running. */
function sessionsOf(
  launch: string,
  { list }: Surroundings,
  env: Environment,
  isOfLaunch: (row: ProcessRow) => boolean,
): Session[] {
  const running = list.sessions.filter(
    ({ status, processes }) =>
      status.state === "running" && status.owner.kind === "process" && processes.some(isOfLaunch),
  );
  if (running.length > 0) return running;
  const note = readNotes(env).notes.find(({ id }) => id === launch);
  return list.sessions.filter(
    ({ id, agent, home, status }) =>
      note !== undefined &&
      id === note.session &&
      agent === note.agent &&
      home === note.home &&
      status.state === "stopped",
  );
}
