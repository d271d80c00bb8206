// One look at the machine. The order is rule 11. For questions about everybody: records and hosts first, then the process table, then
// once more at what seems cut off, so that a process that ends between the readings has written its last word before we look for
// it. For all others: names, the process table, hosts, then the records that are needed; whom we saw is looked up once more, and what
// was written to meanwhile is a reason to look anew; so is a record that somebody may have left a moment ago.
import type { Adapter } from "../adapters/adapter.ts";
import type { Evidence, HostAnswer, Store } from "../core/evidence.ts";
import { namedHome } from "../core/found.ts";
import type { Reading } from "../core/problem.ts";
import { isLive, type ProcessTable, sameProcess } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import type { Session, SessionList } from "../core/session.ts";
import { type Deadline, deadlineIn, pause } from "../lib/deadline.ts";
import { Databases } from "../sys/sqlite.ts";
import { readDistantStore } from "./distant-store.ts";
import { type Environment, homesOf, readSettings, realHome } from "./homes.ts";
import { type ReadTable, readHosts } from "./hosts.ts";
import { settledAt } from "./just-left.ts";
import { hidesOthers, mayHang, mountTable } from "./mounts.ts";
import { type NamedStore, openNeeded, outlineStore } from "./open.ts";
import { isSharedStore, readMachineId } from "./other-hosts.ts";
import type { ProcessWish } from "./process-wish.ts";
import { readProcess, readProcesses } from "./processes.ts";
import type { RecordCache } from "./record-cache.ts";
import { lookAgain } from "./second-look.ts";
import { readStore } from "./stores.ts";
import { type Wanted, type WantedSome, wantedOr } from "./wanted.ts";

export interface Look {
  adapters: readonly Adapter[];
  env: Environment;
  /** "all" unless said otherwise. */
  wanted?: Wanted;
  /** How long stores and hosts may take, together. */
  patienceMs?: number;
  /** What was parsed before. */
  cache?: RecordCache | null;
  /** The reader of the process table; who acts wants to see more of it. */
  processes?: (wish: ProcessWish) => Reading<ProcessTable>;
  /** For tests: the clock; and that the processes are made up, so that nobody looks for them again. */
  now?: () => number;
  isMadeUp?: boolean;
}

/** For hosts, and for stores on file systems that may hang. */
const defaultPatienceMs = 2_000;
/** For records on this machine's own disks: ten thousand of them take ten seconds on a slow machine, and every one is progress. */
const localPatienceMs = 30_000;

/** Every command, page and API goes through here. */
export const lookAtSessions = async (look: Look): Promise<SessionList> => (await observe(look)).list;

/** What was seen, and what follows from it. */
export interface Observed {
  evidence: Evidence;
  list: SessionList;
  /** When the processes were looked at, or before. */
  tableAt: number;
}

/** How often we look again because an owner ended while we read its record, before everything is read in the safe order. */
const mostAttempts = 4;

export async function observe(look: Look): Promise<Observed> {
  const since = Date.now();
  const observed = await observeAtOnce(look);
  const now = Date.now();
  const at = look.isMadeUp === true ? null : settledAt(observed.evidence, observed.list, since, now);
  if (at === null) return observed;
  await pause(at - now);
  return await observeAtOnce(look);
}

