// Which live process has which session, and how sure that is. Rules 1, 8, 9 and 10 of docs/truth.md.
import { anyPid, type Evidence, type HostAnswer, type HostedSession, type PidClaim, type Store } from "./evidence.ts";
import { unread } from "./problem.ts";
import { isLive, type ProcessDetail, type ProcessRow, type ProcessTable } from "./process.ts";
import type { AgentRules, Role } from "./rules.ts";
import type { Link } from "./session.ts";

/** A live process of an agent, with what it was recognised as. */
interface AgentProcess {
  row: ProcessRow;
  detail: ProcessDetail;
  role: Role;
  rules: AgentRules;
  home: string | null;
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
}

export interface Matches {
  owners: Map<string, FoundOwner[]>;
  doubts: Map<string, Doubt[]>;
  deadClaims: Map<string, DeadClaim[]>;
  /** Live agent processes whose session nobody can name. */
  unrecorded: { process: AgentProcess; maybe: string[] }[];
  /** Doubts that hold for every session of one agent, by agent. */
  agentDoubts: Map<string, Doubt[]>;
}

export const sessionKey = (agent: string, home: string, id: string): string => `${agent}\0${home}\0${id}`;

export function matchProcesses(evidence: Evidence, table: ProcessTable, allRules: readonly AgentRules[]): Matches {
  const found: Matches = {
    owners: new Map(),
    doubts: new Map(),
    deadClaims: new Map(),
    unrecorded: [],
    agentDoubts: new Map(),
  };
  const processes = allRules.flatMap((rules) => agentProcesses(table, rules, evidence.stores));
  const named = new Set<AgentProcess>();

  matchClaims(evidence, table, processes, found, named);
  for (const process of processes) {
    if (process.role === "helper" || !process.detail.ours) continue;
    matchByOwnName(process, evidence, found, named);
  }
  dropWrappers(table, found);
  matchHosts(evidence, table, processes, found);
  const unnamed = processes.filter((p) => p.role === "agent" && p.detail.ours && !named.has(p));
  matchByDirectory(unnamed, evidence, found);
  noteUnreadProcesses(processes, table, allRules, named, found);
  return found;
}

function agentProcesses(table: ProcessTable, rules: AgentRules, stores: readonly Store[]): AgentProcess[] {
  const processes: AgentProcess[] = [];
  for (const row of table.rows) {
    if (row.detail === null || !isLive(row)) continue;
    const role = rules.role(row.name, row.detail);
    if (role === null) continue;
    // Another container's paths are not ours: its HOME says nothing about our folders.
    const named = row.detail.env === null || !row.detail.sameFiles ? null : rules.home(row.detail.env);
    const store = stores.find((candidate) => candidate.agent === rules.agent && candidate.names.includes(named ?? ""));
    const home = store?.home ?? named;
    processes.push({ row, detail: row.detail, role, rules, home });
  }
  return processes;
}

function matchClaims(
  evidence: Evidence,
  table: ProcessTable,
  processes: AgentProcess[],
  found: Matches,
  named: Set<AgentProcess>,
): void {
  const byPid = new Map(table.rows.filter(isLive).map((row) => [row.identity.pid, row]));
  for (const store of evidence.stores) {
    for (const { pid, reading } of store.claims) {
      const elsewhere =
        reading.ok && reading.value.namespace !== null && reading.value.namespace !== table.namespace.id;
      const row = elsewhere ? rowInside(table, reading.value) : (byPid.get(pid) ?? null);
      const process = processes.find((p) => p.row === row && p.rules.agent === store.agent) ?? null;
      if (!reading.ok) {
        if (pid === anyPid || (row !== null && process !== null))
          doubtAllOf(store, found, { why: unreadableClaim(pid), source: reading.problem.source, rule: "R2" });
        continue;
      }
      const claim = reading.value;
      const key = sessionKey(store.agent, store.home, claim.session);
      const verdict = judgeClaim(claim, row, process, table);
      if (verdict.kind === "dead") add(found.deadClaims, key, { claim, why: verdict.why });
      else if (verdict.kind === "cannot-tell")
        add(found.doubts, key, { why: verdict.why, source: claim.source, rule: "R10" });
      else {
        add(found.owners, key, { kind: "process", row: verdict.row, link: "announced", source: claim.source, claim });
        if (process !== null) named.add(process);
      }
    }
  }
}

