// Puts the evidence behind a status into words: what was seen, where, under which rule, and what would change it.

import type { Evidence, NativeRecord } from "./evidence.ts";
import type { Doubt, FoundOwner, ProcessOwner } from "./found.ts";
import { isSuspended, type ProcessRow, type ProcessTable, sameProcess } from "./process.ts";
import type { Proof, Session } from "./session.ts";
import type { Subject } from "./subjects.ts";

export function proofs(
  session: Session,
  subject: Subject | null,
  doubts: readonly Doubt[],
  evidence: Evidence,
  table: ProcessTable | null,
  seen: readonly number[],
): { evidence: Proof[]; wouldChange: string[] } {
  const at = evidence.at;
  const list: Proof[] = [];
  for (const owner of subject?.owners ?? []) list.push(...ownerProofs(owner, at));
  if (subject === null) for (const row of session.processes) list.push(processProof(row, at));
  for (const { process, waiting, source } of session.waiting === null ? [] : evidence.dialogs)
    if (session.processes.some((row) => sameProcess(row.identity, process)))
      list.push({ fact: "dialog", value: waiting.text ?? waiting.kind, source, rule: "R3", at });
  for (const { claim, why } of subject?.deadClaims ?? [])
    list.push({ fact: "announcement", value: `stale: ${why}`, source: claim.source, rule: "R1", at: claim.writtenAt });
  if (session.status.state === "stopped") list.push(absenceProof(table, session, seen, at));
  for (const doubt of doubts)
    list.push({ fact: "not proven", value: doubt.why, source: doubt.source, rule: doubt.rule, at });
  if (session.record !== null) list.push(turnProof(session.record));
  else if (subject?.reading?.ok === false) {
    const { message, source } = subject.reading.problem;
    list.push({ fact: "record", value: message, source, rule: "R2", at });
  } else if (subject?.store?.listing.ok === false) {
    const { message, source } = subject.store.listing.problem;
    list.push({ fact: "record", value: `its store could not be read whole: ${message}`, source, rule: "R2", at });
  } else if (subject !== null)
    list.push({
      fact: "record",
      value: "none yet",
      source: session.home || "a home that is not known",
      rule: "R3",
      at,
    });
  if (session.record !== null && session.record.skippedLines > 0) {
    const value = `${session.record.skippedLines} broken line(s) passed over`;
    list.push({ fact: "record", value, source: session.record.source, rule: "R2", at });
  }
  return { evidence: list, wouldChange: wouldChange(session) };
}

const linkWords = {
  announced: "the process announced this session itself",
  assigned: "agentctl gave this session to the process at its start (environment tag, same kernel session)",
  argv: "the process was started with this session id in its arguments",
  cwd: "the only silent process of this agent in this directory, and the only record younger than it (weak)",
} as const;

function ownerProofs(owner: FoundOwner, at: number): Proof[] {
  if (owner.kind === "process") {
    const link: Proof = { fact: "link", value: linkText(owner), source: owner.source, rule: "R9", at };
    const says = owner.claim?.says;
    const word: Proof[] = says
      ? [{ fact: "own word", value: says.activity, source: owner.source, rule: "R3", at: says.since }]
      : [];
    return [processProof(owner.row, at), link, ...word];
  }
  const value = owner.hosted === null ? "the host holds its lock" : `the host names it: ${owner.hosted.activity}`;
  const named: Proof = { fact: "host", value, source: owner.address, rule: "R1", at };
  return owner.row === null ? [named] : [processProof(owner.row, at), named];
}

/** What was announced, beside what the kernel says. */
function linkText({ link, claim, row }: ProcessOwner): string {
  if (claim === null) return linkWords[link];
  const start = claim.start === null ? "no start" : `start ${claim.start}`;
  const boot = claim.boot === null ? "" : ", this boot";
  return `${linkWords[link]}: it wrote pid ${claim.pid}, ${start}${boot}; the kernel says start ${row.identity.start}`;
}

function processProof(row: ProcessRow, at: number): Proof {
  const { pid, start } = row.identity;
  const state = isSuspended(row) ? "suspended" : "alive";
  const value = `pid ${pid} (${row.name}) is ${state}, state ${row.state}, start ${start}`;
  return { fact: "process", value, source: `/proc/${pid}/stat`, rule: "R1", at };
}

function absenceProof(table: ProcessTable | null, { agent }: Session, seen: readonly number[], at: number): Proof {
  const pids = seen.toSorted((a, b) => a - b).join(", ");
  const others =
    seen.length === 0 ? `no process of ${agent} lives` : `live processes of ${agent} (${pids}) have others or none`;
  const value = `${table?.rows.length ?? 0} processes seen, the table read to its end; ${others}`;
  return { fact: "no owner", value, source: "/proc", rule: "R2", at };
}

function turnProof(record: NativeRecord): Proof {
  const { turn, source } = record;
  const proof = (value: string, at: number | null): Proof => ({ fact: "turn", value, source, rule: "R3", at });
  switch (turn.state) {
    case "none":
      return proof("no prompt recorded", record.createdAt);
    case "unclear":
      return proof(`unclear: ${turn.why}`, record.lastMessageAt);
    case "closed":
      return proof(`closed by the record, outcome ${turn.outcome ?? "not said"}`, turn.at);
    case "open":
      if (record.waiting !== null) return proof(`open, asking (${record.waiting.kind})`, record.waiting.since);
      return proof(turn.doubt === null ? "open: no end recorded" : `open, ${turn.doubt}`, turn.since);
  }
}

function wouldChange(session: Session): string[] {
  const { status } = session;
  switch (status.state) {
    case "running": {
      const end = status.owner.kind === "host" ? "the host no longer names it" : "the process ends";
      const turn = {
        working: ["the record gets an end of turn: idle", "the agent asks a person: waiting"],
        waiting: ["the question is answered: working", "the turn ends: idle"],
        idle: ["a new prompt is recorded: working"],
        unclear: ["the record says how far the turn is: working, waiting or idle"],
      }[status.activity];
      return [`${end}: stopped`, ...turn];
    }
    case "stopped":
      return ["a live process takes it up again (resume): running"];
    case "unknown":
      return ["what stands above as not proven is settled: running or stopped"];
  }
}
