// One look at the machine: records and hosts first, then the process table, then once more at what seems cut off.
// The order is rule 11: a process that ends between the readings has written its last word before we look for it.
import type { Adapter } from "../adapters/adapter.ts";
import { deriveSessions } from "../core/derive.ts";
import type { Evidence, HostAnswer, StartDialog, Store } from "../core/evidence.ts";
import { namedHome } from "../core/found.ts";
import type { Reading } from "../core/problem.ts";
import { isLive, type ProcessRow, type ProcessTable, sameProcess } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { isHosted, type Session, type SessionList } from "../core/session.ts";
import { type Deadline, deadlineIn } from "../lib/deadline.ts";
import { Databases } from "../sys/sqlite.ts";
import { readDialog } from "./dialogs.ts";
import { lookUpDirectories } from "./directories.ts";
import { readDistantStore } from "./distant-store.ts";
import { type Environment, homesOf, readSettings, realHome } from "./homes.ts";
import { type ReadTable, readHosts } from "./hosts.ts";
import { mayHang, mountTable } from "./mounts.ts";
import { type NamedStore, openNeeded, outlineStore } from "./open.ts";
import type { ProcessWish } from "./process-wish.ts";
import { readProcess, readProcesses } from "./processes.ts";
import type { RecordCache } from "./record-cache.ts";
import { type FoundRecord, recordAt, visitFound, visitRecords } from "./records.ts";
import { readClaims, readRow, readStore } from "./stores.ts";
import { type Wanted, type WantedSome, wantedOr } from "./wanted.ts";

export interface Look {
  adapters: readonly Adapter[];
  env: Environment;
  /** "all" unless said otherwise. */
  wanted?: Wanted;
  /** How long stores and hosts may take, together. */
  patienceMs?: number;
  /** What was parsed before, where everything is looked at. */
  cache?: RecordCache | null;
  /** Injected by tests: the clock, and the reader of the process table. */
  now?: () => number;
  processes?: (wish: ProcessWish) => Reading<ProcessTable>;
}

/** For hosts, and for stores on file systems that may hang. */
const defaultPatienceMs = 2_000;
/** For records on this machine's own disks: ten thousand of them take a few seconds, and every one is progress. */
const localPatienceMs = 10_000;

/** Every command, page and API goes through here. */
export const lookAtSessions = async (look: Look): Promise<SessionList> => (await observe(look)).list;

/** What was seen, and what follows from it. */
export interface Observed {
  evidence: Evidence;
  list: SessionList;
}

/** How often we look again because an owner ended while we read its record, before everything is read in the safe order. */
const mostAttempts = 4;

export async function observe(look: Look): Promise<Observed> {
  let { wanted = "all" } = look;
  for (let attempt = 1; wanted !== "all" && attempt <= mostAttempts; attempt += 1) {
    const observed = await observeOnce({ ...look, wanted });
    const further = goneOnTo(observed.list, wanted);
    // Here the records were read after the processes: who is still there had its session all the while.
    if (further.size === 0 && (look.processes !== undefined || areThere(observed.list.sessions))) return observed;
    wanted = wantedOr(wanted, { ids: further });
  }
  return await observeOnce({ ...look, wanted: "all" });
}

/** Who asks for a conversation wants to know where it went. */
function goneOnTo({ sessions, unopened }: SessionList, { ids, since }: WantedSome): Set<string> {
  const next = sessions.flatMap(({ status, continuedBy }) => (status.state === "stopped" ? (continuedBy ?? []) : []));
  const there = new Set(next.length === 0 ? [] : sessions.map(({ id }) => id));
  const further = new Set(next.filter((id) => !there.has(id) && ids?.has(id) !== true));
  return since === undefined ? further : further.intersection(new Set(unopened.flatMap((store) => store.ids)));
}

