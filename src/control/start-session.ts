// One path for launch, run and send: look, check who may begin there, start, and wait for the agent's own word.

import { AgentctlError } from "../core/problem.ts";
import { isSameSession, type Session } from "../core/session.ts";
import { deadlineIn } from "../lib/deadline.ts";
import { someLines } from "../lib/width.ts";
import { withIds } from "../observe/wanted.ts";
import { openChanges } from "../sys/changes.ts";
import { withoutOwnCode } from "./environment.ts";
import { callerOf, guardHooks, guardPermission, guardTarget, nameOf } from "./guard.ts";
import { type Launched, type LaunchOrder, StartedLaunch } from "./launch.ts";
import { hasLetGo, notLiveIn } from "./leaving.ts";
import { type LaunchNote, readNotes } from "./notes.ts";
import { type Occupant, occupantsOf, oneAtATime, startingHolders } from "./places.ts";
import { startInHost } from "./start-hosted.ts";
import { lookCloselyAround, type Surroundings } from "./surroundings.ts";
import { isLeaving } from "./wait.ts";

export interface StartRequest extends Omit<LaunchOrder, "note"> {
  note: Omit<LaunchOrder["note"], "launchedBy">;
  /** Begin although somebody is busy in the same place. */
  share: boolean;
  /** Without a permission it may do everything. */
  ownIsBypass: boolean;
  /** How a person called the session to go on with. */
  ref: string | null;
  /** For what is worth a word. */
  warn(text: string): void;
}

/** The commit that its place is at is only waited for when everything else is known. */
export async function startSession(
  request: StartRequest,
  commit: Promise<string | null> | string | null = request.note.commit,
): Promise<Launched> {
  const { interrupted, release } = interruption();
  try {
    const starting = await startWhenSettled(request, Promise.resolve(commit), interrupted);
    return await starting.begun(interrupted);
  } finally {
    // Also where nothing is started: git is not left running.
    await Promise.allSettled([commit]);
    release();
  }
}

/** Longer than Codex 0.166 needs to leave without a network: 5 s after its session is over. */
const settleMs = 6_000;

/**
 * Whoever is just beginning in the place, or just leaving it, is given a moment to show what it is. Not under the lock:
 * others need not wait for that.
 */
async function startWhenSettled(
  request: StartRequest,
  commit: Promise<string | null>,
  interrupted: Promise<never>,
): Promise<Starting> {
  // Where nothing is started nobody asks for it.
  commit.catch(() => {});
  const deadline = deadlineIn(settleMs);
  for (;;) {
    try {
      const look = deadline.isOver() ? "final" : "may change";
      return await oneAtATime(request.env, () => startAlone(request, commit, look), interrupted);
    } catch (error) {
      if (!(error instanceof Unsettled)) throw error;
      await Promise.race([untilOneEnds(error.pids), interrupted]);
    }
  }
}

class Unsettled extends Error {
  /** The processes that may show in a moment what they are. */
  constructor(readonly pids: readonly number[]) {
    super();
  }
}

/** Who begins shows it in ways of its own: that is looked for by the clock. Who is gone already has left more than its process. */
const beginningMs = 100;
const goneMs = 20;

async function untilOneEnds(pids: readonly number[]): Promise<void> {
  const changes = openChanges();
  try {
    await changes.next(pids.every((pid) => changes.process(pid)) ? beginningMs : goneMs);
  } finally {
    changes.close();
  }
}

type Starting = Pick<StartedLaunch, "begun">;

async function startAlone(
  request: StartRequest,
  commit: Promise<string | null>,
  look: "final" | "may change",
): Promise<Starting> {
  const { env, order, note, before } = request;
  const around = await lookCloselyAround(env, withIds([before?.id]));
  const caller = callerOf(around, env);
  const notes = once(() => readNotes(env).notes);
  guardPermission(order, request.ownIsBypass, caller);
  guardHooks(note.hooks, caller);
  if (before !== null) {
    const now = around.list.sessions.find((session) => isSameSession(session, before)) ?? before;
    const ref = request.ref ?? before.id ?? "";
    const starting = startingHolders(around).find(({ given }) => given === nameOf(before));
    guardTarget(now, ref, caller, around, notes());
    if (look === "may change" && (isLeaving(now) || starting !== undefined))
      throw new Unsettled([...pidsOf(now), ...(starting === undefined ? [] : [starting.pid])]);
    if (starting !== undefined)
      throw new AgentctlError("refused", `${ref} is just being continued by pid ${starting.pid}`);
    checkContinuable(now, ref);
  }
  const name = note.name === null ? null : freeName(note.name, request, around, notes());
  const occupants = occupantsOf(request.cwd, others(around, before, notes), around, caller, env);
  const passing = occupants.filter(({ isPassing }) => isPassing);
  if (look === "may change" && !request.share && passing.length > 0)
    throw new Unsettled(passing.flatMap(({ pids }) => pids));
  checkPlace(request, occupants);
  const [nearest] = caller.within;
  const launchedBy = nearest === undefined ? null : nameOf(nearest);
  const agentPid = nearest?.processes[0]?.identity.pid ?? null;
  const given = caller.isGuarded && agentPid !== null ? withoutOwnCode(env, agentPid) : env;
  const wanted = { ...request, env: given, note: { ...note, name, launchedBy, commit: await commit } };
  const { host } = request.adapter;
  // A host takes its time: nobody else waits for that.
  if (host?.create !== undefined) return { begun: (interrupted) => startInHost(wanted, host, interrupted) };
  // Its holder is in the process table by now: whoever looks next sees it.
  return new StartedLaunch(wanted);
}

