// The sums of a record, line by line. What was added up once can be kept, and gone on with.
import type { LineFacts } from "../adapters/adapter.ts";
import type { Tokens } from "../core/evidence.ts";

type Usage = NonNullable<LineFacts["usage"]>;

export interface Tally {
  /** In the order in which the keys came: sums of fractions depend on it. */
  usage: Map<string, Usage>;
  denied: number;
  costUsd: number | null;
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

export const newTally = (): Tally => ({ usage: new Map(), denied: 0, costUsd: null });

export function addLine(tally: Tally, { usage, costUsd, denied }: LineFacts): void {
  if (usage !== null) {
    // A running total that does not know the newest tokens is too low.
    if (!isEqual(tally.usage.get(usage.key)?.tokens ?? nothing, usage.tokens)) tally.costUsd = null;
    tally.usage.set(usage.key, usage);
  }
  tally.costUsd = costUsd ?? tally.costUsd;
  tally.denied += denied;
}

/** Subagents have used tokens; what was refused to them, and running costs, stand in the session's own record. */
export function countsOf(own: Tally, subagents: Iterable<Tally>): Counts & { denied: number } {
  const usage = new Map(own.usage);
  for (const subagent of subagents) for (const [key, used] of subagent.usage) usage.set(key, used);
  const byModel = new Map<string, Tokens>();
  for (const { tokens, model } of usage.values())
    byModel.set(model ?? "", added(byModel.get(model ?? "") ?? nothing, tokens));
  const tokens = usage.size === 0 ? null : [...byModel.values()].reduce(added, nothing);
  const costUsd = own.costUsd ?? sumOfCosts([...usage.values()].map((each) => each.costUsd ?? null));
  return { tokens, byModel, denied: own.denied, costUsd };
}

/** Only where the agent wrote every one of them. */
function sumOfCosts(costs: readonly (number | null)[]): number | null {
  const sum = costs.reduce((total, cost) => (total === null || cost === null ? null : total + cost), 0);
  return costs.length === 0 || sum === null ? null : Math.round(sum * 1e6) / 1e6;
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
