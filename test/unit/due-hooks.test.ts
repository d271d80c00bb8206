// When on-exit of a launch may be run by a later command: only when its agent is provably gone and nobody is at it.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isExitHookDue } from "../../src/control/due-hooks.ts";
import { type HookRun, type ReadHookRun, readHookRun, writeHookRun } from "../../src/control/hook-runs.ts";
import { type ReadNote, unsaid } from "../../src/control/notes.ts";
import type { ProcessRow } from "../../src/core/process.ts";
import {
  badRecord,
  claim,
  derive,
  evidence,
  homeOf,
  problem,
  process,
  record,
  store,
  type World,
} from "./core/world.ts";

const launch = "3b0c1f0e-8a53-4d52-9f0e-0d3c7a5a9d11";

const run: HookRun = {
  runner: { pid: 70, start: "7000", boot: "boot-1" },
  process: null,
  attempts: 1,
  begunAt: "2026-11-15T12:00:00.000Z",
  endedAt: null,
  status: null,
  timedOut: false,
  late: false,
  problem: null,
};

const note = (change: Partial<ReadNote> = {}): ReadNote => ({
  ...unsaid,
  id: launch,
  agent: "speaker",
  home: homeOf("speaker"),
  session: "s1",
  at: "2026-11-15T11:00:00.000Z",
  hooks: { start: null, exit: "true" },
  exit: null,
  hookRuns: { start: null, exit: null },
  ...change,
});

const begun = (state: ReadHookRun["state"]): Partial<ReadNote> => ({
  hookRuns: { start: null, exit: { ...run, state } },
});

const tagged = (pid: number, session = 50): ProcessRow =>
  process(pid, "speaker", { session, env: { HOME: "/home/me", AGENTCTL_TAG: launch, AGENTCTL_TAG_SID: "50" } });
/** Its environment is not for our eyes. */
const unreadable = (pid: number, session: number): ProcessRow =>
  process(pid, "speaker", { session, env: null, unread: [problem("process-unreadable", `/proc/${pid}/environ`)] });
const running = (pid: number, row: ProcessRow): World => ({
  processes: [row],
  stores: [store("speaker", [record("s1")], [claim(pid, "s1")])],
});
const named = (name: string, argv: string[]): ProcessRow => process(50, "mute", { name, argv });

const stopped: World = { stores: [store("speaker", [record("s1")])] };
const nothing: World = { stores: [store("speaker", [])] };
const inside = { table: { namespace: { id: "pid:[2]", initial: false } } };

test.each<[string, boolean, ReadNote, World]>([
  ["its session is stopped", true, note(), stopped],
  ["nobody wished for it", false, note({ hooks: { start: "true", exit: null } }), stopped],
  ["it was run", false, note(begun("ended")), stopped],
  ["it is being run", false, note(begun("running")), stopped],
  ["whether it is being run cannot be told", false, note(begun("unknown")), stopped],
  ["it was cut off", true, note(begun("cut-off")), stopped],
  ["its agent lives, the holder was killed", false, note(), running(60, tagged(60))],
  ["its agent lives, the holder wrote a status", false, note({ exit: { status: 0 } }), running(60, tagged(60))],
  ["its agent lives, and whose it is cannot be read", false, note(), running(60, unreadable(60, 50))],
  [
    "whose an agent is cannot be read, the holder wrote a status",
    false,
    note({ exit: { status: 0 } }),
    running(60, unreadable(60, 50)),
  ],
  [
    "an agent that cannot be read works in somebody's terminal",
    true,
    note({ exit: { status: 0 } }),
    { ...stopped, processes: [unreadable(60, 55), process(55, "mute", { name: "bash", argv: ["bash"] })] },
  ],
  [
    "nothing was recorded, and whether a process carries its tag cannot be read",
    false,
    note(),
    { ...nothing, processes: [process(60, "mute", { session: 50, name: "sh", argv: ["sh"], env: null })] },
  ],
  ["somebody else has its session now", true, note(), running(60, process(60, "speaker"))],
  ["its tag was inherited by somebody else's agent", true, note(), running(60, tagged(60, 60))],
  [
    "its holder lives",
    false,
    note(),
    { ...stopped, processes: [named("sh", ["sh", "-c", "…", "agentctl-holder", "/x", launch])] },
  ],
  [
    "a runner is at it",
    false,
    note(),
    { ...stopped, processes: [named("agentctl", ["agentctl", "run-hook", "exit", launch, "/x"])] },
  ],
  [
    "the runner of another one lives",
    true,
    note(),
    { ...stopped, processes: [named("agentctl", ["agentctl", "run-hook", "exit", "other", "/x"])] },
  ],
  [
    "the process table has gaps",
    false,
    note(),
    { ...stopped, table: { gaps: [problem("processes-unreadable", "/proc/7")] } },
  ],
  ["its record cannot be read", true, note({ exit: { status: 0 } }), { stores: [store("speaker", [badRecord("s1")])] }],
  [
    "its session may run in another container",
    false,
    note(),
    { stores: [store("speaker", [record("s1")], [], { onRootDevice: false })], ...inside },
  ],
  ["nothing was recorded", true, note(), nothing],
  [
    "nothing was recorded, and a process carries its tag",
    false,
    note(),
    { ...nothing, processes: [{ ...tagged(60), name: "sh" }] },
  ],
  ["nothing was recorded, in a pid namespace", false, note(), { ...nothing, ...inside }],
  [
    "nothing was recorded, in a pid namespace; its holder wrote a status",
    true,
    note({ exit: { status: 0 } }),
    { ...nothing, ...inside },
  ],
])("%s: %p", (_name, expected, given, world) => {
  const table = evidence(world).processes;
  if (!table.ok) throw new Error("no table");
  expect(isExitHookDue(given, { list: derive(world), table: table.value })).toBe(expected);
});

test("what was written about a hook is read again; garbage is nothing", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentctl-hooks-"));
  const path = join(folder, "run");
  try {
    expect(readHookRun(path)).toBeNull();
    writeHookRun(path, run);
    expect(readHookRun(path)).toEqual({ ...run, state: "cut-off" });
    const over = { ...run, endedAt: "2026-11-15T12:00:01.000Z", status: 3, timedOut: true, late: true };
    writeHookRun(path, over);
    expect(readHookRun(path)).toEqual({ ...over, state: "ended" });
    for (const text of ["", "{", "null", "[]", '{"schema":2}', '{"schema":1,"runner":{"pid":-1}}', "\0\0"]) {
      writeFileSync(path, text);
      expect(readHookRun(path)).toBeNull();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
