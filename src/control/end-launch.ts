// Ends everything that a launch started: its session by the rules of stop, and what carries its tag without one.
import { launchOf } from "../core/family.ts";
import { isLive, type ProcessRow, sameProcess } from "../core/process.ts";
import type { Kin } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { endProcesses } from "./end.ts";
import { callerOf } from "./guard.ts";
import { readNotes } from "./notes.ts";
import { type Stopped, stopSessions } from "./stop.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

const graceMs = { gently: 10_000, over: 1_000, now: 0 } as const;

/** Now: without a gentle signal. Over: its session has ended, and whoever of it lingers has no work to finish. */
export type HowToEnd = keyof typeof graceMs;

export async function endLaunch(launch: string, env: Environment, how: HowToEnd = "gently"): Promise<Stopped[]> {
  const around = await lookAround(env);
  const { pids } = callerOf(around, env);
  const isOfLaunch = (row: ProcessRow): boolean =>
    launchOf(row) === launch && isLive(row) && !pids.has(row.identity.pid);
  const running = around.list.sessions.filter(
    ({ status, processes }) =>
      status.state === "running" && status.owner.kind === "process" && processes.some(isOfLaunch),
  );
  // What is not a session yet: a wrapper, or an agent that hangs at its start.
  const owners = running.flatMap(({ processes }) => processes);
  const unowned = around.table.rows.filter(
    (row) => isOfLaunch(row) && !owners.some((owner) => sameProcess(owner.identity, row.identity)),
  );
  if (running.length === 0) await endProcesses(unowned.map((row) => ({ process: row.identity, steps })));
  const targets = running.length > 0 ? running : pastSessions(launch, around, env);
  const options = { graceMs: graceMs[how], now: how === "now", leftovers: false, server: false };
  return await stopSessions(
    targets.map((session) => ({ session, launches: [launch] })),
    options,
    running.length > 0 ? around : await lookAround(env),
    pids,
    env,
  );
}

const steps = [
  { signal: "SIGTERM", patienceMs: 2_000 },
  { signal: "SIGKILL", patienceMs: 2_000 },
] as const;

/** It is over, or never was: but something that it started may carry its tag. */
function pastSessions(launch: string, { list }: Surroundings, env: Environment): Kin[] {
  const note = readNotes(env).notes.find(({ id }) => id === launch);
  if (note === undefined) return [];
  const { agent, home, session: id } = note;
  const past = list.sessions.find((session) => session.id === id && session.agent === agent && session.home === home);
  return [past ?? { agent, home, id, status: null, processes: [], job: null }];
}
