// What captured files of Copilot do not show: its processes, odd records, the words that it is started with.
import { describe, expect, test } from "bun:test";
import type { RecordFile } from "../../../src/agents/adapter.ts";
import { copilot } from "../../../src/agents/copilot/index.ts";
import type { Order } from "../../../src/agents/invocation.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";

const id = "0cb916db-26aa-40f2-86b5-1ba81b225fd2";
const folder = "/home/user/.copilot/session-state";

const detail = (argv: string[] | null, exe: string | null, lockedFiles: string[] = []): ProcessDetail => ({
  ...{ uid: 1000, ours: true, argv, exe, cwd: "/project", env: {}, lockedFiles },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
});

const node = "/usr/bin/node";
const native = "/usr/lib/node_modules/@github/copilot-linux-x64/copilot";

describe("its processes", () => {
  test.each<[what: string, name: string, argv: string[] | null, exe: string | null, role: string | null]>([
    ["an interface", "MainThread", [native], native, "agent"],
    ["a headless one", "MainThread", [native, "--output-format=json", `--session-id=${id}`], native, "agent"],
    ["in its first moments", "copilot", [native, "-p", "hello"], native, "agent"],
    ["replaced by an update", "MainThread", [native], `${native} (deleted)`, "agent"],
    ["installed without npm", "MainThread", ["copilot"], "/usr/local/bin/copilot", "agent"],
    ["arguments that cannot be read", "MainThread", null, native, "agent"],
    ["npm's starter", "node", ["node", "/usr/bin/copilot", "-p", "hello"], node, "helper"],
    ["the same in Node 26", "node-MainThread", ["node", "/usr/bin/copilot"], "/opt/bin/node", "helper"],
    ["the same, by its whole path", "node", ["node", "/lib/@github/copilot/npm-loader.js"], node, "helper"],
    ["an ACP server", "MainThread", [native, "--acp"], native, "server"],
    ["a server", "MainThread", [native, "--server", "--port", "4321"], native, "server"],
    ["a prompt about servers", "MainThread", [native, "-p", "--acp"], native, "agent"],
    ["a command", "MainThread", [native, "mcp", "list"], native, "helper"],
    ["a prompt that is a command's name", "MainThread", [native, "-p", "help"], native, "agent"],
    ["AWS Copilot", "copilot", ["copilot", "svc", "deploy"], "/usr/local/bin/copilot", null],
    ["another program of Node", "MainThread", ["node", "/usr/bin/gemini"], node, null],
    ["Node with a prompt about copilot", "node", ["node", "/usr/bin/claude", "copilot"], node, null],
    ["a language server of that family", "node", ["node", "/x/copilot-language-server", "--stdio"], node, null],
    ["an exe that cannot be seen", "MainThread", null, null, null],
  ])("%s", (_what, name, argv, exe, role) => expect(copilot.role(name, detail(argv, exe))).toBe(role as never));

  test("a process has the sessions whose folders it has locked", () => {
    const other = "64479b8f-af7c-46c0-a480-af3ad531ed44";
    const locked = [
      "/home/user/.cache/copilot/pkg/linux-x64/1.0.102/inuse.7.hold",
      ...[id, other].map((each) => `${folder}/${each}/inuse.7.hold`),
      `${folder}/${id}/inuse.7.lock`,
      `${folder}/not-an-id/inuse.7.hold`,
    ];
    expect(copilot.announcedIds?.(detail([native], native, locked))).toEqual([id, other]);
    expect(locked.map((path) => copilot.lockedFiles?.test(path))).toEqual([false, true, true, false, false]);
  });

  test.each<[argv: string[], id: string | null]>([
    [[native, `--session-id=${id}`], id],
    [[native, "--session-id", id, "-p", "x"], id],
    [[native, `--resume=${id}`], id],
    [[native, "-r", id], id],
    [[native, `--resume=${id.slice(0, 8)}`], null],
    [[native, "--resume=my feature"], null],
    [[native, "--resume"], null],
    [[native, "-p", `--resume=${id}`], null],
    [[native, "--name", `--session-id=${id}`], null],
    [[native, "-p", `go on with --resume=${id}`], null],
  ])("the session in %p", (argv, expected) => expect(copilot.argvId(argv)).toBe(expected));

  test.each<[env: Record<string, string>, home: string | null]>([
    [{ HOME: "/home/user" }, "/home/user/.copilot"],
    [{ HOME: "/home/user", COPILOT_HOME: "/data" }, "/data"],
    [{ HOME: "/home/user", COPILOT_HOME: "" }, "/home/user/.copilot"],
    [{}, null],
  ])("its home with %p", (env, home) => expect(copilot.home(env)).toBe(home));
});

type Event = [type: string, data?: Record<string, unknown>, agentId?: string];

const at = (index: number): number => Date.parse("2026-11-16T06:00:00Z") + index * 1000;

