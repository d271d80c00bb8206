// Makes src/observe/usage/prices.json from the price list of @pydantic/genai-prices. Run it after updating that package:
//   node_modules/.bin/bun scripts/update-prices.ts [DATE]
// DATE (default: today) selects the prices that are valid on that day, and is written into the file.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProvider, type MatchLogic, type ModelInfo, type ModelPrice } from "@pydantic/genai-prices";
import { type Price, type PriceList, priceOf } from "../src/observe/usage/cost.ts";

const target = join(import.meta.dir, "../src/observe/usage/prices.json");
const packageFile = join(import.meta.dir, "../node_modules/@pydantic/genai-prices/package.json");

/** Providers of models for coding agents, and how the names of their own models begin: some also sell models of others. */
const providers: Record<string, RegExp> = {
  anthropic: /^claude-/,
  openai: /^(gpt-|o\d|codex-)/,
  google: /^gemini-/,
  "x-ai": /^grok-/,
  deepseek: /^deepseek-/,
  mistral: /^(mistral|codestral|devstral|magistral|ministral)-/,
  moonshotai: /^kimi-/,
  zai: /^glm-/,
};

/** Models for other purposes. */
const otherPurposes = /tts|audio|realtime|image|transcribe|live|embed|moderation|search|omni|vision|instruct|ocr/;

export function makePrices(date: string): PriceList {
  const models: [string, Price][] = Object.entries(providers).flatMap(([id, names]) => {
    const provider = findProvider({ providerId: id });
    if (provider === undefined) throw new Error(`no provider ${id} in the list`);
    return provider.models.flatMap((model) => {
      const price = priceAt(model, date);
      if (price === null || otherPurposes.test(model.id)) return [];
      return namesOf(model)
        .filter((name) => names.test(name))
        .map((name): [string, Price] => [name, price]);
    });
  });
  models.sort(([a], [b]) => (a < b ? -1 : 1));
  // Leave out names with two different prices.
  const sure = models.filter(([name, price]) =>
    models.every(([other, another]) => other !== name || String(another) === String(price)),
  );
  const list = { date, source: `@pydantic/genai-prices ${sourceVersion()}`, models: Object.fromEntries(sure) };
  return { ...list, models: withoutVersions(list) };
}

/** Leaves out a dated name if it costs the same as the plain name: `priceOf` finds the plain name. */
function withoutVersions(list: PriceList): Record<string, Price> {
  const needed = Object.entries(list.models).filter(([name, price]) => {
    const { [name]: _own, ...others } = list.models;
    return String(priceOf(name, { ...list, models: others })) !== String(price);
  });
  return Object.fromEntries(needed);
}

function sourceVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile, "utf8")) as { version: string };
  return version;
}

/** The price on that day. null: the price depends on the hour, or has no input and output rate. */
function priceAt({ prices }: ModelInfo, date: string): Price | null {
  const dated = Array.isArray(prices) ? prices : [{ prices }];
  if (dated.some(({ constraint }) => constraint?.type === "time_of_date")) return null;
  const valid = dated.filter(({ constraint }) => constraint?.type !== "start_date" || constraint.start_date <= date);
  const current = valid.at(-1)?.prices ?? {};
  const [input, output] = [amount(current, "input_mtok"), amount(current, "output_mtok")];
  if (input === null || output === null) return null;
  return [input, output, amount(current, "cache_read_mtok"), amount(current, "cache_write_mtok")];
}

/** If the price rises with the length of the input, the basic rate: records do not say which requests were long. */
function amount(prices: ModelPrice, key: string): number | null {
  const price = prices[key];
  return price === undefined ? null : typeof price === "number" ? price : price.base;
}

/** The id, and the other names that the list has for exactly this model. */
function namesOf(model: ModelInfo): string[] {
  const names = [model.id, ...equalNames(model.match)].map((name) => name.replace(/-latest$/, ""));
  return [...new Set(names)];
}

const equalNames = (match: MatchLogic): string[] =>
  "equals" in match ? [match.equals] : "or" in match ? match.or.flatMap(equalNames) : [];

const oneLinePerModel = ({ date, source, models }: PriceList): string => {
  const lines = Object.entries(models).map(
    ([name, price]) => `    ${JSON.stringify(name)}: [${price.map(String).join(", ")}]`,
  );
  return `{\n  "date": ${JSON.stringify(date)},\n  "source": ${JSON.stringify(source)},\n  "models": {\n${lines.join(",\n")}\n  }\n}\n`;
};

if (import.meta.main) {
  const date = process.argv[2] ?? new Date().toISOString().slice(0, 10);
  writeFileSync(target, oneLinePerModel(makePrices(date)));
}