const areThere = (sessions: readonly Session[]): boolean =>
  sessions.every(({ processes }) =>
    processes.every(({ identity }) => {
      const now = readProcess(identity.pid);
      return now !== null && sameProcess(now.identity, identity) && isLive(now);
    }),
  );

async function observeOnce(look: Look): Promise<Observed> {
  const databases = new Databases();
  try {
    return await observeWith(look, databases);
  } finally {
    databases.close();
  }
}

async function observeWith(look: Look, databases: Databases): Promise<Observed> {
  const { wanted = "all" } = look;
  const readTable = look.processes ?? readProcesses;
  const now = look.now ?? Date.now;
  const deadline = deadlineIn(look.patienceMs ?? defaultPatienceMs);
  const local = deadlineIn(look.patienceMs ?? localPatienceMs);
  const { settings, problems } = readSettings(look.env);
  const mounts = mountTable();
  const homes = new Homes(mounts);
  for (const adapter of look.adapters)
    for (const name of homesOf(adapter, look.env, settings)) homes.add(adapter, name);

  const stores: Store[] = [];
  const hosts: HostAnswer[] = [];
  const named: NamedStore[] = [];
  let processes: Reading<ProcessTable>;
  do {
    // A live process may name a home that nobody told us about. Its records, too, must be read before the processes.
    const fresh = homes.takeUnread();
    if (wanted === "all") await readHomes(fresh, stores, hosts, readTable, { deadline, local }, mounts, look.cache);
    else await nameHomes(fresh, stores, named, deadline, mounts, wanted, databases);
    processes = readTable(wishFor(look.adapters, stores));
    if (processes.ok) addNamedHomes(processes.value, look.adapters, homes);
  } while (homes.hasUnread());
  for (const store of stores) store.names = homes.namesOf(store);

  const evidence: Evidence = { at: now(), processes, stores, hosts, dialogs: [], directories: {}, problems };
  if (wanted !== "all") {
    const table = processes;
    const asked = homes
      .all()
      .filter(({ home }) => !mayHang(home, mounts))
      .flatMap(({ adapter, home }) => askHosts(adapter, home, named, () => table, deadline));
    hosts.push(...(await Promise.all(asked)).filter((host) => host !== null));
    // What a slow store, or a host, has used up is not taken from the others.
    const rest = deadlineIn(look.patienceMs ?? localPatienceMs);
    const means = { mounts, deadline: rest, cache: look.cache ?? null, databases };
    openNeeded(named, evidence, look.adapters, wanted, means);
  }
  const late = new Set(named.map(({ store }) => store));
  return { evidence, list: await lookAgain(evidence, look.adapters, readTable, deadline, mounts, late) };
}

/** Homes by their real path, with every name under which they came up. */
class Homes {
  private readonly known = new Map<string, { adapter: Adapter; home: string; names: Set<string>; read: boolean }>();

  private readonly links = new Map<string, string | null>();

  /** Every process of an agent says the same. */
  private readonly said = new Set<string>();

  constructor(private readonly mounts: string) {}

  /** A relative name would mean another folder for everyone who reads it. */
  add(adapter: Adapter, name: string): void {
    const said = `${adapter.agent}\0${name}`;
    if (!name.startsWith("/") || this.said.has(said)) return;
    this.said.add(said);
    const home = realHome(name, this.mounts, this.links);
    const key = `${adapter.agent}\0${home}`;
    const entry = this.known.get(key) ?? { adapter, home, names: new Set([home]), read: false };
    entry.names.add(name);
    this.known.set(key, entry);
  }

  takeUnread(): { adapter: Adapter; home: string }[] {
    const fresh = [...this.known.values()].filter((entry) => !entry.read);
    for (const entry of fresh) entry.read = true;
    return fresh;
  }

  all = (): { adapter: Adapter; home: string }[] => [...this.known.values()];

  hasUnread = (): boolean => [...this.known.values()].some((entry) => !entry.read);

  namesOf = (store: Store): string[] => [...(this.known.get(`${store.agent}\0${store.home}`)?.names ?? [store.home])];
}

