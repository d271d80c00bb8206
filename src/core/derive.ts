// The one function that decides a status. Pure: evidence in, sessions out; nothing that agentctl ever wrote takes part.

import { activityOf } from "./activity.ts";
import { isOlderThanProcess } from "./claims.ts";
import { anyPid, type Background, type Evidence, type NativeRecord } from "./evidence.ts";
import type { Doubt, FoundOwner, Matches } from "./found.ts";
import { matchProcesses } from "./match.ts";
import type { Problem } from "./problem.ts";
import { isLive, isSuspended, mayBeOurs, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import { proofs } from "./proof.ts";
import { type AgentRules, roleOf } from "./rules.ts";
import type { Owner, Session, SessionList, Status } from "./session.ts";
import { compareText, type Subject, subjects } from "./subjects.ts";

export function deriveSessions(evidence: Evidence, rules: readonly AgentRules[]): SessionList {
  const table = evidence.processes.ok ? evidence.processes.value : null;
  const matches = matchProcesses(evidence, table ?? emptyTable, rules);
  const judged = subjects(evidence, matches).map((subject) => judge(subject, evidence, table, matches));
  const sessions = judged.filter(({ record }) => record?.subagentOf == null);
  countSubagents(sessions, judged);
  sessions.push(...matches.unrecorded.map((found) => unrecordedSession(found, evidence)));
  if (table !== null) setParents(sessions, table);
  sessions.sort(bySessionOrder);
  const problems = collectProblems(evidence, rules);
  const unopened = evidence.stores
    .flatMap(({ agent, unopened: ids = [] }) => (ids.length === 0 ? [] : [{ agent, ids }]))
    .sort((a, b) => compareText(a.agent, b.agent) || compareText(a.ids[0] ?? "", b.ids[0] ?? ""));
  return { at: evidence.at, complete: problems.length === 0, sessions, unopened, problems };
}

/** Not in the answer any more: nothing was recorded of it, and its process has ended. */
export const vanished = (before: Session): Session => ({
  ...before,
  status: { state: "stopped", outcome: null },
  reason: "nothing was recorded of it",
  since: null,
  waiting: null,
  background: null,
  processes: [],
});

/** Not in an answer that is not whole. */
export const outOfSight = (before: Session): Session => ({
  ...before,
  status: { state: "unknown", why: "what holds it cannot be read" },
  processes: [],
});

/** A subagent at work is background work of its session. */
function countSubagents(sessions: readonly Session[], judged: readonly Session[]): void {
  for (const { record, status, agent, home } of judged) {
    if (record?.subagentOf == null || status.state !== "running" || record.turn.state !== "open") continue;
    const parent = sessions.find(
      (session) => session.id === record.subagentOf && session.agent === agent && session.home === home,
    );
    if (parent === undefined || parent.status.state !== "running") continue;
    const { shells, subagents } = parent.background ?? { shells: 0, subagents: 0 };
    parent.background = { shells, subagents: subagents + 1 };
  }
}

const emptyTable: ProcessTable = {
  boot: "",
  uid: -1,
  namespace: { id: null, initial: true },
  rows: [],
  gaps: [],
  hidden: [],
};

function judge(subject: Subject, evidence: Evidence, table: ProcessTable | null, matches: Matches): Session {
  const record = subject.reading?.ok ? subject.reading.value : null;
  const running = subject.owners.length > 0;
  const doing = running ? activityOf(subject, record, evidence) : null;
  const doubts = running ? [] : whyNotProven(subject, evidence, table);
  const status: Status =
    doing !== null
      ? { state: "running", owner: ownerOf(subject.owners), activity: doing.activity }
      : doubts.length > 0
        ? { state: "unknown", why: doubts[0]?.why ?? "" }
        : { state: "stopped", outcome: outcomeOf(record) };
  const processes = subject.owners.flatMap((owner) => (owner.row === null ? [] : [owner.row]));
  const claim = firstClaim(subject.owners);
  const session: Session = {
    agent: subject.agent,
    home: subject.home,
    id: subject.id,
    status,
    reason:
      doing !== null
        ? (doing.reason ?? (claim?.job == null ? null : `background job ${claim.job}`))
        : status.state === "unknown"
          ? status.why
          : stoppedReason(record),
    since: doing === null ? (status.state === "stopped" ? endOf(record) : null) : doing.since,
    waiting: doing?.activity === "waiting" ? doing.waiting : null,
    background: running ? moreOf(claim?.background ?? null, record?.background ?? null) : null,
    cwd: record?.cwd ?? claim?.cwd ?? processes[0]?.detail?.cwd ?? null,
    startedAt: record?.createdAt ?? processes[0]?.startedAt ?? null,
    updatedAt: record?.lastMessageAt ?? record?.writtenAt ?? claim?.writtenAt ?? null,
    endedAt: status.state === "stopped" ? endOf(record) : null,
    parent: record?.parent ?? null,
    continuedBy: record?.continuedBy ?? subject.continuedBy,
    record,
    recordOwner: subject.recordOwner,
    job: claim?.job ?? null,
    processes,
    conflicts: conflictsOf(subject),
    ...unexplained,
  };
  return explained(session, () =>
    proofs(session, subject, doubts, evidence, table, matches.seen.get(subject.agent) ?? []),
  );
}

const unexplained: Pick<Session, "evidence" | "wouldChange"> = { evidence: [], wouldChange: [] };

/** Few ask for the proofs: they are put into words when somebody does. */
function explained(session: Session, explain: () => typeof unexplained): Session {
  let words: typeof unexplained | null = null;
  const told = (): typeof unexplained => {
    words ??= explain();
    return words;
  };
  return Object.defineProperties(session, {
    evidence: { get: () => told().evidence, enumerable: true },
    wouldChange: { get: () => told().wouldChange, enumerable: true },
  });
}

/** Process and record each see a part of what runs beside the turn. */
function moreOf(a: Background | null, b: Background | null): Background | null {
  if (a === null || b === null) return a ?? b;
  return { shells: Math.max(a.shells, b.shells), subagents: Math.max(a.subagents, b.subagents) };
}

/** Rule 2: stopped needs proof. Every reason why "nobody has it" is not proven. */
function whyNotProven(subject: Subject, evidence: Evidence, table: ProcessTable | null): Doubt[] {
  const doubts: Doubt[] = [];
  if (!evidence.processes.ok) {
    const { message, source } = evidence.processes.problem;
    doubts.push({ why: `the process table could not be read: ${message}`, source, rule: "R2" });
  }
  for (const gap of [...(table?.gaps ?? [])].sort((a, b) => compareText(a.source, b.source)))
    doubts.push({ why: `the process table was not read whole: ${gap.message}`, source: gap.source, rule: "R2" });
  doubts.push(...subject.doubts);
  const { store, reading } = subject;
  if (reading !== null && !reading.ok)
    doubts.push({ why: reading.problem.message, source: reading.problem.source, rule: "R2" });
  if (store !== null && !store.listing.ok) {
    const { message, source } = store.listing.problem;
    doubts.push({ why: `its store could not be read whole: ${message}`, source, rule: "R2" });
  }
  if (subject.foreignOwner !== null && evidence.othersAreHidden === true)
    doubts.push({
      why: `its record is a file of uid ${subject.foreignOwner}, and this system hides other users' processes from us (hidepid)`,
      source: "/proc",
      rule: "R2",
    });
  const isProvenHere = subject.deadClaims.some(({ isOurs }) => isOurs);
  if (store?.isShared === true && !isProvenHere)
    doubts.push({
      why: "its store is on a network file system: a process on another host may have it",
      source: store.home,
      rule: "R10",
    });
  if (table !== null && !table.namespace.initial && store !== null && !store.onRootDevice)
    doubts.push({
      why: "we are inside a pid namespace and its store is shared from outside: an owner could be invisible from here",
      source: store.home,
      rule: "R10",
    });
  return doubts;
}

function outcomeOf(record: NativeRecord | null): Extract<Status, { state: "stopped" }>["outcome"] {
  if (record === null) return null;
  if (record.turn.state === "open") return "cut-off";
  return record.turn.state === "closed" ? record.turn.outcome : null;
}

function stoppedReason(record: NativeRecord | null): string | null {
  if (record === null) return null;
  if (record.turn.state === "unclear") return record.turn.why;
  if (record.turn.state === "none") return "no prompt recorded";
  if (record.turn.state !== "open") return null;
  return record.waiting === null ? "ended inside a turn" : "ended while waiting for an answer";
}

const endOf = (record: NativeRecord | null): number | null =>
  record === null ? null : record.turn.state === "closed" ? record.turn.at : record.lastMessageAt;

function ownerOf(owners: readonly FoundOwner[]): Owner {
  const processes = owners.flatMap((owner) => (owner.kind === "process" ? [owner] : []));
  const [strongest] = processes;
  if (strongest !== undefined)
    return { kind: "process", processes: processes.map((p) => p.row.identity), link: strongest.link };
  const host = owners.find((owner) => owner.kind === "host");
  return { kind: "host", process: host?.row?.identity ?? null, address: host?.address ?? "" };
}

function conflictsOf(subject: Subject): string[] {
  const conflicts: string[] = [];
  const pids = subject.owners.map((owner) => owner.row?.identity.pid ?? null).filter((pid) => pid !== null);
  if (new Set(pids).size > 1) conflicts.push(`${pids.length} live processes have this session: ${pids.join(", ")}`);
  for (const owner of subject.owners)
    if (owner.kind === "process" && owner.claim !== null && isOlderThanProcess(owner.claim, owner.row))
      conflicts.push(`the announcement is older than the process ${owner.row.identity.pid} that it fits`);
  const record = subject.reading?.ok ? subject.reading.value : null;
  for (const other of record?.isSegment === true ? [] : subject.otherRecords)
    conflicts.push(`another record has the same id: ${other.source}`);
  return conflicts;
}

const firstClaim = (owners: readonly FoundOwner[]) => {
  for (const owner of owners) if (owner.kind === "process" && owner.claim !== null) return owner.claim;
  return null;
};

/** A live agent process that names no session: shown, never given an id. */
function unrecordedSession(found: Matches["unrecorded"][number], evidence: Evidence): Session {
  const { row, detail, home, rules } = found.process;
  const isBlocked = evidence.stores.some(
    (store) => store.agent === rules.agent && store.home === home && store.claims.some(({ reading }) => !reading.ok),
  );
  const nothing = isBlocked ? "its announcement cannot be read" : "it names no session";
  const maybe = found.maybe.length > 0 ? `may have ${found.maybe.join(" or ")}` : nothing;
  const owner: Owner = { kind: "process", processes: [row.identity], link: null };
  const dialog = evidence.dialogs.find(({ process }) => sameProcess(process, row.identity)) ?? null;
  const session: Session = {
    agent: rules.agent,
    home: home ?? "",
    id: null,
    status: { state: "running", owner, activity: dialog === null ? "unclear" : "waiting" },
    reason: isSuspended(row) ? "suspended" : (dialog?.waiting.kind ?? maybe),
    since: null,
    waiting: dialog?.waiting ?? null,
    background: null,
    cwd: detail.cwd,
    startedAt: row.startedAt,
    updatedAt: null,
    endedAt: null,
    parent: null,
    continuedBy: null,
    record: null,
    job: null,
    processes: [row],
    conflicts: [],
    ...unexplained,
  };
  return explained(session, () => proofs(session, null, [], evidence, null, []));
}

/** An agent started below another agent's process is its child. Shown, never used for a state. */
function setParents(sessions: Session[], table: ProcessTable): void {
  const running = sessions
    .filter(({ status }) => status.state === "running" && status.owner.kind === "process")
    .sort((a, b) => compareText(a.id ?? "", b.id ?? ""));
  const sessionOf = new Map<number, Session>();
  for (const session of running)
    for (const { identity } of session.processes)
      if (!sessionOf.has(identity.pid)) sessionOf.set(identity.pid, session);
  const parentOf = new Map(table.rows.map((row: ProcessRow) => [row.identity.pid, row.parent]));
  for (const session of running) {
    if (session.parent !== null) continue;
    const seen = new Set<number>();
    let pid = session.processes[0]?.parent;
    while (pid !== undefined && pid > 0 && !seen.has(pid)) {
      seen.add(pid);
      const above = sessionOf.get(pid);
      if (above !== undefined && above !== session && above.id !== null) {
        session.parent = above.id;
        break;
      }
      pid = parentOf.get(pid);
    }
  }
}

function collectProblems(evidence: Evidence, rules: readonly AgentRules[]): Problem[] {
  const problems: Problem[] = [...evidence.problems];
  if (!evidence.processes.ok) problems.push(evidence.processes.problem);
  else {
    problems.push(...evidence.processes.value.gaps);
    for (const row of evidence.processes.value.rows)
      if ((row.detail?.unread.length ?? 0) > 0 && mayBeAgent(row, rules)) problems.push(...(row.detail?.unread ?? []));
    problems.push(...evidence.processes.value.hidden.map(hiddenProcess));
  }
  // What a dead process left behind, broken or not, keeps nobody from a true answer.
  const table = evidence.processes.ok ? evidence.processes.value : null;
  let livePids: Set<number> | null = null;
  const mayLive = (pid: number): boolean => {
    if (table === null || pid === anyPid) return true;
    livePids ??= new Set([...table.hidden, ...livePidsOf(table)]);
    return livePids.has(pid);
  };
  for (const store of evidence.stores) {
    if (!store.listing.ok) problems.push(store.listing.problem);
    problems.push(...(store.nameless ?? []).map(({ problem }) => problem));
    for (const { reading } of store.rows) if (!reading.ok) problems.push(reading.problem);
    for (const { pid, reading } of store.claims) if (!reading.ok && mayLive(pid)) problems.push(reading.problem);
  }
  for (const { answer } of evidence.hosts) if (!answer.ok) problems.push(answer.problem);
  return problems.sort((a, b) => compareText(a.source, b.source) || compareText(a.code, b.code));
}

/** What cannot be read of a process that only has a stale announcement's number concerns nobody. */
const mayBeAgent = (row: ProcessRow, rules: readonly AgentRules[]): boolean =>
  row.detail !== null &&
  mayBeOurs(row.detail) &&
  rules.some((each) => each.processNames.includes(row.name) || roleOf(each, row) !== null);

const hiddenProcess = (pid: number): Problem => ({
  code: "process-unreadable",
  agent: null,
  source: `/proc/${pid}`,
  message: "it exists, but this system hides it from us (hidepid)",
});

/** Numbers under which live processes may have announced themselves: ours, and those inside their own namespaces. */
const livePidsOf = (table: ProcessTable): number[] =>
  table.rows.filter(isLive).flatMap(({ identity, detail }) => [identity.pid, detail?.innerPid ?? identity.pid]);

/** Input order must not show: newest first, then by name. */
const bySessionOrder = (a: Session, b: Session): number =>
  (b.updatedAt ?? b.startedAt ?? 0) - (a.updatedAt ?? a.startedAt ?? 0) ||
  compareText(a.agent, b.agent) ||
  compareText(a.home, b.home) ||
  compareText(a.id ?? "", b.id ?? "") ||
  (a.processes[0]?.identity.pid ?? 0) - (b.processes[0]?.identity.pid ?? 0);
