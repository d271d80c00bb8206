// What captured files of Gemini do not show: its processes, odd records, the words that it is started with.
import { describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RecordFile } from "../../../src/agents/adapter.ts";
import { gemini } from "../../../src/agents/gemini/index.ts";
import type { Order } from "../../../src/agents/invocation.ts";
import { deriveSessions } from "../../../src/core/derive.ts";
import { read } from "../../../src/core/problem.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";
import { deadlineIn } from "../../../src/lib/deadline.ts";
import { readStore } from "../../../src/observe/stores.ts";

const id = "01a1e1c1-092a-7951-96f0-07f6e0ecb1f5";
const where = {
  home: "/home/user/.gemini",
  supportFolder: "/home/me/.agentctl/support",
  cwd: "/home/user/project",
  at: 0,
};

const detail = (argv: string[] | null, env: Record<string, string> | null): ProcessDetail => ({
  ...{ uid: 1000, ours: true, argv, exe: "/usr/bin/node", cwd: "/project", env, lockedFiles: [] },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
});

describe("its processes", () => {
  const child = { GEMINI_CLI_NO_RELAUNCH: "true" };
  const bundle = "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js";
  test.each<[what: string, argv: string[] | null, env: Record<string, string> | null, role: string | null]>([
    ["the one that was started", ["node", "/usr/bin/gemini", "-p", "x"], {}, "helper"],
    ["the one that it starts", ["/usr/bin/node", "--max-old-space-size=999", "/usr/bin/gemini"], child, "agent"],
    ["by its whole path", ["node", bundle], child, "agent"],
    ["in Gemini's sandbox", ["node", bundle], { SANDBOX: "sandbox-exec" }, "agent"],
    ["another user's", ["node", "/usr/bin/gemini"], null, "agent"],
    ["a compiled program", ["/opt/gemini"], child, "agent"],
    ["a command", ["node", "/usr/bin/gemini", "mcp", "list"], child, "helper"],
    ["a question", ["node", "/usr/bin/gemini", "--list-sessions"], child, "helper"],
    ["its tool", ["/usr/bin/bash", "-c", "gemini"], child, null],
    ["a node that its tool started", ["node", "server.js", "gemini"], child, null],
    ["another agent", ["node", "/usr/bin/qwen"], {}, null],
    ["arguments that cannot be read", null, child, null],
  ])("%s", (_what, argv, env, role) => expect(gemini.role("node", detail(argv, env))).toBe(role as never));

  test.each<[argv: string, id: string | null]>([
    [`node /usr/bin/gemini --session-id ${id} -p x`, id],
    [`node --max-old-space-size=9 /usr/bin/gemini -p x --resume=${id}`, id],
    [`node /usr/bin/gemini --session-id mine -p x`, "mine"],
    [`node /usr/bin/gemini --resume latest -p x`, null],
    [`node /usr/bin/gemini --resume 5 -p x`, null],
    [`node /usr/bin/gemini --resume ${id}`, null],
    [`node server.js --session-id ${id} -p x`, null],
  ])("%s", (argv, expected) => expect(gemini.argvId(argv.split(" "))).toBe(expected));

  test("the data folder comes from the environment", () => {
    expect(gemini.home({ HOME: "/home/user" })).toBe("/home/user/.gemini");
    expect(gemini.home({ HOME: "/home/user", GEMINI_CLI_HOME: "/data" })).toBe("/data/.gemini");
    expect(gemini.home({})).toBeNull();
    expect(gemini.invocation.environmentFor("/data/.gemini")).toEqual({ GEMINI_CLI_HOME: "/data" });
  });
});

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const ms = (second: number): number => Date.UTC(2026, 0, 1, 0, 0, second);
const header = { sessionId: id, projectHash: "x", startTime: at(0), lastUpdated: at(0), kind: "main" };
const context = { id: "c", timestamp: at(0), type: "user", content: [{ text: "<session_context>…" }] };
const history = (second: number, ...messages: object[]): object => ({
  $set: { messages: [context, ...messages], lastUpdated: at(second) },
});
const says = (second: number, type: string, content: unknown, more: object = {}): object => ({
  ...{ id: `${type}${second}`, timestamp: at(second), type, content },
  ...more,
});
const prompt = (second: number, text = "hello"): object => says(second, "user", [{ text }]);
const results = (second: number): object => says(second, "user", [{ functionResponse: { response: {} } }]);
const calls = (...statuses: string[]): object => ({ toolCalls: statuses.map((status) => ({ name: "x", status })) });
const resumed = [{ $set: { sessionId: id } }];

