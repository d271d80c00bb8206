// What captured files of Cline do not show: its processes, odd records, the words that it is started with.
import { describe, expect, test } from "bun:test";
import type { Reader, RecordFile } from "../../../src/adapters/adapter.ts";
import { cline } from "../../../src/adapters/cline.ts";
import { documents } from "../../../src/adapters/cline-lines.ts";
import type { Order } from "../../../src/adapters/invocation.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";

const id = "1794812887063_k1qpv";
const place = { home: "/home/user/.cline/data", own: "/home/user/.agentctl/support", cwd: "/home/user/project", at: 0 };
const binary = "/usr/lib/node_modules/cline/bin/.cline";

const detail = (argv: string[] | null, env: Record<string, string> | null = {}): ProcessDetail => ({
  ...{ uid: 1000, ours: true, argv, exe: argv?.[0] ?? binary, cwd: "/project", env, lockedFiles: [] },
  ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null, unread: [] },
});

describe("its processes", () => {
  test.each<[what: string, argv: string[] | null, env: Record<string, string> | null, role: string | null]>([
    ["npm's starter", ["node", "/usr/bin/cline", "do it"], {}, "helper"],
    ["a run", [binary, "--json", "do it"], {}, "agent"],
    ["an interface", [binary], {}, "agent"],
    ["an interface on a session", [binary, "--id", id], {}, "agent"],
    ["the binary's own package", ["/lib/@cline/cli-linux-x64/bin/cline", "do it"], {}, "agent"],
    ["a prompt that begins like a command", [binary, "update the tests"], {}, "agent"],
    ["another user's", [binary, "do it"], null, "agent"],
    ["the hub", [binary, "--cline-hub-daemon", "--cwd", "/project", "--port", "25463"], {}, "host"],
    ["the hub by its environment", [binary], { CLINE_RUN_AS_HUB_DAEMON: "1" }, "host"],
    ["for an editor", [binary, "--acp"], {}, "host"],
    ["a command", [binary, "history", "--json"], {}, "helper"],
    ["a question", [binary, "--version"], {}, "helper"],
    ["its tool", ["/bin/bash", "-c", "cline"], {}, null],
    ["a node that its tool started", ["node", "server.js"], {}, null],
    ["another agent", ["node", "/usr/bin/qwen"], {}, null],
    ["arguments that cannot be read", null, {}, "agent"],
  ])("%s", (_what, argv, env, role) => expect(cline.role(".cline", detail(argv, env))).toBe(role as never));

  test.each<[argv: string[], id: string | null]>([
    [[binary, "--id", id], id],
    [[binary, `--id=${id}`], id],
    [[binary, "--id", "latest"], null],
    [[binary, "--json", `see --id ${id}`], null],
    [["node", "/usr/bin/cline", "--id", id], null],
  ])("%p", (argv, expected) => expect(cline.argvId(argv)).toBe(expected));

  test("its data folder", () => {
    expect(cline.home({ HOME: "/home/user" })).toBe("/home/user/.cline/data");
    expect(cline.home({ HOME: "/home/user", CLINE_DIR: "/c" })).toBe("/c/data");
    expect(cline.home({ HOME: "/home/user", CLINE_DIR: "/c", CLINE_DATA_DIR: "/d" })).toBe("/d");
    expect(cline.home({})).toBeNull();
    expect(cline.heldHome?.(detail([binary, "--data-dir", "/d"]))).toBe("/d");
    expect(cline.heldHome?.(detail([binary, "--config=/c", "do it"]))).toBe("/c/data");
    expect(cline.heldHome?.(detail([binary, "do it"]))).toBeNull();
    expect(cline.invocation.environmentFor("/d")).toEqual({ CLINE_DATA_DIR: "/d" });
  });
});

const state = (more: object = {}): object => ({
  ...{ version: 1, session_id: id, pid: 7, started_at: "2026-01-01T00:00:00.000Z", status: "running" },
  ...{
    interactive: true,
    model: "m",
    cwd: "/project",
    prompt: '<user_input mode="act">do it</user_input>',
    metadata: {},
  },
  ...more,
});
const prompt = {
  id: "p",
  role: "user",
  ts: 1_000,
  content: [{ type: "text", text: '<user_input mode="act">do it</user_input>' }],
};
const call = (name: string, input: object) => ({
  ...{ id: "c", role: "assistant", ts: 2_000, content: [{ type: "tool_use", id: "t", name, input }] },
});
const answer = { id: "a", role: "assistant", ts: 3_000, content: [{ type: "text", text: "done" }] };

