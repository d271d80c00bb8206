// Reads records, announcements and servers again if they may have changed during the first reading.
import type { Adapter } from "../agents/adapter.ts";
import { deriveSessions } from "../core/derive.ts";
import type { Evidence, ServerAnswer, StartDialog, Store } from "../core/evidence.ts";
import { namedHome } from "../core/matches.ts";
import { isLive } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { isServed, type Session, type SessionList } from "../core/session.ts";
import type { Deadline } from "../lib/deadline.ts";
import { readDialog } from "./dialogs.ts";
import { lookUpDirectories } from "./directories.ts";
import { readDistantStore } from "./distant-store.ts";
import { mayHang } from "./mounts.ts";
import { storeKey } from "./open-records.ts";
import type { StoreRow } from "./record-cache.ts";
import { visitRecords } from "./record-names.ts";
import { type FoundRecord, recordAt, visitFound } from "./records.ts";
import type { Scan } from "./scan.ts";
import { readServers } from "./servers.ts";
import { readAnnouncements, readRow } from "./stores.ts";

/** Derives the sessions after the second reading. `late`: keys of the stores whose records were read after the processes. */
export async function readAgain(
  evidence: Evidence,
  scan: Scan,
  late: ReadonlySet<string>,
): Promise<{ evidence: Evidence; list: SessionList }> {
  const { adapters, mounts } = scan;
  const list = deriveSessions(evidence, adapters);
  const { sessions } = list;
  const servers = await askServersAgain(evidence, sessions, scan);
  const dialogs = dialogsOfSilent(evidence, sessions, adapters, mounts);
  const stores: Store[] = [];
  for (const store of evidence.stores)
    stores.push(await readStoreAgain(store, sessions, evidence.at, late.has(storeKey(store)), scan));
  const again = { ...evidence, servers, dialogs, stores };
  const owners = sessions.filter(({ id }) => id !== null).flatMap(({ processes }) => processes);
  const directories = lookUpDirectories(again, new Set(owners), adapters, mounts);
  // Each step returns the same object if it had nothing to read. A record without an owner does not change any more.
  const isSame =
    servers === evidence.servers &&
    dialogs.length === 0 &&
    stores.every((store, index) => store === evidence.stores[index]) &&
    Object.keys(evidence.directories).length + Object.keys(directories).length === 0;
  if (isSame) return { evidence, list };
  const settled = { ...again, directories };
  return { evidence: settled, list: deriveSessions(settled, adapters) };
}

/** Asks a server again if it did not name a session that it took up before the processes were read. */
async function askServersAgain(
  { servers, stores }: Evidence,
  sessions: readonly Session[],
  { adapters, readTable, deadline }: Scan,
): Promise<ServerAnswer[]> {
  const isIncomplete = (server: ServerAnswer): boolean => {
    if (!server.answer.ok) return false;
    const told = new Set(server.answer.value.map(({ id }) => id));
    const here = sessions.filter(({ agent, home }) => agent === server.agent && home === server.home);
    return here.some((session) => isServed(session) && session.id !== null && !told.has(session.id));
  };
  if (!servers.some(isIncomplete)) return servers;
  const answers: ServerAnswer[] = [];
  for (const server of servers) {
    const adapter = isIncomplete(server) ? adapters.find(({ agent }) => agent === server.agent) : undefined;
    const store = stores.find(({ agent, home }) => agent === server.agent && home === server.home) ?? null;
    const asked = adapter === undefined ? [] : readServers(adapter, server.home, () => store, readTable, deadline);
    const again = (await Promise.all(asked)).find((each) => each?.address === server.address && each.answer.ok);
    answers.push(again ?? server);
  }
  return answers;
}

const hasSpoken = ({ status }: Session): boolean =>
  status.state === "running" && status.owner.kind === "process" && status.owner.link === "announced";

/** A process that has announced no session may show a dialog. */
function dialogsOfSilent(
  evidence: Evidence,
  sessions: readonly Session[],
  adapters: readonly Adapter[],
  mounts: string,
): StartDialog[] {
  if (!evidence.processes.ok) return [];
  const named = new Set(sessions.filter(hasSpoken).flatMap((session) => session.processes));
  const silent = evidence.processes.value.rows.filter((row) => row.tty !== null && isLive(row) && !named.has(row));
  return adapters.flatMap((adapter) =>
    silent.flatMap((row) => {
      const { detail } = row;
      if (detail === null || roleOf(adapter, row) !== "agent") return [];
      const home = namedHome(adapter, detail);
      if (home === null || mayHang(home, mounts) || mayHang(detail.cwd ?? "/", mounts)) return [];
      return readDialog(adapter, home, row) ?? [];
    }),
  );
}