const unreadableClaim = (pid: number): string =>
  pid === anyPid
    ? "the announcements of live processes cannot be read"
    : `live process ${pid} announces a session, but its announcement cannot be read`;

type Verdict =
  | { kind: "owner"; row: ProcessRow }
  | { kind: "dead"; why: string }
  | { kind: "cannot-tell"; why: string };

/** From outside we see into a pid namespace: the claimed process is the one that has this number there. */
const rowInside = (table: ProcessTable, claim: PidClaim): ProcessRow | null =>
  table.rows.find(
    (row) => row.detail?.namespace === claim.namespace && row.detail?.innerPid === claim.pid && isLive(row),
  ) ?? null;

/** A claim names a process that once was. It holds only for exactly that process. */
function judgeClaim(
  claim: PidClaim,
  row: ProcessRow | null,
  process: AgentProcess | null,
  table: ProcessTable,
): Verdict {
  const { pid } = claim;
  if (claim.namespace !== null && claim.namespace !== table.namespace.id && row === null)
    return { kind: "cannot-tell", why: `announced by process ${pid} of another pid namespace (${claim.namespace})` };
  if (claim.boot !== null && claim.boot !== table.boot)
    return { kind: "dead", why: `process ${pid} belonged to an earlier boot` };
  if (table.hidden.includes(pid))
    return { kind: "cannot-tell", why: `process ${pid} exists, but this system hides it from us` };
  if (row === null) return { kind: "dead", why: `process ${pid} is gone` };
  if (claim.start !== null && claim.start !== row.identity.start)
    return { kind: "dead", why: `pid ${pid} was recycled: start ${row.identity.start}, announced ${claim.start}` };
  if (claim.start !== null && claim.boot !== null) return { kind: "owner", row };

  // Without boot id or start time the number alone proves nothing: the process must be this agent's, and not younger than its word.
  if (process === null) {
    const detail = row.detail;
    if (detail !== null && detail.exe !== null)
      return { kind: "dead", why: `pid ${pid} is now another program (${row.name})` };
    return { kind: "cannot-tell", why: `process ${pid} may be the announced one, but we may not look at it` };
  }
  if (claim.start === null && claim.writtenAt !== null && row.startedAt > claim.writtenAt + clockSlackMs)
    return { kind: "dead", why: `pid ${pid} was recycled: it started after the announcement was written` };
  return { kind: "owner", row };
}

/** Start times come from ticks of 10 ms and from a clock that may be adjusted. */
const clockSlackMs = 2_000;

/** What a process says through the kernel, by our tag, or in its arguments; the strongest wins. */
function matchByOwnName(process: AgentProcess, evidence: Evidence, found: Matches, named: Set<AgentProcess>): void {
  const { row, detail, rules } = process;
  const pid = row.identity.pid;
  for (const id of rules.announcedIds(detail)) {
    const key = sessionKey(rules.agent, homeFor(process, id, evidence), id);
    if (process.role === "host")
      add(found.owners, key, { kind: "host", host: null, row, address: `process ${pid}`, hosted: null });
    else add(found.owners, key, processOwner(row, "announced", `/proc/${pid}/fd`));
    named.add(process);
  }
  if (process.role === "host" || named.has(process) || hasUnreadClaim(process, evidence)) return;

  const assigned = assignedId(process);
  const id = assigned ?? (detail.argv === null ? null : rules.argvId(detail.argv));
  if (id === null) return;
  const link = assigned === null ? "argv" : "assigned";
  const source = assigned === null ? `/proc/${pid}/cmdline` : `/proc/${pid}/environ`;
  add(found.owners, sessionKey(rules.agent, homeFor(process, id, evidence), id), processOwner(row, link, source));
  named.add(process);
}

const processOwner = (row: ProcessRow, link: Link, source: string): ProcessOwner => ({
  kind: "process",
  row,
  link,
  source,
  claim: null,
});

