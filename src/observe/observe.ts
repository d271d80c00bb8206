// Observes the sessions of this host. The order of the steps is rule R11 of docs/truth.md.
//
// For all sessions: read stores and servers, then the process table. A process that exits in between has written its last line
// before we read its record again (read-again.ts).
// For a selection: read the names of the records, the process table and the servers, then open only the required records. They
// are read after the processes, so the owners must still be alive and stopped records unchanged; otherwise observe again.
import type { Adapter } from "../agents/adapter.ts";
import type { Evidence, ServerAnswer, Store } from "../core/evidence.ts";
import { namedHome } from "../core/matches.ts";
import type { Reading } from "../core/problem.ts";
import { isLive, type ProcessTable } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import type { Session, SessionList } from "../core/session.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import { tryOr } from "../lib/errors.ts";
import { Databases } from "../sys/sqlite.ts";
import { readDistantStore } from "./distant-store.ts";
import { readText } from "./files.ts";
import { type Environment, homesOf, isSharedStore, readSettings, realHome, type Settings } from "./homes.ts";
import { hidesOthers, mayHang, mountTable } from "./mounts.ts";
import { type NamedStore, openRequired, outlineStore, storeKey, withStores } from "./open-records.ts";
import { type ProcessReader, queryFor } from "./process-query.ts";
import { readIfLive, readProcesses } from "./processes.ts";
import { readAgain } from "./read-again.ts";
import type { RecordCache } from "./record-cache.ts";
import type { Scan } from "./scan.ts";
import { joinSelections, type Selection, type SelectionCriteria } from "./selection.ts";
import { readServers } from "./servers.ts";
import { settledAt } from "./session-switch.ts";
import { readStore } from "./stores.ts";

export interface ObserveRequest {
  adapters: readonly Adapter[];
  env: Environment;
  /** Default: "all". */
  selection?: Selection;
  /** Time limit for stores and servers together. */
  patienceMs?: number;
  cache?: RecordCache | null;
  /** Reads the process table. Commands that end processes read more details. */
  processes?: ProcessReader;
  /** For tests: a clock, and whether the processes are made up, so that they cannot be read again. */
  now?: () => number;
  isMadeUp?: boolean;
}

/** For servers, and for stores on file systems that may hang. */
const defaultPatienceMs = 2_000;
/** For records on local disks: ten thousand records take ten seconds on a slow host. */
const localPatienceMs = 30_000;

export const listSessions = async (request: ObserveRequest): Promise<SessionList> => (await observe(request)).list;

export interface Observation {
  evidence: Evidence;
  list: SessionList;
  /** A time just before the process table was read. */
  tableAt: number;
}

/** Reads again if an agent switched sessions a moment ago and may not have flushed the old record yet. */
export async function observe(request: ObserveRequest): Promise<Observation> {
  const since = Date.now();
  const observed = await readUntilStable(request);
  const now = Date.now();
  const at = request.isMadeUp === true ? null : settledAt(observed.evidence, observed.list, since, now);
  if (at === null) return observed;
  await pause(at - now);
  return await readUntilStable(request);
}

/** After this many unstable readings everything is read, in the order that needs no second reading. */
const mostAttempts = 4;

async function readUntilStable(request: ObserveRequest): Promise<Observation> {
  let { selection = "all" } = request;
  for (let attempt = 1; selection !== "all" && attempt <= mostAttempts; attempt += 1) {
    const observed = await readOnce(request, selection);
    const successors = findUnreadSuccessors(observed.list, selection);
    // An owner that is still alive has owned its session since the first reading. A record that was written after the process
    // table was read may belong to a process that is not in the table.
    const isStable = request.isMadeUp === true || (areAlive(observed.list.sessions) && !isOvertaken(observed));
    if (successors.size === 0 && isStable) return observed;
    if (!isStable) await pause(tickMs);
    selection = joinSelections(selection, { ids: successors });
  }
  return await readOnce(request, "all");
}

/** Sessions that continue a selected, stopped one are part of the answer. */
function findUnreadSuccessors({ sessions, unopened }: SessionList, { ids, since }: SelectionCriteria): Set<string> {
  const next = sessions.flatMap(({ status, continuedBy }) => (status.state === "stopped" ? (continuedBy ?? []) : []));
  const there = new Set(next.length === 0 ? [] : sessions.map(({ id }) => id));
  const further = new Set(next.filter((id) => !there.has(id) && ids?.has(id) !== true));
  return since === undefined ? further : further.intersection(new Set(unopened.flatMap((store) => store.ids)));
}

const areAlive = (sessions: readonly Session[]): boolean =>
  sessions.every(({ processes }) => processes.every(({ identity }) => readIfLive(identity) !== null));

