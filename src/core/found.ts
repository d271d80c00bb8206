// What matching collects: owners, doubts, claims that no longer hold, and live processes without a name.
import { isWithin } from "./belief.ts";
import type { Evidence, HostAnswer, HostedSession, PidClaim, Store } from "./evidence.ts";
import type { ProcessDetail, ProcessRow } from "./process.ts";
import type { AgentRules, Role } from "./rules.ts";
import { type Link, linkStrengths } from "./session.ts";

/** A live process of an agent, with what it was recognised as. */
export interface AgentProcess {
  row: ProcessRow;
  detail: ProcessDetail;
  role: Role;
  rules: AgentRules;
  home: string | null;
  /** It has a session of this store, but which one cannot be read, or may have changed since it was told. */
  muted: { store: Store; why: string; source: string; rule: string } | null;
}

export interface ProcessOwner {
  kind: "process";
  row: ProcessRow;
  link: Link;
  source: string;
  claim: PidClaim | null;
}

export interface HostOwner {
  kind: "host";
  host: HostAnswer | null;
  row: ProcessRow | null;
  address: string;
  hosted: HostedSession | null;
}

export type FoundOwner = ProcessOwner | HostOwner;

/** Why "nobody has it" is not proven for a session. */
export interface Doubt {
  why: string;
  source: string;
  rule: string;
}

/** What became of a claim whose process does not have the session. Shown, so that `why` can say it. */
export interface DeadClaim {
  claim: PidClaim;
  why: string;
  /** It stands in a file of ours. */
  isOurs: boolean;
}

export interface Matches {
  owners: Map<string, FoundOwner[]>;
  doubts: Map<string, Doubt[]>;
  deadClaims: Map<string, DeadClaim[]>;
  /** Live agent processes whose session nobody can name. */
  unrecorded: { process: AgentProcess; maybe: string[] }[];
  /** Sessions that a live process left for another one, by key: it was started with the one and announces the other. */
  continuedBy: Map<string, string>;
  /** Live processes of each agent, for the proof that none of them has a session. */
  seen: Map<string, number[]>;
  /** Doubts that hold for every session of one agent, by agent. */
  agentDoubts: Map<string, Doubt[]>;
}

/** The home that a process of ours holds or its environment names, as our path; null where it names none, or paths of another container. */
export function namedHome(rules: AgentRules, detail: ProcessDetail): string | null {
  const { env, cwd, sameFiles, ours } = detail;
  const home = ours && sameFiles ? (rules.heldHome?.(detail) ?? (env === null ? null : rules.home(env))) : null;
  if (home === null || home.startsWith("/")) return home;
  return cwd === null ? null : `${cwd}/${home}`;
}

export const sessionKey = (agent: string, home: string, id: string): string => `${agent}\0${home}\0${id}`;

export const processOwner = (row: ProcessRow, link: Link, source: string): ProcessOwner => ({
  kind: "process",
  row,
  link,
  source,
  claim: null,
});

/** The process's own home; where it cannot be known, the one store that has the id; else nobody's. */
export function homeFor(process: AgentProcess, id: string, evidence: Evidence): string {
  if (process.home !== null) return process.home;
  const stores = evidence.stores.filter(
    (store) => store.agent === process.rules.agent && isWithin(store, process.detail),
  );
  const knowing = stores.filter((store) => store.rows.some((row) => row.id === id));
  return knowing.length === 1 ? (knowing[0]?.home ?? "") : "";
}

export function doubtAllOf(store: Store, found: Matches, doubt: Doubt): void {
  for (const { id } of store.rows) add(found.doubts, sessionKey(store.agent, store.home, id), doubt);
}

/** One process says it once: of two words of the same process the stronger counts, an answer more than a lock. */
export function addOwner(found: Matches, key: string, owner: FoundOwner): void {
  const others = found.owners.get(key) ?? [];
  const twin = others.find((other) => other.row !== null && other.row === owner.row);
  if (twin === undefined) found.owners.set(key, [...others, owner]);
  else if (weightOf(owner) < weightOf(twin))
    found.owners.set(key, [...others.filter((other) => other !== twin), owner]);
}

/** Least first; the source decides between equals, so that the order of reading does not. */
const weightOf = (owner: FoundOwner): string =>
  owner.kind === "host"
    ? `${owner.hosted === null ? 9 : 0} ${owner.address}`
    : `${1 + linkStrengths.indexOf(owner.link)} ${owner.source}`;

export function add<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}
