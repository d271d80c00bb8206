// What captured cases cannot show of OpenClaw: odd shapes, every kind of process, every conversation with its gateway.
import { describe, expect, test } from "bun:test";
import type { Line, Reader, RecordFile, Talk, TalkContext } from "../../../src/agents/adapter.ts";
import { openclaw } from "../../../src/agents/openclaw/index.ts";
import { gateway } from "../../../src/agents/openclaw/server.ts";
import { inputType, stateType } from "../../../src/agents/openclaw/store.ts";
import type { Turn } from "../../../src/core/evidence.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";

const id = "01a1e1c1-092a-4951-96f0-07f6e0ecb1f5";
const other = "01a1e1c0-f45e-40a2-86a3-796f6feecdeb";
const lock = "/home/user/.openclaw/tmp/openclaw-1000/gateway.state.lock.sqlite";

const detail = (change: Partial<ProcessDetail> = {}): ProcessDetail => ({
  ...{ uid: 1000, ours: true, argv: [], exe: "/usr/bin/node", cwd: "/home/user", env: {}, lockedFiles: [] },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
  ...change,
});

describe("processes", () => {
  test.each([
    ["openclaw-gatewa", [lock], "server"],
    ["openclaw-gatewa", [], "server"],
    ["openclaw-agent", [lock], "server"],
    ["openclaw-agent", [], "helper"],
    ["openclaw-tui", [], "helper"],
    ["openclaw", [], "helper"],
    ["node-MainThread", [lock], null],
    ["node", [], null],
  ])("%s that holds %j", (name, lockedFiles, role) => {
    expect(openclaw.role(name, detail({ lockedFiles }))).toBe(role as ReturnType<typeof openclaw.role>);
  });

  test("the files that it has open decide the data folder, not its environment", () => {
    const held = "/home/user/.openclaw-work/tmp/openclaw-1000/gateway.state.lock.sqlite";
    expect(openclaw.heldHome?.(detail({ lockedFiles: [held] }))).toBe("/home/user/.openclaw-work");
    expect(openclaw.heldHome?.(detail())).toBeNull();
  });

  test.each([
    [{ HOME: "/home/user" }, "/home/user/.openclaw"],
    [{ HOME: "/home/user", OPENCLAW_HOME: "~/other" }, "/home/user/other/.openclaw"],
    [{ HOME: "/home/user", OPENCLAW_HOME: "undefined" }, "/home/user/.openclaw"],
    [{ HOME: "/home/user", OPENCLAW_HOME: "/srv", OPENCLAW_STATE_DIR: " ~/state " }, "/home/user/state"],
    [{}, null],
  ])("the data folder of %j", (env, home) => {
    expect(openclaw.home(env as Record<string, string>)).toBe(home);
  });
});

test("a database without tables is new; one with other tables is not understood", () => {
  const none = openclaw.records[0]?.assembled?.sessions;
  const reader = (tables: object[]) =>
    ({ rows: (sql: string) => (sql.includes("sqlite_master") ? tables : [{ session_id: id }]) }) as unknown as Reader;
  expect([...(none?.(reader([]), null) ?? [])]).toEqual([]);
  expect([...(none?.(reader([{ 1: 1 }]), null) ?? [])]).toEqual([{ id }]);
});

