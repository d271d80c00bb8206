// Turns what a person typed into one session, or says why it cannot.
import { isMarked } from "../control/guard.ts";
import { type ReadNote, readNotes } from "../control/notes.ts";
import { AgentctlError } from "../core/problem.ts";
import { sameProcess } from "../core/process.ts";
import { likeness } from "../core/session.ts";
import { ownAncestors } from "../observe/ancestors.ts";
import { mountTable } from "../observe/mounts.ts";
import { placeOf } from "../observe/place.ts";
import { noneStopped, type Wanted, type WantedSome, wantedOr, withIds } from "../observe/wanted.ts";
import type { Context } from "./command.ts";
import { terminalOf } from "./render.ts";
import { sessionTable } from "./session-table.ts";
import type { Row, Rows } from "./sessions.ts";

const hint = "agentctl list -a --since 365d shows all of a year";

const notFound: Record<string, string> = {
  ".": "no session in this place",
  "@self": "this command does not run inside a session that agentctl can see",
  "@last": "no session was launched by agentctl",
};

/**
 * A look at the sessions that these references may mean, and what was looked for: who looks again asks for those that were
 * found, too. Where somebody lives in this place, `.` means none of those that were here before: they need not be read, and there
 * may be ten thousand.
 */
export async function lookFor<T extends Rows>(
  references: readonly string[],
  context: Context,
  look: (context: Context, wanted: Wanted) => Promise<T>,
  others: Wanted = noneStopped,
): Promise<{ all: T; wanted: Wanted }> {
  const wanted = wantedOr(meantBy(references, context), others);
  const all = await look(context, wanted);
  if (!references.includes(".") || rowsHere(all, context).some(isLive)) return { all, wanted };
  return { all: await look(context, "all"), wanted: "all" };
}

/** Which stopped sessions these references may mean, by their names. */
function meantBy(references: readonly string[], { env }: Context): WantedSome {
  const isNoted = ({ id, name }: ReadNote, index: number): boolean =>
    references.some((each) => each === name || each === `launch:${id}` || (each === "@last" && index === 0));
  const noted = readNotes(env).notes.filter(isNoted);
  return {
    ...withIds(noted.map(({ session }) => session)),
    beginnings: references.filter((each) => each !== "" && each !== ".").map((each) => each.toLowerCase()),
  };
}

export function resolve(reference: string, all: Rows, context: Context): Row {
  const found = candidates(reference, all, context);
  const [only] = found;
  if (found.length === 1 && only !== undefined) return only;
  if (found.length > 1) throw ambiguous(reference, found, all, context);
  // A name stands in a note: where one cannot be read it may be that name's.
  const isNoted = all.problems.some(({ code }) => code === "note-unreadable") && !/^(pid:|\.$|@self$)/.test(reference);
  if (!all.complete || isNoted) {
    const unread = "agentctl doctor says what could not be read";
    throw new AgentctlError("cannot-tell", `cannot tell whether there is a session ${reference}`, { hint: unread });
  }
  throw new AgentctlError("not-found", notFound[reference] ?? `no session ${reference}`, { hint });
}

function candidates(reference: string, all: Rows, context: Context): Row[] {
  const { rows, notes } = all;
  if (reference === "@self") return sessionAbove(rows, context);
  if (reference === "@last") return launched(rows, notes, notes[0]?.id);
  if (reference === ".") return sessionsHere(all, context);
  if (reference.startsWith("launch:")) return launched(rows, notes, reference.slice("launch:".length));
  if (reference.startsWith("pid:")) {
    const number = reference.slice("pid:".length);
    if (!/^[1-9][0-9]*$/.test(number))
      throw new AgentctlError("usage", `not a process number: ${reference}`, { hint: "pid:4711" });
    const pid = Number(number);
    return rows.filter((row) => row.session.processes.some((process) => process.identity.pid === pid));
  }
  const wanted = reference.toLowerCase();
  const exact = rows.filter((row) => row.session.id?.toLowerCase() === wanted);
  if (exact.length > 0) return exact;
  const begun = rows.filter((row) => reference !== "" && row.session.id?.toLowerCase().startsWith(wanted));
  const [named] = newestNamed(rows, reference);
  if (named === undefined) return begun;
  // A name of a few letters begins many ids. One that looks like what tables show of another session is not a name alone.
  const shown = begun.filter((row) => row !== named && wanted.length >= Math.min(likeness, row.ref.length));
  return [named, ...shown];
}