/** Our tag counts only in the kernel session it was given to: what a tool started elsewhere inherited it. */
function assignedId(process: AgentProcess): string | null {
  const env = process.detail.env;
  if (env === null || env["AGENTCTL_TAG_SID"] !== String(process.row.session)) return null;
  const tag = env["AGENTCTL_TAG_SESSION"];
  const prefix = `${process.rules.agent}:`;
  const id = tag?.startsWith(prefix) ? tag.slice(prefix.length) : null;
  return id !== null && process.rules.isId(id) ? id : null;
}

const hasUnreadClaim = (process: AgentProcess, evidence: Evidence): boolean =>
  evidence.stores.some(
    (store) =>
      store.agent === process.rules.agent &&
      store.claims.some((claim) => claim.pid === process.row.identity.pid && !claim.reading.ok),
  );

/** The process's own home; where its environment cannot be read, the one store that knows the id. */
function homeFor(process: AgentProcess, id: string, evidence: Evidence): string {
  if (process.home !== null) return process.home;
  const stores = evidence.stores.filter((store) => store.agent === process.rules.agent);
  const knowing = stores.filter((store) => store.rows.some((row) => row.id === id));
  return (knowing.length === 1 ? knowing : stores)[0]?.home ?? "";
}

/** npm wrappers name the same session as the agent below them. The agent is the owner. */
function dropWrappers(table: ProcessTable, found: Matches): void {
  const parents = new Map(table.rows.map((row) => [row.identity.pid, row.parent]));
  for (const [key, owners] of found.owners) {
    const wrappers = new Set<FoundOwner>();
    for (const owner of owners) {
      if (owner.kind !== "process" || owner.link === "announced") continue;
      const pid = owner.row.identity.pid;
      if (owners.some((other) => other.row !== null && other !== owner && isBelow(other.row, pid, parents)))
        wrappers.add(owner);
    }
    if (wrappers.size > 0)
      found.owners.set(
        key,
        owners.filter((owner) => !wrappers.has(owner)),
      );
  }
}

function isBelow(row: ProcessRow, ancestor: number, parents: ReadonlyMap<number, number>): boolean {
  const seen = new Set<number>();
  let pid: number | undefined = row.parent;
  while (pid !== undefined && pid > 0 && !seen.has(pid)) {
    if (pid === ancestor) return true;
    seen.add(pid);
    pid = parents.get(pid);
  }
  return false;
}

function matchHosts(evidence: Evidence, table: ProcessTable, processes: AgentProcess[], found: Matches): void {
  for (const host of [...evidence.hosts, ...unaskedHosts(evidence, processes)]) {
    const row = host.process === null ? null : liveRow(table, host.process);
    if (host.process !== null && row === null) continue;
    if (host.answer.ok)
      for (const hosted of host.answer.value) {
        const key = sessionKey(host.agent, host.home, hosted.id);
        const owners = found.owners.get(key)?.filter((owner) => owner.kind !== "host" || owner.row !== row) ?? [];
        found.owners.set(key, [...owners, { kind: "host", host, row, address: host.address, hosted }]);
      }
    else doubtWrittenSince(host, evidence, found);
  }
}

/** Hosts in the process table that nobody asked: they started after the stores were read, or have no address. */
function unaskedHosts(evidence: Evidence, processes: AgentProcess[]): HostAnswer[] {
  const asked = new Set(evidence.hosts.map((host) => host.process?.pid));
  return processes
    .filter((p) => p.role === "host" && p.rules.hostsNameBy === "answer" && !asked.has(p.row.identity.pid))
    .map(({ rules, row, home }) => {
      const address = `process ${row.identity.pid}`;
      const message = "a host that could not be asked";
      return {
        agent: rules.agent,
        home: home ?? "",
        address,
        process: row.identity,
        startedAt: row.startedAt,
        answer: unread({ code: "host-silent", agent: rules.agent, source: address, message }),
      };
    });
}