function recordOf(events: readonly (Event | "broken")[], more: Partial<RecordFile> = {}): RecordFile {
  const lines = events.map((event, index) => {
    if (event === "broken") return { ok: false } as const;
    const [type, data = {}, agentId] = event;
    const value = { type, data, timestamp: new Date(at(index)).toISOString(), ...(agentId && { agentId }) };
    return { ok: true, value } as const;
  });
  return {
    ...{ id, path: `${folder}/${id}/events.jsonl`, size: 100, writtenAt: 0, tailBytes: 1000 },
    ...{ torn: false, startsLikeJson: true, beside: () => null },
    forward: () => lines,
    backward: () => lines.toReversed(),
    ...more,
  };
}

function parsed(events: readonly (Event | "broken")[], more: Partial<RecordFile> = {}) {
  const reading = copilot.parseRecord(recordOf(events, more));
  if (!reading.ok) throw new Error(reading.problem.detail.code);
  return reading.value;
}

const prompt: Event = ["user.message", { content: "hello" }];
const begun: Event = ["assistant.turn_start", { turnId: "0" }];
const ended: Event = ["assistant.turn_end", { turnId: "0" }];
const answer: Event = ["assistant.message", { content: "yes", toolRequests: [] }];
const calls: Event = ["assistant.message", { content: "", toolRequests: [{ toolCallId: "c" }] }];
const call = (toolName: string, more: Record<string, unknown> = {}): Event => [
  "tool.execution_start",
  { toolCallId: "c", toolName, ...more },
];
const called: Event = ["tool.execution_complete", { toolCallId: "c", success: true }];
const asks: Event = ["permission.requested", { requestId: "r", permissionRequest: { kind: "shell" } }];
const told: Event = ["permission.completed", { requestId: "r", result: { kind: "approved" } }];
const over: Event = ["session.shutdown"];

describe("its last turn", () => {
  const open = { state: "open", since: at(0), doubt: null };
  test.each<[what: string, events: (Event | "broken")[], turn: Record<string, unknown>]>([
    ["nothing but its start", [["session.start"]], { state: "none" }],
    ["only a prompt", [prompt], open],
    ["an answer without its end", [prompt, begun, answer], open],
    ["an end without an answer: an abort or an error may follow", [prompt, begun, ended], open],
    ["an end that is only one of the model's calls", [prompt, begun, calls, call("bash"), called, ended], open],
    ["the next call", [prompt, begun, calls, call("bash"), called, ended, begun], open],
    ["ended", [prompt, begun, answer, ended, over], { state: "closed", at: at(3), outcome: "completed" }],
    ["an end of a subagent", [prompt, begun, calls, call("task"), [...answer, "s"], [...ended, "s"]] as Event[], open],
    ["aborted, then ended", [prompt, begun, ["abort"], ended], { state: "closed", at: at(2), outcome: "interrupted" }],
    ["ended, then aborted", [prompt, begun, ended, ["abort"]], { state: "closed", at: at(3), outcome: "interrupted" }],
    ["prompted after an abort", [prompt, ["abort"], prompt], { ...open, since: at(2) }],
    ["failed", [prompt, begun, ended, ["session.error"]], { state: "closed", at: at(3), outcome: "failed" }],
    [
      "failed before the model was asked",
      [prompt, ["session.error"]],
      { state: "closed", at: at(1), outcome: "failed" },
    ],
    ["an error that ends nothing yet", [prompt, begun, ["session.error"]], open],
    ["a tool of Copilot", [prompt, begun, calls, call("bash")], open],
    [
      "a tool of an MCP server",
      [prompt, begun, calls, call("x", { mcpServerName: "m" })],
      { ...open, doubt: { code: "tool-call-pending" } },
    ],
    [
      "a command that a person typed",
      [prompt, begun, answer, ended, ["tool.user_requested", { toolCallId: "u" }]],
      { ...open, since: at(4) },
    ],
    [
      "a command that is over",
      [prompt, begun, answer, ended, ["tool.user_requested", { toolCallId: "c" }], called],
      { state: "closed", at: at(3), outcome: "completed" },
    ],
    ["broken lines", [prompt, begun, "broken"], { state: "unclear", why: { code: "broken-lines" } }],
    ["broken lines before the prompt", ["broken", prompt, begun], { ...open, since: at(1) }],
    ["no prompt", [begun, answer], { state: "unclear", why: { code: "no-prompt-found" } }],
  ])("%s", (_what, events, turn) => expect(parsed(events).turn).toEqual(turn as never));

  test("is unclear if the last line is cut off", () => {
    expect(parsed([prompt, begun], { torn: true }).turn.state).toBe("unclear");
  });

  test("a login is left to a person", () => {
    const error: Event = ["session.error", { errorType: "authentication", message: "401" }];
    const turn = parsed([prompt, begun, ended, error]).turn;
    expect(turn).toMatchObject({ outcome: "failed", needs: { kind: "login", text: "401" } });
  });
});

