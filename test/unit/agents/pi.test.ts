// What captured files of Pi do not show: its processes, odd records, the words that it is started with.
import { describe, expect, test } from "bun:test";
import type { RecordFile } from "../../../src/agents/adapter.ts";
import type { Order } from "../../../src/agents/invocation.ts";
import { pi } from "../../../src/agents/pi/index.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";

const id = "01a1e1c1-092a-7951-96f0-07f6e0ecb1f5";
const old = "01a1e1c0-f45e-70a2-86a3-796f6feecdeb";

const detail = (argv: string[] | null, exe: string | null, env: Record<string, string> = {}): ProcessDetail => ({
  ...{ uid: 1000, ours: true, argv, exe, cwd: "/project", env, lockedFiles: [] },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
});

const node = "/usr/bin/node";
const bundle = "/usr/lib/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js";

describe("its processes", () => {
  test.each<[what: string, name: string, argv: string[] | null, exe: string | null, role: string | null]>([
    ["with its title", "pi", ["pi", "", "", ""], node, "agent"],
    ["its title is there, its name not yet", "node", ["pi", "", ""], node, "agent"],
    ["before its title", "node", ["node", "/usr/bin/pi", "-p", "hello"], node, "agent"],
    ["the same in Node 26", "node-MainThread", ["/opt/bin/node", "/usr/bin/pi"], "/opt/bin/node", "agent"],
    ["the same, by its whole path", "node-MainThread", ["/opt/bin/node", bundle], "/opt/bin/node", "agent"],
    ["behind options of Node", "MainThread", ["node", "--no-warnings", bundle, "--mode", "rpc"], node, "agent"],
    ["its own program", "pi", ["pi", "--continue"], "/opt/pi/pi", "agent"],
    ["arguments that cannot be read", "pi", null, null, "agent"],
    ["rpc", "pi-rpc", ["pi-rpc", "", ""], node, "agent"],
    ["a command", "node", ["node", "/usr/bin/pi", "install", "npm:x"], node, "helper"],
    ["a question", "node", ["node", "/usr/bin/pi", "--list-models"], node, "helper"],
    ["a shell script of that name", "pi", ["/bin/sh", "/home/user/bin/pi"], "/bin/dash", null],
    ["a program of that name in another language", "pi", ["pi", ""], "/usr/bin/python3.12", null],
    ["another program of Node", "node", ["node", "/usr/bin/pip"], node, null],
    ["Node with a prompt about pi", "node", ["node", "/usr/bin/claude", "pi"], node, null],
    ["Node alone", "node", ["node"], node, null],
  ])("%s", (_what, name, argv, exe, role) => expect(pi.role(name, detail(argv, exe))).toBe(role as never));

  test("the process title hides the arguments", () => {
    expect(pi.hidesArguments?.(detail(["pi", "", ""], node))).toBe(true);
    expect(pi.hidesArguments?.(detail(["node", "/usr/bin/pi"], node))).toBe(false);
  });

  test("a process with another record folder is never linked by directory", () => {
    expect(pi.announces(detail(["pi"], node))).toBe(false);
    expect(pi.announces(detail(["pi"], node, { PI_CODING_AGENT_SESSION_DIR: "/elsewhere" }))).toBe(true);
  });

  test.each<[argv: string, id: string | null]>([
    [`node /usr/bin/pi --session ${id}`, id],
    [`node /usr/bin/pi -p --session=/x/2026-11-16T05-00-00-000Z_${id}.jsonl hello`, id],
    [`node /usr/bin/pi --session ${id.slice(0, 8)}`, null],
    [`node /usr/bin/pi --session /x/mine.jsonl`, null],
    ["node /usr/bin/pi --session-id my.own-id", "my.own-id"],
    [`node /usr/bin/pi -p -- --session ${id}`, null],
    [`node /usr/bin/other --session ${id}`, null],
    ["pi   ", null],
  ])("the session in %s", (argv, expected) => expect(pi.argvId(argv.split(" "))).toBe(expected));

  test.each<[env: Record<string, string>, home: string | null]>([
    [{ HOME: "/home/user" }, "/home/user/.pi/agent"],
    [{ HOME: "/home/user", PI_CODING_AGENT_DIR: "/data" }, "/data"],
    [{ HOME: "/home/user", PI_CODING_AGENT_DIR: "~/pi" }, "/home/user/pi"],
    [{}, null],
  ])("the home of %p", (env, home) => expect(pi.home(env)).toBe(home));
});

const at = (second: number): string => new Date(Date.UTC(2026, 10, 16, 12, 0, second)).toISOString();
const header = { type: "session", version: 3, id, timestamp: at(0), cwd: "/project" };

type Given = Record<string, unknown>;
const entry = (name: string, parentId: string | null, second: number, rest: Given): Given => ({
  ...{ id: name, parentId, timestamp: at(second), ...rest },
});
const message = (name: string, parent: string | null, second: number, fields: Given): Given =>
  entry(name, parent, second, { type: "message", message: fields });
