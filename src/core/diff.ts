// What changed between two lists of sessions. Everything that is live (events, waits, views) is made from these changes.
import type { Problem } from "./problem.ts";
import { isSuspended, type ProcessRow } from "./process.ts";
import type { Session, SessionList } from "./session.ts";
import { compareText } from "./session-facts.ts";

/** before null: it is new. after null: it is no longer in the list. */
export type SessionChange =
  | { before: null; after: Session }
  | { before: Session; after: Session }
  | { before: Session; after: null };

export interface ListChanges {
  sessions: SessionChange[];
  problems: { began: Problem[]; ended: Problem[] };
}

export function diffLists(before: SessionList, after: SessionList): ListChanges {
  const problems = { began: without(after.problems, before.problems), ended: without(before.problems, after.problems) };
  return { sessions: diffSessions(before.sessions, after.sessions), problems };
}

/** The sessions of the list before, with the changes applied to them. The order is that of the list before, new ones last. */
export function applyToSessions(sessions: readonly Session[], changes: readonly SessionChange[]): Session[] {
  const changed = new Map<string, Session | null>();
  const added: Session[] = [];
  for (const { before, after } of changes) {
    if (before === null) added.push(after);
    else changed.set(keyOf(before), after);
  }
  const kept = sessions.flatMap((session) => {
    const after = changed.get(keyOf(session));
    return after === undefined ? [session] : (after ?? []);
  });
  return [...kept, ...added];
}

function diffSessions(before: readonly Session[], after: readonly Session[]): SessionChange[] {
  const left = new Map(before.map((session) => [keyOf(session), session]));
  const changes: SessionChange[] = [];
  const fresh: Session[] = [];
  for (const session of after) {
    const was = left.get(keyOf(session));
    left.delete(keyOf(session));
    if (was === undefined) fresh.push(session);
    else if (was !== session && viewOf(was) !== viewOf(session)) changes.push({ before: was, after: session });
  }
  // A process that was listed without a session may now be listed with one.
  const nameless = new Map(
    [...left.values()].flatMap((was) => (was.id === null ? was.processes.map((row) => [ownerKey(was, row), was]) : [])),
  );
  // Two new sessions may have the same process: the order of the list must not decide between them.
  for (const session of fresh.sort((a, b) => compareText(keyOf(a), keyOf(b)))) {
    const was = session.processes.map((row) => nameless.get(ownerKey(session, row))).find((each) => each !== undefined);
    const isFirst = was !== undefined && left.delete(keyOf(was));
    changes.push({ before: isFirst ? was : null, after: session });
  }
  changes.push(...[...left.values()].map((session): SessionChange => ({ before: session, after: null })));
  return changes.sort((a, b) => compareText(changeKey(a), changeKey(b)));
}

const changeKey = (change: SessionChange): string => keyOf(change.after ?? change.before);

/** A live process without a session id is identified by the process, a session by its id. */
function keyOf({ agent, home, id, processes }: Session): string {
  if (id !== null) return JSON.stringify([agent, home, id]);
  const [row] = processes;
  return JSON.stringify([agent, home, null, row === undefined ? null : identityOf(row)]);
}

const ownerKey = ({ agent }: Session, row: ProcessRow): string => `${agent} ${identityOf(row)}`;

const identityOf = ({ identity: { pid, start, boot } }: ProcessRow): string => `${pid} ${start} ${boot}`;

/**
 * Everything about a session that a person or a script can see change. A process flips between running and sleeping all the time, and
 * the evidence holds the time of the look: neither is a change of the session. The evidence is made when it is read, so it is not
 * read here.
 */
function viewOf(session: Session): string {
  const { agent, home, id, status, reason, since, waiting, background, cwd } = session;
  const { startedAt, updatedAt, endedAt, parent, continuedBy, record, job, processes, conflicts } = session;
  return JSON.stringify([
    [agent, home, id, status, reason, since, waiting, background, cwd],
    [startedAt, updatedAt, endedAt, parent, continuedBy, job, conflicts],
    [record?.facts ?? null, record?.opensAs ?? null],
    processes.map((row) => [identityOf(row), row.name, row.tty, isSuspended(row)]),
  ]);
}

/** The order of problems is that of the list; the same problem counts once. */
function without(some: readonly Problem[], others: readonly Problem[]): Problem[] {
  const known = new Set(others.map(problemKey));
  return some.filter((problem) => {
    const isNew = !known.has(problemKey(problem));
    known.add(problemKey(problem));
    return isNew;
  });
}

const problemKey = ({ code, agent, source }: Problem): string => JSON.stringify([code, agent, source]);
