// The list of sessions as commands see it: derived, decorated with launch notes, each with its shortest reference.
import { adapters } from "../adapters/registry.ts";
import { type ReadNote, readNotes } from "../control/notes.ts";
import type { Surroundings } from "../control/surroundings.ts";
import type { Tokens } from "../core/evidence.ts";
import type { Problem } from "../core/problem.ts";
import { likeness, type Session, type SessionList } from "../core/session.ts";
import { lookAtSessions } from "../observe/observe.ts";
import { cacheProblems, openRecordCache } from "../observe/record-cache.ts";
import { type Wanted, type WantedSome, withIds } from "../observe/wanted.ts";
import type { Context } from "./command.ts";

export interface Row {
  session: Session;
  ref: string;
  launch: ReadNote | null;
  /** What its whole record adds up to; absent: not counted here. */
  counted?: Counted;
  /** The name of its tmux pane; absent: not looked for, or none. */
  tmux?: string;
}

export interface Counted {
  tokens: Tokens | null;
  denied: number | null;
  costUsd: number | null;
  costSource: "agent" | "estimated" | null;
}

export interface Rows {
  at: number;
  complete: boolean;
  rows: Row[];
  /** Sessions that nobody has, and whose records were not opened. */
  unopened: SessionList["unopened"];
  /** What could not be read; only `readingProblems` say something about statuses. */
  problems: Problem[];
  notes: ReadNote[];
}

export async function lookAtRows({ env }: Context, wanted: Wanted = "all"): Promise<Rows> {
  const kind = wanted === "all" || wanted.since !== undefined ? "all" : "few";
  const cache = openRecordCache(env, Date.now(), kind);
  const list = await lookAtSessions({ adapters, env, wanted, cache });
  cache?.save();
  const rows = decorated(list, env);
  return { ...rows, problems: [...rows.problems, ...cacheProblems(env)] };
}

/** Sessions that agentctl has started, live or not. */
export const launchedSessions = ({ env }: Pick<Context, "env">): WantedSome =>
  withIds(readNotes(env).notes.map(({ session }) => session));

/** The same for commands that act: with all processes of this user, and their marks. */
export async function lookAroundAtRows({ env }: Context, wanted: Wanted): Promise<Rows & { around: Surroundings }> {
  const { lookAround } = await import("../control/surroundings.ts");
  const around = await lookAround(env, wanted);
  return { ...decorated(around.list, env), around };
}

/** With the names of tmux panes, for those who show them. */
export async function withPanes(rows: readonly Row[], { env }: Context): Promise<Row[]> {
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

function decorated(list: SessionList, env: Context["env"]): Rows {
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

/** By the session's id; before the agent has told it, by the tag of the process. */
const noteOf = ({ agent, home, id, processes }: Session, notes: readonly ReadNote[]): ReadNote | null =>
  notes.find(
    (note) =>
      note.agent === agent &&
      note.home === home &&
      (note.session === null
        ? processes.some(({ detail }) => detail?.env?.["AGENTCTL_TAG"] === note.id)
        : note.session === id),
  ) ?? null;

/** Of one session that was asked for by its id. */
export const shortestRef = (id: string, { sessions, unopened }: SessionList): string =>
  refsAmong([id, ...idsOf(sessions)], unopened)(id);

function shortestRefs(sessions: readonly Session[], unopened: SessionList["unopened"]): string[] {
  const refOf = refsAmong(idsOf(sessions), unopened);
  return sessions.map(({ id, processes }) => (id === null ? `pid:${processes[0]?.identity.pid ?? 0}` : refOf(id)));
}

const idsOf = (sessions: readonly Session[]): string[] => sessions.flatMap(({ id }) => id ?? []);

const nobody: readonly string[] = [];

/** UUIDv7 ids of one minute share their first characters: a prefix grows until it is alone, however its letters are typed. */
function refsAmong(ids: readonly string[], unopened: SessionList["unopened"]): (id: string) => string {
  const own = [...new Set(ids.map((id) => id.toLowerCase()))].sort();
  const lengths = new Map<string, number>();
  for (const [index, id] of own.entries()) {
    const shared = Math.max(sharedPrefix(id, own[index - 1]), sharedPrefix(id, own[index + 1]));
    lengths.set(id, Math.max(likeness, shared + 1));
  }
  // Few against many: each of the many is looked at once.
  const alike = Map.groupBy(own, (id) => id.slice(0, likeness));
  for (const store of unopened)
    for (const other of store.ids)
      for (const id of alike.get(other.slice(0, likeness).toLowerCase()) ?? nobody)
        lengths.set(id, Math.max(lengths.get(id) ?? 0, sharedPrefix(id, other.toLowerCase()) + 1));
  return (id) => trimDash(id.slice(0, lengths.get(id.toLowerCase()) ?? id.length));
}

const trimDash = (ref: string): string => ref.replace(/-$/, "");

function sharedPrefix(a: string, b: string | undefined): number {
  let length = 0;
  while (b !== undefined && length < a.length && a[length] === b[length]) length += 1;
  return length;
}
