// A later command runs the on-exit hook of a launch only if its agent is proven to be gone and no other process runs the hook.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HookRun, type ReadHookRun, readHookRun, writeHookRun } from "../../src/control/hooks/hook-run.ts";
import { isExitHookDue } from "../../src/control/hooks/start-runner.ts";
import { type ReadNote, unsaid } from "../../src/control/notes.ts";
import type { ProcessRow } from "../../src/core/process.ts";
import {
  announcement,
  badRecord,
  derive,
  evidence,
  homeOf,
  type PartialEvidence,
  problem,
  process,
  record,
  store,
} from "./core/build-evidence.ts";

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
/** A process whose environment cannot be read. */
const unreadable = (pid: number, session: number): ProcessRow =>
  process(pid, "speaker", { session, env: null, unread: [problem("process-unreadable", `/proc/${pid}/environ`)] });
const running = (pid: number, row: ProcessRow): PartialEvidence => ({
  processes: [row],
  stores: [store("speaker", [record("s1")], [announcement(pid, "s1")])],
});
const named = (name: string, argv: string[]): ProcessRow => process(50, "mute", { name, argv });

const stopped: PartialEvidence = { stores: [store("speaker", [record("s1")])] };
const nothing: PartialEvidence = { stores: [store("speaker", [])] };
const inside = { table: { namespace: { id: "pid:[2]", initial: false } } };

test.each<[string, boolean, ReadNote, PartialEvidence]>([
  ["its session is stopped", true, note(), stopped],
  ["the launch has no on-exit hook", false, note({ hooks: { start: "true", exit: null } }), stopped],
  ["the hook has ended", false, note(begun("ended")), stopped],
  ["the hook is running", false, note(begun("running")), stopped],
  ["it is not known whether the hook is running", false, note(begun("unknown")), stopped],
  ["the hook was cut off", true, note(begun("cut-off")), stopped],
  ["its agent lives, the holder was killed", false, note(), running(60, tagged(60))],
  ["its agent lives, the holder wrote a status", false, note({ exit: { status: 0 } }), running(60, tagged(60))],
  ["its agent lives, and its environment cannot be read", false, note(), running(60, unreadable(60, 50))],
  [
    "the environment of an agent cannot be read, the holder wrote a status",
    false,
    note({ exit: { status: 0 } }),
    running(60, unreadable(60, 50)),
  ],
  [
    "an agent whose environment cannot be read is in the kernel session of a shell",
    true,
    note({ exit: { status: 0 } }),
    { ...stopped, processes: [unreadable(60, 55), process(55, "mute", { name: "bash", argv: ["bash"] })] },
  ],
  [
    "nothing was recorded, and the environment of a process in its kernel session cannot be read",
    false,
    note(),
    { ...nothing, processes: [process(60, "mute", { session: 50, name: "sh", argv: ["sh"], env: null })] },
  ],
  ["another process has its session now", true, note(), running(60, process(60, "speaker"))],
  ["an agent in another kernel session inherited its tag", true, note(), running(60, tagged(60, 60))],
  [
    "its holder lives",
    false,
    note(),
    { ...stopped, processes: [named("sh", ["sh", "-c", "…", "agentctl-holder", "/x", launch])] },
  ],
  [
    "a runner of its hook lives",
    false,
    note(),
    { ...stopped, processes: [named("agentctl", ["agentctl", "run-hook", "exit", launch, "/x"])] },
  ],
  [
    "a runner of another launch lives",
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
])("%s: %p", (_name, expected, given, partial) => {
  const table = evidence(partial).processes;
  if (!table.ok) throw new Error("no table");
  expect(isExitHookDue(given, { list: derive(partial), table: table.value })).toBe(expected);
});

test("the record of a hook is read as it was written; a broken one is ignored", () => {
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