describe("a record", () => {
  const state = (change: Record<string, unknown> = {}) => ({
    ...{ type: stateType, session_key: "agent:main:x", created_at: 1000, updated_at: 9000, status: null },
    ...change,
  });
  const at = (ms: number) => new Date(ms).toISOString();
  const user = { type: "message", timestamp: at(2000), message: { role: "user", content: "hello" } };
  const called = { type: "toolCall", id: "c1", name: "exec", arguments: { command: "sleep 5" } };
  const calls = { type: "message", timestamp: at(3000), message: { role: "assistant", content: [called] } };
  const result = { role: "toolResult", toolCallId: "c1", content: [{ type: "text", text: "Aborted" }] };
  const returned = (isError: boolean) => ({ type: "message", timestamp: at(3500), message: { ...result, isError } });
  const injected = {
    ...{ role: "assistant", provider: "openclaw", model: "gateway-injected", stopReason: "stop" },
    content: [{ type: "text", text: "Exec failed" }],
  };
  const told = { type: "message", timestamp: at(3600), message: injected };
  const answer = (stopReason: string, ms: number) => ({
    ...{ type: "message", timestamp: at(ms), message: { role: "assistant", content: [], stopReason } },
  });
  const queued = { type: inputType, state: "queued", at: 5000, message: { role: "user", content: "next" } };
  const run = (status: string, times: Record<string, unknown>) => state({ status, ...times });
  const done = run("done", { started_at: 2500, ended_at: 4000 });

  const cases: [name: string, newestFirst: unknown[], turn: Turn][] = [
    ["before its first prompt", [state()], { state: "none" }],
    ["a prompt that waits", [state(), queued], { state: "open", since: 5000, doubt: null }],
    ["a prompt without a run", [state(), user], { state: "open", since: 2000, doubt: null }],
    ["a run", [run("running", { started_at: 2500 }), user], { state: "open", since: 2500, doubt: null }],
    [
      "a run in a tool",
      [run("running", { started_at: 2500 }), calls, user],
      { state: "open", since: 2500, doubt: { code: "tool-call-pending" } },
    ],
    ["a run that ended", [done, user], { state: "closed", at: 4000, outcome: "completed" }],
    ["one more prompt after it", [done, queued, user], { state: "open", since: 5000, doubt: null }],
    [
      "one more prompt, taken up",
      [done, { ...user, timestamp: at(6000) }],
      { state: "open", since: 6000, doubt: null },
    ],
    [
      "a prompt that was taken back",
      [done, { ...queued, state: "cancelled" }, user],
      { state: "closed", at: 4000, outcome: "completed" },
    ],
    [
      "a turn without a gateway, over",
      [state(), answer("stop", 3000), user],
      { state: "closed", at: 3000, outcome: "completed" },
    ],
    [
      "a turn without a gateway, in a tool",
      [state(), answer("toolUse", 3000), user],
      { state: "open", since: 2000, doubt: null },
    ],
    [
      "a turn without a gateway after one in a gateway",
      [done, answer("error", 7000), { ...user, timestamp: at(6000) }],
      { state: "closed", at: 7000, outcome: "failed" },
    ],
    [
      "an answer without a known end",
      [state(), answer("length", 3000), user],
      { state: "unclear", why: { code: "unknown-ending", text: "length" } },
    ],
    ["killed", [run("killed", { ended_at: 4000 }), user], { state: "closed", at: 4000, outcome: "interrupted" }],
    ["too long", [run("timeout", { ended_at: 4000 }), user], { state: "closed", at: 4000, outcome: "failed" }],
    [
      "too long inside of a tool, which it calls done",
      [done, told, returned(true), calls, user],
      { state: "closed", at: 4000, outcome: "failed" },
    ],
    [
      "a tool that ends the turn",
      [done, returned(false), calls, user],
      { state: "closed", at: 4000, outcome: "completed" },
    ],
    [
      "an unknown status",
      [run("paused", { ended_at: 4000 }), user],
      { state: "unclear", why: { code: "unknown-status", text: "paused" } },
    ],
    [
      "ended, without a time",
      [run("done", { ended_at: null }), user],
      { state: "unclear", why: { code: "no-end-time" } },
    ],
  ];

  test.each(cases)("%s", (_name, lines, turn) => {
    const reading = openclaw.parseRecord(fileOf(lines));
    expect(reading.ok && reading.value.turn).toEqual(turn);
  });

  test("has its own time, because all sessions share the file", () => {
    const reading = openclaw.parseRecord(fileOf([done, user]));
    expect(reading.ok && reading.value.writtenAt).toBe(9000);
  });

  test("has no model and no tokens for messages of the gateway", () => {
    const reading = openclaw.parseRecord(fileOf([done, told, user]));
    expect(reading.ok && reading.value.facts.model).toBeNull();
    expect(openclaw.parseLine({ ...told, id: "m1", message: { ...injected, usage: { input: 0 } } })?.usage).toBeNull();
  });

  test("is not a session without its own row", () => {
    const reading = openclaw.parseRecord(fileOf([user]));
    expect(reading.ok ? null : reading.problem.code).toBe("record-unrecognized");
  });

  test("names its parent, and the id under which it continues", () => {
    const reading = openclaw.parseRecord(fileOf([state({ spawner: other, successor: other, forked_from: "no/id" })]));
    const { subagentOf, continuedBy, parent } = reading.ok ? reading.value : {};
    expect({ subagentOf, continuedBy, parent }).toEqual({ subagentOf: other, continuedBy: other, parent: null });
  });

  test("gives no message for lines of an unknown kind", () => {
    expect(openclaw.parseLine({ type: "hologram" })).toBeNull();
    expect(openclaw.parseLine({ type: "message", message: { role: "ghost" } })).toBeNull();
    expect(openclaw.parseLine(null)).toBeNull();
  });

  function fileOf(newestFirst: unknown[]): RecordFile {
    const lines = newestFirst.map((value): Line => ({ ok: true, value }));
    return {
      ...{ id, path: "/home/user/.openclaw/agents/main/agent/openclaw-agent.sqlite", size: 1, writtenAt: 1 },
      ...{ torn: false, startsLikeJson: true, tailBytes: Number.POSITIVE_INFINITY },
      forward: () => lines.toReversed(),
      backward: () => lines,
      beside: () => null,
    };
  }
});

