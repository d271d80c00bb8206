// Token counts of captured records, line by line: continuing from the last count, counting everything again, and reading the
// whole record give the same result.
import { describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { adapters } from "../../src/agents/registry.ts";
import { eachLineWith, needleOf } from "../../src/lib/jsonl.ts";
import type { RecordPlace } from "../../src/observe/conversation.ts";
import { findRecords } from "../../src/observe/record-names.ts";
import { parseJson } from "../../src/observe/records.ts";
import { readCounts, readTotals, subagentFiles } from "../../src/observe/usage/read-counts.ts";
import type { Counts } from "../../src/observe/usage/tally.ts";
import { casesOf, placeCase } from "./cases.ts";
import { throwAwayFolder } from "./folder.ts";

const shown = ({ tokens, byModel, denied, costUsd }: Counts) => ({ tokens, byModel: [...byModel], denied, costUsd });

const linesOf = (path: string): string[] => readFileSync(path, "utf8").split(/(?<=\n)/);

for (const adapter of adapters)
  describe(`token counts of ${adapter.agent} are the same in all three ways`, () => {
    const isFile = ({ file }: RecordPlace): boolean => file.set.assembled === undefined;

    test.each(casesOf(adapter).map((captured) => [captured.name, captured] as const))("%s", (_name, captured) => {
      using folder = throwAwayFolder();
      const home = placeCase(adapter, captured, folder.path);
      const cache = { folder: join(folder.path, "cache"), build: "this", leastBytes: 0, newestKeys: 2 };
      for (const file of findRecords(adapter, home).visited) {
        const place: RecordPlace = { adapter, home, file };
        const check = () => {
          const whole = shown(readTotals(place));
          expect(shown(readCounts(place, null))).toEqual(whole);
          expect(shown(readCounts(place, cache))).toEqual(whole);
        };
        check();
        if (!isFile(place)) continue;
        for (const { path } of [file, ...subagentFiles(place)]) {
          const lines = linesOf(path);
          writeFileSync(path, "");
          for (const line of lines) {
            const half = line.slice(0, line.length / 2);
            appendFileSync(path, half);
            check();
            appendFileSync(path, line.slice(half.length));
            check();
          }
        }
      }
    });

    test("every counted line contains one of the adapter's search texts, even in JSON with spaces", () => {
      using folder = throwAwayFolder();
      const needles = (adapter.countedIn ?? ["{"]).map(needleOf);
      for (const [index, captured] of casesOf(adapter).entries()) {
        const home = placeCase(adapter, captured, join(folder.path, String(index)));
        const places = findRecords(adapter, home).visited.map((file): RecordPlace => ({ adapter, home, file }));
        for (const place of places.filter(isFile))
          for (const { path } of [place.file, ...subagentFiles(place)])
            for (const text of linesOf(path)) {
              const line = parseJson(Buffer.from(text));
              const facts = line.ok ? adapter.parseLine(line.value) : null;
              if (!line.ok || facts === null || (facts.usage === null && facts.costUsd === null && facts.denied === 0))
                continue;
              const spaced = `${JSON.stringify(line.value, null, 1).replaceAll(/\n */g, " ")}\n`;
              for (const written of [text, spaced]) {
                const found: string[] = [];
                const bytes = Buffer.from(written);
                eachLineWith(needles, [bytes, 0, bytes.length], (block, from, to) =>
                  found.push(`${block.toString("utf8", from, to)}\n`),
                );
                expect(found).toEqual([written]);
              }
            }
      }
    });
  });
