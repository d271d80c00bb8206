// What tokens would cost by a price list. The list is made by scripts/update-prices.ts and says from when and where it is.
import type { Tokens } from "../core/evidence.ts";

/** US dollars per million tokens: input, output, read from a cache, written to one; null: the list has no such price. */
export type Price = [input: number, output: number, cacheRead: number | null, cacheWrite: number | null];

export interface PriceList {
  date: string;
  source: string;
  models: Record<string, Price>;
}

/** Only where a cost is estimated: nobody else should wait for it. */
export async function readPrices(): Promise<PriceList> {
  // The shape is the script's; a test compares the file with what the script makes.
  return (await import("./prices.json")).default as unknown as PriceList;
}

/** null as soon as the price of any token is not known. */
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

/** Exactly this model, or the longest name on the list that only a date or version was added to. Anything else is not known. */
export function priceOf(model: string, { models }: PriceList): Price | null {
  if (Object.hasOwn(models, model)) return models[model] ?? null;
  for (let end = model.length - 1; end > 0; end -= 1) {
    const name = model.slice(0, end);
    if (Object.hasOwn(models, name) && version.test(model.slice(end))) return models[name] ?? null;
  }
  return null;
}
