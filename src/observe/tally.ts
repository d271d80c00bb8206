// The sums of a record, line by line. What was added up once can be kept, and gone on with.
import type { LineFacts } from "../adapters/adapter.ts";
import type { Tokens } from "../core/evidence.ts";
import { shortHashOf } from "../sys/hash.ts";

export type Usage = NonNullable<LineFacts["usage"]>;

export interface Tally {
  /** Keys that came before all of those in `usage`; null: there are none, nor shall there be. */
  past: Past | null;
  /** In the order in which the keys came: sums of fractions depend on it. */
  usage: Map<string, Usage>;
  denied: number;
  costUsd: number | null;
}

/** Of old keys only the sums are kept: going on adds to them. Who has a key for which `isPast` holds needs all keys, and counts anew. */
export interface Past {
  byModel: Map<string, Tokens>;
  /** null: one of them came without a cost. */
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
  past: keys === "all" ? null : { byModel: new Map(), costUsd: 0, hashes: new Uint32Array() },
  usage: new Map(),
  denied: 0,
  costUsd: null,
});

export function addLine(tally: Tally, { usage, costUsd, denied }: LineFacts): void {
  if (usage !== null) {
    // A running total that does not know the newest tokens is too low.
    if (tally.costUsd !== null && !isEqual(tally.usage.get(usage.key)?.tokens ?? nothing, usage.tokens))
      tally.costUsd = null;
    tally.usage.set(usage.key, usage);
  }
  tally.costUsd = costUsd ?? tally.costUsd;
  tally.denied += denied;
}

/** Did this key come before those in `usage`? Sometimes of a key that did not: the hashes are short. */
export function isPast({ past, usage }: Tally, key: string): boolean {
  if (past === null || past.hashes.length === 0 || usage.has(key)) return false;
  const hash = shortHashOf(key);
  let [from, to] = [0, past.hashes.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((past.hashes[middle] ?? 0) < hash) from = middle + 1;
    else to = middle;
  }
  return past.hashes[from] === hash;
}

/** The same with so many keys and the sums of the older ones. */
export function folded(tally: Tally, newest: number): Tally {
  const { past, usage } = tally;
  if (past === null || usage.size <= newest) return tally;
  const older = [...usage.values().take(usage.size - newest)];
  const hashes = new Uint32Array(past.hashes.length + older.length);
  hashes.set(past.hashes);
  let at = past.hashes.length;
  for (const { key } of older) {
    hashes[at] = shortHashOf(key);
    at += 1;
  }
  const byModel = addedByModel(past.byModel, older);
  return {
    ...tally,
    past: { byModel, costUsd: addedCosts(past.costUsd, older), hashes: hashes.sort() },
    usage: new Map(usage.entries().drop(older.length)),
  };
}

/**
 * Subagents have used tokens; what was refused to them, and running costs, stand in the session's own record. They must have
 * all of their keys, and none of them may be past in the session's.
 */
export function countsOf(own: Tally, subagents: Iterable<Tally>): Counts & { denied: number } {
  const usage = new Map(own.usage);
  for (const subagent of subagents) for (const [key, used] of subagent.usage) usage.set(key, used);
  const byModel = addedByModel(own.past?.byModel ?? new Map(), usage.values());
  if (usage.size === 0) return { tokens: null, byModel, denied: own.denied, costUsd: own.costUsd };
  const tokens = [...byModel.values()].reduce(added, nothing);
  const sum = addedCosts(own.past === null ? 0 : own.past.costUsd, usage.values());
  const costUsd = own.costUsd ?? (sum === null ? null : Math.round(sum * 1e6) / 1e6);
  return { tokens, byModel, denied: own.denied, costUsd };
}

/** There may be a hundred thousand of them: each is added in place, to a sum of our own. */
function addedByModel(before: ReadonlyMap<string, Tokens>, usage: Iterable<Usage>): Map<string, Tokens> {
  const byModel = new Map([...before].map(([model, tokens]) => [model, { ...tokens }]));
  for (const { tokens, model } of usage) {
    const sum = byModel.get(model ?? "");
    if (sum === undefined) {
      byModel.set(model ?? "", { ...tokens });
      continue;
    }
    sum.input += tokens.input;
    sum.output += tokens.output;
    sum.cacheRead += tokens.cacheRead;
    sum.cacheWrite += tokens.cacheWrite;
  }
  return byModel;
}

/** Only where the agent wrote every one of them. */
function addedCosts(before: number | null, usage: Iterable<Usage>): number | null {
  let sum = before;
  for (const { costUsd = null } of usage) sum = sum === null || costUsd === null ? null : sum + costUsd;
  return sum;
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
