// Once more at what seems cut off, torn or silent after the first look: what was written while we looked.
import type { Adapter } from "../adapters/adapter.ts";
import { deriveSessions } from "../core/derive.ts";
import type { Evidence, HostAnswer, StartDialog, Store } from "../core/evidence.ts";
import { namedHome } from "../core/found.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { isHosted, type Session, type SessionList } from "../core/session.ts";
import type { Deadline } from "../lib/deadline.ts";
import { readDialog } from "./dialogs.ts";
import { lookUpDirectories } from "./directories.ts";
import { readDistantStore } from "./distant-store.ts";
import { type ReadTable, readHosts } from "./hosts.ts";
import { mayHang } from "./mounts.ts";
import { visitRecords } from "./names.ts";
import { type FoundRecord, recordAt, visitFound } from "./records.ts";
import { readClaims, readRow } from "./stores.ts";

/**
 * What was written while we looked: without an owner the record is final now, so reading it again settles it. `late`: stores whose
 * records were read after the processes. Answers what follows from all of it.
 */
export async function lookAgain(
  evidence: Evidence,
  adapters: readonly Adapter[],
  readTable: ReadTable,
  deadline: Deadline,
  mounts: string,
  late: ReadonlySet<Store>,
): Promise<SessionList> {
  const first = deriveSessions(evidence, adapters);
  const { sessions } = first;
  let isSame = !(await askHostsAgain(evidence, sessions, adapters, readTable, deadline));
  evidence.dialogs.push(...dialogsOfSilent(evidence, sessions, adapters, mounts));
  for (const store of evidence.stores) {
    const adapter = adapters.find((candidate) => candidate.agent === store.agent);
    if (adapter === undefined) continue;
    const here = sessions.filter((session) => session.agent === store.agent && session.home === store.home);
    const isDoubtful = (session: Session): boolean => needsSecondLook(session, evidence.at, late.has(store));
    const doubtful = new Set(here.filter(isDoubtful).map(({ id }) => id));
    isSame &&= doubtful.size === 0;
    if (mayHang(store.home, mounts)) {
      if (doubtful.size > 0) await readDistantRecordsAgain(adapter, store, doubtful, deadline);
      continue;
    }
    const silent = adapter.claims === null ? [] : here.filter((session) => !hasSpoken(session)).flatMap(processesOf);
    isSame &&= silent.length === 0;
    if (silent.length > 0) readClaimsAgain(adapter, store, new Set(silent.map((row) => row.identity.pid)));
    readRecordsAgain(adapter, store, doubtful);
  }
  const owners = sessions.filter(({ id }) => id !== null).flatMap(({ processes }) => processes);
  const before = evidence.directories;
  evidence.directories = lookUpDirectories(evidence, new Set(owners), adapters, mounts);
  const isFound = Object.keys(before).length + Object.keys(evidence.directories).length > 0;
  return isSame && evidence.dialogs.length === 0 && !isFound ? first : deriveSessions(evidence, adapters);
}

const processesOf = ({ processes }: Session): ProcessRow[] => processes;

/** A host that took up a session after it was asked, but before the processes were read, has something to say about it. Did one? */
async function askHostsAgain(
  evidence: Evidence,
  sessions: readonly Session[],
  adapters: readonly Adapter[],
  readTable: ReadTable,
  deadline: Deadline,
): Promise<boolean> {
  const isUntold = (host: HostAnswer): boolean => {
    const told = new Set(host.answer.ok ? host.answer.value.map(({ id }) => id) : []);
    const here = sessions.filter(({ agent, home }) => agent === host.agent && home === host.home);
    return host.answer.ok && here.some((session) => isHosted(session) && session.id !== null && !told.has(session.id));
  };
  const untold = evidence.hosts.filter(isUntold);
  for (const host of untold) {
    const adapter = adapters.find(({ agent }) => agent === host.agent);
    if (adapter === undefined) continue;
    const store = evidence.stores.find(({ agent, home }) => agent === host.agent && home === host.home) ?? null;
    const answers = await Promise.all(readHosts(adapter, host.home, () => store, readTable, deadline));
    const again = answers.find((answer) => answer?.address === host.address && answer.answer.ok);
    if (again != null) evidence.hosts[evidence.hosts.indexOf(host)] = again;
  }
  return untold.length > 0;
}

const hasSpoken = ({ status }: Session): boolean =>
  status.state === "running" && status.owner.kind === "process" && status.owner.link === "announced";

/** Interfaces that own no session may be showing a dialog instead. */
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

const recentMs = 2_000;

function needsSecondLook(session: Session, at: number, isLate: boolean): boolean {
  const { record, status } = session;
  if (record === null) return false;
  if (status.state === "running" || isLate) return record.torn;
  const recent = record.writtenAt !== null && record.writtenAt > at - recentMs;
  return status.state === "stopped" && (record.turn.state === "open" || record.torn || recent);
}

/**
 * A process that had said nothing when we read the announcements may have spoken since, and begun a record. Only the
 * words of these processes are taken in: whoever else spoke meanwhile is not in our process table.
 */
function readClaimsAgain(adapter: Adapter, store: Store, pids: ReadonlySet<number>): void {
  const before = new Set(store.rows.map((row) => row.id));
  const spoken = readClaims(adapter, store.home).filter((claim) => pids.has(claim.pid));
  store.claims = [...store.claims.filter((claim) => !pids.has(claim.pid)), ...spoken];
  const claimed = spoken.flatMap(({ reading }) => (reading.ok ? [reading.value.session] : []));
  const fresh = new Set(claimed.filter((id) => !before.has(id)));
  if (fresh.size === 0) return;
  const { visited } = visitRecords(adapter, store.home, (record, read) =>
    fresh.has(record.subject) ? readRow(adapter, record, read) : null,
  );
  store.rows.push(...visited);
}

async function readDistantRecordsAgain(
  adapter: Adapter,
  store: Store,
  ids: ReadonlySet<string | null>,
  deadline: Deadline,
): Promise<void> {
  const again = await readDistantStore(adapter, store.home, deadline);
  if (again?.listing.ok === false) store.listing = again.listing;
  for (const row of store.rows)
    if (ids.has(row.id)) row.reading = again?.rows.find(({ id }) => id === row.id)?.reading ?? row.reading;
}

function readRecordsAgain(adapter: Adapter, store: Store, ids: ReadonlySet<string | null>): void {
  const rows = new Map<FoundRecord, Store["rows"][number]>();
  for (const row of store.rows)
    if (ids.has(row.id) && row.reading.ok) rows.set(recordAt(adapter, row.reading.value.source, row.id), row);
  visitFound([...rows.keys()], (record, read) => {
    const row = rows.get(record);
    // Vanished in between: what we read of it stands, it was there when we looked.
    if (row !== undefined) row.reading = readRow(adapter, record, read)?.reading ?? row.reading;
    return null;
  });
}
