// What captured cases of OpenCode cannot show: odd shapes, every kind of its processes, its arguments, its older store.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { HttpRequest } from "../../../src/agents/adapter.ts";
import type { Order } from "../../../src/agents/invocation.ts";
import { opencode } from "../../../src/agents/opencode/index.ts";
import { databaseLines } from "../../../src/agents/opencode/store.ts";
import type { NativeRecord } from "../../../src/core/evidence.ts";
import { read } from "../../../src/core/problem.ts";
import type { ProcessDetail, ProcessTable } from "../../../src/core/process.ts";
import { deadlineIn } from "../../../src/lib/deadline.ts";
import { findRecord } from "../../../src/observe/conversation.ts";
import { listSessions } from "../../../src/observe/observe.ts";
import { openRecord } from "../../../src/observe/records.ts";
import { liveOnly, type Selection, selectIds } from "../../../src/observe/selection.ts";
import { readStore } from "../../../src/observe/stores.ts";

const folder = mkdtempSync(join(tmpdir(), "opencode-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const id = "ses_e1d130adfffegZUOq5aHP2dfBZ";
const other = "ses_e1d130adfffegZUOq5aHP2dfB0";

const detail = (argv: string[] | null, env: Record<string, string> = {}): ProcessDetail => ({
  ...{ uid: 0, ours: true, argv, exe: "/usr/bin/opencode", cwd: "/home/user/project", env, lockedFiles: [] },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
});

test.each([
  ["opencode", "agent"],
  ["opencode /home/user/project", "agent"],
  [`opencode --session ${id}`, "agent"],
  ["opencode --port 4096", "agent"],
  ["opencode --model fake/run", "agent"],
  ["opencode run hello", "agent"],
  ["opencode --print-logs run hello", "agent"],
  ["/usr/lib/node_modules/opencode-ai/bin/opencode.exe run hello", "agent"],
  ["opencode run --attach http://127.0.0.1:4096 hello", "helper"],
  ["opencode run --attach=http://127.0.0.1:4096 hello", "helper"],
  ["opencode attach http://127.0.0.1:4096", "helper"],
  ["opencode serve --port 4096", "server"],
  ["opencode web", "server"],
  ["opencode acp", "server"],
  ["opencode import /tmp/x.json", "helper"],
  ["opencode session list", "helper"],
  ["opencode --version", "helper"],
  ["bun run x.js", "helper"],
])("%s is %s", (line, role) => {
  expect(opencode.role("opencode", detail(line.split(" ")))).toBe(role as "agent");
});

test("other programs are not OpenCode; OpenCode as Bun is a helper", () => {
  expect(opencode.role("node", detail(["node", "opencode"]))).toBeNull();
  expect(opencode.role("bash", detail(["bash", "-c", "opencode run"]))).toBeNull();
  expect(opencode.role("opencode", detail(["opencode", "run", "server.js", "--stdio"], { BUN_BE_BUN: "1" }))).toBe(
    "helper",
  );
  expect(opencode.role("opencode", detail(null))).toBe("agent");
});

test.each([
  [`opencode run --session ${id} hello`, id],
  [`opencode -s ${id}`, id],
  [`opencode --session=${id}`, id],
  [`opencode run --session ${id} --fork hello`, null],
  [`opencode run -- --session ${id}`, null],
  [`opencode export ${id} --session ${id}`, null],
  ["opencode run --session hello", null],
  ["opencode run --continue hello", null],
])("%s names %p", (line, named) => {
  expect(opencode.argvId(line.split(" "))).toBe(named);
});

test("servers and interfaces with a port are asked", () => {
  const at = opencode.server?.at;
  const asked = (line: string) => at !== undefined && "listens" in at && at.listens(detail(line.split(" ")));
  const lines = [
    "opencode serve",
    "opencode acp",
    "opencode --port 1",
    "opencode --hostname=0.0.0.0",
    "opencode --mdns",
  ];
  expect(lines.map(asked)).toEqual(lines.map(() => true));
  expect(["opencode", "opencode run --port 1 x", "opencode attach http://x --port 1"].map(asked)).toEqual([
    false,
    false,
    false,
  ]);
});

test.each([
  [{ HOME: "/home/user" }, "/home/user/.local/share/opencode"],
  [{ HOME: "/home/user", XDG_DATA_HOME: "/data" }, "/data/opencode"],
  [{ HOME: "/home/user", OPENCODE_DB: "/other/place/my.db" }, "/other/place"],
  [{ HOME: "/home/user", OPENCODE_DB: "my.db" }, "/home/user/.local/share/opencode"],
  [{ HOME: "/home/user", OPENCODE_DB: "more/my.db" }, "/home/user/.local/share/opencode/more"],
  [{ HOME: "/home/user", OPENCODE_DB: ":memory:" }, "/home/user/.local/share/opencode"],
  [{ HOME: "/home/user", OPENCODE_DB: "" }, "/home/user/.local/share/opencode"],
  [{}, null],
])("the data folder of %p", (env, home) => {
  expect(opencode.home(env as Record<string, string>)).toBe(home);
  if (home === null) return;
  const again = opencode.invocation.environmentFor(home);
  expect(opencode.home({ HOME: "/elsewhere", OPENCODE_DB: "/x/y.db", ...again })).toBe(home);
});

const where = {
  supportFolder: "/home/me/.agentctl/support",
  home: "/home/user/.local/share/opencode",
  cwd: "/home/user/project",
  at: 1_794_808_542_497,
};
const facts = { ...where, model: "a/b", permission: null, prompt: "x", extra: ["--own"] } as const;
const { invocation } = opencode;

test("the command lines", () => {
  const words = (order: Order): string => invocation.headless(order).join(" ");
  expect(words({ ...facts, kind: "new", session: id })).toBe(`run --format json --session ${id} --model a/b --own`);
  expect(words({ ...facts, kind: "continue", session: id, permission: "bypass" })).toBe(
    `run --format json --session ${id} --model a/b --auto --own`,
  );
  expect(invocation.interface({ ...facts, kind: "fork", session: null, from: other })?.join(" ")).toBe(
    `--session ${other} --fork --model a/b --own`,
  );
});

test("a chosen id has OpenCode's form, and newer ids sort first", () => {
  const choose = invocation.chooseId;
  if (choose === null) throw new Error("no ids");
  const uuids = ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", crypto.randomUUID()];
  const [old = "", , recent = ""] = uuids.map((uuid, index) => choose(uuid, where.at + index));
  for (const made of [old, recent]) expect(made).toMatch(/^ses_[0-9a-f]{12}[0-9A-Za-z]{14}$/);
  expect(recent < old).toBe(true);
  // The time of one that it made itself, to a few milliseconds.
  expect(choose(uuids[0] ?? "", where.at).slice(0, 12)).toBe("ses_e1d130ad");
  expect(new Set(Array.from({ length: 1000 }, () => choose(crypto.randomUUID(), 0))).size).toBe(1000);
});

test("an import file creates a new session", () => {
  const made = invocation.prepare?.(id, { ...facts, kind: "new", session: id }) ?? null;
  if (made?.kind !== "command") throw new Error("no command");
  expect<unknown>(made.arguments("/x/y")).toEqual(["import", "/x/y"]);
  expect(JSON.parse(made.text)).toMatchObject({
    info: { id, title: "New session - 2026-11-16T05:55:42.497Z", time: { created: where.at } },
    messages: [],
  });
  expect(invocation.prepare?.(id, { ...facts, kind: "continue", session: id })).toBeNull();
});

test("a permission is added to the caller's settings, and refused if they cannot be extended", () => {
  const { read } = invocation.permissions;
  const order: Order = { ...facts, kind: "new", session: id, permission: "read" };
  const env = { OPENCODE_CONFIG_CONTENT: '{"model":"a/b","agent":{"mine":{}}}' };
  const made = read.environment?.(env, order) ?? {};
  expect(JSON.parse(made["OPENCODE_CONFIG_CONTENT"] ?? "")).toMatchObject({
    model: "a/b",
    agent: {
      mine: {},
      "agentctl-read": { permission: { "*": "deny" } },
      "agentctl-edit": { permission: { edit: "allow" } },
    },
  });
  const caller = (settings?: string) => ({ isRoot: false, env: { OPENCODE_CONFIG_CONTENT: settings } });
  expect(invocation.refuses?.(order, caller())).toBeNull();
  expect(invocation.refuses?.(order, caller("{}"))).toBeNull();
  expect(invocation.refuses?.(order, caller("{ // mine\n}"))).toEqual({
    ...{ code: "settings-not-json", variable: "OPENCODE_CONFIG_CONTENT", permission: "read" },
  });
  expect(invocation.refuses?.({ ...order, permission: "bypass" }, caller("{ // mine\n}"))).toBeNull();
});

interface Row {
  id: string;
  at?: number;
  data: unknown;
  parts?: unknown[];
}

let count = 0;

/** A database with one session of these messages. Texts are written as they are. */
function storeOf(messages: Row[], session: Record<string, unknown> = {}): string {
  count += 1;
  const home = join(folder, String(count));
  mkdirSync(home);
  using database = new Database(join(home, "opencode.db"));
  const columns = {
    id,
    directory: "/home/user/project",
    title: "T",
    version: "1",
    time_created: 1,
    time_updated: 2,
    ...session,
  };
  database.run(`CREATE TABLE session (${Object.keys(columns).join(", ")})`);
  database.run("CREATE TABLE message (id, session_id, time_created, time_updated, data)");
  database.run("CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data)");
  database.run(
    `INSERT INTO session VALUES (${Object.keys(columns)
      .map(() => "?")
      .join(", ")})`,
    Object.values(columns) as string[],
  );
  const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
  for (const [index, { id: message, at = index + 10, data, parts = [] }] of messages.entries()) {
    database.run("INSERT INTO message VALUES (?, ?, ?, ?, ?)", [message, id, at, at, text(data)]);
    for (const [number, part] of parts.entries())
      database.run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", [
        `prt_${index}${number}`,
        message,
        id,
        at,
        at,
        text(part),
      ]);
  }
  return home;
}

