// What a whole record adds up to: tokens, refused calls, the agent's own cost, the final answer.
import type { LineFacts, Message } from "../adapters/adapter.ts";
import type { Tokens } from "../core/evidence.ts";
import { type Entry, entriesForward, type RecordPlace, readHistory } from "./conversation.ts";
import { findFiles } from "./files.ts";

export interface Totals {
  /** null: the record says nothing about tokens. */
  tokens: Tokens | null;
  /** The same by model; "" where the line does not name one. */
  byModel: Map<string, Tokens>;
  /** null: this agent's record does not say. */
  denied: number | null;
  /** null: the agent wrote none, or wrote it before its newest tokens. */
  costUsd: number | null;
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

/** Subagents keep records of their own, whose tokens are the session's. */
function* subagentEntries({ adapter, home, file }: RecordPlace): Generator<Entry> {
  if (adapter.subagentRecords === null) return;
  const folder = file.path.replace(/\.jsonl$/, "");
  for (const found of findFiles(folder, adapter.subagentRecords).files)
    yield* entriesForward(adapter, [readHistory({ adapter, home, file: { ...found, set: file.set } }).own]);
}

export function sumUp(entries: Iterable<Entry>, subagents: Iterable<Entry> = []): Totals {
  const usage = new Map<string, NonNullable<LineFacts["usage"]>>();
  let denied = 0;
  let costUsd: number | null = null;
  let answer: Answer = { text: null, at: null };
  const passed = { broken: 0, unknown: 0 };
  for (const entry of entries) {
    if (entry.kind !== "known") {
      passed[entry.kind] += 1;
      continue;
    }
    const { facts } = entry;
    if (facts.usage !== null) {
      const { key, tokens } = facts.usage;
      // A running total that does not know the newest tokens is too low.
      if (!isEqual(usage.get(key)?.tokens ?? nothing, tokens)) costUsd = null;
      usage.set(key, facts.usage);
    }
    costUsd = facts.costUsd ?? costUsd;
    denied += facts.denied;
    for (const message of facts.messages) answer = answerAfter(answer, message);
  }
  for (const entry of subagents)
    if (entry.kind === "known" && entry.facts.usage !== null) usage.set(entry.facts.usage.key, entry.facts.usage);
  const byModel = new Map<string, Tokens>();
  for (const { tokens, model } of usage.values())
    byModel.set(model ?? "", added(byModel.get(model ?? "") ?? nothing, tokens));
  const tokens = usage.size === 0 ? null : [...byModel.values()].reduce(added, nothing);
  costUsd ??= sumOfCosts([...usage.values()].map((each) => each.costUsd ?? null));
  return { tokens, byModel, denied, costUsd, answer: answer.text, ...passed };
}

/** Only where the agent wrote every one of them. */
function sumOfCosts(costs: readonly (number | null)[]): number | null {
  const sum = costs.reduce((total, cost) => (total === null || cost === null ? null : total + cost), 0);
  return costs.length === 0 || sum === null ? null : Math.round(sum * 1e6) / 1e6;
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

const nothing: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

const added = (a: Tokens, b: Tokens): Tokens => ({
  input: a.input + b.input,
  output: a.output + b.output,
  cacheRead: a.cacheRead + b.cacheRead,
  cacheWrite: a.cacheWrite + b.cacheWrite,
});

const isEqual = (a: Tokens, b: Tokens): boolean =>
  a.input === b.input && a.output === b.output && a.cacheRead === b.cacheRead && a.cacheWrite === b.cacheWrite;
