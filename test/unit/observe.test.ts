// What happens between the readings of one look: a record that was written to since the processes were read may be of somebody whom we did
// not see.
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { adapters } from "../../src/adapters/registry.ts";
import { read } from "../../src/core/problem.ts";
import type { ProcessTable } from "../../src/core/process.ts";
import { lookAtSessions } from "../../src/observe/observe.ts";
import { withIds } from "../../src/observe/wanted.ts";
import { throwAwayFolder } from "../conformance/folder.ts";

const folder = throwAwayFolder();
afterAll(() => folder[Symbol.dispose]());

const id = "11111111-2222-4333-8444-555555555555";
const path = join(folder.path, ".claude/projects/-code", `${id}.jsonl`);
const at = "2026-01-01T00:00:00.000Z";
const prompt = {
  type: "user",
  uuid: "p",
  parentUuid: null,
  timestamp: at,
  cwd: "/code",
  message: { content: "do it" },
};
mkdirSync(dirname(path), { recursive: true });
writeFileSync(path, `${JSON.stringify(prompt)}\n`);

const nobody: ProcessTable = {
  boot: "b",
  namespace: { id: null, initial: true },
  rows: [],
  gaps: [],
  hidden: [],
};

/** How often the processes were read. `between`: what happens right after the first time. */
async function readings(between: () => void): Promise<number> {
  let count = 0;
  const processes = () => {
    count += 1;
    if (count === 1) between();
    return read(nobody);
  };
  const { sessions } = await lookAtSessions({
    ...{ adapters, env: { HOME: folder.path }, wanted: withIds([id]), processes },
  });
  expect(sessions.map(({ status }) => status.state)).toEqual(["stopped"]);
  return count;
}

const touch = (ms: number): void => utimesSync(path, ms / 1000, ms / 1000);

test("nobody wrote: one look is enough", async () => {
  touch(Date.now() - 60_000);
  expect(await readings(() => {})).toBe(1);
});

test("somebody wrote: who it was is looked for again", async () => {
  touch(Date.now() - 60_000);
  expect(await readings(() => touch(Date.now()))).toBe(2);
});

test("a time that is not yet tells nothing", async () => {
  touch(Date.now() + 3_600_000);
  expect(await readings(() => {})).toBe(1);
});