function recordOf(manifest: unknown, messages: unknown): RecordFile {
  const reader = { json: (path?: string) => (path === undefined ? manifest : { messages }) } as Reader;
  const lines = (values: Iterable<unknown>) => [...values].map((value) => ({ ok: true as const, value }));
  return {
    ...{ id, path: `/home/user/.cline/data/sessions/${id}/${id}.json`, size: 1, writtenAt: 9_000, torn: false },
    ...{ startsLikeJson: true, tailBytes: 1, beside: () => null },
    forward: () => lines(documents.forward(reader, id)),
    backward: () => lines(documents.backward(reader, id)),
  };
}

function parsed(manifest: unknown, messages: unknown) {
  const reading = cline.parseRecord(recordOf(manifest, messages));
  if (!reading.ok) throw new Error(reading.problem.message);
  return reading.value;
}

describe("its records", () => {
  const hosted = { autoApproveTools: false };
  test.each<[what: string, manifest: object, messages: object[], turn: object]>([
    ["the first prompt is not recorded yet", state(), [], { state: "open", since: Date.UTC(2026, 0, 1), doubt: null }],
    ["a later prompt is not recorded yet", state(), [prompt, answer], { state: "open", since: 9_000, doubt: null }],
    ["in a tool", state(), [prompt, call("run_commands", {})], { state: "open", since: 1_000, doubt: null }],
    ["begun, and not taken up", state({ status: "idle" }), [], { state: "none" }],
    ["idle", state({ status: "idle" }), [prompt, answer], { state: "closed", at: 3_000, outcome: "completed" }],
    ["idle after Escape", state({ status: "idle" }), [prompt], { state: "closed", at: 1_000, outcome: "interrupted" }],
    [
      "left by a process that died, and marked later",
      state({ status: "failed", ended_at: "2026-01-01T00:00:05.000Z", metadata: { terminal_marker: "x" } }),
      [prompt],
      { state: "closed", at: Date.UTC(2026, 0, 1, 0, 0, 5), outcome: "cut-off" },
    ],
    ["a word of another version", state({ status: "new" }), [], { state: "unclear", why: 'an unknown status: "new"' }],
  ])("%s", (_what, manifest, messages, turn) => expect(parsed(manifest, messages).turn).toEqual(turn as never));

  test("in the hub a turn is never sure", () => {
    const { turn, waiting } = parsed(state({ status: "pending", metadata: hosted }), [prompt, call("editor", {})]);
    expect([turn, waiting]).toMatchObject([{ state: "open", doubt: expect.stringContaining("hub") }, null]);
  });

  test("what it waits for", () => {
    const asks = call("ask_question", { question: "Which?", options: ["red", "blue"] });
    const runs = call("run_commands", { commands: ["ls", "pwd"] });
    const pending = parsed(state({ status: "pending" }), [prompt, runs]);
    expect(pending.waiting).toEqual({
      kind: "permission",
      text: "ls\npwd",
      tool: "run_commands",
      options: [],
      since: 2_000,
    });
    const question = { kind: "question", text: "Which?", tool: "ask_question", options: ["red", "blue"], since: 2_000 };
    expect(parsed(state(), [prompt, asks]).waiting).toEqual(question as never);
    // Begun without an interface: it answers itself, unless it was opened in one since.
    const { turn, waiting } = parsed(state({ interactive: false }), [prompt, asks]);
    expect([turn, waiting]).toEqual([{ state: "open", since: 1_000, doubt: "tool call pending" }, null]);
  });

  test.each([[null], [[]], [{}], [{ status: "running" }], [state({ session_id: "1794812887063_other" })]])(
    "no session of its own: %p",
    (manifest) => expect(cline.parseRecord(recordOf(manifest, "nothing")).ok).toBe(false),
  );

  test.each<[what: string, manifest: object, isOver: boolean]>([
    ["a live one", state(), false],
    ["a run that is about to end", state({ status: "completed", interactive: false }), false],
    ["left by an interface that goes on", state({ status: "completed" }), true],
    ["left by the hub", state({ status: "completed", interactive: false, metadata: hosted }), true],
  ])("its process: %s", (_what, value, isOver) => {
    const claim = cline.parseClaim({ pid: null, path: "/x", writtenAt: 5, value });
    expect(claim).toMatchObject({ ok: true, value: { session: id, pid: 7, start: null, writtenAt: 5, isOver } });
  });

  test("a process has one of its sessions at a time, the hub many", () => {
    const begunAt = (value: object) => {
      const claim = cline.parseClaim({ pid: null, path: "/x", writtenAt: 5, value });
      return claim.ok ? claim.value.begunAt : null;
    };
    expect(begunAt(state())).toBe(Date.UTC(2026, 0, 1));
    expect(begunAt(state({ metadata: hosted }))).toBeUndefined();
  });

  test("a record that names no process", () => {
    for (const value of [null, {}, state({ pid: "7" }), state({ session_id: "../x" })])
      expect(cline.parseClaim({ pid: null, path: "/x", writtenAt: 5, value }).ok).toBe(false);
  });

  test("refused calls", () => {
    const refused = {
      type: "tool_result",
      name: "editor",
      is_error: true,
      content: '{"error":"… was rejected before execution: …"}',
    };
    expect(cline.parseLine({ type: "message", role: "user", content: [refused] })?.denied).toBe(1);
    expect(
      cline.parseLine({ type: "message", role: "user", content: [{ ...refused, content: "no such file" }] })?.denied,
    ).toBe(0);
    expect(cline.parseLine({ type: "other" })).toBeNull();
  });
});