function recordOf(home: string): NativeRecord {
  const store = readStore(opencode, home, deadlineIn(5_000));
  const reading = store?.rows.find((row) => row.id === id)?.reading;
  if (!reading?.ok) throw new Error(JSON.stringify(store));
  return reading.value;
}

const asked = (...parts: unknown[]): Row => ({
  id: "msg_1",
  at: 10,
  data: { role: "user", time: { created: 10 } },
  parts,
});
const answered = (more: Record<string, unknown>, ...parts: unknown[]): Row => ({
  ...{ id: "msg_2", at: 20, parts },
  data: { role: "assistant", parentID: "msg_1", time: { created: 20 }, ...more },
});
const tool = (name: string, state: Record<string, unknown>) => ({ type: "tool", tool: name, callID: "c", state });
const over = { time: { created: 20, completed: 30 } };

test.each<[string, Row[], Record<string, unknown>]>([
  ["no message", [], { state: "none" }],
  ["a prompt without an answer", [asked()], { state: "open", doubt: { code: "no-answer-yet" } }],
  ["an answer in the making", [asked(), answered({})], { state: "open", since: 10, doubt: null }],
  ["it stopped", [asked(), answered({ ...over, finish: "stop" })], { state: "closed", at: 30, outcome: "completed" }],
  [
    "the output was too long",
    [asked(), answered({ ...over, finish: "length" })],
    { state: "closed", outcome: "completed" },
  ],
  ["between two steps", [asked(), answered({ ...over, finish: "tool-calls" })], { state: "open", doubt: null }],
  [
    "a provider that says stop although there are calls",
    [asked(), answered({ ...over, finish: "stop" }, tool("bash", { status: "completed" }))],
    { state: "open", doubt: null },
  ],
  [
    "a call that the provider ran itself",
    [
      asked(),
      answered(
        { ...over, finish: "stop" },
        { ...tool("search", { status: "completed" }), metadata: { providerExecuted: true } },
      ),
    ],
    { state: "closed", outcome: "completed" },
  ],
  [
    "a person said no",
    [
      asked(),
      answered(
        { ...over, finish: "tool-calls" },
        tool("bash", { status: "error", error: "The user rejected permission to use this specific tool call." }),
      ),
    ],
    { state: "closed", outcome: "completed" },
  ],
  [
    "a person said no, but rather so",
    [
      asked(),
      answered(
        { ...over, finish: "tool-calls" },
        tool("bash", {
          status: "error",
          error: "The user rejected permission to use this specific tool call with the following feedback: rather so",
        }),
      ),
    ],
    { state: "open", doubt: null },
  ],
  [
    "interrupted",
    [asked(), answered({ ...over, error: { name: "MessageAbortedError", data: { message: "Aborted" } } })],
    { state: "closed", outcome: "interrupted" },
  ],
  [
    "refused by the model's server",
    [asked(), answered({ ...over, error: { name: "APIError", data: { message: "no", statusCode: 401 } } })],
    { state: "closed", outcome: "failed", needs: { kind: "login", text: "APIError: no" } },
  ],
  [
    "an error of another kind",
    [asked(), answered({ ...over, error: { name: "UnknownError" } })],
    { state: "closed", outcome: "failed" },
  ],
  [
    "a person's own command",
    [
      asked({ type: "text", synthetic: true, text: "The following tool was executed by the user" }),
      answered(over, tool("bash", { status: "completed" })),
    ],
    { state: "closed", outcome: "completed" },
  ],
  ["over without a word", [asked(), answered(over)], { state: "open", doubt: null }],
  [
    "summarized automatically",
    [asked({ type: "compaction", auto: true }), answered({ ...over, finish: "stop", summary: true })],
    { state: "open", doubt: null },
  ],
  [
    "summed up for a person",
    [asked({ type: "compaction", auto: false }), answered({ ...over, finish: "stop", summary: true })],
    { state: "closed", outcome: "completed" },
  ],
  [
    "a call that may wait for approval",
    [asked(), answered({}, tool("edit", { status: "running", input: { filePath: "/x" } }))],
    { state: "open", doubt: { code: "tool-call-pending" } },
  ],
  [
    "a command that has begun",
    [asked(), answered({}, tool("bash", { status: "running", input: {}, metadata: { output: "" } }))],
    { state: "open", doubt: null },
  ],
  [
    "another tool that says something before it asks",
    [asked(), answered({}, tool("websearch", { status: "running", input: {}, metadata: { provider: "x" } }))],
    { state: "open", doubt: { code: "tool-call-pending" } },
  ],
  [
    "a call that the model is still writing",
    [asked(), answered({}, tool("write", { status: "pending", input: {} }))],
    { state: "open", doubt: null },
  ],
  ["no JSON", [asked(), { id: "msg_2", data: "{" }], { state: "unclear" }],
  ["JSON of another kind", [asked(), { id: "msg_2", data: "[]" }], { state: "unclear" }],
  ["an unknown role", [asked(), { id: "msg_2", data: { role: "system" } }], { state: "unclear" }],
  ["a part that is no JSON", [asked(), answered({ ...over, finish: "stop" }, "{")], { state: "unclear" }],
])("the turn: %s", (_name, messages, turn) => {
  expect(recordOf(storeOf(messages)).turn).toMatchObject(turn);
});

