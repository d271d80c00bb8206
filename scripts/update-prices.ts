// Makes src/observe/prices.json from the price list of @pydantic/genai-prices. Run it after raising that package:
//   node_modules/.bin/bun scripts/update-prices.ts [DATE]
// DATE (default: today) decides between prices that change on a day, and is written into the file.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProvider, type MatchLogic, type ModelInfo, type ModelPrice } from "@pydantic/genai-prices";
import { type Price, type PriceList, priceOf } from "../src/observe/cost.ts";

const target = join(import.meta.dir, "../src/observe/prices.json");
const packageFile = join(import.meta.dir, "../node_modules/@pydantic/genai-prices/package.json");

/** Who sells the models that coding agents use, and what their names begin with: some also sell those of others. */
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

/** No agent works with these. */
const otherTrades = /tts|audio|realtime|image|transcribe|live|embed|moderation|search|omni|vision|instruct|ocr/;

export function makePrices(date: string): PriceList {
  const models: [string, Price][] = Object.entries(providers).flatMap(([id, names]) => {
    const provider = findProvider({ providerId: id });
    if (provider === undefined) throw new Error(`no provider ${id} in the list`);
    return provider.models.flatMap((model) => {
      const price = priceAt(model, date);
      if (price === null || otherTrades.test(model.id)) return [];
      return namesOf(model)
        .filter((name) => names.test(name))
        .map((name): [string, Price] => [name, price]);
    });
  });
  models.sort(([a], [b]) => (a < b ? -1 : 1));
  // A name with two prices has none that we know.
  const sure = models.filter(([name, price]) =>
    models.every(([other, another]) => other !== name || String(another) === String(price)),
  );
  const list = { date, source: `@pydantic/genai-prices ${sourceVersion()}`, models: Object.fromEntries(sure) };
  return { ...list, models: withoutVersions(list) };
}

/** A dated name that costs what its plain one costs is found without being listed. */
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

/** The price of that day; null for models whose price depends on the hour, or that are not sold by input and output. */
function priceAt({ prices }: ModelInfo, date: string): Price | null {
  const dated = Array.isArray(prices) ? prices : [{ prices }];
  if (dated.some(({ constraint }) => constraint?.type === "time_of_date")) return null;
  const valid = dated.filter(({ constraint }) => constraint?.type !== "start_date" || constraint.start_date <= date);
  const current = valid.at(-1)?.prices ?? {};
  const [input, output] = [amount(current, "input_mtok"), amount(current, "output_mtok")];
  if (input === null || output === null) return null;
  return [input, output, amount(current, "cache_read_mtok"), amount(current, "cache_write_mtok")];
}

/** Of a price that rises with the length of the input, the basic one: records do not say which requests were long. */
function amount(prices: ModelPrice, key: string): number | null {
  const price = prices[key];
  return price === undefined ? null : typeof price === "number" ? price : price.base;
}

/** Its id, and the names that the list takes for exactly this model. */
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