const user = (name: string, parent: string | null, second: number): Given =>
  message(name, parent, second, { role: "user", content: [{ type: "text", text: `prompt ${name}` }] });
const answer = (name: string, parent: string, second: number, stopReason: string, rest: Given = {}): Given =>
  message(name, parent, second, { role: "assistant", model: "m", content: [], stopReason, ...rest });
const call = { type: "toolCall", id: "c1", name: "bash", arguments: { command: "ls" } };
const calls = (name: string, parent: string, second: number): Given =>
  answer(name, parent, second, "toolUse", { content: [call] });
const result = (name: string, parent: string, second: number): Given =>
  message(name, parent, second, { role: "toolResult", toolCallId: "c1", toolName: "bash", content: [] });

function file(lines: readonly unknown[], change: Partial<RecordFile> = {}): RecordFile {
  const read = lines.map((value) => (value === "broken" ? { ok: false as const } : { ok: true as const, value }));
  return {
    ...{ id, path: `/h/sessions/--project--/x_${id}.jsonl`, size: 1000, writtenAt: 0, tailBytes: 1e6, torn: false },
    ...{ startsLikeJson: true, forward: () => read, backward: () => read.toReversed(), beside: () => null },
    ...change,
  };
}
function parsed(lines: readonly unknown[], change: Partial<RecordFile> = {}) {
  const reading = pi.parseRecord(file(lines, change));
  return reading.ok ? reading.value : reading.problem.detail.code;
}
const turnOf = (...lines: unknown[]): unknown => {
  const record = parsed([header, ...lines]);
  return typeof record === "string" ? record : record.turn;
};

const time = (second: number): number => Date.parse(at(second));
const open = (second: number) => ({ state: "open", since: time(second), doubt: null });
const closed = (second: number, outcome: string | null, rest: Given = {}) => ({
  ...{ state: "closed", at: time(second), outcome, ...rest },
});
const again = { doubt: { code: "may-retry" } };

describe("how far the last turn got", () => {
  const turn = [user("a", null, 1), calls("b", "a", 2), result("c", "b", 3)];
  const failed = (text: string): Given => answer("b", "a", 2, "error", { errorMessage: text });
  test.each<[what: string, lines: unknown[], turn: unknown]>([
    ["nothing but its first line", [], { state: "none" }],
    ["a second first line", [header], { state: "none" }],
    ["a prompt", [user("a", null, 1)], open(1)],
    ["a tool call", turn.slice(0, 2), open(1)],
    ["its result", turn, open(1)],
    ["a call under another reason", [turn[0], answer("b", "a", 2, "stop", { content: [call] })], open(1)],
    ["an answer", [...turn, answer("d", "c", 4, "stop")], closed(4, "completed")],
    ["interrupted", [...turn, answer("d", "c", 4, "aborted")], closed(4, "interrupted")],
    [
      "interrupted inside of a tool, in 0.87",
      [...turn, answer("d", "c", 4, "error", { errorMessage: "This operation was aborted" })],
      closed(4, "interrupted"),
    ],
    ["a bad request", [turn[0], failed("400 no")], closed(2, "failed")],
    ["not logged in", [turn[0], failed("401: no")], closed(2, "failed", { needs: { kind: "login", text: "401: no" } })],
    ["a failure that may pass", [turn[0], failed("500 no")], closed(2, "failed", again)],
    ["a failure without a number", [turn[0], failed("Connection error.")], closed(2, "failed", again)],
    ["too much for the model", [turn[0], failed("400 maximum context length")], closed(2, "failed", again)],
    [
      "0.87 tries again",
      [turn[0], failed("500 no"), entry("e", "b", 3, { type: "context_edit", targetId: "b", replacement: null })],
      open(1),
    ],
    ["an answer that was cut", [turn[0], answer("b", "a", 2, "length")], expect.objectContaining({ outcome: null })],
    ["an unknown stop reason", [turn[0], answer("b", "a", 2, "tired")], expect.objectContaining({ state: "unclear" })],
    ["an unknown role", [message("a", null, 1, { role: "judge" })], expect.objectContaining({ state: "unclear" })],
    [
      "settings and a person's own command afterwards",
      [
        ...[...turn, answer("d", "c", 4, "stop")],
        message("e", "d", 5, { role: "bashExecution", command: "ls", output: "x" }),
        entry("f", "e", 6, { type: "model_change", modelId: "n" }),
      ],
      closed(4, "completed"),
    ],
    [
      "a message of an extension",
      [...turn, answer("d", "c", 4, "stop"), entry("e", "d", 5, { type: "custom_message", content: "x" })],
      expect.objectContaining({ state: "unclear" }),
    ],
    ["summed up inside of a turn", [...turn, entry("d", "c", 4, { type: "compaction", summary: "s" })], open(1)],
    ["a new branch", [...turn, answer("d", "c", 4, "stop"), user("e", null, 9)], open(9)],
    [
      "a branch beside an open turn",
      [
        user("a", null, 1),
        answer("b", "a", 2, "stop"),
        user("x", "b", 3),
        calls("y", "x", 4),
        user("c", "b", 5),
        answer("d", "c", 6, "stop"),
      ],
      closed(6, "completed"),
    ],
    [
      "gone back, with a summary",
      [...turn, entry("d", "a", 4, { type: "branch_summary", summary: "s" })],
      closed(4, null),
    ],
    [
      "gone back, and only a setting was changed",
      [...turn, entry("d", "a", 4, { type: "model_change", modelId: "n" })],
      expect.objectContaining({ state: "unclear" }),
    ],
    [
      "an entry whose parent is missing",
      [entry("d", "z", 4, { type: "label" })],
      expect.objectContaining({ state: "unclear" }),
    ],
    ["a broken line at the end", [...turn, "broken"], expect.objectContaining({ state: "unclear" })],
    [
      "a file of version 1, without a tree",
      [{ type: "message", timestamp: at(1), message: { role: "user", content: "x" } }],
      open(1),
    ],
  ])("%s", (_what, lines, expected) => expect(turnOf(...lines)).toEqual(expected as never));

  test("is unclear if the last line is cut off", () => {
    const record = parsed([header, user("a", null, 1)], { torn: true });
    expect(record).toMatchObject({ turn: { state: "unclear" }, torn: true });
  });
});

