// Ends everything that a launch started: its session by the rules of `stop`, and processes with its tag that have no session.
import { launchOf } from "../core/family.ts";
import { isLive, type ProcessRow, sameProcess } from "../core/process.ts";
import { isSameSession, type Kin } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { endProcesses, termThenKill } from "./end-processes.ts";
import { type Caller, resolveCaller } from "./guard.ts";
import { readNotes, sessionOfNote } from "./notes.ts";
import { type Snapshot, takeSnapshot } from "./snapshot.ts";
import { type StopReport, stopSessions } from "./stop.ts";

const graceMs = { gently: 10_000, over: 1_000, now: 0 } as const;

/** now: SIGKILL at once. over: the session has ended, so its processes have no work to finish. */
export type HowToEnd = keyof typeof graceMs;

export async function endLaunch(
  launch: string,
  caller: Caller,
  env: Environment,
  how: HowToEnd = "gently",
): Promise<StopReport[]> {
  const snapshot = await takeSnapshot(env);
  const { pids } = resolveCaller(caller, snapshot, env);
  const isOfLaunch = (row: ProcessRow): boolean =>
    launchOf(row) === launch && isLive(row) && !pids.has(row.identity.pid);
  const running = snapshot.list.sessions.filter(
    ({ status, processes }) =>
      status.state === "running" && status.owner.kind === "process" && processes.some(isOfLaunch),
  );
  // Processes without a session: a wrapper, or an agent that hangs at its start.
  const owners = running.flatMap(({ processes }) => processes);
  const unowned = snapshot.table.rows.filter(
    (row) => isOfLaunch(row) && !owners.some((owner) => sameProcess(owner.identity, row.identity)),
  );
  if (running.length === 0) await endProcesses(unowned.map((row) => ({ process: row.identity, steps })));
  const targets = running.length > 0 ? running : pastSessions(launch, snapshot, env);
  const options = { graceMs: graceMs[how], now: how === "now", leftovers: false, server: false };
  return await stopSessions(
    targets.map((session) => ({ session, launches: [launch] })),
    options,
    running.length > 0 ? snapshot : await takeSnapshot(env),
    pids,
    env,
  );
}

const steps = termThenKill(2_000, 2_000);

/** The session is over or never began, but processes that it started may carry the tag. */
function pastSessions(launch: string, { list }: Snapshot, env: Environment): Kin[] {
  const note = readNotes(env).notes.find(({ id }) => id === launch);
  if (note === undefined) return [];
  const name = sessionOfNote(note);
  const past = list.sessions.find((session) => isSameSession(session, name));
  return [past ?? { ...name, status: null, processes: [], job: null }];
}
