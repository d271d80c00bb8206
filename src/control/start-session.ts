// The one path of launch, run and send: look, check the place, start the agent, and wait until it confirms its session.

import { Failure } from "../core/failure.ts";
import type { OnNotice } from "../core/notice.ts";
import { isSameSession, type Session } from "../core/session.ts";
import { deadlineIn, unlessAborted } from "../lib/deadline.ts";
import { selectIds } from "../observe/selection.ts";
import { openChangeWatch } from "../sys/change-watch.ts";
import { withoutOwnCode } from "./child-environment.ts";
import { guardHooks, guardPermission, guardTarget, nameOf, resolveCaller } from "./guard.ts";
import { withLaunchLock } from "./launch-lock.ts";
import { hasReleasedSession, type LaunchNote, notLiveIn, readNotes, sessionOfNote } from "./notes.ts";
import { type FoundOccupant, occupantsOf, startingHolders } from "./occupants.ts";
import { type Snapshot, takeNarrowSnapshot } from "./snapshot.ts";
import { type Launched, type LaunchPlan, type StartedAgent, startAgent } from "./start-agent.ts";
import { startInServer } from "./start-in-server.ts";
import { isLeaving } from "./wait.ts";

export interface StartCall {
  signal: AbortSignal;
  onNotice: OnNotice;
}

/** `commit`: the commit of the directory, which git may still be reading. */
export async function startSession(
  plan: LaunchPlan,
  call: StartCall,
  commit: Promise<string | null> | string | null = plan.note.commit,
): Promise<Launched> {
  try {
    const started = await startWhenSettled(plan, Promise.resolve(commit), call);
    return await started.confirmed(call.signal);
  } finally {
    // Waits also after a failure, so that no git is left running.
    await Promise.allSettled([commit]);
  }
}

/** Codex 0.166 without a network exits 5 s after its session is over. */
const settleMs = 6_000;

/**
 * If a process in the place is just starting or exiting, waits a moment and looks again. The wait is outside of the lock, so that
 * other launches can proceed.
 */
async function startWhenSettled(
  plan: LaunchPlan,
  commit: Promise<string | null>,
  { signal, onNotice }: StartCall,
): Promise<StartedAgent> {
  // If nothing is started, no code awaits the commit, and its error must not count as uncaught.
  commit.catch(() => {});
  const deadline = deadlineIn(settleMs);
  for (;;) {
    try {
      const look = deadline.isOver() ? "final" : "may change";
      return await withLaunchLock(plan.env, () => startAlone(plan, commit, look, onNotice), signal);
    } catch (error) {
      if (!(error instanceof Unsettled)) throw error;
      await unlessAborted(signal, untilOneEnds(error.pids));
    }
  }
}

class Unsettled extends Error {
  /** The processes that will settle in a moment. */
  constructor(readonly pids: readonly number[]) {
    super();
  }
}

/** The kernel reports exits but not the start of a session: look again every 100 ms. */
const beginningMs = 100;
const goneMs = 20;

async function untilOneEnds(pids: readonly number[]): Promise<void> {
  const changes = openChangeWatch();
  try {
    await changes.next(pids.every((pid) => changes.process(pid)) ? beginningMs : goneMs);
  } finally {
    changes.close();
  }
}