/** Reads announcements of processes that had none, and the records that may have changed. */
async function readStoreAgain(
  store: Store,
  sessions: readonly Session[],
  at: number,
  isLate: boolean,
  { adapters, mounts, deadline }: Scan,
): Promise<Store> {
  const adapter = adapters.find(({ agent }) => agent === store.agent);
  if (adapter === undefined) return store;
  const here = sessions.filter(({ agent, home }) => agent === store.agent && home === store.home);
  const doubtful = new Set(here.filter((session) => mayHaveChanged(session, at, isLate)).map(({ id }) => id));
  if (mayHang(store.home, mounts))
    return doubtful.size === 0 ? store : await readDistantRecordsAgain(adapter, store, doubtful, deadline);
  const silent = adapter.announcements === undefined ? [] : here.filter((session) => !hasSpoken(session));
  const pids = new Set(silent.flatMap(({ processes }) => processes.map(({ identity }) => identity.pid)));
  return readRecordsAgain(adapter, readAnnouncementsAgain(adapter, store, pids), doubtful);
}

const recentMs = 2_000;

function mayHaveChanged(session: Session, at: number, isLate: boolean): boolean {
  const { record, status } = session;
  if (record === null) return false;
  if (status.state === "running" || isLate) return record.torn;
  const recent = record.writtenAt !== null && record.writtenAt > at - recentMs;
  return status.state === "stopped" && (record.turn.state === "open" || record.torn || recent);
}

/** A silent process may have announced a session since. Announcements of processes outside our table are not added. */
function readAnnouncementsAgain(adapter: Adapter, store: Store, pids: ReadonlySet<number>): Store {
  if (pids.size === 0) return store;
  const spoken = readAnnouncements(adapter, store.home).filter((announcement) => pids.has(announcement.pid));
  const announcements = [...store.announcements.filter((announcement) => !pids.has(announcement.pid)), ...spoken];
  const known = new Set(store.rows.map((row) => row.id));
  const announced = spoken.flatMap(({ reading }) => (reading.ok ? [reading.value.session] : []));
  const fresh = new Set(announced.filter((id) => !known.has(id)));
  if (fresh.size === 0) return { ...store, announcements };
  const { visited } = visitRecords(adapter, store.home, (record, read) =>
    fresh.has(record.subject) ? readRow(adapter, record, read) : null,
  );
  return { ...store, announcements, rows: [...store.rows, ...visited] };
}

async function readDistantRecordsAgain(
  adapter: Adapter,
  store: Store,
  ids: ReadonlySet<string | null>,
  deadline: Deadline,
): Promise<Store> {
  const again = await readDistantStore(adapter, store.home, deadline);
  const readings = new Map(again?.rows.map(({ id, reading }) => [id, reading]));
  const readingOf = ({ id, reading }: StoreRow) => (ids.has(id) ? (readings.get(id) ?? reading) : reading);
  const rows = store.rows.map((row) => ({ ...row, reading: readingOf(row) }));
  return { ...store, rows, ...(again?.listing.ok === false ? { listing: again.listing } : {}) };
}

function readRecordsAgain(adapter: Adapter, store: Store, ids: ReadonlySet<string | null>): Store {
  if (ids.size === 0) return store;
  const rows = new Map<FoundRecord, StoreRow>();
  for (const row of store.rows)
    if (ids.has(row.id) && row.reading.ok) rows.set(recordAt(adapter, row.reading.value.source, row.id), row);
  const again = new Map<StoreRow, StoreRow>();
  visitFound([...rows.keys()], (record, read) => {
    const row = rows.get(record);
    const reading = readRow(adapter, record, read)?.reading;
    // A record that has vanished keeps its first reading.
    if (row !== undefined && reading !== undefined) again.set(row, { ...row, reading });
    return null;
  });
  return { ...store, rows: store.rows.map((row) => again.get(row) ?? row) };
}