test("a question shows its text, a pending call shows its subject", () => {
  const questions = [{ question: "Which?", options: [{ label: "a" }, { label: "b" }] }];
  const asks = tool("question", { status: "running", input: { questions }, time: { start: 25 } });
  expect(recordOf(storeOf([asked(), answered({}, asks)])).waiting).toEqual({
    ...{ kind: "question", text: "Which?", tool: "question", options: ["a", "b"], since: 25 },
  });
  const edits = tool("edit", { status: "running", input: { filePath: "/x" } });
  expect(recordOf(storeOf([asked(), answered({}, edits)])).pending).toMatchObject({ tool: "edit", text: "/x" });
});

test("a table of an older version without later columns is read", () => {
  const { facts, cwd } = recordOf(storeOf([asked({ type: "text", text: "hello" })]));
  expect({ cwd, ...facts }).toMatchObject({
    cwd: "/home/user/project",
    prompt: "hello",
    tokens: null,
    costUsd: null,
    model: null,
  });
});

test.each<[what: string, child: Record<string, unknown>, parts: unknown[], doubt: object | null]>([
  ["its prompt is not answered yet", { role: "user", time: { created: 30 } }, [], { code: "no-answer-yet" }],
  ["it works", { role: "assistant", time: { created: 30 } }, [], null],
  [
    "its tool may wait for a person",
    { role: "assistant", time: { created: 30 } },
    [tool("edit", { status: "running", input: {} })],
    { code: "tool-call-pending" },
  ],
])("a doubt about a subagent is a doubt about its session: %s", (_what, child, parts, doubt) => {
  const task = tool("task", { status: "running", input: {}, metadata: { sessionId: other } });
  const home = storeOf([asked(), answered({}, task)]);
  using database = new Database(join(home, "opencode.db"));
  database.run("INSERT INTO message VALUES (?, ?, ?, ?, ?)", ["msg_3", other, 30, 30, JSON.stringify(child)]);
  for (const part of parts)
    database.run("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", ["prt_x", "msg_3", other, 30, 30, JSON.stringify(part)]);
  expect(recordOf(home).turn).toMatchObject({ state: "open", doubt });
});