async function startAlone(
  plan: LaunchPlan,
  commit: Promise<string | null>,
  look: "final" | "may change",
  onNotice: OnNotice,
): Promise<StartedAgent> {
  const { env, note, before } = plan;
  const snapshot = await takeNarrowSnapshot(env, selectIds([before?.id]));
  const caller = resolveCaller(plan.caller, snapshot, env);
  const notes = once(() => readNotes(env).notes);
  guardPermission(plan, plan.ownIsBypass, caller);
  guardHooks(note.hooks, caller);
  if (before !== null) {
    const now = snapshot.list.sessions.find((session) => isSameSession(session, before)) ?? before;
    const ref = plan.ref ?? before.id ?? "";
    const starting = startingHolders(snapshot).find(({ sessionName }) => sessionName === nameOf(before));
    guardTarget(now, ref, caller, snapshot, notes());
    if (look === "may change" && (isLeaving(now) || starting !== undefined))
      throw new Unsettled([...pidsOf(now), ...(starting === undefined ? [] : [starting.pid])]);
    if (starting !== undefined) throw new Failure("already-continuing", { ref, pid: starting.pid });
    checkContinuable(now, ref);
  }
  const name = note.name === null ? null : freeName(note.name, before, snapshot, notes(), onNotice);
  const occupants = occupantsOf(plan.cwd, others(snapshot, before, notes), snapshot, caller, env);
  const passing = occupants.filter(({ isPassing }) => isPassing);
  if (look === "may change" && !plan.share && passing.length > 0)
    throw new Unsettled(passing.flatMap(({ pids }) => pids));
  checkPlace(plan, occupants, onNotice);
  const [nearest] = caller.within;
  const launchedBy = nearest === undefined ? null : nameOf(nearest);
  const agentPid = nearest?.processes[0]?.identity.pid ?? null;
  const given = caller.isGuarded && agentPid !== null ? withoutOwnCode(env, agentPid) : env;
  const complete = { ...plan, env: given, note: { ...note, name, launchedBy, commit: await commit } };
  const { server } = plan.adapter;
  // Servers are slow to answer: ask after the lock is released.
  if (server?.create !== undefined) return { confirmed: (signal) => startInServer(complete, server, signal) };
  return startAgent(complete);
}

const pidsOf = ({ processes }: Session): number[] => processes.map(({ identity }) => identity.pid);

/** Reads on the first call only: there may be many notes. */
function once<T>(read: () => T): () => T {
  let value: { read: T } | null = null;
  return () => {
    value ??= { read: read() };
    return value.read;
  };
}

/** The other sessions, without processes that have released their session and are about to exit. */
function others({ list }: Snapshot, before: Session | null, notes: () => readonly LaunchNote[]): Session[] {
  const isOver = (id: string): boolean => list.complete && notLiveIn(list.sessions)(id);
  return list.sessions.filter(
    (session) =>
      (before === null || !isSameSession(session, before)) &&
      (session.id !== null || !hasReleasedSession(session, notes(), isOver)),
  );
}

function checkPlace({ share, cwd }: LaunchPlan, occupants: readonly FoundOccupant[], onNotice: OnNotice): void {
  const busy = occupants.filter(({ refuses }) => refuses);
  if (busy.length > 0 && !share)
    throw new Failure("place-occupied", { cwd, occupants: busy.map(({ occupant }) => occupant) });
  const all = occupants.map(({ occupant }) => occupant);
  if (all.length > 0) onNotice({ code: "also-active", facts: { occupants: all } });
}

/** Throws if a live session has the name; a continued session loses its name instead. */
function freeName(
  name: string,
  before: Session | null,
  snapshot: Snapshot,
  notes: readonly LaunchNote[],
  onNotice: OnNotice,
): string | null {
  const named = notes.filter((note) => note.name === name);
  const live = snapshot.list.sessions.find(
    (session) =>
      session.status.state !== "stopped" &&
      (before === null || !isSameSession(session, before)) &&
      // An older launch of the session may have a name that it no longer has.
      notes.find((note) => isSameSession(session, sessionOfNote(note)))?.name === name,
  );
  const starting = startingHolders(snapshot).find(({ launch }) => named.some(({ id }) => id === launch));
  if (live === undefined && starting === undefined) return name;
  const by = live === undefined ? { pid: starting?.pid ?? 0 } : { agent: live.agent, id: live.id };
  if (before === null) throw new Failure("name-taken", { name, by });
  onNotice({ code: "name-dropped", facts: { name, by } });
  return null;
}

/** A live process does not notice what a second process adds to its session. */
export function checkContinuable({ status, processes, id }: Session, ref: string): void {
  if (status.state === "stopped") return;
  if (status.state === "unknown") throw new Failure("status-unknown", { ref, why: status.why });
  const [row] = processes;
  const { activity } = status;
  throw new Failure("live-elsewhere", { ref, id, pid: row?.identity.pid ?? null, tty: row?.tty ?? null, activity });
}
