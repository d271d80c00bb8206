// Ends the turn of sessions and keeps the sessions: through the server, by a signal, or by a key in a tmux pane.
import { signalProcess } from "../control/end-processes.ts";
import { guardTarget, resolveCaller } from "../control/guard.ts";
import { startDueHooks } from "../control/hooks/start-runner.ts";
import { takeSnapshot } from "../control/snapshot.ts";
import { stopSessions } from "../control/stop.ts";
import { interruptServed } from "../control/talk-to-server.ts";
import { paneOf, typeInPane } from "../control/tmux.ts";
import { isLeaving, waitFor } from "../control/wait.ts";
import type { Confirmed } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";
import { launchOf } from "../core/family.ts";
import { exitCodes } from "../core/problem.ts";
import { isServed, type Session } from "../core/session.ts";
import { deadlineIn } from "../lib/deadline.ts";
import { joinSelections, selectIds } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import { chooseRows, lookForChoice, type SessionChoice } from "./chosen-sessions.ts";
import { checkConfirmed } from "./confirmation.ts";
import { lookAroundAtRows, lookAtRows, type Rows, type SessionRow } from "./look.ts";
import { adapterOf, checkKnown, weakLinkOf } from "./policy.ts";

export interface InterruptRequest {
  sessions: SessionChoice;
  /** How long the turns may take to end. */
  timeoutMs: number;
  confirmed: Confirmed;
}

export interface InterruptedSession {
  before: SessionRow;
  /** null: it is gone. */
  now: SessionRow | null;
  hadTurn: boolean;
}

export async function interrupt(
  request: InterruptRequest,
  call: Call,
): Promise<{ interrupted: InterruptedSession[]; exitCode: number }> {
  const { env } = call;
  const { all, wanted } = await lookForChoice(request.sessions, call, lookAroundAtRows);
  call.onProblems(all.problems);
  const chosen = chooseRows(request.sessions, all, call);
  const rows = chosen.map(({ row }) => row);
  const caller = resolveCaller(call.caller, all.snapshot, env);
  for (const { session, ref } of rows) guardTarget(session, ref, caller, all.snapshot, all.notes);
  for (const row of rows) checkKnown(row);
  // All or nothing: every refusal comes before the first session is interrupted.
  const open = rows.filter(({ session }) => hasTurn(session));
  // A reference to a process without a known session needs no confirmation: it means this process. A filter names no process.
  const named = new Set(
    chosen.flatMap(({ reference, row }) => (request.sessions.references.includes(reference) ? [row] : [])),
  );
  const unsure = open.filter((row) => row.session.id !== null || !named.has(row));
  checkConfirmed(unsure.flatMap(weakLinkOf), request.confirmed);
  const ways = await Promise.all(open.map((row) => wayFor(row, call)));
  call.signal.throwIfAborted();
  for (const { act } of ways) await act();
  const keys = new Set(open.map(({ session }) => keyOf(session)));
  const mine = (seen: Rows) => seen.rows.map(({ session }) => session).filter((each) => keys.has(keyOf(each)));
  const deadline = deadlineIn(request.timeoutMs);
  // `pid:` and `@self` do not find a session that has stopped.
  const later = joinSelections(wanted, selectIds(rows.map(({ session }) => session.id)));
  const waitAWhile = () =>
    waitFor({
      look: () => lookAtRows(call, later),
      isEnough: (seen) => (mine(seen).some(hasTurn) ? false : mine(seen).some(isLeaving) ? "for now" : true),
      sessions: mine,
      timeoutMs: Math.min(againMs, deadline.remainingMs()),
      signal: call.signal,
    });
  let seen = await waitAWhile();
  while (!seen.isEnough && !deadline.isOver()) {
    const still = new Set(mine(seen.value).filter(hasTurn).map(keyOf));
    for (const { key, again } of ways) if (still.has(key)) await again();
    seen = await waitAWhile();
  }
  await stopTools(ways, seen.value.rows, caller.pids, call);
  await startDueHooks(call.caller, env, call.onNotice);
  const interrupted = rows.map((before) => ({
    before,
    now: seen.value.rows.find(({ session }) => keyOf(session) === keyOf(before.session)) ?? null,
    hadTurn: hasTurn(before.session),
  }));
  return { interrupted, exitCode: seen.isEnough ? 0 : exitCodes["timed-out"] };
}

/** Claude 2.1.325 ignores a key in the first moments of a dialog: a key is pressed again, a signal is not sent twice. */
const againMs = 3_000;

/** How a session is interrupted. */
interface Way {
  key: string;
  /** The launch of an agent that may exit because of the signal. */
  launch?: string | null;
  act(): Promise<unknown>;
  again(): Promise<unknown>;
}

const once = async (): Promise<void> => {};

const keyOf = ({ agent, home, id, processes }: Session): string =>
  `${agent}\0${home}\0${id ?? processes[0]?.identity.pid}`;

const hasTurn = ({ status }: Session): boolean => status.state === "running" && status.activity !== "idle";

/** An agent that exits because of the signal (`opencode run`) leaves the tool of its turn running. */
async function stopTools(
  ways: readonly Way[],
  rows: readonly SessionRow[],
  callerPids: ReadonlySet<number>,
  { env, signal }: Call,
): Promise<void> {
  const over = ways.flatMap(({ key, launch }) => {
    const session = rows.find((row) => keyOf(row.session) === key)?.session;
    return launch == null || session?.status.state !== "stopped" ? [] : [{ session, launches: [launch] }];
  });
  const options = { graceMs: 1_000, now: false, leftovers: false, server: false };
  if (over.length > 0) await stopSessions(over, options, await takeSnapshot(env), callerPids, env, signal);
}

/** Throws if the session cannot be interrupted from here. */
async function wayFor(row: SessionRow, { env }: Call): Promise<Way> {
  const { session, ref } = row;
  const adapter = adapterOf(row);
  const key = keyOf(session);
  if (isServed(session)) return { key, act: () => interruptServed(session, adapter), again: once };
  const [process] = session.processes;
  if (process === undefined) throw new Error(`${ref} runs without a process`);
  // Without a terminal there are no keys to press, whatever the arguments of the process say.
  const wish = adapter.invocation.interrupt(process.detail?.argv ?? [], process.tty);
  const way = process.tty === null && "keys" in wish ? { signal: "SIGINT" as const } : wish;
  if ("signal" in way) {
    const act = async () => {
      for (const { identity } of session.processes) signalProcess(identity, way.signal);
    };
    return { key, launch: launchOf(process), act, again: once };
  }
  const pane = await paneOf(process, env);
  if (pane === null) throw new Failure("outside-tmux", { ref, tty: process.tty, keys: way.keys });
  const press = async () => {
    if (await typeInPane(pane, way.keys, env)) return;
    throw new Failure("pane-not-reached", { pane: pane.name });
  };
  return { key, act: press, again: press };
}
