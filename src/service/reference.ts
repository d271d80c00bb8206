// Finds the session that a reference means, or fails with the reason.
import { adapterNamed } from "../agents/registry.ts";
import { type Caller, isToolEnvironment } from "../control/guard.ts";
import { newestLaunch, type ReadNote, readNotes, sessionOfNote } from "../control/notes.ts";
import { Failure } from "../core/failure.ts";
import { sameProcess } from "../core/process.ts";
import { isSameSession, likeness } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { mountTable } from "../observe/mounts.ts";
import { placeOf } from "../observe/place.ts";
import { processesFrom } from "../observe/processes.ts";
import { joinSelections, liveOnly, type Selection, type SelectionCriteria, selectIds } from "../observe/selection.ts";
import type { Rows, SessionRow } from "./look.ts";
import { statusWord } from "./session-json.ts";

/** `@self` and `.` depend on the caller's environment and directory. */
export interface ReferenceContext {
  env: Environment;
  cwd: string;
  /** Absent: the process that started this one. */
  caller?: Caller;
}

/**
 * Looks at the sessions that these references may mean, and returns its selection for later looks. `.` means a live session if
 * there is one: only without one are stopped sessions read, which may be ten thousand.
 */
export async function lookFor<T extends Rows>(
  references: readonly string[],
  context: ReferenceContext,
  look: (context: ReferenceContext, wanted: Selection) => Promise<T>,
  others: Selection = liveOnly,
): Promise<{ all: T; wanted: Selection }> {
  const wanted = joinSelections(meantBy(references, context), others);
  const all = await look(context, wanted);
  if (!references.includes(".") || rowsHere(all, context).some(isLive)) return { all, wanted };
  return { all: await look(context, "all"), wanted: "all" };
}

/** Selects the stopped sessions that these references may mean. */
function meantBy(references: readonly string[], { env }: ReferenceContext): SelectionCriteria {
  const { notes } = readNotes(env);
  const newest = newestLaunch(notes);
  const noted = notes.filter((note) =>
    references.some(
      (each) => each === note.name || each === `launch:${note.id}` || (each === "@last" && note === newest),
    ),
  );
  return {
    ...selectIds(noted.map(({ session }) => session)),
    beginnings: references.filter((each) => each !== "" && each !== ".").map((each) => each.toLowerCase()),
  };
}

export function resolve(reference: string, all: Rows, context: ReferenceContext): SessionRow {
  const found = candidates(reference, all, context);
  const [only] = found;
  if (found.length === 1 && only !== undefined) return only;
  if (found.length > 1) throw new AmbiguousReference(reference, found, all.at);
  const adapter = adapterNamed(reference);
  if (adapter !== null) throw agentNotSession(reference, adapter.agent, all);
  // Names are in notes: a note that cannot be read may have this name.
  const isNoted = all.problems.some(({ code }) => code === "note-unreadable") && !/^(pid:|\.$|@self$)/.test(reference);
  if (!all.complete || isNoted) throw new Failure("reference-unresolved", { reference });
  throw new Failure("session-not-found", { reference });
}

/** `stop claude`: an agent may have many sessions, and none is chosen by guessing. */
function agentNotSession(reference: string, agent: string, { rows }: Rows): Failure {
  const live = rows.filter((row) => row.session.agent === agent && isLive(row));
  const sessions = live.map(({ ref, session, launch }) => ({ ref: launch?.name ?? ref, status: statusWord(session) }));
  return new Failure("agent-not-session", { reference, agent, sessions });
}

function candidates(reference: string, all: Rows, context: ReferenceContext): SessionRow[] {
  const { rows, notes } = all;
  if (reference === "@self") return sessionAbove(rows, context);
  if (reference === "@last") return launched(rows, notes, newestLaunch(notes)?.id);
  if (reference === ".") return sessionsHere(all, context);
  if (reference.startsWith("launch:")) return launched(rows, notes, reference.slice("launch:".length));
  if (reference.startsWith("pid:")) {
    const number = reference.slice("pid:".length);
    if (!/^[1-9][0-9]*$/.test(number)) throw new Failure("not-a-pid", { reference });
    const pid = Number(number);
    return rows.filter((row) => row.session.processes.some((process) => process.identity.pid === pid));
  }
  const wanted = reference.toLowerCase();
  const exact = rows.filter((row) => row.session.id?.toLowerCase() === wanted);
  if (exact.length > 0) return exact;
  const begun = rows.filter((row) => reference !== "" && row.session.id?.toLowerCase().startsWith(wanted));
  const [named] = newestNamed(rows, reference);
  if (named === undefined) return begun;
  // Short names are the beginning of many ids. A name is ambiguous only if it is as long as the reference that tables show.
  const shown = begun.filter((row) => row !== named && wanted.length >= Math.min(likeness, row.ref.length));
  return [named, ...shown];
}

