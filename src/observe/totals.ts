// What a whole record adds up to, and the final answer in it. Who needs no answer counts for less (counts.ts).
import type { Message } from "../adapters/adapter.ts";
import { type Entry, entriesForward, type RecordPlace, readHistory } from "./conversation.ts";
import { subagentFiles } from "./counts.ts";
import { addLine, type Counts, countsOf, newTally } from "./tally.ts";

export interface Totals extends Counts {
  /** What the agent said last in its last turn. */
  answer: string | null;
  broken: number;
  unknown: number;
}

/** The session's own record alone: where a fork's totals contain its parent's, the agent wrote them so. Throws where it cannot be read. */
export function readTotals(place: RecordPlace): Totals {
  const { own } = readHistory(place);
  const totals = sumUp(entriesForward(place.adapter, [own]), subagentEntries(place));
  return place.adapter.countsDenied ? totals : { ...totals, denied: null };
}

function* subagentEntries(place: RecordPlace): Generator<Entry> {
  for (const file of subagentFiles(place)) yield* entriesForward(place.adapter, [readHistory({ ...place, file }).own]);
}

export function sumUp(entries: Iterable<Entry>, subagents: Iterable<Entry> = []): Totals {
  const own = newTally();
  const subagent = newTally();
  let answer: Answer = { text: null, at: null };
  const passed = { broken: 0, unknown: 0 };
  for (const entry of entries) {
    if (entry.kind !== "known") {
      passed[entry.kind] += 1;
      continue;
    }
    addLine(own, entry.facts);
    for (const message of entry.facts.messages) answer = answerAfter(answer, message);
  }
  for (const entry of subagents) if (entry.kind === "known") addLine(subagent, entry.facts);
  return { ...countsOf(own, [subagent]), answer: answer.text, ...passed };
}

interface Answer {
  text: string | null;
  at: number | null;
}

/** A new prompt opens a turn that has no answer yet; unless the answer, by its time, is this prompt's and stands in front of it. */
function answerAfter(before: Answer, { role, text, at }: Message): Answer {
  if (role === "agent" && text.trim() !== "") return { text, at };
  const isItsOwn = at !== null && before.at !== null && before.at > at;
  return role === "user" && !isItsOwn ? { text: null, at: null } : before;
}
