// What is shown of an agent's output when it could not begin.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { firstAndLastLines } from "../../src/control/agent-output.ts";

test("the last lines are shown, and the first line of a long text", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentctl-output-"));
  try {
    const path = join(folder, "err");
    const shown = (text: string): string => {
      writeFileSync(path, text);
      return firstAndLastLines(path);
    };
    expect(firstAndLastLines(join(folder, "none"))).toBe("");
    expect(shown("")).toBe("");
    expect(shown("\none\ntwo\n")).toBe("one\ntwo");
    const help = Array.from({ length: 40 }, (_, index) => `  --flag${index}`);
    const lines = shown(["Unknown argument: x", ...help, ""].join("\n")).split("\n");
    expect([lines[0], lines[1], lines.at(-1), lines.length]).toEqual(["Unknown argument: x", "…", "  --flag39", 14]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