test("a subagent is not a separate session; a default title is no title", () => {
  const record = recordOf(storeOf([], { parent_id: other, title: "Child session - 2026-11-16T05:55:42.497Z" }));
  expect([record.subagentOf, record.parent, record.facts.title]).toEqual([other, null, null]);
});

test("earlier lines do not change during a turn", () => {
  const bash = (state: Record<string, unknown>) =>
    tool("bash", { input: { command: "ls" }, time: { start: 21, end: 29 }, ...state });
  const text = (end?: number) => ({ type: "text", text: end === undefined ? "" : "done", time: { start: 22, end } });
  const steps = [
    [asked({ type: "text", text: "hello" })],
    [asked({ type: "text", text: "hello" }), answered({}, bash({ status: "pending" }), text())],
    [asked({ type: "text", text: "hello" }), answered({}, bash({ status: "running" }), text())],
    [asked({ type: "text", text: "hello" }), answered({}, bash({ status: "completed", output: "x" }), text())],
    [asked({ type: "text", text: "hello" }), answered(over, bash({ status: "completed", output: "x" }), text(29))],
  ];
  const seen = steps.map((messages) => linesOf(storeOf(messages)));
  expect(seen.map((lines) => lines.length)).toEqual([2, 2, 3, 4, 5]);
  for (const lines of seen) expect(seen.at(-1)?.slice(0, lines.length)).toEqual(lines);
  const facts = seen.at(-1)?.map((line) => opencode.parseLine(JSON.parse(line))?.messages[0]);
  expect(facts?.map((message) => message && `${message.role} ${message.text}`)).toEqual([
    undefined,
    ...["user hello", "tool ls", "result x", "agent done"],
  ]);
});

