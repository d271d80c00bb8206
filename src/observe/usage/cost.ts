// The cost of a session: the one that the agent wrote, else an estimate by a price list. scripts/update-prices.ts makes the list.
import type { Tokens } from "../../core/evidence.ts";
import type { Counts } from "./tally.ts";

export interface Counted extends Omit<Counts, "byModel"> {
  costSource: "agent" | "estimated" | null;
}

/** `model` is the model of the session. It sets the price of lines that name no model. */
export async function withCost(counts: Counts, model: string | null): Promise<Counted> {
  const { tokens, denied, costUsd, byModel } = counts;
  if (costUsd !== null) return { tokens, denied, costUsd, costSource: "agent" };
  if (tokens === null) return { tokens, denied, costUsd: null, costSource: null };
  const named = [...byModel].map(([name, sum]): [string, Tokens] => [name || (model ?? ""), sum]);
  const estimate = estimateUsd(named, await readPrices());
  return { tokens, denied, costUsd: estimate, costSource: estimate === null ? null : "estimated" };
}

/** US dollars per million tokens: input, output, read from a cache, written to one; null: the list has no such price. */
export type Price = [input: number, output: number, cacheRead: number | null, cacheWrite: number | null];

export interface PriceList {
  date: string;
  source: string;
  models: Record<string, Price>;
}

/** Loaded only when a cost is estimated. */
export async function readPrices(): Promise<PriceList> {
  // The script defines the format. A test compares the file with the output of the script.
  return (await import("./prices.json")).default as unknown as PriceList;
}

/** null: the price of some tokens is unknown. */
export function estimateUsd(byModel: Iterable<[model: string, Tokens]>, list: PriceList): number | null {
  let usd = 0;
  for (const [model, tokens] of byModel) {
    const counts = [tokens.input, tokens.output, tokens.cacheRead, tokens.cacheWrite];
    if (counts.every((count) => count === 0)) continue;
    const price = priceOf(model, list);
    for (const [index, count] of counts.entries()) {
      if (count === 0) continue;
      const each = price?.[index] ?? null;
      if (each === null) return null;
      usd += (count * each) / 1e6;
    }
  }
  return Math.round(usd * 1e6) / 1e6;
}

/** A date or version after a name that is on the list: `-20250929`, `-2025-08-07`, `@20250929`, `-latest`, `-001`. */
const version = /^(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{3})|-latest|@latest)$/;

/** The price of exactly this model, or of its name without a date or version. null: unknown. */
export function priceOf(model: string, { models }: PriceList): Price | null {
  if (Object.hasOwn(models, model)) return models[model] ?? null;
  for (let end = model.length - 1; end > 0; end -= 1) {
    const name = model.slice(0, end);
    if (Object.hasOwn(models, name) && version.test(model.slice(end))) return models[name] ?? null;
  }
  return null;
}
