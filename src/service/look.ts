// The list of sessions as every front door sees it: derived, with launch notes, each with its shortest reference.
import { adapters } from "../agents/registry.ts";
import { type ReadNote, readNotes, sessionOfNote } from "../control/notes.ts";
import type { Snapshot } from "../control/snapshot.ts";
import type { Problem } from "../core/problem.ts";
import { isSameSession, type Session, type SessionList } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { listSessions } from "../observe/observe.ts";
import { cacheProblems, openRecordCache } from "../observe/record-cache.ts";
import {
  liveOnly,
  type Selection,
  type SelectionCriteria,
  selectIds,
  selectWrittenSince,
} from "../observe/selection.ts";
import type { Counted } from "../observe/usage/cost.ts";
import { shortestRefs } from "./refs.ts";

/** Whose homes are read. */
export interface LookContext {
  env: Environment;
}

export interface SessionRow {
  session: Session;
  ref: string;
  launch: ReadNote | null;
  /** What its whole record adds up to; absent: not counted here. */
  counted?: Counted;
  /** The name of its tmux pane; absent: not looked for, or none. */
  tmux?: string;
}

export interface Rows {
  at: number;
  complete: boolean;
  rows: SessionRow[];
  /** Stopped sessions with records that were not opened. */
  unopened: SessionList["unopened"];
  /** What could not be read; only `readingProblems` say something about statuses. */
  problems: Problem[];
  notes: ReadNote[];
}

export async function lookAtRows({ env }: LookContext, wanted: Selection = "all"): Promise<Rows> {
  const kind = wanted === "all" || wanted.since !== undefined ? "all" : "few";
  const cache = openRecordCache(env, Date.now(), kind);
  const list = await listSessions({ adapters, env, selection: wanted, cache });
  cache?.save();
  const rows = decorated(list, env);
  return { ...rows, problems: [...rows.problems, ...cacheProblems(env)] };
}

/** Only sessions that are or may be running. */
export const lookAtLive = (context: LookContext): Promise<Rows> => lookAtRows(context, liveOnly);

/** Sessions that are or may be running, and those that were written to since this time. */
export const lookSince = (context: LookContext, time: number): Promise<Rows> =>
  lookAtRows(context, selectWrittenSince(time));

/** Sessions that agentctl has started, live or not. */
export const launchedSessions = ({ env }: LookContext): SelectionCriteria =>
  selectIds(readNotes(env).notes.map(({ session }) => session));

/** The same for commands that act: also reads all processes of this user, and their tags. */
export async function lookAroundAtRows(
  { env }: LookContext,
  wanted: Selection,
): Promise<Rows & { snapshot: Snapshot }> {
  const { takeSnapshot } = await import("../control/snapshot.ts");
  const snapshot = await takeSnapshot(env, wanted);
  return { ...decorated(snapshot.list, env), snapshot };
}

/** Adds the names of tmux panes. */
export async function withPanes(rows: readonly SessionRow[], { env }: LookContext): Promise<SessionRow[]> {
  if (!rows.some(({ session }) => session.processes.some(({ tty }) => tty !== null))) return [...rows];
  const { panesOf } = await import("../control/tmux.ts");
  const panes = await panesOf(
    rows.flatMap(({ session }) => session.processes),
    env,
  );
  return rows.map((row) => {
    const pane = row.session.processes.map((process) => panes.get(process)).find((each) => each !== undefined);
    return pane === undefined ? row : { ...row, tmux: pane.name };
  });
}

function decorated(list: SessionList, env: Environment): Rows {
  const { notes, problems } = readNotes(env);
  return { ...decorate(list, notes), problems: [...list.problems, ...problems], notes };
}

function decorate(list: SessionList, notes: readonly ReadNote[]): Pick<Rows, "at" | "complete" | "rows" | "unopened"> {
  const refs = shortestRefs(list.sessions, list.unopened);
  const rows = list.sessions.map((session, index) => ({
    session,
    ref: refs[index] ?? "",
    launch: noteOf(session, notes),
  }));
  return { at: list.at, complete: list.complete, rows, unopened: list.unopened };
}

/** By the session's id; until the id is known, by the tag of the process. */
const noteOf = (session: Session, notes: readonly ReadNote[]): ReadNote | null =>
  notes.find((note) =>
    note.session === null
      ? note.agent === session.agent &&
        note.home === session.home &&
        session.processes.some(({ detail }) => detail?.env?.["AGENTCTL_TAG"] === note.id)
      : isSameSession(session, sessionOfNote(note)),
  ) ?? null;
