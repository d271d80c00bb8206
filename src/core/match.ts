// Which live process has which session, and how sure that is. Rules 1, 8, 9 and 10 of docs/truth.md.

import { type AnnouncementContext, announcedRow, isBlind, judgeAnnouncement } from "./announcements.ts";
import { isWithin, mayNameOwner, whyNotBelieved, whyNotTied } from "./belief.ts";
import { type Announcement, anyPid, type Evidence, type Store } from "./evidence.ts";
import { givenId } from "./given-id.ts";
import { matchByDirectory } from "./match-directory.ts";
import { matchServers } from "./match-servers.ts";
import {
  type AgentProcess,
  add,
  addOwner,
  type Doubt,
  doubtAllOf,
  type FoundOwner,
  homeFor,
  lockingServer,
  type Matches,
  type Matching,
  namedHome,
  processOwner,
  sessionKey,
} from "./matches.ts";
import { chainIn, examinedIn, livePid, mayBeOurs, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import type { OwnerDoubt } from "./reason.ts";
import { type AgentRules, roleOf } from "./rules.ts";
import type { Link } from "./session.ts";

export function matchProcesses(evidence: Evidence, table: ProcessTable, allRules: readonly AgentRules[]): Matches {
  const found: Matches = {
    owners: new Map(),
    doubts: new Map(),
    staleAnnouncements: new Map(),
    unrecorded: [],
    continuedBy: new Map(),
    seen: new Map(),
    agentDoubts: new Map(),
  };
  const processes = allRules.flatMap((rules) => agentProcesses(table, rules, evidence.stores));
  const named = new Set<AgentProcess>();
  const matching: Matching = { evidence, table, allRules, processes, found, named };

  if (evidence.processes.ok) matchAnnouncements(matching);
  const sure = new Set(named);
  for (const process of processes) {
    if (process.role === "helper") continue;
    add(found.seen, process.rules.agent, process.row.identity.pid);
    if (process.detail.ours) matchByOwnName(process, sure, matching);
    else matchForeign(process, matching);
  }
  dropWrappers(table, found);
  matchServers(matching);
  const serving = new Set(
    [...found.owners.values()].flat().flatMap(({ kind, row }) => (kind === "server" ? [row] : [])),
  );
  const unnamed = processes.filter(
    (p) =>
      p.role === "agent" &&
      !named.has(p) &&
      !serving.has(p.row) &&
      !isWrapper(p, processes) &&
      !isViewer(p, processes, evidence),
  );
  matchByDirectory(unnamed, evidence, found);
  noteUnreadProcesses(sure, matching);
  return found;
}

/** npm wrappers of agents that announce nothing: the agent is the child. Tools run in other kernel sessions. */
const isWrapper = ({ row, rules, detail }: AgentProcess, processes: readonly AgentProcess[]): boolean =>
  !rules.announces(detail) &&
  // A process that hides its arguments may be an agent whose extension started another agent.
  rules.hidesArguments?.(detail) !== true &&
  processes.some((other) => isBegunBy({ row, rules }, other));

const isBegunBy = ({ row, rules }: Pick<AgentProcess, "row" | "rules">, other: AgentProcess): boolean =>
  other.rules === rules &&
  other.role === "agent" &&
  other.row.parent === row.identity.pid &&
  // A reused pid may make two look like each other's parents.
  row.parent !== other.row.identity.pid &&
  other.row.session === row.session;

/** If a server has the sessions of a home, an interface without a session only shows them, unless it shows its own dialog. */
const isViewer = (process: AgentProcess, processes: readonly AgentProcess[], evidence: Evidence): boolean =>
  process.rules.serversNameBy === "lock" &&
  processes.some(
    ({ role, rules, home, detail }) =>
      role === "server" && detail.ours && rules === process.rules && home === process.home,
  ) &&
  !evidence.dialogs.some((dialog) => sameProcess(dialog.process, process.row.identity));

function agentProcesses(table: ProcessTable, rules: AgentRules, stores: readonly Store[]): AgentProcess[] {
  const processes: AgentProcess[] = [];
  for (const row of examinedIn(table)) {
    const role = roleOf(rules, row);
    if (role === null) continue;
    const named = namedHome(rules, row.detail);
    const store = stores.find((candidate) => candidate.agent === rules.agent && candidate.names.includes(named ?? ""));
    const home = store?.home ?? named;
    processes.push({ row, detail: row.detail, role, rules, home, muted: null });
  }
  return processes;
}

function matchAnnouncements(matching: Matching): void {
  const { evidence, table, processes, found, named } = matching;
  for (const store of evidence.stores) {
    const own = processes.filter(({ rules }) => rules.agent === store.agent);
    const context: AnnouncementContext = { table, host: evidence.host ?? null, isShared: store.isShared === true };
    for (const { pid, reading, session, uid } of store.announcements) {
      if (!reading.ok && session !== undefined) {
        const doubt: Doubt = { why: { code: "holder-unreadable" }, source: reading.problem.source, rule: "R2" };
        add(found.doubts, sessionKey(store.agent, store.home, session), doubt);
        continue;
      }
      if (!reading.ok) {
        matchUnreadAnnouncement(pid, uid, reading.problem.source, store, matching);
        continue;
      }
      const announcement = reading.value;
      const key = sessionKey(store.agent, store.home, announcement.session);
      const row = announcedRow(announcement, context);
      const process = own.find((candidate) => candidate.row === row) ?? null;
      const verdict = judgeAnnouncement(announcement, row, process !== null, context);
      const distrust = verdict.kind === "owner" ? whyNotBelieved(store, uid, verdict.row, table) : null;
      const next = verdict.kind === "owner" ? begunSince(announcement, uid, store) : null;
      if (verdict.kind === "dead")
        add(found.staleAnnouncements, key, { announcement, why: verdict.why, isOurs: uid === table.uid });
      else if (verdict.kind === "cannot-tell")
        add(found.doubts, key, { why: verdict.why, source: announcement.source, rule: verdict.rule });
      else if (distrust !== null) {
        if (mayBeTrue(uid, announcement.session, store, table))
          add(found.doubts, key, { why: distrust, source: announcement.source, rule: "R13" });
      } else if (announcement.isOver === true) continue;
      else if (next !== null) {
        const why: OwnerDoubt = { code: "began-another-session", pid: announcement.pid, next };
        add(found.doubts, key, { why, source: announcement.source, rule: "R9" });
      } else if (process?.role === "server") addOwner(found, key, lockingServer(verdict.row));
      else {
        addOwner(found, key, processOwner(verdict.row, "announced", announcement.source, announcement));
        if (process !== null) named.add(process);
        const given = process === null ? null : givenId(process);
        if (given !== null && given.id !== announcement.session)
          found.continuedBy.set(sessionKey(store.agent, store.home, given.id), announcement.session);
      }
    }
  }
}

/** Our own sessions are announced in our own files. An announcement of another user about them is false, and no doubt. */
const mayBeTrue = (uid: number | null, id: string, { rows }: Store, table: ProcessTable): boolean =>
  uid === table.uid || !rows.some((row) => row.id === id && row.uid === table.uid);

/** A session that the same process began later and has not left, by a file of the same user. */
function begunSince({ pid, begunAt }: Announcement, uid: number | null, { announcements }: Store): string | null {
  if (begunAt == null) return null;
  const later = announcements.flatMap(({ reading, uid: owner }) => {
    if (!reading.ok || reading.value.pid !== pid || reading.value.isOver === true || owner !== uid) return [];
    return (reading.value.begunAt ?? 0) > begunAt ? [reading.value.session] : [];
  });
  return later[0] ?? null;
}

/** A live process, known or not, may have announced any session of this store. */
function matchUnreadAnnouncement(
  pid: number,
  uid: number | null,
  source: string,
  store: Store,
  { table, processes, found }: Matching,
): void {
  const own = processes.filter(({ rules }) => rules.agent === store.agent);
  // A process of any host may have announced any session here.
  if (store.isShared === true)
    doubtAllOf(store, found, { why: { code: "announcement-from-elsewhere-unreadable" }, source, rule: "R10" });
  const row = livePid(table, pid);
  // The file of another user proves nothing about this process or about our sessions.
  if (uid !== null && row !== null && !mayNameOwner(uid, row.detail, table)) {
    const rows = store.rows.filter((each) => each.uid !== table.uid);
    const why: OwnerDoubt = { code: "announcement-of-other-user-unreadable" };
    doubtAllOf({ ...store, rows }, found, { why, source, rule: "R2" });
    return;
  }
  const why: OwnerDoubt = { code: "announcement-of-live-process-unreadable", pid: pid === anyPid ? null : pid };
  const doubt: Doubt = { why, source, rule: "R2" };
  const process = own.find((candidate) => candidate.row === row) ?? null;
  if (process?.role === "agent" && process.detail.ours) process.muted = { store, ...doubt };
  const inside = own.some(({ detail }) => detail.innerPid === pid && detail.namespace !== table.namespace.id);
  const blind = row?.detail != null && isBlind(row);
  // Even if another announcement names the session of the process: this one may name any session of the store.
  if (pid === anyPid || process !== null || inside || blind || table.hidden.includes(pid))
    doubtAllOf(store, found, doubt);
}

/** Another user's process may have a session of ours only if the record is that user's file. Its arguments are open to all. */
function matchForeign(process: AgentProcess, { evidence, found, named }: Matching): void {
  const { row, detail, rules } = process;
  const own = (id: string, link: Link, source: string): void => {
    for (const store of evidence.stores) {
      const isTheirs = ({ id: each, uid }: Store["rows"][number]) => each === id && uid !== null && uid === detail.uid;
      if (store.agent !== rules.agent || !isWithin(store, detail) || !store.rows.some(isTheirs)) continue;
      addOwner(found, sessionKey(store.agent, store.home, id), processOwner(row, link, source));
      named.add(process);
    }
  };
  for (const id of rules.announcedIds?.(detail) ?? []) own(id, "announced", `/proc/${row.identity.pid}/fd`);
  const given = process.role === "server" || named.has(process) ? null : givenId(process);
  if (given !== null) own(given.id, "argv", given.source);
}

/** Matches by kernel locks, by our tag, or by arguments; the strongest link wins. */
function matchByOwnName(process: AgentProcess, announced: ReadonlySet<AgentProcess>, matching: Matching): void {
  const { processes, evidence, found, named } = matching;
  const { row, detail, rules } = process;
  const pid = row.identity.pid;
  for (const id of rules.announcedIds?.(detail) ?? []) {
    const key = sessionKey(rules.agent, homeFor(process, id, evidence), id);
    const isServer = process.role === "server";
    addOwner(found, key, isServer ? lockingServer(row) : processOwner(row, "announced", `/proc/${pid}/fd`));
    named.add(process);
  }
  const given = process.role === "server" || process.muted !== null || named.has(process) ? null : givenId(process);
  if (given === null) return;
  // Its wrapper keeps the same arguments when the agent has switched to another session.
  if (given.link === "argv" && processes.some((other) => isBegunBy(process, other) && announced.has(other))) {
    named.add(process);
    return;
  }
  const store = evidence.stores.find(({ agent, home }) => agent === rules.agent && home === process.home);
  if (given.link === "argv" && store !== undefined && rules.mayMoveOn?.(detail) === true) {
    const why: OwnerDoubt = { code: "may-have-moved-on", pid, id: given.id };
    process.muted = { store, why, source: given.source, rule: "R9" };
    return;
  }
  const session = { agent: rules.agent, home: homeFor(process, given.id, evidence), id: given.id };
  const key = sessionKey(session.agent, session.home, session.id);
  const why = given.link === "argv" ? whyNotTied(process, session, evidence) : null;
  if (why !== null) add(found.doubts, key, { why, source: given.source, rule: "R13" });
  else {
    addOwner(found, key, processOwner(row, given.link, given.source));
    named.add(process);
  }
}

/** npm wrappers name the same session as the agent below them. The agent is the owner. */
function dropWrappers(table: ProcessTable, found: Matches): void {
  const shared = [...found.owners].filter(([, owners]) => owners.length > 1);
  for (const [key, owners] of shared) {
    const wrappers = new Set<FoundOwner>();
    for (const owner of owners) {
      if (owner.kind !== "process" || owner.link === "announced") continue;
      const pid = owner.row.identity.pid;
      // Never drop both: the table is not read in one instant, so with a reused pid each may look like the parent of the other.
      const wraps = (other: FoundOwner) =>
        other.row !== null && other.row !== owner.row && !wrappers.has(other) && isBelow(other.row, pid, table);
      if (owners.some(wraps)) wrappers.add(owner);
    }
    const left = owners.filter((owner) => !wrappers.has(owner));
    found.owners.set(key, left);
  }
}

const isBelow = (row: ProcessRow, ancestor: number, table: ProcessTable): boolean =>
  chainIn(table, row.parent).some(({ identity }) => identity.pid === ancestor);

/**
 * A process of ours that may belong to the agent but could not be read may have any session of that agent. So may one with a
 * weak link: the part that could not be read may hold a stronger one.
 */
function noteUnreadProcesses(sure: ReadonlySet<AgentProcess>, matching: Matching): void {
  const { processes, table, allRules, found } = matching;
  for (const row of examinedIn(table)) {
    const [first] = row.detail.unread;
    if (!mayBeOurs(row.detail) || first === undefined) continue;
    for (const rules of allRules) {
      if (!rules.processNames.includes(row.name)) continue;
      const known = processes.find((process) => process.row === row && process.rules === rules);
      if (known !== undefined && (sure.has(known) || known.role === "helper")) continue;
      const { detail, source } = first;
      const why: OwnerDoubt = { code: "process-unreadable", pid: row.identity.pid, name: row.name, detail };
      add(found.agentDoubts, rules.agent, { why, source, rule: "R2" });
    }
  }
}
