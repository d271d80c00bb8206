// Whatever happens to a record, its subagents' records and what is kept of them: the count is that of a reading of everything.
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { claudeCode } from "../../src/agents/claude-code/index.ts";
import { recordAt } from "../../src/observe/records.ts";
import { readCounts, readTotals } from "../../src/observe/usage/read-counts.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "agentctl-counts-"));
afterAll(() => rmSync(folder, { recursive: true }));

const aLine = fc
  .oneof(
    fc
      .record({ key: fc.constantFrom("a", "b", "c"), output: fc.nat(3), model: fc.constantFrom("x", "y", null) })
      .map(({ key, output, model }) => ({
        ...{ type: "assistant", isSidechain: output === 3 },
        message: { id: key, model, usage: { output_tokens: output }, content: [{ type: "text", text: "usage" }] },
      })),
    fc.nat(5).map((cents) => ({ type: "cost-state", totalCostUSD: cents / 100 })),
    fc.constantFrom("reject", "accept").map((decision) => ({ type: "user", permissionDecision: { decision } })),
    fc.boolean().map((isError) => ({
      ...{ type: "user", message: { role: "user" } },
      message: { content: [{ type: "tool_result", is_error: isError, content: "No such tool available" }] },
    })),
    fc.constant({
      type: "user",
      message: { content: "x".repeat(500) },
      toolUseResult: { usage: { output_tokens: 1 } },
    }),
  )
  .map((value) => JSON.stringify(value));
const aText = fc
  .array(fc.oneof({ weight: 8, arbitrary: aLine }, fc.constantFrom("", "no JSON", '{"type":', "\0\0")), {
    maxLength: 6,
  })
  .map((lines) => lines.map((line) => `${line}\n`).join(""));

const aFile = fc.constantFrom("own", "one", "two");
const aDeed = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant("append"), aFile, aText) },
  fc.tuple(fc.constant("append"), aFile, fc.constantFrom('{"type":"assis', "\n", "{")),
  fc.tuple(fc.constantFrom("write anew", "replace"), aFile, aText),
  fc.tuple(fc.constantFrom("cut", "change", "damage what is kept", "forget"), aFile, fc.constantFrom("", "x")),
);

test("totals stay right after every sequence of changes to a record", () => {
  let world = 0;
  fc.assert(
    fc.property(fc.array(aDeed, { maxLength: 25 }), fc.nat(), (deeds, salt) => {
      world += 1;
      const home = join(folder, String(world));
      const own = join(home, "11111111-1111-4111-8111-111111111111.jsonl");
      const subagents = join(own.replace(".jsonl", ""), "subagents");
      mkdirSync(subagents, { recursive: true });
      writeFileSync(own, "");
      const cache = { folder: join(home, "cache"), build: "this", leastBytes: 0, newestKeys: 2 };
      const place = {
        adapter: claudeCode,
        home,
        file: recordAt(claudeCode, own, "11111111-1111-4111-8111-111111111111"),
      };
      for (const [deed, which, text] of deeds) {
        const path = which === "own" ? own : join(subagents, `agent-${which}.jsonl`);
        appendFileSync(path, "");
        perform(deed, path, text, cache.folder, salt);
        const { tokens, byModel, denied, costUsd } = readTotals(place);
        const whole = { tokens, byModel: [...byModel], denied, costUsd };
        for (const each of [cache, null, cache]) {
          const counts = readCounts(place, each);
          expect({ ...counts, byModel: [...counts.byModel] }).toEqual(whole);
        }
      }
    }),
  );
});

function perform(deed: string, path: string, text: string, cache: string, salt: number): void {
  const { size } = statSync(path);
  const kept = deed.endsWith("kept") || deed === "forget" ? namesIn(cache) : [];
  if (deed === "append") appendFileSync(path, text);
  else if (deed === "write anew") writeFileSync(path, text);
  else if (deed === "cut") truncateSync(path, salt % (size + 1));
  else if (deed === "replace") {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  } else if (deed === "change" && size > 0) writeFileSync(path, flipped(path, salt));
  for (const name of kept)
    if (deed === "forget") rmSync(join(cache, name));
    else writeFileSync(join(cache, name), flipped(join(cache, name), salt));
}

const namesIn = (path: string): string[] => (readdirSync(dirname(path)).includes("cache") ? readdirSync(path) : []);

function flipped(path: string, salt: number): Buffer {
  const bytes = readFileSync(path);
  const at = salt % bytes.length;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes;
}