describe("its gateway", () => {
  const secret = "not-for-anybody";
  const asked: TalkContext = { secret, directories: [] };
  type Said = Record<string, unknown> & { id: string; method: string; params: Record<string, unknown> };
  type Answers = Record<string, unknown | ((params: Record<string, unknown>) => unknown)>;
  const challenge = JSON.stringify({ type: "event", event: "connect.challenge", payload: { nonce: "n" } });
  const noise = JSON.stringify({ type: "event", event: "tick", payload: {} });

  /** Answers every request in turn, with unrequested events in between. */
  function talkWith<T>(talk: Talk<T>, answers: Answers) {
    expect(talk.opening).toEqual([]);
    const heard = [challenge];
    const said: Said[] = [];
    let step = talk.next(heard);
    const waiting: Said[] = [];
    for (;;) {
      if ("answer" in step) return { answer: step.answer, said };
      for (const text of step.send) {
        const request = JSON.parse(text) as Said;
        said.push(request);
        waiting.push(request);
      }
      const [next] = waiting.splice(0, 1);
      if (next === undefined) throw new Error("the conversation does not end");
      heard.push(noise);
      step = talk.next(heard);
      if ("answer" in step || step.send.length > 0) throw new Error("it answers to what was not said to it");
      const given = answers[next.method];
      const payload = typeof given === "function" ? given(next.params) : (given ?? {});
      const isRefused = payload instanceof Error;
      const { id: request } = next;
      const answer = isRefused
        ? { type: "res", id: request, ok: false, error: { message: payload.message } }
        : { type: "res", id: request, ok: true, payload };
      heard.push(JSON.stringify(answer));
      step = talk.next(heard);
    }
  }

  const active = (key: string, sessionId: string, change = {}) => ({ key, sessionId, hasActiveRun: true, ...change });
  const noRequests = { "exec.approval.list": [], "plugin.approval.list": [], "question.list": { questions: [] } };

  test("is read page by page, and only for working sessions", () => {
    const pages: Record<string, unknown> = {
      0: { sessions: [active("a", id), active("b", other, { hasActiveRun: false })], nextOffset: 200 },
      200: { sessions: [active("c", "of-somebody"), active("d", "../no id")], nextOffset: null },
    };
    const list = ({ offset }: Record<string, unknown>) => pages[String(offset)];
    const { answer } = talkWith(gateway.sessions(asked), { ...noRequests, "sessions.list": list });
    expect(answer).toEqual({
      ok: true,
      value: [
        { id, activity: "working", waiting: null },
        { id: "of-somebody", activity: "working", waiting: null },
      ],
    });
  });

  test("leaves a session unclear if it does not report approvals", () => {
    const list = { sessions: [active("a", id)], nextOffset: null };
    const answers = { ...noRequests, "sessions.list": list, "exec.approval.list": new Error("missing scope") };
    const { answer } = talkWith(gateway.sessions(asked), answers);
    expect(answer).toEqual({ ok: true, value: [{ id, activity: "unclear", waiting: null }] });
  });

  test("reports why it refused us, without the token", () => {
    const { answer } = talkWith(gateway.sessions(asked), { connect: new Error(`wrong token ${secret}`) });
    expect(answer.ok ? null : answer.problem.detail).toEqual({ code: "server-refused", text: "wrong token …" });
  });

  test("gets no token if there is none", () => {
    const { said } = talkWith(gateway.sessions({ ...asked, secret: null }), { connect: new Error("no token") });
    expect(said[0]?.params["auth"]).toBeUndefined();
  });

  const found = { "sessions.resolve": { ok: true, key: "agent:main:x", agentId: "main" } };
  const words = ({ said }: { said: Said[] }) => said.map(({ method, params }) => [method, params]).slice(1);

  test("interrupts a session by its key", () => {
    const talked = talkWith(gateway.interrupt(id, asked), { ...found, "sessions.abort": { status: "aborted" } });
    expect(talked.answer).toEqual({ ok: true, value: "interrupted" });
    expect(words(talked)).toEqual([
      ["sessions.resolve", { sessionId: id }],
      ["sessions.abort", { key: "agent:main:x", agentId: "main", clearQueued: true }],
    ]);
  });

  test("sends a message without interrupting a turn", () => {
    const talked = talkWith(gateway.send(id, "hello", "m1", asked), { ...found, "chat.send": { status: "queued" } });
    expect(talked.answer).toEqual({ ok: true, value: "queued" });
    expect(words(talked)[1]).toEqual([
      "chat.send",
      { sessionKey: "agent:main:x", agentId: "main", message: "hello", idempotencyKey: "m1", queueMode: "followup" },
    ]);
  });

  const where = {
    home: "/home/user/.openclaw",
    supportFolder: "/home/me/.agentctl/support",
    cwd: "/home/user/project",
    at: 0,
  };
  const facts = { ...where, model: null, permission: "edit", prompt: "hello", extra: [], maxTimeMs: 9000 } as const;

  test("starts a new session", () => {
    const answers = { "sessions.create": { key: "k", sessionId: id, runStarted: true } };
    const talked = talkWith(must(gateway.create?.({ ...facts, kind: "new", session: null }, "m1", asked)), answers);
    expect(talked.answer).toEqual({ ok: true, value: id });
    expect(words(talked)).toEqual([
      ["sessions.create", { message: "hello", cwd: where.cwd, permissionMode: "guarded", timeoutMs: 9000 }],
    ]);
  });

  test("has not started a session if the run failed", () => {
    const answers = { "sessions.create": { sessionId: id, runStarted: false, runError: { message: "no model" } } };
    const { answer } = talkWith(must(gateway.create?.({ ...facts, kind: "new", session: null }, "m1", asked)), answers);
    expect(answer.ok ? null : answer.problem.detail).toEqual({ code: "server-refused", text: "no model" });
  });

  test("starts another turn with another permission", () => {
    const order = { ...facts, kind: "continue", session: id, permission: "read", maxTimeMs: null } as const;
    const talked = talkWith(must(gateway.create?.(order, "m1", asked)), { ...found, "chat.send": {} });
    expect(talked.answer).toEqual({ ok: true, value: id });
    expect(words(talked).map(([method]) => method)).toEqual(["sessions.resolve", "sessions.patch", "chat.send"]);
    expect(words(talked)[1]?.[1]).toEqual({ key: "agent:main:x", agentId: "main", permissionMode: "read-only" });
  });

  test.each([
    ['{"gateway":{"auth":{"mode":"token","token":"t1"}}}', "t1"],
    ['{"gateway":{"auth":{"mode":"password","password":"p1"}}}', "p1"],
    ["// mine\n{ gateway: { auth: { mode: 'token', token: 't2', }, }, }", "t2"],
    ['{"gateway":{"auth":{"token":{"source":"env"}}}}', null],
    ["", null],
  ])("the token in %s", (text, token) => {
    expect(gateway.secret?.find(text)).toBe(token as string);
  });

  const must = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error("it begins nothing");
    return value;
  };
});

