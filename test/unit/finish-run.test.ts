// scripts/finish-run: tests that pass only when they run again alone are counted, and more than the limit fail the run.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** What `bun test` prints for one file. */
const output = (file: string, pass: number, fail: number): string =>
  [
    `test/cli/${file}.test.ts:`,
    ...Array.from({ length: fail }, (_none, index) => `(fail) test ${index} [1.00ms]`),
    "",
    ` ${pass} pass`,
    ` ${fail} fail`,
    `Ran ${pass + fail} tests across 1 file. [1.00s]`,
    "",
  ].join("\n");

interface Case {
  parts: Record<string, string>;
  failed: string[];
  /** The shell command that runs the failed files again. */
  again: string;
  status: number;
  lines: string[];
}

const cases: [name: string, run: Case][] = [
  [
    "a run without failures prints its sum and no rerun",
    {
      parts: { a: output("a", 3, 0), b: output("b", 4, 0) },
      failed: [],
      again: "echo must not run; false",
      status: 0,
      lines: ["reruns: 0 tests passed only when run again alone (limit 2)", "7 passed, 0 failed"],
    },
  ],
  [
    "a test that passes alone is counted and named",
    {
      parts: { a: output("a", 3, 1), b: output("b", 4, 0) },
      failed: ["a"],
      again: 'echo "again:"',
      status: 0,
      lines: [
        "again: ./test/cli/a.test.ts",
        "reruns: 1 test passed only when run again alone (limit 2): test/cli/a.test.ts",
        "8 passed, 0 failed",
      ],
    },
  ],
  [
    "failures up to the limit run again, from every failed part",
    {
      parts: { a: output("a", 3, 1), b: output("b", 4, 1) },
      failed: ["b", "a"],
      again: "true",
      status: 0,
      lines: [
        "reruns: 2 tests passed only when run again alone (limit 2): test/cli/b.test.ts test/cli/a.test.ts",
        "9 passed, 0 failed",
      ],
    },
  ],
  [
    "a test that fails again fails the run",
    {
      parts: { a: output("a", 3, 1) },
      failed: ["a"],
      again: "false",
      status: 1,
      lines: ["reruns: failed again when run alone: test/cli/a.test.ts", "3 passed, 1 failed"],
    },
  ],
  [
    "more failures than the limit fail the run, and none runs again",
    {
      parts: { a: output("a", 3, 3) },
      failed: ["a"],
      again: "echo must not run",
      status: 1,
      lines: ["reruns: none, because 3 tests failed (limit 2): test/cli/a.test.ts", "3 passed, 3 failed"],
    },
  ],
  [
    "a failed harness fails the run, and no test runs again",
    {
      parts: { a: output("a", 3, 0), truth: "LIE in schedule 3 of seed 1\n" },
      failed: ["truth"],
      again: "echo must not run",
      status: 1,
      lines: ['reruns: none, because "truth" failed and does not name each failed test', "3 passed, 1 failed"],
    },
  ],
  [
    "an error between two tests counts as one failure, and all files of the part run again",
    {
      parts: {
        a: `${output("a", 3, 0)}test/cli/b.test.ts:\n# Unhandled error between tests\n 0 pass\n 1 fail\n 1 error\n`,
      },
      failed: ["a"],
      again: "true",
      status: 0,
      lines: [
        "reruns: 1 test passed only when run again alone (limit 2): test/cli/a.test.ts test/cli/b.test.ts",
        "4 passed, 0 failed",
      ],
    },
  ],
];

test.each(cases)("%s", (_name, { parts, failed, again, status, lines }) => {
  const folder = mkdtempSync(join(tmpdir(), "finish-run-"));
  try {
    for (const [name, text] of Object.entries(parts)) writeFileSync(join(folder, name), text);
    if (failed.length > 0) writeFileSync(join(folder, "failed"), failed.map((name) => `${name}\n`).join(""));
    const script = `set -eu; . scripts/finish-run; again() { ${again} "$@"; }; finish_run "$1" again`;
    const run = spawnSync("sh", ["-c", script, "sh", folder], {
      cwd: resolve(import.meta.dir, "../.."),
      encoding: "utf8",
    });
    expect([run.status, run.stdout.trimEnd().split("\n")]).toEqual([status, lines]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
