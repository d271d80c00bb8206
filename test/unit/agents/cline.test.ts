// What captured files of Cline do not show: its processes, odd records, the words that it is started with.
import { describe, expect, test } from "bun:test";
import type { Reader, RecordFile } from "../../../src/agents/adapter.ts";
import { cline } from "../../../src/agents/cline/index.ts";
import { documents } from "../../../src/agents/cline/lines.ts";
import type { Order } from "../../../src/agents/invocation.ts";
import type { ProcessDetail } from "../../../src/core/process.ts";

const id = "1794812887063_k1qpv";
const where = {
  home: "/home/user/.cline/data",
  supportFolder: "/home/user/.agentctl/support",
  cwd: "/home/user/project",
  at: 0,
};
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
    ["the hub", [binary, "--cline-hub-daemon", "--cwd", "/project", "--port", "25463"], {}, "server"],
    ["the hub by its environment", [binary], { CLINE_RUN_AS_HUB_DAEMON: "1" }, "server"],
    ["for an editor", [binary, "--acp"], {}, "server"],
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

  test("the data folder comes from the environment", () => {
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
  if (!reading.ok) throw new Error(reading.problem.detail.code);
  return reading.value;
}

describe("its records", () => {
  const served = { autoApproveTools: false };
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
    [
      "a word of another version",
      state({ status: "new" }),
      [],
      { state: "unclear", why: { code: "unknown-status", text: "new" } },
    ],
  ])("%s", (_what, manifest, messages, turn) => expect(parsed(manifest, messages).turn).toEqual(turn as never));

  test("a turn in the hub is always unclear", () => {
    const { turn, waiting } = parsed(state({ status: "pending", metadata: served }), [prompt, call("editor", {})]);
    expect([turn, waiting]).toMatchObject([{ state: "open", doubt: { code: "hub-does-not-tell" } }, null]);
  });

  test("a pending question or approval is what the session waits for", () => {
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
    expect([turn, waiting]).toEqual([{ state: "open", since: 1_000, doubt: { code: "tool-call-pending" } }, null]);
  });

  test.each([[null], [[]], [{}], [{ status: "running" }], [state({ session_id: "1794812887063_other" })]])(
    "%p is not a session",
    (manifest) => expect(cline.parseRecord(recordOf(manifest, "nothing")).ok).toBe(false),
  );

  test.each<[what: string, manifest: object, isOver: boolean]>([
    ["a live one", state(), false],
    ["a run that is about to end", state({ status: "completed", interactive: false }), false],
    ["left by an interface that goes on", state({ status: "completed" }), true],
    ["left by the hub", state({ status: "completed", interactive: false, metadata: served }), true],
  ])("the process of a record: %s", (_what, value, isOver) => {
    const announcement = cline.announcements?.parse({ pid: null, path: "/x", writtenAt: 5, value });
    expect(announcement).toMatchObject({ ok: true, value: { session: id, pid: 7, start: null, writtenAt: 5, isOver } });
  });

  test("a process has one session at a time, the hub has many", () => {
    const begunAt = (value: object) => {
      const announcement = cline.announcements?.parse({ pid: null, path: "/x", writtenAt: 5, value });
      return announcement?.ok ? announcement.value.begunAt : null;
    };
    expect(begunAt(state())).toBe(Date.UTC(2026, 0, 1));
    expect(begunAt(state({ metadata: served }))).toBeUndefined();
  });

  test("a record with invalid fields announces no process", () => {
    for (const value of [null, {}, state({ pid: "7" }), state({ session_id: "../x" })])
      expect(cline.announcements?.parse({ pid: null, path: "/x", writtenAt: 5, value }).ok).toBe(false);
  });

  test("refused calls are counted", () => {
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

describe("the command lines of Cline", () => {
  const facts = { ...where, model: null, permission: null, prompt: "do it", extra: [] } as const;
  const start: Order = { ...facts, kind: "new", session: null };
  const { headless, interface: open, permissions, refuses, support, interrupt } = cline.invocation;

  test("a run has a headless command line", () => {
    expect<unknown>(headless(start)).toEqual(["--json", "--", "do it"]);
    expect<unknown>(headless({ ...start, prompt: "-v", model: "m", extra: ["--retries", "1"] })).toEqual(
      "--json|--model|m|--retries|1|--|-v ".split("|"),
    );
  });

  test("our settings remove the tools that a permission forbids", () => {
    const order: Order = { ...start, permission: "read" };
    const path = "/home/user/.agentctl/support/cline-read.json";
    expect<unknown>(headless(order)).toEqual(["--json", "--plan", "--auto-approve", "true", "--", "do it"]);
    expect(permissions.read.environment?.({}, order)).toEqual({ CLINE_GLOBAL_SETTINGS_PATH: path });
    const given = support?.(order);
    expect(given?.path).toBe(path);
    for (const tool of ["editor", "run_commands", "spawn_agent"])
      expect(JSON.parse(given?.text ?? "").disabledTools).toContain(tool);
    expect(JSON.parse(support?.({ ...start, permission: "edit" })?.text ?? "").disabledTools).not.toContain("editor");
    expect(support?.({ ...start, permission: "bypass" })).toBeNull();
  });

  test("an old session is continued only in the interface", () => {
    const more: Order = { ...facts, kind: "continue", session: id };
    const caller = { isRoot: false, env: {} };
    expect<unknown>(open({ ...more, prompt: null })).toEqual(["--id", id]);
    expect(refuses?.(more, caller)).toEqual({ code: "continues-in-interface" });
    expect(refuses?.({ ...more, prompt: null }, caller)).toBeNull();
  });

  test("Escape interrupts the interface, SIGINT interrupts a run", () => {
    expect(interrupt([binary], "/dev/pts/1")).toEqual({ keys: "Escape" });
    expect(interrupt([binary, "do it"], "/dev/pts/1")).toEqual({ signal: "SIGINT" });
    expect(interrupt([binary, "do it"], null)).toEqual({ signal: "SIGINT" });
  });
});