describe("a pending question or approval is what the session waits for", () => {
  const path = [
    "permission.requested",
    { requestId: "r", promptRequest: { kind: "path", paths: ["/etc/x"] } },
  ] as Event;
  test.each<[what: string, events: Event[], waiting: Record<string, unknown> | null]>([
    ["nothing", [prompt, begun, calls, call("bash")], null],
    ["an approval", [prompt, begun, calls, call("bash"), asks], { kind: "permission", tool: "shell" }],
    ["of a path", [prompt, begun, calls, call("view"), path], { kind: "permission", text: "/etc/x" }],
    ["given", [prompt, begun, calls, call("bash"), asks, told], null],
    [
      "answered by a hook",
      [prompt, begun, calls, ["permission.requested", { requestId: "r", resolvedByHook: true }]],
      null,
    ],
    [
      "a subagent's, in the background",
      [prompt, begun, answer, ended, [...asks, "s"] as unknown as Event],
      { kind: "permission" },
    ],
    [
      "a question",
      [prompt, begun, calls, call("ask_user", { arguments: { message: "?" } })],
      { kind: "question", text: "?" },
    ],
    ["answered", [prompt, begun, calls, call("ask_user"), called], null],
    [
      "a question of another shape",
      [prompt, begun, calls, call("ask_user", { arguments: 7 })],
      { kind: "question", text: null },
    ],
  ])("%s", (_what, events, waiting) => {
    const record = parsed(events);
    if (waiting === null) expect(record.waiting).toBeNull();
    else expect([record.turn.state, record.waiting]).toMatchObject(["open", waiting]);
  });
});

test("title, branch and directory come from the file beside the record", () => {
  const yaml = "id: x\ncwd: /home/user/project\nname: 'it''s: mine'\nbranch: \"main\"\nnested:\n  cwd: /no\n";
  const { cwd, facts } = parsed([prompt], { beside: () => yaml });
  expect([cwd, facts.title, facts.branch]).toEqual(["/home/user/project", "it's: mine", "main"]);
  const odd = 'cwd: |\n  /x\nname: "a \\" b"\nbranch: [a]\n\u0000';
  const other = parsed([["session.start", { context: { cwd: "/y" } }], prompt], { beside: () => odd });
  expect([other.cwd, other.facts.title, other.facts.branch]).toEqual(["/y", null, null]);
});

test("a file of that name with other content is ignored", () => {
  expect(copilot.parseRecord(recordOf(["broken"], { startsLikeJson: false }))).toMatchObject({ ok: false });
});

test.each<[what: string, value: unknown, tokens: unknown]>([
  ["tokens from the cache are not input", { inputTokens: 1234, outputTokens: 5, cacheReadTokens: 200 }, 1034],
  ["more of that than input", { inputTokens: 1, outputTokens: 5, cacheReadTokens: 200 }, 0],
  ["no numbers", { inputTokens: "1", outputTokens: 5 }, undefined],
])("tokens: %s", (_what, usage, input) => {
  const facts = copilot.parseLine({ type: "session.usage_record", data: { usage } });
  expect(facts?.usage?.tokens.input).toBe(input as never);
});

describe("how it is started", () => {
  const where = {
    home: "/home/user/.copilot",
    supportFolder: "/home/me/.agentctl/support",
    cwd: "/home/user/project",
    at: 0,
  };
  const facts = { ...where, model: "m", permission: "edit", prompt: "x", extra: ["--own"] } as const;
  const { headless, interface: screen, announcedIn, scrubbed } = copilot.invocation;

  test("a new session and a continued one", () => {
    const words = ["--model=m", "--allow-tool=write", "--own"];
    const fresh: Order = { ...facts, kind: "new", session: id };
    const old: Order = { ...facts, kind: "continue", session: id };
    expect<unknown>(headless(fresh)).toEqual(["--output-format=json", `--session-id=${id}`, ...words]);
    expect<unknown>(headless(old)).toEqual(["--output-format=json", `--resume=${id}`, ...words]);
    expect<unknown>(screen(old)).toEqual([`--resume=${id}`, ...words]);
  });

  test("a fork is refused", () => {
    const fork: Order = { ...facts, kind: "fork", from: id, session: null };
    expect(screen(fork)).toBeNull();
  });

  test("the result line of its output names the session", () => {
    expect(announcedIn({ type: "result", sessionId: id })).toBe(id);
    expect(announcedIn({ type: "assistant.message", sessionId: id })).toBeNull();
  });

  test("variables of an outer session are removed, a person's variables are not", () => {
    const names = ["COPILOT_AGENT_SESSION_ID", "COPILOT_CLI", "COPILOT_HOME", "COPILOT_MODEL", "COPILOT_CLI_VERSION"];
    expect(names.map((name) => scrubbed.test(name))).toEqual([true, true, false, false, false]);
  });
});
