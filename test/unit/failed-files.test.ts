// scripts/failed-files: which test files run again, read from the output of `bun test`.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const ended = "Ran 4 tests across 3 files. [9.00s]\n";
const printed = (...failures: string[]): string => `bun test v1.4.4

test/cli/a.test.ts:
(pass) one [1.00ms]
${failures.join("\n")}
(pass) two [1.00ms]

test/cli/zero.test.ts:
(pass) three [1.00ms]

1 tests failed:
(fail) four [2.00ms]

`;

const [a, zero] = ["./test/cli/a.test.ts\n", "./test/cli/zero.test.ts\n"];
const cases: [name: string, input: string, expected: [files: string, status: number]][] = [
  ["prints the file of a failed test, not the last file", printed("(fail) four [2.00ms]") + ended, [a, 0]],
  ["prints a file with two failures once", printed("(fail) four [2.00ms]", "(fail) five [2.00ms]") + ended, [a, 0]],
  ["prints all files after an error between tests", printed("# Unhandled error between tests") + ended, [a + zero, 0]],
  ["fails when the run did not reach its end", printed("(fail) four [2.00ms]"), [a, 1]],
  ["fails when no failed test is named", printed() + ended, ["", 1]],
];
test.each(cases)("%s", (_name, input, expected) => {
  const { stdout, status } = spawnSync(join(import.meta.dir, "../../scripts/failed-files"), {
    input,
    encoding: "utf8",
  });
  expect([stdout, status ?? -1]).toEqual(expected);
});
