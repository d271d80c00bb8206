// The counts and costs that agents write, under their own names.
import type { Tokens } from "../core/evidence.ts";
import { countIn, type Fields, numberIn } from "./fields.ts";

/** The agent's own names of the counts. */
export type TokenKeys = readonly [input: string, output: string, cacheRead: string, cacheWrite?: string];

/** A missing count is 0. */
export function tokensIn(counts: Fields, keys: TokenKeys = ["input", "output", "cacheRead", "cacheWrite"]): Tokens {
  const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = keys.map((key = "") => countIn(counts, key) ?? 0);
  return { input, output, cacheRead, cacheWrite };
}

/** For agents that count cached tokens as input, too. null: input or output is missing. */
export function tokensWithoutCache(counts: Fields, keys: TokenKeys): Tokens | null {
  if (countIn(counts, keys[0]) === null || countIn(counts, keys[1]) === null) return null;
  const tokens = tokensIn(counts, keys);
  return { ...tokens, input: Math.max(0, tokens.input - tokens.cacheRead - tokens.cacheWrite) };
}

/** Agents write 0 for models whose price they do not know. */
export function costIn(fields: Fields): number | null {
  const cost = numberIn(fields, "cost");
  return cost === null || cost <= 0 ? null : cost;
}
