// A captured case in a separate home, with another session beside it, and one of its files to be damaged.
import { readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import type { NativeRecord, Store } from "../../src/core/evidence.ts";
import { type Reading, read } from "../../src/core/problem.ts";
import type { ProcessTable } from "../../src/core/process.ts";
import type { Session, SessionList } from "../../src/core/session.ts";
import { findFiles } from "../../src/observe/files.ts";
import { findRecords } from "../../src/observe/record-names.ts";
import { type CapturedCase, casesOf, derive, placeCase, storeAt, tableAt } from "./cases.ts";
import { faultsOf } from "./invariants.ts";
import { tableOf } from "./process-table.ts";

/** No file, however bad, may take longer. */
const patienceMs = 2_000;

/** A whole second, so that a mended file is the same to the letter. */
const writtenAt = Date.parse("2026-12-01T00:00:00Z") / 1000;

export interface Victim {
  name: string;
  adapter: Adapter;
  /** The HOME whose default place for this agent holds the case. */
  userHome: string;
  home: string;
  path: string;
  id: string;
  bytes: Buffer;
  /** The captured moment, and the same files without live processes. */
  table: ProcessTable;
  noProcesses: ProcessTable;
  store: Store;
  live: SessionList;
  dead: SessionList;
}

/** Whether a record is a separate file; bad-databases.test.ts damages databases. */
export const hasRecordFiles = ({ records }: Adapter): boolean =>
  records.some(({ assembled }) => assembled === undefined);

/** Are its announcements files of their own? Where the record itself names the process, breaking the one breaks the other. */
export const hasAnnouncementFiles = ({ announcements, records }: Adapter): boolean =>
  announcements !== undefined &&
  !records.some(({ folder, name }) => folder === announcements.folder && name.source === announcements.name.source);

/** One victim for each record (or announcement) of each case. */
export function victims(adapter: Adapter, kind: "record" | "announcement", folder: string): Victim[] {
  const cases = casesOf(adapter);
  return cases.flatMap((captured, index) => {
    const userHome = join(folder, kind, captured.name);
    const neighbour = cases[(index + 1) % cases.length] ?? captured;
    const home = placeCase(adapter, neighbour, userHome);
    const before = new Set(neighbour === captured ? [] : filesOf(adapter, kind, home).map(({ path }) => path));
    placeCase(adapter, captured, userHome);
    const own = filesOf(adapter, kind, home).filter(({ path }) => !before.has(path));
    for (const { path } of own) utimesSync(path, writtenAt, writtenAt);
    return own.map(({ path, subject }) => victim(adapter, captured, userHome, home, path, subject));
  });
}

/** One for each case of an agent that keeps its sessions in databases: to be looked at, not to be broken as a file of lines is. */
export const databaseVictims = (adapter: Adapter, folder: string): Victim[] =>
  casesOf(adapter).flatMap((captured) => {
    const userHome = join(folder, "database", captured.name);
    const home = placeCase(adapter, captured, userHome);
    const [record] = findRecords(adapter, home).visited;
    return record === undefined ? [] : [victim(adapter, captured, userHome, home, record.path, record.subject)];
  });

const filesOf = (adapter: Adapter, kind: "record" | "announcement", home: string) =>
  kind === "record"
    ? findRecords(adapter, home).visited.filter(({ set }) => set.assembled?.sessions == null)
    : adapter.announcements === undefined
      ? []
      : findFiles(home, adapter.announcements).files;

function victim(
  adapter: Adapter,
  captured: CapturedCase,
  userHome: string,
  home: string,
  path: string,
  subject: string,
): Victim {
  const store = storeAt(adapter, home);
  const table = tableAt(captured, adapter, store, userHome);
  const noProcesses = tableOf([], store, userHome);
  const announced = store.announcements.find(({ pid }) => String(pid) === subject)?.reading;
  return {
    name: captured.name,
    adapter,
    userHome,
    home,
    path,
    id: announced?.ok ? announced.value.session : subject,
    bytes: readFileSync(path),
    table,
    noProcesses,
    store,
    live: derive(adapter, store, table),
    dead: derive(adapter, store, noProcesses),
  };
}

export interface Look {
  store: Store;
  live: SessionList;
  dead: SessionList;
  faults: string[];
}

/** Reads the case as it is now: what does not hold of what must always hold. */
export function lookAt(victim: Victim): Look {
  const { adapter, home } = victim;
  const before = process.cpuUsage();
  const store = storeAt(adapter, home);
  const live = derive(adapter, store, victim.table);
  const dead = derive(adapter, store, victim.noProcesses);
  // Processor time: the machine may be busy with other tests.
  const { user, system } = process.cpuUsage(before);
  const tookMs = (user + system) / 1000;
  const faults = [...faultsOf(adapter, store, live), ...faultsOf(adapter, store, dead)];
  if (tookMs > patienceMs) faults.push(`took ${Math.round(tookMs)} ms`);
  return { store, live, dead, faults };
}

/** Damages the victim's file, asks agentctl, and repairs the file. */
export function lookAtBroken(victim: Victim, content: string | Uint8Array): Look {
  writeFileSync(victim.path, content);
  return lookAt(victim);
}

export function mend({ path, bytes }: Victim): void {
  rmSync(path, { recursive: true, force: true });
  writeFileSync(path, bytes);
  utimesSync(path, writtenAt, writtenAt);
}

/** The unreadable first line names the session; the file name has only the start of the id. */
export const isNameless = ({ adapter }: Victim, { store }: Look): boolean =>
  store.nameless !== undefined && namesItself(adapter);

const namesItself = ({ records }: Adapter): boolean => records.some(({ idIn }) => idIn !== undefined);

/** The damaged record, under the id that it has now. */
const isRenamed = ({ adapter, path }: Victim, reading: Reading<NativeRecord>): boolean =>
  namesItself(adapter) && reading.ok && reading.value.source === path;

/** One bad file costs one row: the others stay as they were, to the letter. Of a subagent it costs its session's count. */
export function neighbourFaults(victim: Victim, look: Look): string[] {
  const reading = victim.store.rows.find(({ id }) => id === victim.id)?.reading;
  const root = reading?.ok ? reading.value.subagentOf : null;
  const others = (list: SessionList): Session[] =>
    list.sessions
      .filter((session) => !mayHaveIt(session))
      .filter(({ id, record }) => id !== victim.id && !(record !== null && isRenamed(victim, read(record))))
      .map((session) => (session.id === root && root !== null ? { ...session, background: null } : session))
      // The session that continued as the damaged one no longer names it.
      .map((session) => (leftFor(session) ? { ...session, continuedBy: null } : session));
  const left = new Set(
    [...victim.dead.sessions, ...victim.live.sessions].flatMap(({ id, continuedBy }) =>
      continuedBy === victim.id ? [id] : [],
    ),
  );
  const leftFor = ({ id }: Session): boolean => left.has(id);
  const rows = (store: Store) =>
    store.rows.filter(({ id, reading }) => id !== victim.id && !isRenamed(victim, reading));
  const mayHaveIt = ({ id }: Session): boolean =>
    isNameless(victim, look) && look.store.nameless?.some(({ begins }) => id?.startsWith(begins)) === true;
  const isStopped = (session: Session): boolean => mayHaveIt(session) && session.status.state === "stopped";
  return [
    look.dead.sessions.some(isStopped) && "a session that may have the record is called stopped",
    !Bun.deepEquals(rows(look.store), rows(victim.store)) && "another record is read differently",
    !Bun.deepEquals(others(look.dead), others(victim.dead)) && "another session changed (no process alive)",
    !linkedByDirectory(victim) &&
      !namedByRecord(victim) &&
      !Bun.deepEquals(others(look.live), others(victim.live)) &&
      "another session changed",
  ].filter((fault) => fault !== false);
}

/** This weakest link is a choice among all records of a directory, so that one of them can change it for the others. */
function linkedByDirectory({ live }: Victim): boolean {
  return live.sessions.some(({ id, status }) => {
    const owner = status.state === "running" && status.owner.kind === "process" ? status.owner : null;
    return owner !== null && (id === null || owner.link === "cwd");
  });
}

/** Damaged, it leaves its process without a name: one more row, and a doubt about what else that process may have. */
const namedByRecord = ({ adapter }: Victim): boolean =>
  adapter.announcements !== undefined && !hasAnnouncementFiles(adapter);

/** A damaged file may say less than before, never something else. */
export function inventionFaults(victim: Victim, look: Look): string[] {
  const words = (list: SessionList): [state: string, activity: string | null, outcome: string | null] => {
    const status = list.sessions.find(({ id }) => id === victim.id)?.status;
    if (status === undefined) return ["none", null, null];
    return [
      status.state,
      status.state === "running" ? status.activity : null,
      status.state === "stopped" ? status.outcome : null,
    ];
  };
  return (["live", "dead"] as const).flatMap((moment) => {
    const [state, activity, outcome] = words(look[moment]);
    if (state === "none" && isNameless(victim, look)) return [];
    const [stateBefore, activityBefore, outcomeBefore] = words(victim[moment]);
    const fits =
      (state === stateBefore || state === "unknown") &&
      [activityBefore, "unclear", null].includes(activity) &&
      [outcomeBefore, null].includes(outcome);
    const now = [state, activity, outcome].join(" ");
    return fits ? [] : [`${moment}: was ${[stateBefore, activityBefore, outcomeBefore].join(" ")}, now ${now}`];
  });
}
