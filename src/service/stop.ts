// Stops sessions, with the same checks for every front door: the guard, unknown sessions, weak links, servers with other sessions.

import { guardTarget, type ResolvedCaller, resolveCaller } from "../control/guard.ts";
import { startDueHooks } from "../control/hooks/start-runner.ts";
import { sessionOfNote } from "../control/notes.ts";
import { type StopReport, stopSessions } from "../control/stop.ts";
import { waitForExitStatus } from "../control/wait.ts";
import type { Confirmation, Confirmed } from "../core/confirmation.ts";
import { vanished } from "../core/derive.ts";
import { Failure } from "../core/failure.ts";
import { exitOf } from "../core/failure-kinds.ts";
import type { Leftover } from "../core/family.ts";
import { exitCodes } from "../core/problem.ts";
import { isSameSession, type Session } from "../core/session.ts";
import { failureMessage } from "../words/failures.ts";
import { spareText } from "../words/reasons.ts";
import type { Call } from "./call.ts";
import { chooseRows, lookForChoice, type SessionChoice } from "./chosen-sessions.ts";
import { checkConfirmed } from "./confirmation.ts";
import { lookAroundAtRows, type Rows, type SessionRow } from "./look.ts";
import { checkKnown, keyOf, weakLinkOf } from "./policy.ts";
import { sessionJson, statusWord } from "./session-json.ts";

export interface StopRequest {
  sessions: SessionChoice;
  /** The time to exit before SIGKILL. */
  graceMs: number;
  /** SIGKILL at once. */
  now: boolean;
  leftovers: boolean;
  /** Stop the servers of the sessions, and with them every other session that they serve. */
  server: boolean;
  confirmed: Confirmed;
}

export interface StoppedSession {
  /** As it was before, with the exit status that its holder has written since. */
  row: SessionRow;
  answer: StopReport;
  /** Its server before the stop; null: it had none. */
  server: Server | null;
}

export interface Server {
  /** Its process, else its address. */
  name: string;
  /** The first of the chosen sessions that it serves. */
  row: SessionRow;
  /** The sessions that it serves and that were not chosen. */
  others: SessionRow[];
}

export async function stop(request: StopRequest, call: Call): Promise<{ stopped: StoppedSession[]; exitCode: number }> {
  const { env, caller: from } = call;
  const { all } = await lookForChoice(request.sessions, call, lookAroundAtRows);
  call.onProblems(all.problems);
  const rows = chooseRows(request.sessions, all, call).map(({ row }) => row);
  const caller = resolveCaller(from, all.snapshot, env);
  const servers = request.server ? serversOf(rows, all.rows) : [];
  for (const { session, ref } of rows) guardTarget(session, ref, caller, all.snapshot, all.notes);
  for (const row of rows) checkKnown(row);
  for (const row of rows) checkNotInside(row, caller);
  for (const { session, ref } of servers.flatMap(({ others }) => others))
    guardTarget(session, ref, caller, all.snapshot, all.notes);
  const endings = servers.flatMap(otherSessionsEnd);
  checkConfirmed([...endings, ...rows.flatMap(weakLinkOf), ...manySessions(rows)], request.confirmed);
  for (const each of endings) call.onNotice({ code: "server-sessions", facts: { confirmation: each } });
  call.signal.throwIfAborted();
  const targets = rows.map(({ session }) => ({ session, launches: launchesOf(session, all) }));
  const answers = await stopSessions(targets, request, all.snapshot, caller.pids, env, call.signal);
  const fresh = await withExits(rows, answers, call);
  await startDueHooks(from, env, call.onNotice);
  const [failure] = answers.flatMap(({ failure }) => failure ?? []);
  if (rows.length === 1 && failure !== undefined) throw failure;
  return {
    stopped: answers.flatMap((answer, index) => {
      const row = fresh[index];
      return row === undefined ? [] : [{ row, answer, server: serversOf([row], all.rows)[0] ?? null }];
    }),
    exitCode: Math.max(...answers.map(exitCodeOf)),
  };
}

const launchesOf = (session: Session, { notes }: Rows): string[] =>
  notes.filter((note) => isSameSession(sessionOfNote(note), session)).map(({ id }) => id);