function linesOf(home: string): string[] {
  const record = findRecord(opencode, home, id);
  if (record === null) throw new Error("no record");
  return String(openRecord(record).bytes).trimEnd().split("\n");
}

test("a foreign database has no sessions; an unreadable one is a problem", () => {
  const home = join(folder, "foreign");
  mkdirSync(home);
  using foreign = new Database(join(home, "other.db"));
  foreign.run("CREATE TABLE session (id)");
  foreign.run("INSERT INTO session VALUES ('ses_0000000000000000')");
  writeFileSync(join(home, "opencode-beta.db"), "");
  const store = readStore(opencode, home, deadlineIn(5_000));
  expect([store?.listing, store?.rows]).toEqual([{ ok: true, value: 0 }, []]);
  writeFileSync(join(home, "opencode.db"), "no database at all".repeat(100));
  expect(readStore(opencode, home, deadlineIn(5_000))?.listing.ok).toBe(false);
});

test("files of older versions are read, unless the database has the session", () => {
  const home = storeOf([asked(), answered({ ...over, finish: "stop" })]);
  const write = (path: string, value: unknown): void => {
    mkdirSync(dirname(join(home, "storage", path)), { recursive: true });
    writeFileSync(join(home, "storage", path), typeof value === "string" ? value : JSON.stringify(value));
  };
  const info = { directory: "/home/user/old", title: "Old", version: "0.9", time: { created: 1, updated: 2 } };
  write(`session/global/${other}.json`, { ...info, id: other });
  write(`session/global/${id}.json`, { ...info, id });
  write(`message/${other}/msg_1.json`, { id: "msg_1", role: "user", time: { created: 10 } });
  write(`part/msg_1/prt_1.json`, { type: "text", text: "hello" });
  write(`message/${other}/msg_2.json`, {
    role: "assistant",
    parentID: "msg_1",
    finish: "stop",
    time: { created: 20, completed: 30 },
  });
  write(`part/msg_2/prt_2.json`, { type: "text", text: "done", time: { start: 21, end: 29 } });
  const rows = readStore(opencode, home, deadlineIn(5_000))?.rows ?? [];
  const records = new Map(rows.map((row) => [row.id, row.reading.ok ? row.reading.value : null]));
  expect([...records.keys()].sort()).toEqual([other, id].sort());
  expect(records.get(id)?.cwd).toBe("/home/user/project");
  expect(records.get(other)).toMatchObject({
    cwd: "/home/user/old",
    turn: { state: "closed", at: 30, outcome: "completed" },
    facts: { prompt: "hello", title: "Old" },
  });
  write(`part/msg_2/prt_2.json`, "{");
  const again = readStore(opencode, home, deadlineIn(5_000))?.rows.find((row) => row.id === other)?.reading;
  expect(again?.ok && again.value.turn.state).toBe("unclear");
  write(`session/global/${other}.json`, "{");
  expect(readStore(opencode, home, deadlineIn(5_000))?.rows.find((row) => row.id === other)?.reading.ok).toBe(false);
});

