// What captured files of Qwen Code do not show: its processes, odd records, the words that it is started with.
import { describe, expect, test } from "bun:test";
import type { RecordFile } from "../../../src/agents/adapter.ts";
import type { Order } from "../../../src/agents/invocation.ts";
import { qwen } from "../../../src/agents/qwen/index.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";

const id = "01a1e1c1-092a-7951-96f0-07f6e0ecb1f5";
const where = {
  home: "/home/user/.qwen",
  supportFolder: "/home/me/.agentctl/support",
  cwd: "/home/user/project",
  at: 0,
};
const cli = "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js";
const again = { QWEN_CODE_NO_RELAUNCH: "true" };

const detail = (argv: string[] | null, env: Record<string, string> | null = {}): ProcessDetail => ({
  ...{ uid: 1000, ours: true, argv, exe: "/usr/bin/node", cwd: "/project", env, lockedFiles: [] },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
});

describe("its processes", () => {
  test.each<[what: string, argv: string[] | null, role: string | null]>([
    ["the starter", ["node", "/usr/bin/qwen", "-p", "x"], "helper"],
    ["the agent", ["/usr/bin/node", "--expose-gc", cli, "-p", "x"], "agent"],
    ["the agent of another folder", ["node", "--expose-gc", "/home/user/node_modules/qwen/cli.js"], "agent"],
    ["its daemon", ["node", "/usr/bin/qwen", "serve"], "agent"],
    ["a command", ["node", "--expose-gc", cli, "mcp", "list"], "helper"],
    ["a question", ["node", "--expose-gc", cli, "--version"], "helper"],
    ["another program's cli.js", ["node", "/usr/lib/node_modules/other/cli.js"], null],
    ["another agent", ["node", "/usr/bin/gemini"], null],
    ["its tool", ["tail", "-f", "/dev/null"], null],
    ["arguments that cannot be read", null, null],
  ])("%s", (_what, argv, role) => expect(qwen.role("node", detail(argv))).toBe(role as never));

  test("only the last process of an interface announces", () => {
    expect(qwen.announces(detail(["node", "--expose-gc", cli], again))).toBe(true);
    expect(qwen.announces(detail(["node", "--expose-gc", cli, "--approval-mode", "default"], again))).toBe(true);
    expect(qwen.announces(detail(["node", "--expose-gc", cli]))).toBe(false);
    expect(qwen.announces(detail(["node", "--expose-gc", cli, "-o", "json"], again))).toBe(false);
    expect(qwen.announces(detail(["node", "--expose-gc", cli, "do it"], again))).toBe(false);
  });

  test.each<[argv: string, id: string | null]>([
    [`node --expose-gc ${cli} --session-id ${id} -p x`, id],
    [`node --expose-gc ${cli} -p x --resume=${id}`, id],
    [`node --expose-gc ${cli} -o stream-json -r ${id}`, id],
    [`node --expose-gc ${cli} --resume ${id}`, id],
    [`node --expose-gc ${cli} --resume ${id} --fork-session -p x`, null],
    [`node server.js --session-id ${id} -p x`, null],
  ])("%s", (argv, expected) => expect(qwen.argvId(argv.split(" "))).toBe(expected));

  test("the data folder comes from the environment", () => {
    expect(qwen.home({ HOME: "/home/user" })).toBe("/home/user/.qwen");
    expect(qwen.home({ HOME: "/home/user", QWEN_HOME: "~/data" })).toBe("/home/user/data");
    expect(qwen.home({ HOME: "/home/user", QWEN_HOME: "/data" })).toBe("/data");
    expect(qwen.home({})).toBeNull();
  });
});

describe("its announcement", () => {
  const boot = "cedbf926-7d3e-49e4-ae42-b52a7770830d";
  const value = { pid: 7, procStart: `${boot}:123`, pidNs: 4026531836, sessionId: id, cwd: "/p", kind: "tui" };
  const announcement = (fields: unknown) =>
    qwen.announcements?.parse({ pid: 7, path: "/c", writtenAt: 1, value: fields });
  test("names the process exactly", () =>
    expect(announcement(value)).toMatchObject({
      ok: true,
      value: { session: id, pid: 7, start: "123", boot, namespace: "pid:[4026531836]", cwd: "/p", says: null },
    }));
  test.each([[null], [{ ...value, pid: 8 }], [{ ...value, sessionId: "x" }], [[]]])(
    "is ignored if it is invalid: %o",
    (fields) => expect(announcement(fields)?.ok).toBe(false),
  );
});

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
const ms = (second: number): number => Date.UTC(2026, 0, 1, 0, 0, second);
const line = (second: number, type: string, more: object): object => ({
  ...{ uuid: `u${second}`, sessionId: id, timestamp: at(second), type, cwd: "/home/user/project", version: "0.24.4" },
  ...more,
});
const parts = (...list: object[]): object => ({ message: { role: "x", parts: list } });
const prompt = (second: number): object => line(second, "user", parts({ text: "hello" }));
const usage = { usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2, cachedContentTokenCount: 4 } };
const text = (second: number, more: object = usage): object =>
  line(second, "assistant", { ...parts({ text: "hi" }), ...more });
const call = (second: number): object =>
  line(second, "assistant", {
    ...parts({ functionCall: { id: "k", name: "run_shell_command", args: { command: "ls" } } }),
    ...usage,
  });
