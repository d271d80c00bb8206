// The sums over the lines of a record: tokens, cost, refused calls. A saved sum can be continued.
import type { LineFacts } from "../../agents/adapter.ts";
import type { Tokens } from "../../core/evidence.ts";
import { shortHashOf } from "../../sys/hash.ts";

export type Usage = NonNullable<LineFacts["usage"]>;

export interface Tally {
  /** Sums of keys that came before those in `usage`; null: all keys are in `usage`, and stay there. */
  older: OlderUsage | null;
  /** In the order in which the keys came: sums of fractions depend on the order. */
  usage: Map<string, Usage>;
  denied: number;
  costUsd: number | null;
}

/** Old keys are kept as sums only. If a line has such a key again (`isOlder`), the whole record must be counted again, with all keys. */
export interface OlderUsage {
  byModel: Map<string, Tokens>;
  /** null: one of the keys has no cost. */
  costUsd: number | null;
  /** Sorted. */
  hashes: Uint32Array;
}

export interface Counts {
  /** null: the record says nothing about tokens. */
  tokens: Tokens | null;
  /** The same by model; "" where the line does not name one. */
  byModel: Map<string, Tokens>;
  /** null: this agent's record does not say. */
  denied: number | null;
  /** null: the agent wrote none, or wrote it before its newest tokens. */
  costUsd: number | null;
}

export const newTally = (keys: "all" | "newest" = "all"): Tally => ({
  older: keys === "all" ? null : { byModel: new Map(), costUsd: 0, hashes: new Uint32Array() },
  usage: new Map(),
  denied: 0,
  costUsd: null,
});

export function addLine(tally: Tally, { usage, costUsd, denied }: LineFacts): void {
  if (usage !== null) {
    // A running total written before the newest tokens is too low.
    if (tally.costUsd !== null && !isEqual(tally.usage.get(usage.key)?.tokens ?? nothing, usage.tokens))
      tally.costUsd = null;
    tally.usage.set(usage.key, usage);
  }
  tally.costUsd = costUsd ?? tally.costUsd;
  tally.denied += denied;
}

/** Whether the key is one of the old ones. It may say so of a new key, because the hashes are short. */
export function isOlder({ older, usage }: Tally, key: string): boolean {
  if (older === null || older.hashes.length === 0 || usage.has(key)) return false;
  const hash = shortHashOf(key);
  let [from, to] = [0, older.hashes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((older.hashes[middle] ?? 0) < hash) from = middle + 1;
    else to = middle;
  }
  return older.hashes[from] === hash;
}

/** Keeps so many of the newest keys and adds the others to the sums. */
export function foldOlder(tally: Tally, newest: number): Tally {
  const { older, usage } = tally;
  if (older === null || usage.size <= newest) return tally;
  const folded = [...usage.values().take(usage.size - newest)];
  const hashes = new Uint32Array(older.hashes.length + folded.length);
  hashes.set(older.hashes);
  for (const [index, { key }] of folded.entries()) hashes[older.hashes.length + index] = shortHashOf(key);
  const byModel = addedByModel(older.byModel, folded);
  return {
    ...tally,
    older: { byModel, costUsd: addedCosts(older.costUsd, folded), hashes: hashes.sort() },
    usage: new Map(usage.entries().drop(folded.length)),
  };
}

/** Adds only the tokens of subagents: the session's record has the rest. Their keys must not be among its old keys. */
export function countsOf(own: Tally, subagents: Iterable<Tally>): Counts & { denied: number } {
  const usage = new Map(own.usage);
  for (const subagent of subagents) for (const [key, used] of subagent.usage) usage.set(key, used);
  const byModel = addedByModel(own.older?.byModel ?? new Map(), usage.values());
  if (usage.size === 0) return { tokens: null, byModel, denied: own.denied, costUsd: own.costUsd };
  const tokens = { ...nothing };
  for (const sum of byModel.values()) addTo(tokens, sum);
  const sum = addedCosts(own.older === null ? 0 : own.older.costUsd, usage.values());
  const costUsd = own.costUsd ?? (sum === null ? null : Math.round(sum * 1e6) / 1e6);
  return { tokens, byModel, denied: own.denied, costUsd };
}

/** Copies the sums once and then adds in place, because there may be a hundred thousand usages. */
function addedByModel(before: ReadonlyMap<string, Tokens>, usage: Iterable<Usage>): Map<string, Tokens> {
  const byModel = new Map([...before].map(([model, tokens]) => [model, { ...tokens }]));
  for (const { tokens, model } of usage) {
    const sum = byModel.get(model ?? "");
    if (sum === undefined) byModel.set(model ?? "", { ...tokens });
    else addTo(sum, tokens);
  }
  return byModel;
}

/** null: the agent wrote no cost for one of them. */
function addedCosts(before: number | null, usage: Iterable<Usage>): number | null {
  let sum = before;
  for (const { costUsd = null } of usage) sum = sum === null || costUsd === null ? null : sum + costUsd;
  return sum;
}

const nothing: Tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

function addTo(sum: Tokens, { input, output, cacheRead, cacheWrite }: Tokens): void {
  sum.input += input;
  sum.output += output;
  sum.cacheRead += cacheRead;
  sum.cacheWrite += cacheWrite;
}

const isEqual = (a: Tokens, b: Tokens): boolean =>
  a.input === b.input && a.output === b.output && a.cacheRead === b.cacheRead && a.cacheWrite === b.cacheWrite;
