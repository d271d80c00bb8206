// One path for launch, run and send: look, check who may begin there, start, and wait for the agent's own word.

import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import { callerOf, guardPermission, guardTarget, nameOf } from "./guard.ts";
import { type Launched, type LaunchOrder, StartedLaunch } from "./launch.ts";
import { readNotes } from "./notes.ts";
import { type Occupant, occupantsOf, oneAtATime } from "./places.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

export interface StartRequest extends Omit<LaunchOrder, "note"> {
  note: Omit<LaunchOrder["note"], "launchedBy">;
  /** Begin although somebody is busy in the same place. */
  share: boolean;
  /** How a person called the session to go on with. */
  ref: string | null;
  /** For what is worth a word. */
  warn(text: string): void;
}

export async function startSession(request: StartRequest): Promise<Launched> {
  const { interrupted, release } = interruption();
  try {
    const started = await oneAtATime(request.env, () => startAlone(request));
    return await started.begun(interrupted);
  } finally {
    release();
  }
}

/** Until its process is visible; only then may the next one look. */
async function startAlone(request: StartRequest): Promise<StartedLaunch> {
  const { env, order, note, before } = request;
  const around = await settledPlace(request);
  const caller = callerOf(around, env);
  const { notes } = readNotes(env);
  guardPermission(order.permission, caller);
  if (before !== null) {
    const now = around.list.sessions.find((session) => isSame(session, before)) ?? before;
    guardTarget(now, request.ref ?? before.id ?? "", caller, around, notes);
    checkContinuable(now, request.ref ?? before.id ?? "");
  }
  if (note.name !== null) checkName(note.name, around, notes);
  checkPlace(request, occupantsOf(request.cwd, others(around, before), around.table, caller.pids));
  const [nearest] = caller.within;
  const launchedBy = nearest === undefined ? null : nameOf(nearest);
  const started = new StartedLaunch({ ...request, note: { ...note, launchedBy } });
  await started.visible();
  return started;
}

const others = ({ list }: Surroundings, before: Session | null): Session[] =>
  list.sessions.filter((session) => before === null || !isSame(session, before));

const isSame = (a: Session, b: Session): boolean => a.agent === b.agent && a.home === b.home && a.id === b.id;

const settleMs = 2_000;

/** A launch that is just beginning there, or just over, is given a moment to show what it is. */
async function settledPlace({ env, cwd }: StartRequest): Promise<Surroundings> {
  const deadline = deadlineIn(settleMs);
  for (;;) {
    const around = await lookAround(env);
    const unsettled = occupantsOf(cwd, [], around.table, new Set()).length > 0;
    if (!unsettled || deadline.isOver()) return around;
    await pause(20);
  }
}

function checkPlace({ share, warn, cwd }: StartRequest, occupants: readonly Occupant[]): void {
  const busy = occupants.filter(({ refuses }) => refuses);
  if (busy.length > 0 && !share) {
    const message = [`${cwd} is occupied:`, ...busy.map(({ text }) => `  ${text}`)].join("\n");
    const hint = "agentctl wait lets you wait for it; --share begins all the same";
    throw new AgentctlError("refused", message, { hint });
  }
  for (const { text } of occupants) warn(`not alone: ${text}`);
}

function checkName(name: string, { list }: Surroundings, notes: ReturnType<typeof readNotes>["notes"]): void {
  const live = list.sessions.find(
    (session) =>
      session.status.state !== "stopped" &&
      notes.some((note) => note.name === name && note.session === session.id && note.agent === session.agent),
  );
  if (live === undefined) return;
  const message = `the name ${name} is taken: ${live.agent} ${live.id} has it and is not stopped`;
  throw new AgentctlError("refused", message, { hint: "choose another name, or stop that one first" });
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