test("title, model, directory and parent come from the record", () => {
  const source = { ...header, parentSession: `/h/sessions/--x--/2026-11-16T05-00-00-000Z_${old}.jsonl` };
  const named = entry("n", "b", 3, { type: "session_info", name: "Painting" });
  expect(parsed([source, user("a", null, 1), answer("b", "a", 2, "stop"), named])).toMatchObject({
    ...{ id, cwd: "/project", createdAt: time(0), lastMessageAt: time(2), parent: old },
    facts: { model: "m", title: "Painting", prompt: "prompt a" },
  });
});

test("a file with another name is not a record", () => {
  expect(parsed([{ ...header, id: old }, user("a", null, 1)])).toBe("another-id-inside");
  expect(parsed(["broken"])).toBe("record-unknown-shape");
});

test("each line is shown in readable form", () => {
  const usage = { input: 1, output: 2, cacheRead: 3, cacheWrite: 0, cost: { total: 0.5 } };
  const line = answer("b", "a", 2, "error", {
    content: [{ type: "text", text: "hm" }, call],
    usage,
    errorMessage: "no",
  });
  expect(pi.parseLine(line)).toEqual({
    messages: [
      { at: time(2), role: "agent", text: "hm", tool: null },
      { at: time(2), role: "tool", text: "ls", tool: "bash" },
      { at: time(2), role: "note", text: "failed: no", tool: null },
    ],
    usage: { key: "b", tokens: { input: 1, output: 2, cacheRead: 3, cacheWrite: 0 }, model: "m", costUsd: 0.5 },
    costUsd: null,
    denied: 0,
  });
  expect(pi.parseLine({ type: "something new" })).toBeNull();
});

describe("how it is started", () => {
  const where = {
    supportFolder: "/home/me/.agentctl/support",
    home: "/home/user/.pi/agent",
    cwd: "/home/user/project",
    at: Date.parse("2026-11-16T05:00:00.123Z"),
  };
  const facts = { ...where, model: "m", permission: "edit", prompt: "x", extra: ["--own"] } as const;
  const folder = "/home/user/.pi/agent/sessions/--home-user-project--";
  const path = `${folder}/2026-11-16T05-00-00-123Z_${id}.jsonl`;
  const rest = "--model m --tools read,grep,find,ls,edit,write --own";
  const orders: [order: Order, words: string][] = [
    [{ ...facts, kind: "new", session: id }, `--session ${path} ${rest}`],
    [{ ...facts, kind: "continue", session: id }, `--session ${id} --session-dir ${folder} ${rest}`],
    [{ ...facts, kind: "fork", session: id, from: old }, `--fork ${old} --session-dir ${folder} ${rest}`],
  ];
  test.each(orders)("%p", (order, words) => {
    expect<unknown>(pi.invocation.headless(order)).toEqual(["--mode", "json", ...words.split(" ")]);
    expect<unknown>(pi.invocation.interface(order)).toEqual(words.split(" "));
  });

  test("a record with only a header gives a new session its id", () => {
    const order: Order = { ...facts, kind: "new", session: id };
    const timestamp = "2026-11-16T05:00:00.123Z";
    const line = { type: "session", version: 3, id, timestamp, cwd: "/home/user/project" };
    expect(pi.invocation.prepare?.(id, order)).toEqual({
      kind: "file",
      path,
      text: `${JSON.stringify(line)}\n`,
    });
    expect(parsed([line])).toMatchObject({ id, cwd: "/home/user/project", turn: { state: "none" } });
    expect(pi.invocation.announcedIn(line)).toBe(id);
  });

  test("keys can be sent only to a terminal", () => {
    expect(pi.invocation.interrupt([], null)).toEqual({ signal: "SIGTERM" });
    expect(pi.invocation.interrupt([], "/dev/pts/1")).toEqual({ keys: "Escape" });
  });
});