async function readHomes(
  homes: { adapter: Adapter; home: string }[],
  stores: Store[],
  hosts: HostAnswer[],
  readTable: ReadTable,
  { deadline, local }: { deadline: Deadline; local: Deadline },
  mounts: string,
  cache: RecordCache | null = null,
): Promise<void> {
  const distant = homes.filter(({ home }) => mayHang(home, mounts));
  const waiting = distant.map(({ adapter, home }) => readDistantStore(adapter, home, deadline));
  const asked = homes.flatMap(({ adapter, home }) => {
    if (mayHang(home, mounts)) return [];
    const store = readStore(adapter, home, local, cache);
    if (store !== null) stores.push(store);
    return readHosts(adapter, home, () => store, readTable, deadline);
  });
  stores.push(...(await Promise.all(waiting)).filter((store) => store !== null));
  hosts.push(...(await Promise.all(asked)).filter((host) => host !== null));
}

/** The names alone; a store that may hang is read whole, by a process of its own. */
async function nameHomes(
  homes: { adapter: Adapter; home: string }[],
  stores: Store[],
  named: NamedStore[],
  deadline: Deadline,
  mounts: string,
  wanted: WantedSome,
  databases: Databases,
): Promise<void> {
  const waiting = homes.map(async ({ adapter, home }) => {
    if (mayHang(home, mounts)) return await readDistantStore(adapter, home, deadline);
    const found = outlineStore(adapter, home, wanted, databases);
    if (found !== null) named.push(found);
    return found?.store ?? null;
  });
  stores.push(...(await Promise.all(waiting)).filter((store) => store !== null));
}

/** Who wants to know where sessions work has the store read whole. */
function askHosts(
  adapter: Adapter,
  home: string,
  named: NamedStore[],
  readTable: ReadTable,
  deadline: Deadline,
): Promise<HostAnswer | null>[] {
  let taken: Store | null = null;
  // Every host of the home asks for it, and some more than once: what was taken is no longer among the named.
  const whole = (): Store | null => {
    taken ??= takeWhole();
    return taken;
  };
  const takeWhole = (): Store | null => {
    const index = named.findIndex(({ store }) => store.agent === adapter.agent && store.home === home);
    const [found] = index === -1 ? [] : named.splice(index, 1);
    if (found !== undefined) found.store.rows = readStore(adapter, home, deadline)?.rows ?? [];
    return found?.store ?? null;
  };
  return readHosts(adapter, home, whole, readTable, deadline);
}

function wishFor(adapters: readonly Adapter[], stores: readonly Store[]): ProcessWish {
  return {
    names: new Set(adapters.flatMap((adapter) => adapter.processNames)),
    pids: new Set(stores.flatMap((store) => store.claims.map((claim) => claim.pid))),
    environment: new Set([...ownKeys, ...adapters.flatMap(({ environment }) => environment), ...secretKeys(adapters)]),
    lockedFiles: adapters,
  };
}

const secretKeys = (adapters: readonly Adapter[]): string[] =>
  adapters.flatMap(({ host }) => host?.secret?.environment ?? []);

const ownKeys = ["AGENTCTL_TAG", "AGENTCTL_TAG_SID", "AGENTCTL_TAG_SESSION", "TMUX", "TMUX_PANE"];

function addNamedHomes(table: ProcessTable, adapters: readonly Adapter[], homes: Homes): void {
  for (const row of table.rows) {
    const { detail } = row;
    if (detail === null || !detail.ours || !isLive(row)) continue;
    for (const adapter of adapters) {
      const home = roleOf(adapter, row) === null ? null : namedHome(adapter, detail);
      if (home !== null) homes.add(adapter, home);
    }
  }
}

/**
 * What was written while we looked: without an owner the record is final now, so reading it again settles it. `late`: stores whose
 * records were read after the processes. Answers what follows from all of it.
 */
async function lookAgain(
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
