// A record that was written after the processes were read may belong to a process that was not seen, so both are read again.
import { afterAll, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { adapters } from "../../src/agents/registry.ts";
import { read } from "../../src/core/problem.ts";
import type { ProcessTable } from "../../src/core/process.ts";
import { listSessions } from "../../src/observe/observe.ts";
import { selectIds } from "../../src/observe/selection.ts";
import { throwAwayFolder } from "../conformance/folder.ts";
import { process as processOf } from "./core/build-evidence.ts";

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

const noProcesses: ProcessTable = {
  boot: "b",
  uid: process.getuid?.() ?? -1,
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
    return read(noProcesses);
  };
  const { sessions } = await listSessions({
    ...{ adapters, env: { HOME: folder.path }, selection: selectIds([id]), processes },
  });
  expect(sessions.map(({ status }) => status.state)).toEqual(["stopped"]);
  return count;
}

const touch = (ms: number): void => utimesSync(path, ms / 1000, ms / 1000);

test("one reading is enough if no file changed", async () => {
  touch(Date.now() - 60_000);
  expect(await readings(() => {})).toBe(1);
});

test("a changed file causes a second reading of the processes", async () => {
  touch(Date.now() - 60_000);
  expect(await readings(() => touch(Date.now()))).toBe(2);
});

test("a time in the future proves nothing", async () => {
  touch(Date.now() + 3_600_000);
  expect(await readings(() => {})).toBe(1);
});

test("a process that just changed its session is given time to write the end of the earlier one", async () => {
  using home = throwAwayFolder();
  const records = join(home.path, ".claude/projects/-code");
  const [left, next] = [join(records, `${id}.jsonl`), "66666666-2222-4333-8444-555555555555"];
  const lineAt = (line: object): string => `${JSON.stringify({ ...line, timestamp: new Date().toISOString() })}\n`;
  const startedAt = Date.now() - 60_000;
  const speaker = processOf(4711, "speaker", { name: "claude", argv: ["claude"], startedAt, cwd: "/code" });
  mkdirSync(records, { recursive: true });
  mkdirSync(join(home.path, ".claude/sessions"));
  writeFileSync(left, lineAt(prompt));
  const { pid, start } = speaker.identity;
  const word = { pid, sessionId: next, procStart: start, cwd: "/code", kind: "interactive", status: "idle" };
  writeFileSync(join(home.path, `.claude/sessions/${pid}.json`), JSON.stringify(word));
  const message = { content: [{ type: "text", text: "done" }], stop_reason: "end_turn" };
  setTimeout(
    () => appendFileSync(left, lineAt({ ...prompt, type: "assistant", uuid: "a", parentUuid: "p", message })),
    90,
  );
  const { sessions } = await listSessions({
    ...{ adapters, env: { HOME: home.path } },
    processes: () => read({ ...noProcesses, boot: speaker.identity.boot, rows: [speaker] }),
  });
  expect(sessions.find((each) => each.id === id)?.status).toEqual({ state: "stopped", outcome: "completed" });
});