const exitPatienceMs = 300;

/** Adds the exit statuses that the holders write a moment after their agents have ended. */
async function withExits(
  rows: readonly SessionRow[],
  answers: readonly StopReport[],
  { env }: Call,
): Promise<SessionRow[]> {
  const notes = await waitForExitStatus(
    rows.flatMap(({ launch }, at) => ((answers[at]?.ended.length ?? 0) === 0 ? [] : (launch?.id ?? []))),
    env,
    exitPatienceMs,
  );
  return rows.map((row) => ({ ...row, launch: notes.find(({ id }) => id === row.launch?.id) ?? row.launch }));
}

/** Most agents end their tools when they stop: a caller inside the session would be killed before it could answer. */
function checkNotInside({ session, ref }: SessionRow, caller: ResolvedCaller): void {
  const isAbove = session.processes.some(({ identity }) => caller.pids.has(identity.pid));
  if (session.status.state !== "running" || !isAbove || !caller.within.includes(session)) return;
  throw new Failure("inside-target", { ref });
}

const exitCodeFor: Readonly<Record<Exclude<StopReport["result"], "failed">, number>> = {
  stopped: 0,
  "already-stopped": 0,
  "turn-interrupted": 0,
  "tools-stopped": 0,
  "nothing-to-stop": exitCodes.refused,
  "still-running": exitCodes["timed-out"],
  unknown: exitCodes["cannot-tell"],
};

const exitCodeOf = ({ result, failure }: StopReport): number =>
  failure !== null ? exitCodes[exitOf(failure)] : result === "failed" ? exitCodes.failed : exitCodeFor[result];

/** The servers of these sessions, each once. */
function serversOf(rows: readonly SessionRow[], all: readonly SessionRow[]): Server[] {
  const servers = new Map<string, Server>();
  for (const row of rows) {
    const key = serverKey(row.session);
    if (key === null || servers.has(key)) continue;
    const others = all.filter((each) => serverKey(each.session) === key && !rows.some((own) => own.ref === each.ref));
    servers.set(key, { row, name: serverName(row.session), others });
  }
  return [...servers.values()];
}

function serverKey({ agent, home, status }: Session): string | null {
  if (status.state !== "running" || status.owner.kind !== "server") return null;
  const { process, address } = status.owner;
  return process === null ? `${agent}\0${home}\0${address}` : `${process.pid} ${process.start} ${process.boot}`;
}

function serverName({ status }: Session): string {
  if (status.state !== "running" || status.owner.kind !== "server") return "its server";
  const { process, address } = status.owner;
  return process === null ? address : `pid ${process.pid}`;
}

function otherSessionsEnd({ row, name, others }: Server): Confirmation[] {
  if (others.length === 0) return [];
  const key = ["server-sessions", serverKey(row.session), ...others.map(keyOf).sort()].join(" ");
  const named = others.map(({ session, ref }) => ({ agent: session.agent, ref, status: statusWord(session) }));
  return [{ code: "server-sessions", key, ref: row.ref, server: name, others: named }];
}

const maxUnconfirmed = 3;

function manySessions(rows: readonly SessionRow[]): Confirmation[] {
  const running = rows.filter(({ session }) => session.status.state === "running");
  if (running.length <= maxUnconfirmed) return [];
  const key = ["many-sessions", ...running.map(keyOf).sort()].join(" ");
  return [{ code: "many-sessions", key, count: running.length }];
}

export function stopJson({ row, answer }: StoppedSession) {
  const { result, session, ended, leftovers, survivors, failure } = answer;
  return {
    ...sessionJson({ ...row, session: session ?? vanished(row.session) }),
    result,
    ended: ended.map(({ process }) => process.pid),
    leftovers: [...leftovers, ...survivors].map(leftoverJson),
    ...(failure === null ? {} : { failure: failureMessage(failure) }),
  };
}

export const leftoverJson = ({ row, why }: Leftover) => ({
  pid: row.identity.pid,
  command: row.detail?.argv?.join(" ") ?? row.name,
  why: spareText(why),
  whyCode: why.code,
});
