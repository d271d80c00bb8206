// A sweep whose slots fail with unexpected errors.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArguments } from "../../src/cli/arguments.ts";
import { orderFlags, sweepFlags } from "../../src/cli/launch-order.ts";
import { sweep } from "../../src/cli/sweep.ts";

test.each([[], ["--max-parallel", "1"]])("an unexpected error fails only its own slot: %j", async (...more) => {
  const home = mkdtempSync(join(tmpdir(), "agentctl-sweep-"));
  let out = "";
  let err = "";
  try {
    const words = ["--agent", "demo", "--agent", "codex", "--agent", "demo", "x", "--json", ...more];
    const code = await sweep(parseArguments(words, [...orderFlags, ...sweepFlags], "launch"), {
      env: { HOME: home },
      get cwd(): string {
        throw new Error("out of nowhere");
      },
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
    });
    expect(code).toBe(1);
    const odd = "this should not happen: out of nowhere";
    expect(JSON.parse(out)).toEqual([
      { slot: 1, label: "demo", error: odd },
      { slot: 2, label: "codex", error: odd },
      { slot: 3, label: "demo", error: odd },
    ]);
    for (const line of [`1/3 demo did not start: ${odd}\n`, "2/3 codex did not start:", "started 0 of 3"])
      expect(err).toContain(line);
  } finally {
    rmSync(home, { recursive: true });
  }
});
