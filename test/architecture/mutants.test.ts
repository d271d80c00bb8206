// The pattern of each planted bug (test/mutants) matches exactly one place in the source: without a match it would test nothing.
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { mutants } from "../mutants/mutants.ts";
import { findPlaces, parseCode } from "../mutants/pattern.ts";
import { readSources } from "../mutants/sources.ts";

test("every planted bug matches exactly one place", () => {
  const code = parseCode(readSources(resolve(import.meta.dir, "../..")));
  const misplaced = mutants.flatMap(({ name, pattern, inside }) => {
    const places = findPlaces(code, pattern, inside);
    return places.length === 1 ? [] : [{ name, pattern, inside, places: places.map(({ source }) => source.path) }];
  });
  expect(misplaced).toEqual([]);
});