describe("its words", () => {
  const facts = { model: null, permission: null, prompt: "do it", extra: [] } as const;
  const start: Order = { ...facts, kind: "new", session: null };
  const { headless, interface: open, permissions, refuses, support, interrupt } = cline.invocation;

  test("a run", () => {
    expect<unknown>(headless(start, place)).toEqual(["--json", "--", "do it"]);
    expect<unknown>(headless({ ...start, prompt: "-v", model: "m", extra: ["--retries", "1"] }, place)).toEqual(
      "--json|--model|m|--retries|1|--|-v ".split("|"),
    );
  });

  test("tools are taken away by settings of ours", () => {
    const order: Order = { ...start, permission: "read" };
    const path = "/home/user/.agentctl/support/cline-read.json";
    expect<unknown>(headless(order, place)).toEqual(["--json", "--plan", "--auto-approve", "true", "--", "do it"]);
    expect(permissions.read.environment?.({}, place)).toEqual({ CLINE_GLOBAL_SETTINGS_PATH: path });
    const given = support?.(order, place);
    expect(given?.path).toBe(path);
    for (const tool of ["editor", "run_commands", "spawn_agent"])
      expect(JSON.parse(given?.text ?? "").disabledTools).toContain(tool);
    expect(JSON.parse(support?.({ ...start, permission: "edit" }, place)?.text ?? "").disabledTools).not.toContain(
      "editor",
    );
    expect(support?.({ ...start, permission: "bypass" }, place)).toBeNull();
  });

  test("an old session only in its interface", () => {
    const more: Order = { ...facts, kind: "continue", session: id };
    const caller = { isRoot: false, env: {} };
    expect<unknown>(open({ ...more, prompt: null }, place)).toEqual(["--id", id]);
    expect(refuses(more, caller)).toMatch(/only in its own interface/);
    expect(refuses({ ...more, prompt: null }, caller)).toBeNull();
    expect(refuses({ ...facts, kind: "fork", from: id, session: null }, caller)).toMatch(/fork/);
  });

  test("what ends a turn", () => {
    expect(interrupt([binary], "/dev/pts/1")).toEqual({ keys: "Escape" });
    expect(interrupt([binary, "do it"], "/dev/pts/1")).toEqual({ signal: "SIGINT" });
    expect(interrupt([binary, "do it"], null)).toEqual({ signal: "SIGINT" });
  });
});
