// Waits until sessions are done, stopped, idle or waiting, and says how each of them ended.
import { newestLaunch } from "../control/notes.ts";
import { isLeaving, waitFor } from "../control/wait.ts";
import { outOfSight } from "../core/derive.ts";
import type { Outcome } from "../core/evidence.ts";
import { Failure } from "../core/failure.ts";
import { exitCodes } from "../core/problem.ts";
import { sameProcess } from "../core/process.ts";
import { isSameSession, type Session } from "../core/session.ts";
import { joinSelections, selectIds } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import { type ChosenSession, chooseRows, lookForChoice, type SessionChoice } from "./chosen-sessions.ts";
import { lookAtRows, type Rows, type SessionRow } from "./look.ts";
import { type ReferenceContext, resolve } from "./reference.ts";

export const untils = ["done", "stopped", "idle", "waiting"] as const;
export type Until = (typeof untils)[number];

export interface WaitRequest {
  sessions: SessionChoice;
  until: Until;
  /** One of the sessions is enough. */
  any: boolean;
  timeoutMs: number | null;
}

export interface WaitedSession {
  called: string;
  /** null: it left no record, and its process is gone. */
  row: SessionRow | null;
  /** As it was seen last. */
  last: SessionRow;
  isOver: boolean;
}

export interface WaitAnswer {
  waited: WaitedSession[];
  /** false: the time is over. */
  isEnough: boolean;
  exitCode: number;
}

export async function wait(request: WaitRequest, call: Call): Promise<WaitAnswer> {
  const { sessions, until, any, timeoutMs } = request;
  const { all: first, wanted } = await lookForChoice(sessions, call, lookAtRows);
  call.onProblems(first.problems);
  const tracked = chooseRows(sessions, first, call).map((chosen) => new TrackedSession(chosen, first));
  const told = new Set<TrackedSession>();
  const { value, isEnough } = await waitFor({
    look: () => lookAtRows(call, joinSelections(wanted, selectIds(tracked.map(({ last }) => last.session.id)))),
    isEnough: (rows) => {
      const now = tracked.map((each) => each.in(rows, call));
      const over = now.filter((row) => isOver(row, until));
      if (any ? over.length === 0 : over.length < now.length) return false;
      const leaving = until === "done" ? over.filter((row) => row !== null && isLeaving(row.session)) : [];
      return leaving.length === 0 || (any && leaving.length < over.length) ? true : "for now";
    },
    sessions: (rows) => tracked.flatMap((each) => each.in(rows, call)?.session ?? []),
    timeoutMs,
    tell: (rows) => tellUnknown(tracked, rows, told, call),
    signal: call.signal,
  });
  const waited = tracked.map((each) => {
    const row = each.in(value, call);
    return { called: each.called, row, last: each.last, isOver: isOver(row, until) };
  });
  const codes = waited.filter((each) => each.isOver).map(({ row }) => exitCodeOf(row, until));
  const exitCode = !isEnough ? exitCodes["timed-out"] : any ? Math.min(...codes) : worst(codes);
  return { waited, isEnough, exitCode };
}

/** A failure counts more than a question: the session with the question may still end well. */
const worst = (codes: readonly number[]): number =>
  codes.includes(exitCodes["agent-failed"]) ? exitCodes["agent-failed"] : Math.max(0, ...codes);

/** Finds one session again in each new list: by its name if the request named it, else by its id, else by its process. */
class TrackedSession {
  readonly called: string;
  last: SessionRow;
  /** The name or the launch to follow; null: the request gave an id, which means this session and no other. */
  private readonly name: string | null;

  constructor({ reference, row, called }: ChosenSession, { notes }: Rows) {
    this.called = called;
    this.last = row;
    const isName = row.session.id !== reference && notes.some(({ name }) => name === reference);
    // The next look may have a newer launch.
    if (reference === "@last") this.name = `launch:${newestLaunch(notes)?.id}`;
    else this.name = isName || reference.startsWith("launch:") ? reference : null;
  }

  /** null: it left no record, and its process is gone. */
  in(rows: Rows, context: ReferenceContext): SessionRow | null {
    const row = this.name === null ? this.same(rows) : this.named(this.name, rows, context);
    if (row === null && isUnread(this.last, rows)) return { ...this.last, session: outOfSight(this.last.session) };
    if (row !== null) this.last = row;
    return row;
  }

  private named(name: string, rows: Rows, context: ReferenceContext): SessionRow | null {
    try {
      return resolve(name, rows, context);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return this.same(rows);
    }
  }

  private same({ rows }: Rows): SessionRow | null {
    const { session: last } = this.last;
    const isSame = ({ session }: SessionRow): boolean =>
      last.id !== null
        ? isSameSession(session, last)
        : session.agent === last.agent && session.home === last.home && haveSharedProcess(session, last);
    return rows.find(isSame) ?? null;
  }
}

const haveSharedProcess = (a: Session, b: Session): boolean =>
  a.processes.some((row) => b.processes.some((other) => sameProcess(other.identity, row.identity)));

/** A session that is not in the list is gone only if the whole list could be read. */
const isUnread = ({ session }: SessionRow, { complete, problems }: Rows): boolean =>
  !complete && problems.some(({ agent }) => agent === null || agent === session.agent);

function isOver(row: SessionRow | null, until: Until): boolean {
  if (row === null) return true;
  const { status, background } = row.session;
  if (status.state !== "running") return status.state === "stopped";
  if (until === "stopped") return false;
  if (until === "idle") return status.activity === "idle";
  if (until === "waiting") return status.activity === "waiting";
  const hasBackgroundWork = (background?.shells ?? 0) + (background?.subagents ?? 0) > 0;
  return status.activity === "waiting" || (status.activity === "idle" && !hasBackgroundWork);
}

function exitCodeOf(row: SessionRow | null, until: Until): number {
  if (row === null) return exitCodes["agent-failed"];
  const { status, continuedBy } = row.session;
  if (status.state === "stopped") return continuedBy === null ? codeFor(status.outcome) : exitCodes["needs-a-person"];
  if (status.state === "running" && status.activity === "waiting")
    return until === "waiting" ? 0 : exitCodes["needs-a-person"];
  return lastTurnFailed(row.session) ? exitCodes["agent-failed"] : 0;
}

/** Not every agent records how a turn ended. An unknown outcome is "cannot tell", not a failure. */
const codeFor = (outcome: Outcome | null): number =>
  outcome === null ? exitCodes["cannot-tell"] : outcome === "completed" ? 0 : exitCodes["agent-failed"];

function lastTurnFailed({ record }: Session): boolean {
  const turn = record?.turn;
  return turn?.state === "closed" && turn.outcome !== null && turn.outcome !== "completed";
}

/** Says once per session that its status is unknown. */
function tellUnknown(tracked: readonly TrackedSession[], rows: Rows, told: Set<TrackedSession>, call: Call): void {
  for (const each of tracked) {
    const status = each.in(rows, call)?.session.status;
    if (status?.state !== "unknown" || told.has(each)) continue;
    told.add(each);
    call.onNotice({ code: "status-unknown", facts: { called: each.called, why: status.why } });
  }
}