describe("the supported actions", () => {
  const { invocation } = openclaw;
  const where = { home: "/home/user/.openclaw", supportFolder: "/home/me/.agentctl/support", cwd: "/home/user", at: 0 };
  const order = { ...where, model: null, permission: null, prompt: null, extra: [] } as const;

  test("the interface opens a session by key and cannot fork", () => {
    const words = invocation.interface({ ...order, kind: "continue", session: "agent:main:x" });
    expect<unknown>(words).toEqual(["tui", "--session", "agent:main:x"]);
    expect(invocation.interface({ ...order, kind: "fork", session: null, from: id })).toBeNull();
  });

  test("extra arguments are refused", () => {
    const caller = { isRoot: false, env: {} };
    expect(invocation.refuses?.({ ...order, kind: "new", session: null }, caller)).toBeNull();
    expect(invocation.refuses?.({ ...order, kind: "new", session: null, extra: ["-x"] }, caller)).toEqual({
      code: "takes-no-arguments",
    });
  });

  test.each([
    [null, true],
    ["{}", true],
    ["{ json5: true }", true],
    ['{"tools":{"exec":{"mode":"full"}}}', true],
    ['{"tools":{"exec":{"mode":"ask"}}}', false],
    ['{"agents":{"defaults":{"sandbox":{"mode":"all"}}}}', false],
  ])("with the settings %s", (text, isBypass) => {
    expect(invocation.ownSetting.judge([text], []).isBypass).toBe(isBypass);
  });
});
