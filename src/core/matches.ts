// The results of matching: owners, doubts, stale announcements, and live processes without a known session.
import { isWithin } from "./belief.ts";
import type { Announcement, Evidence, ServedSession, ServerAnswer, Store } from "./evidence.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "./process.ts";
import type { OwnerDoubt, StaleReason, TruthRule } from "./reason.ts";
import type { AgentRules, Role } from "./rules.ts";
import { type Link, linkStrengths } from "./session.ts";

/** A live process of an agent, with its role. */
export interface AgentProcess {
  row: ProcessRow;
  detail: ProcessDetail;
  role: Role;
  rules: AgentRules;
  home: string | null;
  /** The process has a session of this store, but the id cannot be read, or may have changed since it was announced. */
  muted: (Doubt & { store: Store }) | null;
}

export interface ProcessOwner {
  kind: "process";
  row: ProcessRow;
  link: Link;
  source: string;
  announcement: Announcement | null;
}

export interface ServerOwner {
  kind: "server";
  server: ServerAnswer | null;
  row: ProcessRow | null;
  address: string;
  served: ServedSession | null;
}

export type FoundOwner = ProcessOwner | ServerOwner;

/** Why it is not proven that no process has a session. */
export interface Doubt {
  why: OwnerDoubt;
  source: string;
  rule: TruthRule;
}

/** An announcement whose process does not have the session any more; `agentctl why` shows it. */
export interface StaleAnnouncement {
  announcement: Announcement;
  why: StaleReason;
  /** The announcement is in a file of ours. */
  isOurs: boolean;
}

/** Everything that matching reads, and what it has found so far. */
export interface Matching {
  evidence: Evidence;
  table: ProcessTable;
  allRules: readonly AgentRules[];
  processes: readonly AgentProcess[];
  found: Matches;
  /** The processes whose session is known. */
  named: Set<AgentProcess>;
}

export interface Matches {
  owners: Map<string, FoundOwner[]>;
  doubts: Map<string, Doubt[]>;
  staleAnnouncements: Map<string, StaleAnnouncement[]>;
  /** Live agent processes whose session is not known. */
  unrecorded: { process: AgentProcess; maybe: string[] }[];
  /** By key: the session for which a live process left this one. It was started with this one and announces the other. */
  continuedBy: Map<string, string>;
  /** The pids of live processes by agent, for the proof that none of them has a session. */
  seen: Map<string, number[]>;
  /** Doubts that hold for every session of one agent, by agent. */
  agentDoubts: Map<string, Doubt[]>;
}

/** The home that a process of ours holds open or names in its environment, as our path; null: none, or a path of another container. */
export function namedHome(rules: AgentRules, detail: ProcessDetail): string | null {
  const { env, cwd, sameFiles, ours } = detail;
  const home = ours && sameFiles ? (rules.heldHome?.(detail) ?? (env === null ? null : rules.home(env))) : null;
  if (home === null || home.startsWith("/")) return home;
  return cwd === null ? null : `${cwd}/${home}`;
}

export const sessionKey = (agent: string, home: string, id: string): string => `${agent}\0${home}\0${id}`;

export const processOwner = (
  row: ProcessRow,
  link: Link,
  source: string,
  announcement: Announcement | null = null,
): ProcessOwner => ({ kind: "process", row, link, source, announcement });

/** A server that holds the lock of a session. Its answer may tell the activity later. */
export function lockingServer(row: ProcessRow): ServerOwner {
  const address = `process ${row.identity.pid}`;
  return { kind: "server", server: null, row, address, served: null };
}

/** The home of the process; if it is not known, the only store that has the id; else "". */
export function homeFor(process: AgentProcess, id: string, evidence: Evidence): string {
  if (process.home !== null) return process.home;
  const stores = evidence.stores.filter(
    (store) => store.agent === process.rules.agent && isWithin(store, process.detail),
  );
  const knowing = stores.filter((store) => store.rows.some((row) => row.id === id));
  return knowing.length === 1 ? (knowing[0]?.home ?? "") : "";
}

/** By code and parameters, so that the order of reading does not decide. */
export const reasonKey = (reason: OwnerDoubt): string => JSON.stringify(reason);

export function doubtAllOf(store: Store, found: Matches, doubt: Doubt): void {
  for (const { id } of store.rows) add(found.doubts, sessionKey(store.agent, store.home, id), doubt);
}

/** One link for each process: of two links of the same process the stronger counts, an answer more than a lock. */
export function addOwner(found: Matches, key: string, owner: FoundOwner): void {
  const others = found.owners.get(key) ?? [];
  const twin = others.find((other) => other.row !== null && other.row === owner.row);
  if (twin === undefined) found.owners.set(key, [...others, owner]);
  else if (weightOf(owner) < weightOf(twin))
    found.owners.set(key, [...others.filter((other) => other !== twin), owner]);
}

/** Strongest first; the source decides between equals, so that the order of reading does not. */
const weightOf = (owner: FoundOwner): string =>
  owner.kind === "server"
    ? `${owner.served === null ? 9 : 0} ${owner.address}`
    : `${1 + linkStrengths.indexOf(owner.link)} ${owner.source}`;

export function add<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}