const result = (second: number, status: string): object =>
  line(second, "tool_result", {
    ...parts({ functionResponse: { id: "k", response: { output: "o" } } }),
    toolCallResult: { status },
  });
const event = (second: number, name: string, more: object = {}, of = `${id}########0`): object =>
  line(second, "system", {
    subtype: "ui_telemetry",
    systemPayload: { uiEvent: { "event.name": `qwen-code.${name}`, prompt_id: of, ...more } },
  });
const snapshot = (second: number): object => line(second, "system", { subtype: "file_history_snapshot" });

const record = (...values: unknown[]) => {
  const lines = values.map((value) => ({ ok: true as const, value }));
  const file: RecordFile = {
    ...{ id, path: "/r", size: 1, writtenAt: 0, tailBytes: 100, torn: false, startsLikeJson: true },
    ...{ forward: () => lines, backward: () => lines.toReversed(), beside: () => null },
  };
  const reading = qwen.parseRecord(file);
  if (!reading.ok) throw new Error(reading.problem.detail.code);
  return reading.value;
};

test.each<[what: string, lines: unknown[], turn: object]>([
  ["asked", [prompt(1)], { state: "open", since: ms(1), doubt: null }],
  [
    "asked in an interface",
    [prompt(1), snapshot(1)],
    { state: "open", since: ms(1), doubt: { code: "may-be-cancelled" } },
  ],
  ["answered", [prompt(1), event(2, "api_response"), text(2)], { state: "closed", at: ms(2), outcome: "completed" }],
  [
    "answered by a model that counts nothing",
    [prompt(1), event(2, "api_response"), text(2, {})],
    { state: "closed", at: ms(2), outcome: "completed" },
  ],
  ["broken off", [prompt(1), text(2, {})], { state: "closed", at: ms(2), outcome: "interrupted" }],
  ["a tool", [prompt(1), call(2)], { state: "open", since: ms(1), doubt: { code: "tool-call-pending" } }],
  ["its result", [prompt(1), call(2), result(3, "success")], { state: "open", since: ms(1), doubt: null }],
  ["cancelled", [prompt(1), call(2), result(3, "cancelled")], { state: "closed", at: ms(3), outcome: "interrupted" }],
  [
    "one of two cancelled",
    [prompt(1), call(2), result(3, "cancelled"), result(4, "success")],
    { state: "unclear", why: { code: "calls-partly-cancelled" } },
  ],
  [
    "failed",
    [prompt(1), event(2, "api_error", { status_code: 400 })],
    { state: "closed", at: ms(2), outcome: "failed" },
  ],
  [
    "failed, for now",
    [prompt(1), event(2, "api_error", { status_code: 429 })],
    { state: "closed", at: ms(2), outcome: "failed", doubt: { code: "may-retry" } },
  ],
  [
    "a side question failed",
    [prompt(1), event(2, "api_error", { status_code: 400 }, `${id}#memory#0`)],
    { state: "open", since: ms(1), doubt: null },
  ],
])("%s", (_what, lines, turn) => expect(record(...lines).turn).toEqual(turn as never));

test("a pending call shows its subject, and tokens are counted", () => {
  expect(record(prompt(1), call(2)).pending).toEqual({
    ...{ kind: "permission", text: "ls", tool: "run_shell_command", options: [] },
  });
  expect(qwen.parseLine(text(2))?.usage?.tokens).toEqual({ input: 6, output: 2, cacheRead: 4, cacheWrite: 0 });
  expect(qwen.parseLine({ odd: true })).toBeNull();
});

describe("the command line", () => {
  const order = { ...where, model: "m", prompt: "x", extra: ["--own"], kind: "new", session: id } as const;
  const readers = "read_file,list_directory,glob,grep_search,web_fetch";
  test.each<[Order, string]>([
    [{ ...order, permission: null }, `--output-format stream-json --session-id ${id} --model m --own`],
    [
      { ...order, permission: "read", kind: "continue" },
      `--output-format stream-json --resume ${id} --model m --approval-mode default --core-tools ${readers} --own`,
    ],
  ])("%o", (given, words) => expect<unknown>(qwen.invocation.headless(given)).toEqual(words.split(" ")));

  test("a fork is possible only in the interface", () => {
    const fork = { ...order, permission: null, kind: "fork", from: id } as const;
    expect(qwen.invocation.interface(fork)?.slice(0, 3)).toEqual(["--resume", id, "--fork-session"]);
  });
});

test.each<[texts: (string | null)[], mode: string, isBypass: boolean]>([
  [[null, null, null], "auto", false],
  [[null, null, '{"tools": {"approvalMode": "yolo"}}'], "yolo", true],
  [[null, '{"tools": {"approvalMode": "plan"}}', '{"tools": {"approvalMode": "yolo"}}'], "plan", false],
  [[null, null, '{"approvalMode": "yolo"}'], "yolo", true],
  [[null, "no JSON", '{"tools": 1}'], "auto", false],
])("without a permission, with the settings %p", (texts, mode, isBypass) => {
  const judged = qwen.invocation.ownSetting.judge(texts, []);
  expect([judged.mode, judged.isBypass]).toEqual([mode, isBypass]);
});
