// The one function that decides a status. Pure: evidence in, sessions out. Files of agentctl are no evidence.

import { activityOf, isStarting } from "./activity.ts";
import { isOlderThanProcess } from "./announcements.ts";
import { anyPid, type Background, type Evidence, type NativeRecord, type Outcome } from "./evidence.ts";
import { matchProcesses } from "./match.ts";
import type { Doubt, FoundOwner, Matches } from "./matches.ts";
import type { Problem } from "./problem.ts";
import {
  chainIn,
  examinedIn,
  isSuspended,
  livePid,
  mayBeOurs,
  type ProcessRow,
  type ProcessTable,
  sameProcess,
} from "./process.ts";
import { proofs } from "./proof.ts";
import type { Contradiction, RunningReason, StatusReason, UnreadReason } from "./reason.ts";
import { type AgentRules, roleOf } from "./rules.ts";
import { isSameSession, type Owner, type Session, type SessionList, type Status } from "./session.ts";
import { compareText, gatherFacts, type SessionFacts } from "./session-facts.ts";

export function deriveSessions(evidence: Evidence, rules: readonly AgentRules[]): SessionList {
  const table = evidence.processes.ok ? evidence.processes.value : null;
  const matches = matchProcesses(evidence, table ?? emptyTable, rules);
  const judged = gatherFacts(evidence, matches).map((subject) => judge(subject, evidence, table, matches));
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

/** A session that is no longer listed: it has no record, and its process has exited. */
export const vanished = (before: Session): Session => ({
  ...before,
  status: { state: "stopped", outcome: null },
  reason: { code: "never-recorded" },
  since: null,
  waiting: null,
  background: null,
  processes: [],
});

/** A session that is missing in an incomplete list. */
export const outOfSight = (before: Session): Session => ({
  ...before,
  status: { state: "unknown", why: { code: "out-of-sight" } },
  processes: [],
});

/** A subagent at work is background work of its session. */
function countSubagents(sessions: readonly Session[], judged: readonly Session[]): void {
  for (const { record, status, agent, home } of judged) {
    if (record?.subagentOf == null || status.state !== "running" || record.turn.state !== "open") continue;
    const name = { agent, home, id: record.subagentOf };
    const parent = sessions.find((session) => isSameSession(session, name));
    if (parent === undefined || parent.status.state !== "running") continue;
    const { shells, subagents } = parent.background ?? { shells: 0, subagents: 0 };
    parent.background = { shells, subagents: subagents + 1 };
  }
}

const emptyTable: ProcessTable = {
  boot: "",
  uid: -1,
  namespace: { id: null, initial: true },
  ...{ rows: [], gaps: [], hidden: [] },
};

function judge(subject: SessionFacts, evidence: Evidence, table: ProcessTable | null, matches: Matches): Session {
  const { agent, home, id, recordOwner } = subject;
  const record = subject.reading?.ok ? subject.reading.value : null;
  const running = subject.owners.length > 0;
  const doing = running ? activityOf(subject, record, evidence) : null;
  const doubts = running ? [] : whyNotProven(subject, evidence, table);
  const [doubt] = doubts;
  const status: Status =
    doing !== null
      ? { state: "running", owner: ownerOf(subject.owners), activity: doing.activity }
      : doubt !== undefined
        ? { state: "unknown", why: doubt.why }
        : { state: "stopped", outcome: outcomeOf(record) };
  const processes = subject.owners.flatMap((owner) => (owner.row === null ? [] : [owner.row]));
  const [announcement] = subject.owners.flatMap((owner) =>
    owner.kind === "process" ? (owner.announcement ?? []) : [],
  );
  const session: Session = {
    ...{ agent, home, id, status, record, recordOwner, processes },
    reason:
      doing !== null
        ? (doing.reason ?? (announcement?.job == null ? null : { code: "background-job", job: announcement.job }))
        : status.state === "unknown"
          ? status.why
          : stoppedReason(record),
    since: doing === null ? (status.state === "stopped" ? endOf(record) : null) : doing.since,
    waiting: doing?.activity === "waiting" ? doing.waiting : null,
    background: running ? moreOf(announcement?.background ?? null, record?.background ?? null) : null,
    cwd: record?.cwd ?? announcement?.cwd ?? processes[0]?.detail?.cwd ?? null,
    startedAt: record?.createdAt ?? processes[0]?.startedAt ?? null,
    updatedAt: record?.lastMessageAt ?? record?.writtenAt ?? announcement?.writtenAt ?? null,
    endedAt: status.state === "stopped" ? endOf(record) : null,
    parent: record?.parent ?? null,
    continuedBy: record?.continuedBy ?? subject.continuedBy,
    job: announcement?.job ?? null,
    conflicts: conflictsOf(subject),
    ...unexplained,
  };
  return explained(session, () => proofs(session, subject, doubts, evidence, table, matches.seen.get(agent) ?? []));
}

const unexplained: Pick<Session, "evidence" | "wouldChange"> = { evidence: [], wouldChange: [] };

/** Few callers ask for the proofs, so they are made when they are read. */
function explained(session: Session, explain: () => typeof unexplained): Session {
  let made: typeof unexplained | null = null;
  const explanation = (): typeof unexplained => {
    made ??= explain();
    return made;
  };
  return Object.defineProperties(session, {
    evidence: { get: () => explanation().evidence, enumerable: true },
    wouldChange: { get: () => explanation().wouldChange, enumerable: true },
  });
}

/** The process and the record each see only a part of the background work. */
function moreOf(a: Background | null, b: Background | null): Background | null {
  if (a === null || b === null) return a ?? b;
  return { shells: Math.max(a.shells, b.shells), subagents: Math.max(a.subagents, b.subagents) };
}

/** Rule 2: stopped needs proof. Returns every reason why it is not proven that no process has the session. */
function whyNotProven(subject: SessionFacts, evidence: Evidence, table: ProcessTable | null): Doubt[] {
  const { store, reading, foreignOwner } = subject;
  const unread = (code: UnreadReason["code"], problem: Problem): Doubt => ({
    why: { code, detail: problem.detail },
    source: problem.source,
    rule: "R2",
  });
  const doubts: Doubt[] = [];
  if (!evidence.processes.ok) doubts.push(unread("processes-unreadable", evidence.processes.problem));
  for (const gap of (table?.gaps ?? []).toSorted((a, b) => compareText(a.source, b.source)))
    doubts.push(unread("processes-incomplete", gap));
  doubts.push(...subject.doubts);
  if (reading?.ok === false) doubts.push(unread("record-unreadable", reading.problem));
  if (store?.listing.ok === false) doubts.push(unread("store-incomplete", store.listing.problem));
  if (foreignOwner !== null && evidence.othersAreHidden === true)
    doubts.push({ why: { code: "hidden-from-user", uid: foreignOwner }, source: "/proc", rule: "R2" });
  const isProvenHere = subject.staleAnnouncements.some(({ isOurs }) => isOurs);
  if (store?.isShared === true && !isProvenHere)
    doubts.push({ why: { code: "network-store" }, source: store.home, rule: "R10" });
  if (table !== null && !table.namespace.initial && store !== null && !store.onRootDevice)
    doubts.push({ why: { code: "outer-namespace" }, source: store.home, rule: "R10" });
  return doubts;
}

function outcomeOf(record: NativeRecord | null): Outcome | null {
  if (record === null) return null;
  if (record.turn.state === "open") return "cut-off";
  return record.turn.state === "closed" ? record.turn.outcome : null;
}

function stoppedReason(record: NativeRecord | null): StatusReason | null {
  if (record === null) return null;
  if (record.turn.state === "unclear") return record.turn.why;
  if (record.turn.state === "none") return { code: "never-prompted" };
  if (record.turn.state !== "open") return null;
  return { code: record.waiting === null ? "died-in-turn" : "died-waiting" };
}

const endOf = (record: NativeRecord | null): number | null =>
  record === null ? null : record.turn.state === "closed" ? record.turn.at : record.lastMessageAt;

function ownerOf(owners: readonly FoundOwner[]): Owner {
  const processes = owners.flatMap((owner) => (owner.kind === "process" ? [owner] : []));
  const [strongest] = processes;
  if (strongest !== undefined)
    return { kind: "process", processes: processes.map((p) => p.row.identity), link: strongest.link };
  const server = owners.find((owner) => owner.kind === "server");
  return { kind: "server", process: server?.row?.identity ?? null, address: server?.address ?? "" };
}

function conflictsOf(subject: SessionFacts): Contradiction[] {
  const conflicts: Contradiction[] = [];
  const pids = subject.owners.map((owner) => owner.row?.identity.pid ?? null).filter((pid) => pid !== null);
  if (new Set(pids).size > 1) conflicts.push({ code: "several-processes", pids });
  for (const owner of subject.owners)
    if (owner.kind === "process" && owner.announcement !== null && isOlderThanProcess(owner.announcement, owner.row))
      conflicts.push({ code: "announcement-older-than-process", pid: owner.row.identity.pid });
  const record = subject.reading?.ok ? subject.reading.value : null;
  for (const other of record?.isSegment === true ? [] : subject.otherRecords)
    conflicts.push({ code: "same-id-elsewhere", source: other.source });
  return conflicts;
}

/** A live agent process whose session is not known: it is listed without an id. */
function unrecordedSession(found: Matches["unrecorded"][number], evidence: Evidence): Session {
  const { row, detail, home, rules } = found.process;
  const isBlocked = evidence.stores.some(
    (store) =>
      store.agent === rules.agent && store.home === home && store.announcements.some(({ reading }) => !reading.ok),
  );
  const unnamed: RunningReason =
    found.maybe.length > 0
      ? { code: "may-have", ids: found.maybe }
      : { code: isBlocked ? "announcement-unreadable" : isStarting(row, evidence.at) ? "starting" : "session-unknown" };
  const owner: Owner = { kind: "process", processes: [row.identity], link: null };
  const dialog = evidence.dialogs.find(({ process }) => sameProcess(process, row.identity)) ?? null;
  const session: Session = {
    agent: rules.agent,
    home: home ?? "",
    id: null,
    status: { state: "running", owner, activity: dialog === null ? "unclear" : "waiting" },
    reason: isSuspended(row)
      ? { code: "suspended" }
      : dialog === null
        ? unnamed
        : { code: "waiting", kind: dialog.waiting.kind },
    waiting: dialog?.waiting ?? null,
    cwd: detail.cwd,
    startedAt: row.startedAt,
    processes: [row],
    ...{ since: null, background: null, updatedAt: null, endedAt: null, parent: null, continuedBy: null },
    ...{ record: null, job: null, conflicts: [] },
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
  for (const session of running) {
    if (session.parent !== null) continue;
    const above = chainIn(table, session.processes[0]?.parent ?? 0)
      .map(({ identity }) => sessionOf.get(identity.pid))
      .find((each) => each !== undefined && each !== session && each.id !== null);
    session.parent = above?.id ?? null;
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
  // A broken announcement of a dead process affects no status.
  const mayLive = (pid: number): boolean => !evidence.processes.ok || mayBeLive(pid, evidence.processes.value);
  for (const store of evidence.stores) {
    if (!store.listing.ok) problems.push(store.listing.problem);
    problems.push(...(store.nameless ?? []).map(({ problem }) => problem));
    for (const { reading } of store.rows) if (!reading.ok) problems.push(reading.problem);
    for (const { pid, reading } of store.announcements) if (!reading.ok && mayLive(pid)) problems.push(reading.problem);
  }
  for (const { answer } of evidence.servers) if (!answer.ok) problems.push(answer.problem);
  return problems.sort((a, b) => compareText(a.source, b.source) || compareText(a.code, b.code));
}

/** A process that only has the pid of a stale announcement is no problem, even if it cannot be read. */
const mayBeAgent = (row: ProcessRow, rules: readonly AgentRules[]): boolean =>
  row.detail !== null &&
  mayBeOurs(row.detail) &&
  rules.some((each) => each.processNames.includes(row.name) || roleOf(each, row) !== null);

const hiddenProcess = (pid: number): Problem => ({
  code: "process-unreadable",
  agent: null,
  source: `/proc/${pid}`,
  detail: { code: "hidden-process" },
});

/** A live process may have announced its pid in our pid namespace, or in its own. */
const mayBeLive = (pid: number, table: ProcessTable): boolean =>
  pid === anyPid ||
  table.hidden.includes(pid) ||
  livePid(table, pid) !== null ||
  examinedIn(table).some(({ detail }) => detail.innerPid === pid);

/** Newest first, then by name, so that the order of the input does not matter. */
const bySessionOrder = (a: Session, b: Session): number =>
  (b.updatedAt ?? b.startedAt ?? 0) - (a.updatedAt ?? a.startedAt ?? 0) ||
  compareText(a.agent, b.agent) ||
  compareText(a.home, b.home) ||
  compareText(a.id ?? "", b.id ?? "") ||
  (a.processes[0]?.identity.pid ?? 0) - (b.processes[0]?.identity.pid ?? 0);