/** File times lag behind the clock by up to a tick. Times in the future prove nothing. */
const tickMs = 20;
const futureMs = 1_000;

function isOvertaken({ list, tableAt }: Observation): boolean {
  const isSince = (time: number | null | undefined): boolean =>
    time != null && time >= tableAt - tickMs && time <= Date.now() + futureMs;
  return list.sessions.some(({ status, record }) =>
    status.state === "running"
      ? status.owner.kind === "process" && status.owner.link === "cwd" && isSince(record?.createdAt)
      : status.state === "stopped" && isSince(record?.writtenAt),
  );
}

async function readOnce(request: ObserveRequest, selection: Selection): Promise<Observation> {
  const { adapters, processes = readProcesses, patienceMs, cache = null } = request;
  const { settings, problems } = readSettings(request.env);
  const databases = new Databases();
  const scan: Scan = {
    ...{ adapters, readTable: processes, mounts: mountTable(), cache, databases },
    deadline: deadlineIn(patienceMs ?? defaultPatienceMs),
    localDeadline: () => deadlineIn(patienceMs ?? localPatienceMs),
  };
  try {
    const homes = findHomes(request, settings, scan.mounts);
    const found = await readHomesAndProcesses(homes, selection, scan);
    const { stores, servers, processes } = found;
    const first: Evidence = {
      ...{ at: (request.now ?? Date.now)(), host: stores.some(namesHost) ? readMachineId() : null },
      ...{
        othersAreHidden: hidesOthers(scan.mounts),
        processes,
        stores,
        servers,
        dialogs: [],
        directories: {},
        problems,
      },
    };
    const { evidence, late } =
      selection === "all"
        ? { evidence: first, late: [] }
        : await openSelected(first, found.named, [...homes.byKey.values()], selection, scan);
    return { ...(await readAgain(evidence, scan, new Set(late.map(storeKey)))), tableAt: found.tableAt };
  } finally {
    databases.close();
  }
}

interface HomeInUse {
  adapter: Adapter;
  /** The real path. */
  home: string;
  /** All paths of the same folder. */
  names: Set<string>;
  /** The confinements of the processes that name it; null: an unconfined process, the environment or the settings name it. */
  namedIn: Set<string | null>;
}

interface HomesInUse {
  /** Each home once, by its `storeKey`. */
  byKey: Map<string, HomeInUse>;
  links: Map<string, string | null>;
  mounts: string;
}

function findHomes({ adapters, env }: ObserveRequest, settings: Settings, mounts: string): HomesInUse {
  const homes: HomesInUse = { byKey: new Map(), links: new Map(), mounts };
  for (const adapter of adapters) for (const name of homesOf(adapter, env, settings)) addHome(homes, adapter, name);
  return homes;
}

/** Ignores relative names: they depend on the directory of the process that uses them. */
function addHome(homes: HomesInUse, adapter: Adapter, name: string, confinement: string | null = null): void {
  if (!name.startsWith("/")) return;
  const home = realHome(name, homes.mounts, homes.links);
  const key = storeKey({ agent: adapter.agent, home });
  const entry = homes.byKey.get(key) ?? { adapter, home, names: new Set([home]), namedIn: new Set() };
  entry.names.add(name);
  entry.namedIn.add(confinement);
  homes.byKey.set(key, entry);
}

interface ReadHomes {
  stores: Store[];
  servers: ServerAnswer[];
  /** The stores of which only the names of the records were read. */
  named: NamedStore[];
}

interface HomesAndProcesses extends ReadHomes {
  processes: Reading<ProcessTable>;
  tableAt: number;
}

/** If a live process names a new home, reads this home and then the processes again. */
async function readHomesAndProcesses(homes: HomesInUse, selection: Selection, scan: Scan): Promise<HomesAndProcesses> {
  const { adapters, readTable } = scan;
  const [stores, servers, named]: [Store[], ServerAnswer[], NamedStore[]] = [[], [], []];
  for (let known = 0; ; ) {
    // A map keeps its order: new homes are at the end.
    const unread = [...homes.byKey.values()].slice(known);
    known = homes.byKey.size;
    const more = selection === "all" ? await readHomes(unread, scan) : await nameHomes(unread, selection, scan);
    stores.push(...more.stores);
    servers.push(...more.servers);
    named.push(...more.named);
    const tableAt = Date.now();
    const announced = stores.flatMap(({ announcements }) => announcements.map(({ pid }) => pid));
    const processes = readTable(queryFor(adapters, announced));
    if (processes.ok) addNamedHomes(processes.value, adapters, homes);
    if (homes.byKey.size > known) continue;
    return { stores: stores.map((store) => describeStore(store, homes)), servers, named, processes, tableAt };
  }
}

