// The evidence behind a status: which fact was seen where, which rule used it, and what would change the status.

import type { Activity, Announcement, Evidence, NativeRecord, Turn, Waiting } from "./evidence.ts";
import type { Doubt, FoundOwner } from "./matches.ts";
import type { ProblemDetail } from "./problem.ts";
import { isSuspended, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import type { OwnerDoubt, StaleReason, TruthRule } from "./reason.ts";
import type { Link, Session } from "./session.ts";
import type { SessionFacts } from "./session-facts.ts";

export interface Proof {
  fact: Fact;
  source: string;
  rule: TruthRule;
  at: number | null;
}

/** The words for each code are in src/words/proofs.ts. */
export type Fact =
  | { code: "process"; pid: number; name: string; state: string; start: string; isSuspended: boolean }
  /** `announced`: what the announcement says of the process; null: the link is not by an announcement. */
  | { code: "link"; link: Link; start: string; announced: Pick<Announcement, "pid" | "start" | "boot"> | null }
  | { code: "agent-says"; activity: Activity }
  /** activity null: the server holds the session's lock, and says nothing about it. */
  | { code: "server"; activity: Activity | null }
  | { code: "dialog"; waiting: Waiting }
  | { code: "stale-announcement"; why: StaleReason }
  | { code: "no-owner"; agent: string; processes: number; pids: number[] }
  | { code: "not-proven"; why: OwnerDoubt }
  | { code: "turn"; turn: Turn; asks: Waiting["kind"] | null }
  | { code: "record-unreadable"; detail: ProblemDetail }
  | { code: "store-incomplete"; detail: ProblemDetail }
  | { code: "no-record"; isHomeKnown: boolean }
  | { code: "broken-lines"; count: number };

/** What would have to happen for a status to change. */
export type StatusTrigger =
  | "agent-asks"
  | "agent-is-answered"
  | "owner-becomes-clear"
  | "process-exits"
  | "prompt-is-recorded"
  | "resumed"
  | "server-drops-it"
  | "turn-becomes-clear"
  | "turn-end-is-recorded"
  | "turn-ends";

export function proofs(
  session: Session,
  facts: SessionFacts | null,
  doubts: readonly Doubt[],
  evidence: Evidence,
  table: ProcessTable | null,
  seen: readonly number[],
): { evidence: Proof[]; wouldChange: StatusTrigger[] } {
  const at = evidence.at;
  const list: Proof[] = [];
  for (const owner of facts?.owners ?? []) list.push(...ownerProofs(owner, at));
  if (facts === null) for (const row of session.processes) list.push(processProof(row, at));
  for (const { process, waiting, source } of session.waiting === null ? [] : evidence.dialogs)
    if (session.processes.some((row) => sameProcess(row.identity, process)))
      list.push(proof({ code: "dialog", waiting }, source, "R3", at));
  for (const { announcement, why } of facts?.staleAnnouncements ?? [])
    list.push(proof({ code: "stale-announcement", why }, announcement.source, "R1", announcement.writtenAt));
  if (session.status.state === "stopped") {
    const pids = seen.toSorted((a, b) => a - b);
    const processes = table?.rows.length ?? 0;
    list.push(proof({ code: "no-owner", agent: session.agent, processes, pids }, "/proc", "R2", at));
  }
  for (const { why, source, rule } of doubts) list.push(proof({ code: "not-proven", why }, source, rule, at));
  list.push(...recordProofs(session, facts, at));
  return { evidence: list, wouldChange: wouldChange(session) };
}

const proof = (fact: Fact, source: string, rule: TruthRule, at: number | null): Proof => ({ fact, source, rule, at });

function ownerProofs(owner: FoundOwner, at: number): Proof[] {
  const process = owner.row === null ? [] : [processProof(owner.row, at)];
  if (owner.kind === "server")
    return [...process, proof({ code: "server", activity: owner.served?.activity ?? null }, owner.address, "R1", at)];
  const { row, link, announcement, source } = owner;
  const announced =
    announcement === null ? null : { pid: announcement.pid, start: announcement.start, boot: announcement.boot };
  const linked = proof({ code: "link", link, start: row.identity.start, announced }, source, "R9", at);
  const says = announcement?.says ?? null;
  const own = says === null ? [] : [proof({ code: "agent-says", activity: says.activity }, source, "R3", says.since)];
  return [...process, linked, ...own];
}

function processProof(row: ProcessRow, at: number): Proof {
  const { pid, start } = row.identity;
  const { name, state } = row;
  const fact: Fact = { code: "process", pid, name, state, start, isSuspended: isSuspended(row) };
  return proof(fact, `/proc/${pid}/stat`, "R1", at);
}

function recordProofs({ record, home }: Session, facts: SessionFacts | null, at: number): Proof[] {
  if (record !== null) {
    const { skippedLines: count, source } = record;
    return [turnProof(record), ...(count > 0 ? [proof({ code: "broken-lines", count }, source, "R2", at)] : [])];
  }
  if (facts === null) return [];
  const { reading, store } = facts;
  if (reading?.ok === false) {
    const { detail, source } = reading.problem;
    return [proof({ code: "record-unreadable", detail }, source, "R2", at)];
  }
  if (store?.listing.ok === false) {
    const { detail, source } = store.listing.problem;
    return [proof({ code: "store-incomplete", detail }, source, "R2", at)];
  }
  // If the home is not known, the source is the environment of the process, which would name it.
  const pid = facts.owners[0]?.row?.identity.pid;
  const source = home === "" ? `/proc/${pid ?? ""}/environ` : home;
  return [proof({ code: "no-record", isHomeKnown: home !== "" }, source, "R3", at)];
}

function turnProof({ turn, waiting, source, createdAt, lastMessageAt }: NativeRecord): Proof {
  if (turn.state === "open" && waiting !== null)
    return proof({ code: "turn", turn, asks: waiting.kind }, source, "R3", waiting.since);
  const ended = turn.state === "closed" ? turn.at : lastMessageAt;
  const at = turn.state === "none" ? createdAt : turn.state === "open" ? turn.since : ended;
  return proof({ code: "turn", turn, asks: null }, source, "R3", at);
}

function wouldChange({ status }: Session): StatusTrigger[] {
  if (status.state === "stopped") return ["resumed"];
  if (status.state === "unknown") return ["owner-becomes-clear"];
  const turn: Record<Activity, StatusTrigger[]> = {
    working: ["turn-end-is-recorded", "agent-asks"],
    waiting: ["agent-is-answered", "turn-ends"],
    idle: ["prompt-is-recorded"],
    unclear: ["turn-becomes-clear"],
  };
  return [status.owner.kind === "server" ? "server-drops-it" : "process-exits", ...turn[status.activity]];
}