/** Speaks for a server: an answer to each request. */
function talk(directories: string[], answer: (path: string) => unknown): { answer: unknown; asked: string[] } {
  const conversation = opencode.server?.sessions({ secret: "s", directories });
  if (conversation === undefined) throw new Error("no server");
  const heard: string[] = [];
  const requests: string[] = [];
  let sent = conversation.opening;
  for (let rounds = 0; rounds < 20; rounds += 1) {
    let more: string[] = [];
    for (const text of sent) {
      const { path } = JSON.parse(text) as HttpRequest;
      requests.push(path);
      const said = answer(path);
      heard.push(
        JSON.stringify(
          typeof said === "number" ? { status: said, body: "" } : { status: 200, body: JSON.stringify(said) },
        ),
      );
      const step = conversation.next(heard);
      if ("answer" in step) return { answer: step.answer, asked: requests };
      more = [...more, ...step.send];
    }
    sent = more;
  }
  throw new Error("it does not end");
}

const child = "ses_e1d130adfffegZUOq5aHP2dfB1";

test("a server reports busy sessions and questions of subagents, or does not answer", () => {
  const answers: Record<string, unknown> = {
    "/global/health": { healthy: true },
    "/session/status?directory=%2Fa%20b": {
      [id]: { type: "busy" },
      [child]: { type: "busy" },
      [other]: { type: "retry" },
    },
    "/permission?directory=%2Fa%20b": [
      {
        id: "per_1",
        sessionID: child,
        permission: "bash",
        patterns: ["ls"],
        metadata: { command: "ls" },
        tool: { messageID: "msg_1" },
      },
      // Left from a turn that was aborted, of one that is busy again and of one that is not.
      { id: "per_2", sessionID: other, permission: "bash", patterns: ["x"], tool: { messageID: "msg_2" } },
      { id: "per_3", sessionID: "ses_e1d130adfffegZUOq5aHP2dfB2", permission: "bash", tool: { messageID: "msg_3" } },
    ],
    "/question?directory=%2Fa%20b": [],
    [`/session/${child}/message/msg_1`]: { info: { time: { created: 1 } } },
    [`/session/${other}/message/msg_2`]: { info: { time: { created: 1, completed: 2 } } },
    [`/session/${child}`]: { id: child, parentID: id },
    [`/session/${id}`]: { id },
  };
  const waiting = { kind: "permission", text: "ls", tool: "bash", options: ["once", "always", "reject"] };
  const told = talk(["/a b"], (path) => answers[path] ?? 404);
  expect(told.answer).toEqual({
    ok: true,
    value: [
      { id, activity: "waiting", waiting },
      { id: child, activity: "waiting", waiting },
      { id: other, activity: "working", waiting: null },
    ],
  });
  expect(told.asked).toEqual(Object.keys(answers));
  expect(talk([], (path) => answers[path] ?? 404).asked).toEqual(["/global/health"]);
  expect(talk(["/a b"], () => 401).answer).toMatchObject({
    ok: false,
    problem: { detail: { code: "password-needed" } },
  });
  expect(talk(["/a b"], (path) => (path.startsWith("/global") ? {} : 500)).answer).toMatchObject({ ok: false });
});