function describeStore(store: Store, { byKey, mounts }: HomesInUse): Store {
  const home = byKey.get(storeKey(store));
  if (home === undefined) return store;
  const confinements = [...home.namedIn].filter((each) => each !== null);
  return {
    ...store,
    names: [...home.names],
    ...(home.namedIn.has(null) ? {} : { namedOnlyIn: confinements }),
    ...(isSharedStore(home.adapter, store.home, mounts) ? { isShared: true } : {}),
  };
}

const namesHost = ({ announcements }: Store): boolean =>
  announcements.some(({ reading }) => reading.ok && reading.value.host != null);

/** null: this host has no machine id, or it cannot be read. */
export function readMachineId(): string | null {
  const id = tryOr("", () => readText("/etc/machine-id").trim());
  return /^[0-9a-f]{32}$/.test(id) ? id : null;
}

async function readHomes(homes: readonly HomeInUse[], scan: Scan): Promise<ReadHomes> {
  const { mounts, readTable, deadline, cache } = scan;
  const local = scan.localDeadline();
  const distant = homes.filter(({ home }) => mayHang(home, mounts));
  const near = homes.filter((home) => !distant.includes(home));
  const waiting = distant.map(({ adapter, home }) => readDistantStore(adapter, home, deadline));
  const stores: Store[] = [];
  const asked = near.flatMap(({ adapter, home }) => {
    const store = readStore(adapter, home, local, cache);
    if (store !== null) stores.push(store);
    return readServers(adapter, home, () => store, readTable, deadline);
  });
  stores.push(...(await allFound(waiting)));
  return { stores, servers: await allFound(asked), named: [] };
}

const allFound = async <T>(waiting: readonly Promise<T | null>[]): Promise<T[]> =>
  (await Promise.all(waiting)).filter((found) => found !== null);

/** Reads only the names of records. A store that may hang is read completely, in a separate process. */
async function nameHomes(homes: readonly HomeInUse[], selection: SelectionCriteria, scan: Scan): Promise<ReadHomes> {
  const { mounts, deadline, databases } = scan;
  const named: NamedStore[] = [];
  const waiting = homes.map(async ({ adapter, home }) => {
    if (mayHang(home, mounts)) return await readDistantStore(adapter, home, deadline);
    const outlined = outlineStore(adapter, home, selection, databases);
    if (outlined !== null) named.push(outlined.named);
    return outlined?.store ?? null;
  });
  return { stores: await allFound(waiting), servers: [], named };
}

/**
 * Asks the servers, then opens the records that are required or selected. A protocol that needs the directories of sessions forces
 * a full read of the store, one for all servers of a home. `late`: the stores whose records were opened after the processes were read.
 */
async function openSelected(
  evidence: Evidence,
  named: readonly NamedStore[],
  homes: readonly HomeInUse[],
  selection: SelectionCriteria,
  scan: Scan,
): Promise<{ evidence: Evidence; late: NamedStore[] }> {
  const whole = new Map<string, Store>();
  const readWholeStore = (adapter: Adapter, home: string): Store | null => {
    const isHere = (store: Pick<Store, "agent" | "home">) => store.agent === adapter.agent && store.home === home;
    const outlined = named.some(isHere) ? evidence.stores.find(isHere) : undefined;
    if (outlined === undefined) return null;
    const key = storeKey(outlined);
    const { names } = outlined;
    const store = whole.get(key) ?? { ...outlined, rows: [], ...readStore(adapter, home, scan.deadline), names };
    whole.set(key, store);
    return store;
  };
  const table = (): Evidence["processes"] => evidence.processes;
  const near = homes.filter(({ home }) => !mayHang(home, scan.mounts));
  const asked = near.flatMap(({ adapter, home }) =>
    readServers(adapter, home, () => readWholeStore(adapter, home), table, scan.deadline),
  );
  // An agent that exits while we hold its database open cannot remove its write-ahead log.
  if (asked.length > 0) scan.databases.close();
  const servers = [...evidence.servers, ...(await allFound(asked))];
  const late = named.filter((each) => !whole.has(storeKey(each)));
  const answered = { ...withStores(evidence, [...whole.values()]), servers };
  return { evidence: openRequired(answered, late, selection, scan), late };
}

function addNamedHomes(table: ProcessTable, adapters: readonly Adapter[], homes: HomesInUse): void {
  for (const row of table.rows) {
    const { detail } = row;
    if (detail === null || !detail.ours || !isLive(row)) continue;
    for (const adapter of adapters) {
      const home = roleOf(adapter, row) === null ? null : namedHome(adapter, detail);
      if (home !== null) addHome(homes, adapter, home, detail.confinement);
    }
  }
}
