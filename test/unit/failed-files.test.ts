// Which files are tried once more: from what several runs of `bun test` printed, one after the other.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const printed = (file: string, failed: string): string => `bun test v1.4.4

test/cli/${file}.test.ts:
(pass) one [1.00ms]
(fail) ${failed} [2.00ms]

test/cli/zero.test.ts:
(pass) two [1.00ms]

1 tests failed:
(fail) ${failed} [2.00ms]
`;

test("those of every run, each once, and no file that only stood last", () => {
  const input = printed("a", "first") + printed("b", "second") + printed("a", "third");
  const { stdout } = spawnSync(join(import.meta.dir, "../../scripts/failed-files"), { input, encoding: "utf8" });
  expect(stdout).toBe("./test/cli/a.test.ts\n./test/cli/b.test.ts\n");
});