/** Also an older launch of a session that was continued since. */
function launched(rows: readonly Row[], notes: readonly ReadNote[], id: string | undefined): Row[] {
  const note = notes.find((each) => each.id === id);
  const own = rows.filter(
    ({ launch, session }) =>
      note !== undefined &&
      (launch?.id === id ||
        (note.session !== null &&
          session.id === note.session &&
          session.agent === note.agent &&
          session.home === note.home)),
  );
  return own.map((row) => whereItWent(row, rows));
}

/** A launch is its live process: who types `/clear` there goes on in another session, and the name goes along. */
function whereItWent(row: Row, rows: readonly Row[]): Row {
  const seen = new Set<Row>();
  let now = row;
  while (now.session.status.state !== "running" && now.session.continuedBy !== null && !seen.has(now)) {
    seen.add(now);
    const { continuedBy, agent, home } = now.session;
    const next = rows.find(
      ({ session }) => session.id === continuedBy && session.agent === agent && session.home === home,
    );
    if (next === undefined) break;
    now = next;
  }
  return now;
}

/** A name is its newest live launch, else its newest. */
function newestNamed(rows: readonly Row[], name: string): Row[] {
  const named = rows.filter((row) => row.launch?.name === name);
  const live = named.filter((row) => whereItWent(row, rows).session.status.state === "running");
  const newest = [...(live.length > 0 ? live : named)].sort((a, b) =>
    (a.launch?.at ?? "") < (b.launch?.at ?? "") ? 1 : -1,
  );
  return newest.slice(0, 1).map((row) => whereItWent(row, rows));
}

/** By the process tree; what a tool started may have left that, then by the mark that the agent put on it. */
function sessionAbove(rows: readonly Row[], { env }: Context): Row[] {
  for (const ancestor of ownAncestors()) {
    const above = rows.filter((row) =>
      row.session.processes.some((process) => sameProcess(process.identity, ancestor)),
    );
    if (above.length > 0) return above;
  }
  return rows.filter(({ session }) => session.status.state === "running" && isMarked(session, env));
}

/** Of several the live ones: who asks for "the session here" means the one that is there. */
function sessionsHere(all: Rows, context: Context): Row[] {
  const here = rowsHere(all, context);
  const live = here.filter(isLive);
  return live.length > 0 ? live : here;
}

const isLive = ({ session }: Row): boolean => session.status.state !== "stopped";

/** Ten thousand sessions have few directories. */
function rowsHere({ rows }: Rows, { cwd }: Context): Row[] {
  const mounts = mountTable();
  const place = placeOf(cwd, mounts);
  if (place === null) return [];
  const directories = new Set(rows.map(({ session }) => session.cwd));
  const here = new Set([...directories].filter((directory) => placeOf(directory, mounts) === place));
  return rows.filter(({ session }) => here.has(session.cwd));
}

const mostShown = 10;

function ambiguous(reference: string, found: readonly Row[], { at }: Rows, context: Context): AgentctlError {
  const rows = found.slice(0, mostShown).map((row) => ({ ...row, ref: refBeside(reference, row) }));
  const { columns } = terminalOf(context);
  const lines = sessionTable(rows, at, context, { columns: columns - 2, colour: false })
    .trimEnd()
    .split("\n");
  const more = found.length > mostShown ? [`… and ${found.length - mostShown} more`] : [];
  const list = [...lines, ...more].map((line) => `  ${line}`);
  return new AgentctlError("ambiguous", [`${reference} could be ${found.length} sessions:`, ...list].join("\n"), {
    hint: "the first word of a line means that one alone",
  });
}

/** What is somebody else's name does not mean this one alone. */
const refBeside = (reference: string, { ref, session }: Row): string =>
  ref.toLowerCase() === reference.toLowerCase() ? (session.id ?? ref) : ref;