const file = (values: readonly unknown[]): RecordFile => {
  const lines = values.map((value) => (value === broken ? { ok: false as const } : { ok: true as const, value }));
  return {
    ...{ id, path: "/r", size: 1, writtenAt: 0, tailBytes: 100, torn: false, startsLikeJson: true },
    forward: () => lines,
    backward: () => lines.toReversed(),
    beside: () => "/home/user/project\n",
  };
};
const broken = Symbol();
const start = [header, history(0)];

const record = (...values: unknown[]) => {
  const reading = gemini.parseRecord(file(values));
  if (!reading.ok) throw new Error(reading.problem.detail.code);
  return reading.value;
};

test.each<[what: string, lines: unknown[], turn: object]>([
  ["opened", [], { state: "none" }],
  ["asked", [prompt(1)], { state: "open", since: ms(1), doubt: null }],
  ["a tool", [prompt(1), says(2, "gemini", "")], { state: "open", since: ms(1), doubt: { code: "tool-call-pending" } }],
  [
    "an answer, or a text before a tool",
    [prompt(1), says(2, "gemini", "hi")],
    { state: "closed", at: ms(2), outcome: null, doubt: { code: "may-call-tool" } },
  ],
  [
    "the tool is done",
    [prompt(1), says(2, "gemini", "", calls("success")), results(3)],
    { state: "open", since: ms(1), doubt: null },
  ],
  [
    "a rewritten history: a headless run failed, or the history was shortened",
    [prompt(1), history(2)],
    { state: "unclear", why: { code: "history-rewritten" } },
  ],
  [
    "failed in an interface",
    [prompt(1), history(2), says(3, "error", "[API Error: 400]"), says(3, "info", "This request failed.")],
    { state: "closed", at: ms(3), outcome: "failed" },
  ],
  [
    "another error says nothing of the turn",
    [prompt(1), says(2, "error", "MCP server x is gone")],
    { state: "open", since: ms(1), doubt: null },
  ],
  [
    "Esc while it answers",
    [prompt(1), says(2, "info", "Request cancelled."), history(2)],
    { state: "closed", at: ms(2), outcome: "interrupted" },
  ],
  [
    "Esc in a tool, which is still being ended",
    [prompt(1), says(2, "gemini", ""), says(3, "info", "Request cancelled.")],
    { state: "open", since: ms(1), doubt: { code: "being-cancelled" } },
  ],
  [
    "Esc in a tool",
    [
      prompt(1),
      says(2, "gemini", ""),
      says(3, "info", "Request cancelled."),
      says(5, "gemini", "", calls("cancelled")),
      results(5),
    ],
    { state: "closed", at: ms(5), outcome: "interrupted" },
  ],
  [
    "one of two calls was refused",
    [prompt(1), says(2, "gemini", "", calls("success", "cancelled")), results(3)],
    { state: "unclear", why: { code: "calls-partly-cancelled" } },
  ],
  [
    "Esc at an approval: the history is rewritten, with its prompts",
    [
      ...[prompt(1), says(2, "gemini", "one"), prompt(3), says(4, "gemini", "", calls("cancelled"))],
      ...[says(5, "info", "Request cancelled."), { ...prompt(6), id: "again" }, says(6, "gemini", [{ text: "one" }])],
      history(6, { ...prompt(6), id: "again" }, says(6, "gemini", [{ text: "one" }])),
    ],
    { state: "closed", at: ms(4), outcome: "interrupted" },
  ],
  [
    "resumed: its history says nothing new",
    [prompt(1), says(2, "gemini", ""), ...resumed, history(9)],
    { state: "open", since: ms(1), doubt: { code: "tool-call-pending" } },
  ],
  [
    "resumed in the minute of its beginning",
    [prompt(1), { ...header, startTime: at(8) }, history(8), ...resumed, history(9)],
    { state: "open", since: ms(1), doubt: null },
  ],
  ["gone back", [prompt(1), says(2, "gemini", "hi"), { $rewindTo: "x" }], { state: "closed", at: null, outcome: null }],
  [
    "a command of the user's own",
    [prompt(1), says(2, "gemini", "hi"), prompt(3, "I ran the following shell command:\n…")],
    { state: "closed", at: ms(2), outcome: null, doubt: { code: "may-call-tool" } },
  ],
  ["broken", [prompt(1), broken], { state: "unclear", why: { code: "broken-lines" } }],
])("%s", (_what, lines, turn) => expect(record(...start, ...lines).turn).toEqual(turn as never));

test("a record without a turn has no last message; a resumed record has the time of its resumption", () => {
  expect(record(...start).lastMessageAt).toBeNull();
  expect(record(...start, prompt(1), ...resumed, history(9)).lastMessageAt).toBe(ms(9));
  expect(record(...start).cwd).toBe("/home/user/project");
});

test("a message that is recorded twice is read once", () => {
  const lines = [says(2, "gemini", "I look."), says(2, "gemini", "I look.", calls("success"))];
  const roles = lines.flatMap((line) => gemini.parseLine(line)?.messages.map(({ role }) => role));
  expect(roles).toEqual(["agent", "tool", "result"]);
  expect(gemini.parseLine({ odd: true })).toBeNull();
});

