// What the end of a Claude Code transcript says where lines are not in the order of time, and what may be passed over unparsed.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { claudeCode } from "../../../src/agents/claude-code/index.ts";
import type { NativeRecord } from "../../../src/core/evidence.ts";
import { recordAt } from "../../../src/observe/records.ts";
import { readRow } from "../../../src/observe/stores.ts";
import { throwAwayFolder } from "../../conformance/folder.ts";

const id = "11111111-2222-4333-8444-555555555555";
const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const base = (uuid: string, parentUuid: string | null, second: number) => ({
  ...{ uuid, parentUuid, timestamp: at(second), sessionId: id, cwd: "/code", version: "2.1.197", gitBranch: "main" },
});
const prompt = (uuid: string, parent: string | null, second: number, content = "do it") => ({
  ...{ type: "user", message: { role: "user", content }, ...base(uuid, parent, second) },
});
const answer = (uuid: string, parent: string, second: number) => ({
  ...base(uuid, parent, second),
  type: "assistant",
  message: { role: "assistant", model: "m", content: [{ type: "text", text: "done" }], stop_reason: "end_turn" },
});
/** An earlier turn of so many lines. */
const earlier = (lines: number): object[] =>
  Array.from({ length: lines }, (_, index) =>
    index === 0 ? prompt("e0", null, 0, "before") : answer(`e${index}`, `e${index - 1}`, index),
  );

function parsed(lines: readonly object[]): NativeRecord {
  using folder = throwAwayFolder();
  const path = join(folder.path, `${id}.jsonl`);
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const reading = readRow(claudeCode, recordAt(claudeCode, path, id))?.reading;
  if (reading?.ok !== true) throw new Error("a record");
  return reading.value;
}

test("an answer that is recorded before its prompt answers it", () => {
  const record = parsed([...earlier(30), answer("a", "p", 102), prompt("p", "e29", 100)]);
  expect(record.turn).toEqual({ state: "closed", at: Date.parse(at(102)), outcome: "completed" });
});

test("an older answer does not answer the prompt", () => {
  const record = parsed([...earlier(30), prompt("p", "e29", 100)]);
  expect(record.turn).toEqual({ state: "open", since: Date.parse(at(100)), doubt: null });
});

test("the last lines belong to the turn before a prompt that was never started", () => {
  const closed = { type: "system", subtype: "turn_duration", ...base("s", "e29", 101) };
  const record = parsed([...earlier(30), prompt("p", "e29", 100), closed]);
  expect(record.turn).toEqual({ state: "closed", at: Date.parse(at(101)), outcome: "completed" });
});

test("background work of an earlier turn and a title are found before the prompt", () => {
  const begun = {
    ...base("b", "e9", 50),
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "" }] },
    toolUseResult: { backgroundTaskId: "shell_1" },
  };
  const title = { type: "ai-title", aiTitle: "what it is about", sessionId: id };
  const record = parsed([...earlier(10), begun, title, prompt("p", "b", 100), answer("a", "p", 101)]);
  expect(record.background).toEqual({ shells: 1, subagents: 0 });
  expect(record.facts).toMatchObject({ title: "what it is about", model: "m", branch: "main", prompt: "before" });
});

test("a request that failed and is sent again is a note in the conversation", () => {
  const line = {
    ...{ type: "system", subtype: "api_error", timestamp: "2026-11-18T12:00:00.000Z", level: "error" },
    ...{ error: { status: 529 }, retryInMs: 4_200, retryAttempt: 2, maxRetries: 10 },
  };
  expect(claudeCode.parseLine(line)?.messages).toEqual([
    { at: Date.parse(line.timestamp), role: "note", text: "request failed (529): retry 2 of 10 in 4s", tool: null },
  ]);
  expect(claudeCode.parseLine({ type: "system", subtype: "api_error" })?.messages).toMatchObject([
    { text: "request failed: retrying" },
  ]);
});
