// A planted bug whose place is gone hunts nothing.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mutants } from "../mutants/mutants.ts";

test("every planted bug has one place in its file", () => {
  const timesIn = ({ file, find }: (typeof mutants)[number]): number =>
    readFileSync(join(import.meta.dir, "../..", file), "utf8").split(find).length - 1;
  expect(mutants.filter((mutant) => timesIn(mutant) !== 1).map(({ name }) => name)).toEqual([]);
});