describe("a record whose first line is broken", () => {
  const twin = `${id.slice(0, 8)}-2222-4333-8444-555555555555`;
  const other = "11111111-2222-4333-8444-555555555555";
  const header = (sessionId: string) =>
    `${JSON.stringify({ sessionId, projectHash: "x", startTime: "2026-11-16T10:00:00Z" })}\n`;

  /** The states of all sessions beside a broken record of this name, with no live process. */
  function beside(broken: string, content = "garbage\n"): string[] {
    const home = mkdtempSync(join(tmpdir(), "gemini-"));
    try {
      const chats = join(home, "tmp/project/chats");
      mkdirSync(chats, { recursive: true });
      for (const [minute, each] of [id, twin, other].entries())
        writeFileSync(join(chats, `session-2026-11-16T10-0${minute}-${each.slice(0, 8)}.jsonl`), header(each));
      writeFileSync(join(chats, broken), content);
      const store = readStore(gemini, home, deadlineIn(5_000));
      const table = {
        boot: "",
        namespace: { id: null, initial: true },
        rows: [],
        gaps: [],
        hidden: [],
        uid: process.getuid?.() ?? -1,
      };
      const evidence = { at: 0, processes: read(table), stores: store === null ? [] : [store] };
      const nothing = { servers: [], dialogs: [], directories: {}, problems: [] };
      const { sessions, problems } = deriveSessions({ ...evidence, ...nothing }, [gemini]);
      const states = sessions.map((each) => `${names.get(each.id)} ${each.status.state}`).sort();
      return [...states, ...problems.map(({ source }) => source.slice(chats.length + 1))];
    } finally {
      rmSync(home, { recursive: true });
    }
  }
  const names = new Map<string | null, string>([
    [id, "id"],
    [twin, "twin"],
    [other, "other"],
  ]);

  test("belongs to the session whose id starts as the file name says, or to no known session", () => {
    const name = `session-2026-11-16T12-00-${id.slice(0, 8)}.jsonl`;
    expect(beside(name)).toEqual(["id unknown", "other stopped", "twin unknown", name]);
    const strange = "session-2026-11-16T12-00-99999999.jsonl";
    expect(beside(strange)).toEqual(["id stopped", "other stopped", "twin stopped", strange]);
    // Ids may be short, and may have any of these letters.
    const odd = "session-2026-11-16T12-00-1-1_.jsonl";
    expect(beside(odd)).toEqual(["id stopped", "other stopped", "twin stopped", odd]);
  });

  test("may belong to any session if its name is not one of Gemini's", () => {
    for (const name of ["session-copy.jsonl", `session-2026-11-16T12-00-${id}.jsonl`])
      expect(beside(name)).toEqual(["id unknown", "other unknown", "twin unknown", name]);
  });

  test("belongs to no session while it may still be incomplete", () => {
    const states = ["id stopped", "other stopped", "twin stopped"];
    expect(beside("session-copy.jsonl", '{"sessionId":')).toEqual(states);
  });
});

describe("the command line", () => {
  const order = { ...where, model: "m", prompt: "x", extra: ["--own"], kind: "new", session: id } as const;
  test.each<[Order, string]>([
    [{ ...order, permission: null }, `--output-format stream-json --session-id ${id} --model m --own`],
    [
      { ...order, permission: "read" },
      `--output-format stream-json --session-id ${id} --admin-policy ${where.supportFolder}/gemini-read.toml --model m --approval-mode default --own`,
    ],
    [
      { ...order, permission: "bypass", kind: "continue" },
      `--output-format stream-json --resume ${id} --model m --approval-mode yolo --own`,
    ],
  ])("%o", (given, words) => expect<unknown>(gemini.invocation.headless(given)).toEqual(words.split(" ")));

  test("a policy file is written for read and edit, and forbids leaving plan mode for more", () => {
    for (const permission of ["read", "edit"] as const) {
      const { path, text } = gemini.invocation.support?.({ ...order, permission }) ?? { path: "", text: "" };
      expect(path).toBe(`${where.supportFolder}/gemini-${permission}.toml`);
      expect(text).toMatch(/"\*"|exit_plan_mode/);
    }
    expect(gemini.invocation.support?.({ ...order, permission: "bypass" })).toBeNull();
  });

  test("the result line of its output gives the outcome", () => {
    expect(gemini.invocation.endedIn?.({ type: "result", status: "success" })).toBe("completed");
    expect(gemini.invocation.endedIn?.({ type: "result", status: "error" })).toBe("failed");
    expect(gemini.invocation.endedIn?.({ type: "message" })).toBeNull();
  });
});
