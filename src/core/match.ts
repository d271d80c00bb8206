// Which live process has which session, and how sure that is. Rules 1, 8, 9 and 10 of docs/truth.md.
import { isWithin, mayNameOwner, whyNotBelieved, whyNotTied } from "./belief.ts";
import { type ClaimContext, claimedRow, isBlind, judgeClaim } from "./claims.ts";
import { anyPid, type Evidence, type PidClaim, type Store } from "./evidence.ts";
import {
  type AgentProcess,
  add,
  addOwner,
  doubtAllOf,
  type FoundOwner,
  homeFor,
  type Matches,
  namedHome,
  processOwner,
  sessionKey,
} from "./found.ts";
import { givenId } from "./given-id.ts";
import { matchByDirectory } from "./match-directory.ts";
import { matchHosts } from "./match-hosts.ts";
import { examinedIn, livePid, mayBeOurs, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import { type AgentRules, roleOf } from "./rules.ts";

export function matchProcesses(evidence: Evidence, table: ProcessTable, allRules: readonly AgentRules[]): Matches {
  const found: Matches = {
    owners: new Map(),
    doubts: new Map(),
    deadClaims: new Map(),
    unrecorded: [],
    continuedBy: new Map(),
    seen: new Map(),
    agentDoubts: new Map(),
  };
  const processes = allRules.flatMap((rules) => agentProcesses(table, rules, evidence.stores));
  const named = new Set<AgentProcess>();

  if (evidence.processes.ok) matchClaims(evidence, table, processes, found, named);
  const sure = new Set(named);
  for (const process of processes) {
    if (process.role === "helper") continue;
    add(found.seen, process.rules.agent, process.row.identity.pid);
    if (process.detail.ours) matchByOwnName(process, processes, sure, evidence, found, named);
    else matchForeign(process, evidence, found, named);
  }
  dropWrappers(table, found);
  matchHosts(evidence, table, processes, allRules, found);
  const hosting = new Set([...found.owners.values()].flat().flatMap(({ kind, row }) => (kind === "host" ? [row] : [])));
  const unnamed = processes.filter(
    (p) =>
      p.role === "agent" &&
      !named.has(p) &&
      !hosting.has(p.row) &&
      !isWrapper(p, processes) &&
      !isViewer(p, processes, evidence),
  );
  matchByDirectory(unnamed, evidence, found);
  noteUnreadProcesses(processes, table, allRules, sure, found);
  return found;
}

/** npm's starters of agents that say nothing of themselves: the agent is the process below. Tools run in kernel sessions of their own. */
const isWrapper = ({ row, rules, detail }: AgentProcess, processes: readonly AgentProcess[]): boolean =>
  !rules.announces(detail) &&
  // What hides its arguments may be an agent whose own extension started another one.
  rules.hidesArguments?.(detail) !== true &&
  processes.some((other) => isBegunBy({ row, rules }, other));

const isBegunBy = ({ row, rules }: Pick<AgentProcess, "row" | "rules">, other: AgentProcess): boolean =>
  other.rules === rules &&
  other.role === "agent" &&
  other.row.parent === row.identity.pid &&
  // A reused pid may make two look like each other's parents.
  row.parent !== other.row.identity.pid &&
  other.row.session === row.session;

/** Where a host holds the sessions of a home, an interface without one only shows them; unless it shows a dialog of its own. */
const isViewer = (process: AgentProcess, processes: readonly AgentProcess[], evidence: Evidence): boolean =>
  process.rules.hostsNameBy === "lock" &&
  processes.some(
    ({ role, rules, home, detail }) =>
      role === "host" && detail.ours && rules === process.rules && home === process.home,
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

function matchClaims(
  evidence: Evidence,
  table: ProcessTable,
  processes: AgentProcess[],
  found: Matches,
  named: Set<AgentProcess>,
): void {
  for (const store of evidence.stores) {
    const own = processes.filter(({ rules }) => rules.agent === store.agent);
    const context: ClaimContext = { table, host: evidence.host ?? null, isShared: store.isShared === true };
    for (const { pid, reading, session, uid } of store.claims) {
      if (!reading.ok && session !== undefined) {
        const why = "which process has it cannot be read";
        add(found.doubts, sessionKey(store.agent, store.home, session), {
          why,
          source: reading.problem.source,
          rule: "R2",
        });
        continue;
      }
      if (!reading.ok) {
        matchUnreadClaim(pid, uid, reading.problem.source, store, own, table, found);
        continue;
      }
      const claim = reading.value;
      const key = sessionKey(store.agent, store.home, claim.session);
      const row = claimedRow(claim, context);
      const process = own.find((candidate) => candidate.row === row) ?? null;
      const verdict = judgeClaim(claim, row, process !== null, context);
      const distrust = verdict.kind === "owner" ? whyNotBelieved(store, uid, verdict.row, table) : null;
      const next = verdict.kind === "owner" ? begunSince(claim, uid, store) : null;
      if (verdict.kind === "dead") add(found.deadClaims, key, { claim, why: verdict.why, isOurs: uid === table.uid });
      else if (verdict.kind === "cannot-tell")
        add(found.doubts, key, { why: verdict.why, source: claim.source, rule: verdict.rule });
      else if (distrust !== null) {
        if (mayBeTrue(uid, claim.session, store, table))
          add(found.doubts, key, { why: distrust, source: claim.source, rule: "R13" });
      } else if (claim.isOver === true) continue;
      else if (next !== null) {
        const why = `process ${claim.pid} began it, and another session since (${next}): who has taken it up again is not said`;
        add(found.doubts, key, { why, source: claim.source, rule: "R9" });
      } else if (process?.role === "host")
        addOwner(found, key, { kind: "host", host: null, row: verdict.row, address: `process ${pid}`, hosted: null });
      else {
        addOwner(found, key, { kind: "process", row: verdict.row, link: "announced", source: claim.source, claim });
        if (process !== null) named.add(process);
        const given = process === null ? null : givenId(process);
        if (given !== null && given.id !== claim.session)
          found.continuedBy.set(sessionKey(store.agent, store.home, given.id), claim.session);
      }
    }
  }
}

/** A session of ours is announced in a file of ours. What others write about it is false, and no reason for doubt. */
const mayBeTrue = (uid: number | null, id: string, { rows }: Store, table: ProcessTable): boolean =>
  uid === table.uid || !rows.some((row) => row.id === id && row.uid === table.uid);

/** A session that the same process began later, and has not left; told by a file of the same user. */
function begunSince({ pid, begunAt }: PidClaim, uid: number | null, { claims }: Store): string | null {
  if (begunAt == null) return null;
  const later = claims.flatMap(({ reading, uid: owner }) => {
    if (!reading.ok || reading.value.pid !== pid || reading.value.isOver === true || owner !== uid) return [];
    return (reading.value.begunAt ?? 0) > begunAt ? [reading.value.session] : [];
  });
  return later[0] ?? null;
}

/** Somebody may be announcing any session of this store: a live process that we know, or one that we cannot rule out. */
function matchUnreadClaim(
  pid: number,
  uid: number | null,
  source: string,
  store: Store,
  own: AgentProcess[],
  table: ProcessTable,
  found: Matches,
): void {
  // A process of any host may be announcing any session here.
  if (store.isShared === true)
    doubtAllOf(store, found, {
      why: "an announcement that may be of another host cannot be read",
      source,
      rule: "R10",
    });
  const row = livePid(table, pid);
  // Another user's file says nothing about this process, whatever it holds; and nothing about our sessions.
  if (uid !== null && row !== null && !mayNameOwner(uid, row.detail, table)) {
    const rows = store.rows.filter((each) => each.uid !== table.uid);
    const why = "an announcement of another user cannot be read";
    doubtAllOf({ ...store, rows }, found, { why, source, rule: "R2" });
    return;
  }
  const process = own.find((candidate) => candidate.row === row) ?? null;
  if (process?.role === "agent" && process.detail.ours) {
    const why = `live process ${pid} announces a session, but its announcement cannot be read`;
    process.muted = { store, why, source, rule: "R2" };
    // Also where it is known by another announcement: any session of this store may be meant by this one.
    doubtAllOf(store, found, { why, source, rule: "R2" });
    return;
  }
  const inside = own.some(({ detail }) => detail.innerPid === pid && detail.namespace !== table.namespace.id);
  const blind = row?.detail != null && isBlind(row);
  if (pid === anyPid || process !== null || inside || blind || table.hidden.includes(pid))
    doubtAllOf(store, found, { why: "an announcement of a live process cannot be read", source, rule: "R2" });
}

/** Another user's process may have a session of ours only if the record is that user's file. Its arguments are open to all. */
function matchForeign(process: AgentProcess, evidence: Evidence, found: Matches, named: Set<AgentProcess>): void {
  const { row, detail, rules } = process;
  const isTheirs = (store: Store, id: string | undefined): boolean =>
    store.agent === rules.agent &&
    isWithin(store, detail) &&
    store.rows.some((each) => each.id === id && each.uid !== null && each.uid === detail.uid);
  for (const id of rules.announcedIds(detail))
    for (const store of evidence.stores) {
      if (!isTheirs(store, id)) continue;
      const source = `/proc/${row.identity.pid}/fd`;
      addOwner(found, sessionKey(store.agent, store.home, id), processOwner(row, "announced", source));
      named.add(process);
    }
  const given = process.role === "host" || named.has(process) ? null : givenId(process);
  for (const store of given === null ? [] : evidence.stores) {
    if (!isTheirs(store, given?.id)) continue;
    addOwner(
      found,
      sessionKey(store.agent, store.home, given?.id ?? ""),
      processOwner(row, "argv", given?.source ?? ""),
    );
    named.add(process);
  }
}

/** What a process says through the kernel, by our tag, or in its arguments; the strongest wins. */
function matchByOwnName(
  process: AgentProcess,
  processes: readonly AgentProcess[],
  announced: ReadonlySet<AgentProcess>,
  evidence: Evidence,
  found: Matches,
  named: Set<AgentProcess>,
): void {
  const { row, detail, rules } = process;
  const pid = row.identity.pid;
  for (const id of rules.announcedIds(detail)) {
    const key = sessionKey(rules.agent, homeFor(process, id, evidence), id);
    if (process.role === "host")
      addOwner(found, key, { kind: "host", host: null, row, address: `process ${pid}`, hosted: null });
    else addOwner(found, key, processOwner(row, "announced", `/proc/${pid}/fd`));
    named.add(process);
  }
  const given = process.role === "host" || process.muted !== null || named.has(process) ? null : givenId(process);
  if (given === null) return;
  // Its starter has the same arguments, and keeps them when the agent has gone on to another session.
  if (given.link === "argv" && processes.some((other) => isBegunBy(process, other) && announced.has(other))) {
    named.add(process);
    return;
  }
  const store = evidence.stores.find(({ agent, home }) => agent === rules.agent && home === process.home);
  if (given.link === "argv" && store !== undefined && rules.mayMoveOn?.(detail) === true) {
    const why = `process ${pid} was started with ${given.id}, and may have gone on to another session since`;
    process.muted = { store, why, source: given.source, rule: "R9" };
    return;
  }
  const home = homeFor(process, given.id, evidence);
  const key = sessionKey(rules.agent, home, given.id);
  const why = given.link === "argv" ? whyNotTied(process, { agent: rules.agent, home, id: given.id }, evidence) : null;
  if (why !== null) {
    add(found.doubts, key, { why, source: given.source, rule: "R13" });
    return;
  }
  addOwner(found, key, processOwner(row, given.link, given.source));
  named.add(process);
}

/** npm wrappers name the same session as the agent below them. The agent is the owner. */
function dropWrappers(table: ProcessTable, found: Matches): void {
  const shared = [...found.owners].filter(([, owners]) => owners.length > 1);
  const parents = new Map(shared.length === 0 ? [] : table.rows.map((row) => [row.identity.pid, row.parent]));
  for (const [key, owners] of shared) {
    const wrappers = new Set<FoundOwner>();
    for (const owner of owners) {
      if (owner.kind !== "process" || owner.link === "announced") continue;
      const pid = owner.row.identity.pid;
      // Never both of two: a table is not read in one instant, so a reused pid may make them look like each other's parents.
      const wraps = (other: FoundOwner) =>
        other.row !== null && other.row !== owner.row && !wrappers.has(other) && isBelow(other.row, pid, parents);
      if (owners.some(wraps)) wrappers.add(owner);
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

/**
 * A process of ours that may be the agent's but could not be looked at may have any session of that agent. So may one that
 * is known by a weaker name: what could not be read may hold a stronger one.
 */
function noteUnreadProcesses(
  processes: AgentProcess[],
  table: ProcessTable,
  allRules: readonly AgentRules[],
  sure: ReadonlySet<AgentProcess>,
  found: Matches,
): void {
  for (const row of examinedIn(table)) {
    if (!mayBeOurs(row.detail) || row.detail.unread.length === 0) continue;
    for (const rules of allRules) {
      if (!rules.processNames.includes(row.name)) continue;
      const known = processes.find((process) => process.row === row && process.rules === rules);
      if (known !== undefined && (sure.has(known) || known.role === "helper")) continue;
      const [first] = row.detail.unread;
      const why = `process ${row.identity.pid} (${row.name}) may have it, but could not be read: ${first?.message ?? ""}`;
      add(found.agentDoubts, rules.agent, { why, source: first?.source ?? "", rule: "R2" });
    }
  }
}