const pidsOf = ({ processes }: Session): number[] => processes.map(({ identity }) => identity.pid);

/** Read only where somebody asks, and then once: people keep the notes of many launches. */
function once<T>(read: () => T): () => T {
  let value: { read: T } | null = null;
  return () => {
    value ??= { read: read() };
    return value.read;
  };
}

/** Without those that are on their way out. Of what could not be read nobody knows whether it is over. */
function others({ list }: Surroundings, before: Session | null, notes: () => readonly LaunchNote[]): Session[] {
  const isOver = (told: string): boolean => list.complete && notLiveIn(list.sessions)(told);
  return list.sessions.filter(
    (session) =>
      (before === null || !isSameSession(session, before)) &&
      (session.id !== null || !hasLetGo(session, notes(), isOver)),
  );
}

function checkPlace({ share, warn, cwd }: StartRequest, occupants: readonly Occupant[]): void {
  const busy = occupants.filter(({ refuses }) => refuses);
  if (busy.length > 0 && !share) {
    const by = someLines(texts(busy), mostOccupants).map((text) => `  ${text}`);
    const message = [`${cwd} is occupied:`, ...by].join("\n");
    const hints = [
      ...(busy.some(({ isLock }) => isLock) ? ["agentctl lock list shows the lock, agentctl lock rm ends it"] : []),
      ...(busy.every(({ isLock }) => isLock) ? [] : ["agentctl wait waits for it"]),
      "--worktree gives it a place of its own",
      "--share begins all the same",
    ];
    throw new AgentctlError("refused", message, { hint: hints.join("; ") });
  }
  for (const text of someLines(texts(occupants), mostOccupants)) warn(`not alone: ${text}`);
}

const mostOccupants = 5;
const texts = (occupants: readonly Occupant[]): string[] => occupants.map(({ text }) => text);

/** The wished name, unless a live session has it. One that only goes on goes on without it. */
function freeName(
  name: string,
  { before, warn }: StartRequest,
  around: Surroundings,
  notes: readonly LaunchNote[],
): string | null {
  const named = notes.filter((note) => note.name === name);
  const live = around.list.sessions.find(
    (session) =>
      session.status.state !== "stopped" &&
      (before === null || !isSameSession(session, before)) &&
      named.some((note) => note.session === session.id && note.agent === session.agent),
  );
  const starting = startingHolders(around).find(({ launch }) => named.some(({ id }) => id === launch));
  if (live === undefined && starting === undefined) return name;
  const whose =
    live === undefined
      ? `pid ${starting?.pid} is just starting with it`
      : `${live.agent} ${live.id} has it and is not stopped`;
  if (before !== null) {
    warn(`it goes on without its name ${name}: ${whose}`);
    return null;
  }
  throw new AgentctlError("refused", `the name ${name} is taken: ${whose}`, {
    hint: "choose another name, or stop that one first",
  });
}

/** A live owner would not see what a second one writes. */
export function checkContinuable({ status, processes, id }: Session, ref: string): void {
  if (status.state === "stopped") return;
  if (status.state === "unknown")
    throw new AgentctlError("cannot-tell", `cannot tell whether ${ref} is still running: ${status.why}`, {
      hint: `agentctl why ${ref}`,
    });
  const [row] = processes;
  const where =
    row === undefined ? "in its host" : `pid ${row.identity.pid}${row.tty === null ? "" : ` on ${row.tty}`}`;
  const message = `${ref} (${id}) is live elsewhere: ${where}, ${status.activity}`;
  throw new AgentctlError("refused", message, {
    hint: `agentctl attach ${ref} goes there; agentctl wait ${ref} waits for its end`,
  });
}

/** Rejects at the first signal that asks us to end; `again` tells of a second one. */
export function interruption(): { interrupted: Promise<never>; again: Promise<void>; release(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const second = Promise.withResolvers<void>();
  promise.catch(() => {});
  let count = 0;
  const onSignal = () => {
    count += 1;
    if (count > 1) second.resolve();
    reject(new AgentctlError("interrupted", "interrupted; what was started was ended"));
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, onSignal);
  return {
    interrupted: promise,
    again: second.promise,
    release: () => {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}