/** A host that does not answer may have any session that was written since it started, and no other. */
function doubtWrittenSince(host: HostAnswer, evidence: Evidence, found: Matches): void {
  for (const store of evidence.stores) {
    if (store.agent !== host.agent || store.home !== host.home) continue;
    for (const { id, reading } of store.rows) {
      const writtenAt = reading.ok ? reading.value.writtenAt : null;
      if (host.startedAt !== null && writtenAt !== null && writtenAt < host.startedAt - clockSlackMs) continue;
      const why = `its host ${host.address} does not answer`;
      add(found.doubts, sessionKey(store.agent, store.home, id), { why, source: host.address, rule: "R1" });
    }
  }
}

const liveRow = (table: ProcessTable, wanted: { pid: number; start: string }): ProcessRow | null =>
  table.rows.find((row) => row.identity.pid === wanted.pid && row.identity.start === wanted.start && isLive(row)) ??
  null;

/**
 * A process that names no session may still have one: the records of its directory with a message younger than itself.
 * One process that never announces, one record: linked, weakly. Anything else: nobody can tell. A process that normally
 * announces is never linked this way; but while it has not spoken, such a record is not proven to be ownerless either.
 */
function matchByDirectory(unnamed: AgentProcess[], evidence: Evidence, found: Matches): void {
  const recordsOf = new Map<AgentProcess, { key: string; id: string }[]>();
  const processesOf = new Map<string, AgentProcess[]>();
  for (const process of unnamed) {
    const candidates = directoryCandidates(process, evidence, found);
    recordsOf.set(process, candidates);
    for (const { key } of candidates) add(processesOf, key, process);
  }
  for (const process of unnamed) {
    const candidates = recordsOf.get(process) ?? [];
    const [only] = candidates;
    const alone = candidates.length === 1 && only !== undefined && processesOf.get(only.key)?.length === 1;
    if (alone && !process.rules.announces(process.detail)) {
      const source = `/proc/${process.row.identity.pid}/cwd`;
      add(found.owners, only.key, processOwner(process.row, "cwd", source));
      continue;
    }
    const pid = process.row.identity.pid;
    for (const { key } of candidates) {
      const why = `process ${pid} of this agent runs in its directory and has not said which session it has`;
      add(found.doubts, key, { why, source: `/proc/${pid}/cwd`, rule: "R9" });
    }
    found.unrecorded.push({ process, maybe: candidates.map(({ id }) => id) });
  }
}

function directoryCandidates(process: AgentProcess, evidence: Evidence, found: Matches): { key: string; id: string }[] {
  const candidates: { key: string; id: string }[] = [];
  for (const store of evidence.stores) {
    if (store.agent !== process.rules.agent || !process.detail.sameFiles) continue;
    if (process.home !== null && store.home !== process.home) continue;
    for (const { id, reading } of store.rows) {
      const key = sessionKey(store.agent, store.home, id);
      if (found.owners.has(key) || !reading.ok) continue;
      const { cwd, lastMessageAt, createdAt } = reading.value;
      if (cwd !== null && process.detail.cwd !== null && cwd !== process.detail.cwd) continue;
      const newest = lastMessageAt ?? createdAt;
      if (newest !== null && newest < process.row.startedAt) continue;
      candidates.push({ key, id });
    }
  }
  return candidates;
}

/** A process of ours that may be the agent's but could not be looked at may have any session of that agent. */
function noteUnreadProcesses(
  processes: AgentProcess[],
  table: ProcessTable,
  allRules: readonly AgentRules[],
  named: ReadonlySet<AgentProcess>,
  found: Matches,
): void {
  for (const row of table.rows) {
    if (row.detail === null || !row.detail.ours || row.detail.unread.length === 0 || !isLive(row)) continue;
    for (const rules of allRules) {
      if (!rules.processNames.includes(row.name)) continue;
      const known = processes.find((process) => process.row === row && process.rules === rules);
      if (known !== undefined && (named.has(known) || known.role === "helper")) continue;
      const [first] = row.detail.unread;
      const why = `process ${row.identity.pid} (${row.name}) may have it, but could not be read: ${first?.message ?? ""}`;
      add(found.agentDoubts, rules.agent, { why, source: first?.source ?? "", rule: "R2" });
    }
  }
}

function doubtAllOf(store: Store, found: Matches, doubt: Doubt): void {
  for (const { id } of store.rows) add(found.doubts, sessionKey(store.agent, store.home, id), doubt);
}

function add<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}