async function observeAtOnce(look: Look): Promise<Observed> {
  let { wanted = "all" } = look;
  for (let attempt = 1; wanted !== "all" && attempt <= mostAttempts; attempt += 1) {
    const observed = await observeOnce({ ...look, wanted });
    const further = goneOnTo(observed.list, wanted);
    // Here the records were read after the processes: who is still there had its session all the while, and a record that was
    // written to since then may be of somebody whom we did not see.
    const isSettled = look.isMadeUp === true || (areThere(observed.list.sessions) && !isOvertaken(observed));
    if (further.size === 0 && isSettled) return observed;
    if (!isSettled) await pause(tickMs);
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

/** The clock of files ticks a little behind. What claims to be of the future tells nothing. */
const tickMs = 20;
const futureMs = 1_000;

function isOvertaken({ list, tableAt }: Observed): boolean {
  const isSince = (time: number | null | undefined): boolean =>
    time != null && time >= tableAt - tickMs && time <= Date.now() + futureMs;
  return list.sessions.some(({ status, record }) =>
    status.state === "running"
      ? status.owner.kind === "process" && status.owner.link === "cwd" && isSince(record?.createdAt)
      : status.state === "stopped" && isSince(record?.writtenAt),
  );
}

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
  let tableAt: number;
  do {
    // A live process may name a home that nobody told us about. Its records, too, must be read before the processes.
    const fresh = homes.takeUnread();
    if (wanted === "all") await readHomes(fresh, stores, hosts, readTable, { deadline, local }, mounts, look.cache);
    else await nameHomes(fresh, stores, named, deadline, mounts, wanted, databases);
    tableAt = Date.now();
    processes = readTable(wishFor(look.adapters, stores));
    if (processes.ok) addNamedHomes(processes.value, look.adapters, homes);
  } while (homes.hasUnread());
  for (const store of stores) {
    store.names = homes.namesOf(store);
    const only = homes.confinementsOf(store);
    if (only !== null) store.namedOnlyIn = only;
    const adapter = look.adapters.find(({ agent }) => agent === store.agent);
    if (adapter !== undefined && isSharedStore(adapter, store.home, mounts)) store.isShared = true;
  }

  const host = stores.some(namesHost) ? readMachineId() : null;
  const othersAreHidden = hidesOthers(mounts);
  const evidence: Evidence = {
    ...{ at: now(), host, othersAreHidden, processes, stores, hosts },
    ...{ dialogs: [], directories: {}, problems },
  };
  if (wanted !== "all") {
    const table = processes;
    const asked = homes
      .all()
      .filter(({ home }) => !mayHang(home, mounts))
      .flatMap(({ adapter, home }) => askHosts(adapter, home, named, () => table, deadline));
    // A writer that ends while we wait for somebody else could not put its log away.
    if (asked.length > 0) databases.close();
    hosts.push(...(await Promise.all(asked)).filter((host) => host !== null));
    // What a slow store, or a host, has used up is not taken from the others.
    const rest = deadlineIn(look.patienceMs ?? localPatienceMs);
    const means = { mounts, deadline: rest, cache: look.cache ?? null, databases };
    openNeeded(named, evidence, look.adapters, wanted, means);
  }
  const late = new Set(named.map(({ store }) => store));
  return { evidence, list: await lookAgain(evidence, look.adapters, readTable, deadline, mounts, late), tableAt };
}

/** Homes by their real path, with every name under which they came up. */
class Homes {
  private readonly known = new Map<string, KnownHome>();

  private readonly links = new Map<string, string | null>();

  /** Every process of an agent says the same. */
  private readonly said = new Set<string>();

  constructor(private readonly mounts: string) {}

  /** A relative name would mean another folder for everyone who reads it. `confinement`: that of the process which names it. */
  add(adapter: Adapter, name: string, confinement: string | null = null): void {
    const said = `${adapter.agent}\0${name}\0${confinement}`;
    if (!name.startsWith("/") || this.said.has(said)) return;
    this.said.add(said);
    const home = realHome(name, this.mounts, this.links);
    const key = `${adapter.agent}\0${home}`;
    const entry = this.known.get(key) ?? { adapter, home, names: new Set([home]), namedIn: new Set(), read: false };
    entry.names.add(name);
    entry.namedIn.add(confinement);
    this.known.set(key, entry);
  }

  takeUnread(): { adapter: Adapter; home: string }[] {
    const fresh = [...this.known.values()].filter((entry) => !entry.read);
    for (const entry of fresh) entry.read = true;
    return fresh;
  }

  all = (): { adapter: Adapter; home: string }[] => [...this.known.values()];

  hasUnread = (): boolean => [...this.known.values()].some((entry) => !entry.read);

  namesOf = (store: Store): string[] => [...(this.entryOf(store)?.names ?? [store.home])];

  /** null: not only confined processes name it. */
  confinementsOf(store: Store): string[] | null {
    const namedIn = [...(this.entryOf(store)?.namedIn ?? [null])];
    return namedIn.includes(null) ? null : namedIn.filter((each) => each !== null);
  }

  private entryOf = ({ agent, home }: Store): KnownHome | undefined => this.known.get(`${agent}\0${home}`);
}

interface KnownHome {
  adapter: Adapter;
  home: string;
  names: Set<string>;
  /** The confinements of the processes that name it; null: one of them is not confined, or we know it ourselves. */
  namedIn: Set<string | null>;
  read: boolean;
}

const namesHost = ({ claims }: Store): boolean =>
  claims.some(({ reading }) => reading.ok && reading.value.host != null);

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
    if (found !== undefined) Object.assign(found.store, readStore(adapter, home, deadline) ?? { rows: [] });
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
      if (home !== null) homes.add(adapter, home, detail.confinement);
    }
  }
}