/** Finds the session also by an older launch, before the session was continued. */
function launched(rows: readonly SessionRow[], notes: readonly ReadNote[], id: string | undefined): SessionRow[] {
  const note = notes.find((each) => each.id === id);
  const own = rows.filter(
    ({ launch, session }) => note !== undefined && (launch?.id === id || isSameSession(session, sessionOfNote(note))),
  );
  return own.map((row) => whereItWent(row, rows));
}

/** A name follows the process of its launch: after `/clear` the process continues in another session. */
function whereItWent(row: SessionRow, rows: readonly SessionRow[]): SessionRow {
  const seen = new Set<SessionRow>();
  let now = row;
  while (now.session.status.state !== "running" && now.session.continuedBy !== null && !seen.has(now)) {
    seen.add(now);
    const { continuedBy, agent, home } = now.session;
    const next = rows.find(({ session }) => isSameSession(session, { agent, home, id: continuedBy }));
    if (next === undefined) break;
    now = next;
  }
  return now;
}

/** A name means its newest live launch, else its newest launch. */
function newestNamed(rows: readonly SessionRow[], name: string): SessionRow[] {
  const named = rows.filter((row) => row.launch?.name === name);
  const live = named.filter((row) => whereItWent(row, rows).session.status.state === "running");
  const newest = [...(live.length > 0 ? live : named)].sort((a, b) =>
    (a.launch?.at ?? "") < (b.launch?.at ?? "") ? 1 : -1,
  );
  return newest.slice(0, 1).map((row) => whereItWent(row, rows));
}

/** By the process tree; for a process that has left the tree, by the variable that the agent gave to its tools. */
function sessionAbove(rows: readonly SessionRow[], { env, caller }: ReferenceContext): SessionRow[] {
  if (caller?.kind === "person") return [];
  const isOwn = caller === undefined || caller.pid === process.pid;
  for (const ancestor of processesFrom(isOwn ? process.ppid : caller.pid)) {
    const above = rows.filter((row) =>
      row.session.processes.some((process) => sameProcess(process.identity, ancestor)),
    );
    if (above.length > 0) return above;
  }
  return rows.filter(
    ({ session }) => session.status.state === "running" && isToolEnvironment(session, caller?.env ?? env),
  );
}

/** The live sessions in this directory, else the stopped ones. */
function sessionsHere(all: Rows, context: ReferenceContext): SessionRow[] {
  const here = rowsHere(all, context);
  const live = here.filter(isLive);
  return live.length > 0 ? live : here;
}

const isLive = ({ session }: SessionRow): boolean => session.status.state !== "stopped";

/** Resolves each directory once: ten thousand sessions have few directories. */
function rowsHere({ rows }: Rows, { cwd }: ReferenceContext): SessionRow[] {
  const mounts = mountTable();
  const place = placeOf(cwd, mounts);
  if (place === null) return [];
  const directories = new Set(rows.map(({ session }) => session.cwd));
  const here = new Set([...directories].filter((directory) => placeOf(directory, mounts) === place));
  return rows.filter(({ session }) => here.has(session.cwd));
}

/** The reference fits several sessions. A front door shows the candidates, each with a reference that means it alone. */
export class AmbiguousReference extends Failure<"reference-ambiguous"> {
  readonly candidates: readonly SessionRow[];
  readonly at: number;
  constructor(reference: string, found: readonly SessionRow[], at: number) {
    const candidates = found.map((row) => ({ ...row, ref: unambiguousRef(reference, row) }));
    const facts = candidates.map(({ ref, session: { agent, id } }) => ({ ref, agent, id }));
    super("reference-ambiguous", { reference, candidates: facts });
    this.at = at;
    this.candidates = candidates;
  }
}

/** A short reference may be another session's name: then the whole id is the reference. */
const unambiguousRef = (reference: string, { ref, session }: SessionRow): string =>
  ref.toLowerCase() === reference.toLowerCase() ? (session.id ?? ref) : ref;