/** An idle server in a separate process. */
async function idleServer(): Promise<AsyncDisposable & { pid: number }> {
  const answer = `({ url }) => Response.json(url.includes("status") ? {} : url.includes("health") ? { healthy: true } : [])`;
  const script = `Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: ${answer} }); console.log("ready")`;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  await child.stdout.getReader().read();
  return {
    pid: child.pid,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await child.exited;
    },
  };
}

test.each<[what: string, wanted: Selection]>([
  ["everything", "all"],
  ["running sessions", liveOnly],
  ["one session", selectIds([id])],
])("every server of a home is asked about all directories for a selection by %s", async (_what, wanted) => {
  const home = storeOf([asked(), answered({})]);
  const directories: (string | null)[] = [];
  await using idle = await idleServer();
  await using _busy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/global/health") return Response.json({ healthy: true });
      directories.push(searchParams.get("directory"));
      return Response.json(pathname === "/session/status" ? { [id]: { type: "busy" } } : []);
    },
  });
  const env = { HOME: folder, OPENCODE_DB: join(home, "opencode.db") };
  const rows = [idle.pid, process.pid].map((pid) => ({
    ...{ identity: { pid, start: "1", boot: "b" }, parent: 1, session: pid, state: "S", name: "opencode", tty: null },
    ...{ startedAt: 1, detail: detail(["opencode", "serve"], env) },
  }));
  const table: ProcessTable = {
    boot: "b",
    namespace: { id: null, initial: true },
    rows,
    gaps: [],
    hidden: [],
    uid: process.getuid?.() ?? -1,
  };
  const { sessions, problems } = await listSessions({
    ...{ adapters: [opencode], env, selection: wanted },
    processes: () => read(table),
    isMadeUp: true,
  });
  expect(problems).toEqual([]);
  expect([...new Set(directories)]).toEqual(["/home/user/project"]);
  expect(sessions.map((session) => [session.id, session.status.state])).toEqual([[id, "running"]]);
});

test("messages are read one by one, because each may hold a large diff", () => {
  let taken = 0;
  function* messages(): Generator<Record<string, unknown>> {
    for (; taken < 100; taken += 1) yield { id: `msg_${taken}`, data: '{"role":"user"}' };
  }
  const part = { id: "prt_1", data: '{"type":"text","text":"x"}' };
  const rows = (sql: string) => (sql.includes("FROM part") ? [part] : []);
  const reader = { rows, each: messages, json: () => null, names: () => [], unpacked: () => "" };
  const [first] = databaseLines.forward(reader, id);
  expect(first).toMatchObject({ type: "part", message: "msg_0" });
  expect(taken).toBe(0);
});

test("a request that failed and is sent again is a note in the conversation", () => {
  const data = { type: "retry", attempt: 2, error: { name: "APIError", data: { message: "Overloaded" } } };
  expect(opencode.parseLine({ type: "part", at: 5, role: "assistant", id: "prt_1", data })?.messages).toEqual([
    { at: 5, role: "note", text: "request failed: retry 2: APIError: Overloaded", tool: null },
  ]);
});
