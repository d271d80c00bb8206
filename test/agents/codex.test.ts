// The real Codex: the status is checked at the end of every schedule that fixtures are captured from, and at each step of some
// longer ones. After each step the built binary runs once, and its answer must be right at once.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CapturedSession } from "./case.ts";
import { expectList, type Listed, list, rowOf } from "./check-answers.ts";
import { submit, toolRuns } from "./claude-cases.ts";
import { askToLeave, codexCases, ready, recorded, running, say, started, stopped } from "./codex-cases.ts";
import {
  codexBinary,
  createTestHome,
  type Headless,
  lockedThreads,
  readLines,
  rollout,
  type StartOptions,
  type TestHome,
  waitFor,
} from "./test-home.ts";

describe("the captured schedules", () => {
  for (const { name, world: options, run } of codexCases())
    test(name, async () => {
      await using world = await createTestHome(options);
      const { sessions } = await run(world);
      await expectSessions(world, sessions);
    });
});

describe("exec", () => {
  test("working, a tool call, suspended, completed", async () => {
    await using world = await createTestHome();
    const prompt = "look ;; FIRST=I look. ;; HOLD=look ;; BASH=until [ -e go ]; do sleep 0.05; done ;; SAY=done";
    const agent = exec(world, prompt);
    const id = await started(agent);
    await recorded(world, id, "UserMessage");
    const row = (expected: CapturedSession["expected"]): CapturedSession => ({ id, pid: agent.pid, expected });
    await expectSessions(world, [row(running("working", prompt, 0))]);
    expect(await rowOf(world, id)).toMatchObject({
      ...{ link: "announced", served: false, cwd: world.cwd, branch: "main", agentVersion: "0.166.0" },
      permission: "never, danger-full-access",
    });

    world.model.release("look");
    await recorded(world, id, "function_call");
    // With the policy "never" Codex asks no person, so a pending call is a running tool.
    expect(await rowOf(world, id)).toMatchObject({ activity: "working", reasonCode: null, waiting: null });
    agent.signal("SIGSTOP");
    await waitFor("it to stop", () => stateOf(world, agent.pid) === "T");
    expect(await rowOf(world, id)).toMatchObject({
      state: "running",
      reasonCode: "suspended",
      process: { pid: agent.pid },
    });
    agent.signal("SIGCONT");
    writeFileSync(join(world.cwd, "go"), "");
    await agent.exited;
    await expectSessions(world, [{ id, pid: null, expected: stopped("completed", prompt, 2) }]);
  });

  test("when npm's wrapper is killed, the session is still running", async () => {
    await using world = await createTestHome();
    const prompt = "hello ;; HOLD=answer";
    const wrapper = world.start(["codex", "exec", "--json", prompt]);
    const id = await started(wrapper);
    await recorded(world, id, "UserMessage");
    const before = await rowOf(world, id);
    expect(before.process?.pid).not.toBe(wrapper.pid);
    const session = { id, pid: before.process?.pid ?? 0, expected: running("working", prompt, 0) };
    await expectSessions(world, [session]);
    wrapper.signal("SIGKILL");
    await wrapper.exited;
    await expectSessions(world, [session]);
    world.model.release("answer");
    await recorded(world, id, "task_complete");
    await waitFor("its end", () => stateOf(world, session.pid) === null);
    await expectSessions(world, [{ id, pid: null, expected: stopped("completed", prompt, 1) }]);
  });

  test("killed with its lock file left behind, then resumed by codex resume", async () => {
    await using world = await createTestHome();
    const prompt = "wait ;; BASH=tail -f /dev/null";
    const first = exec(world, prompt);
    const id = await started(first);
    await recorded(world, id, "function_call");
    await toolRuns(world);
    first.signal("SIGKILL");
    await first.exited;
    expect(existsSync(join(world.codexHome, "thread-writer-locks", `${id}.lock`))).toBe(true);
    await expectSessions(world, [{ id, pid: null, expected: stopped("cut-off", prompt, 1) }]);
    const again = exec(world, "resume", id, "more ;; HOLD=answer");
    await waitFor("its second turn", () => turns(world, id) === 2);
    await expectSessions(world, [{ id, pid: again.pid, expected: running("working", prompt, 1) }]);
    world.model.release("answer");
    await again.exited;
    await expectSessions(world, [{ id, pid: null, expected: stopped("completed", prompt, 2) }]);
  });

  test("two sessions in one directory, and one in a home that only its process names", async () => {
    await using world = await createTestHome();
    const prompt = "hello ;; HOLD=answer";
    const elsewhere = join(world.dir, "elsewhere");
    const link = join(world.dir, "link-to-elsewhere");
    mkdirSync(elsewhere);
    symlinkSync(elsewhere, link);
    writeFileSync(join(elsewhere, "config.toml"), await Bun.file(join(world.codexHome, "config.toml")).text());
    const agents = [exec(world, prompt), exec(world, prompt), execWith(world, { env: { CODEX_HOME: link } }, prompt)];
    const ids = await Promise.all(agents.map(started));
    for (const id of ids.slice(0, 2)) await recorded(world, id, "UserMessage");
    await waitFor("the third request", () => world.model.requests.length === 3);
    const rows = ids.map((id, index) => ({
      ...{ id, pid: agents[index]?.pid ?? 0 },
      expected: running("working", prompt, 0),
    }));
    await expectSessions(world, rows);
    expect((await rowOf(world, ids[2] ?? "")).home).toBe(elsewhere);
    agents[0]?.signal("SIGKILL");
    agents[2]?.signal("SIGKILL");
    await Promise.all([agents[0]?.exited, agents[2]?.exited]);
    // With its process the other home is out of sight.
    const [one, two] = rows.slice(0, 2);
    await expectSessions(
      world,
      [{ id: one?.id ?? "", pid: null, expected: stopped("cut-off", prompt, 0) }, two].flatMap(present),
    );
  });
});

describe("the terminal interface without the daemon", () => {
  test("trust, fresh, working, Esc, approval, answered, /new, terminal closed, resumed", async () => {
    await using world = await createTestHome({ trust: "ask", codexApproval: "on-request" });
    const tui = world.open([codexBinary()]);
    await tui.shows(/trust/i);
    const [dialog, ...others] = (await list(world)).sessions;
    expect(others).toEqual([]);
    expect(dialog).toMatchObject({ id: null, state: "running", activity: "waiting", process: { pid: tui.pid } });
    expect(dialog?.waiting).toMatchObject({ kind: "trust", text: `Do you trust ${world.cwd}?` });

    tui.press("Enter");
    await ready(tui);
    const id = await waitFor("its lock", () => lockedThreads(tui.pid)[0]);
    expect(await onlyRow(world)).toMatchObject({ id, activity: "unclear", process: { pid: tui.pid }, cwd: world.cwd });

    const prompt = "hello ;; HOLD=answer";
    await say(tui, prompt);
    await recorded(world, id, "UserMessage");
    await waitFor("the request", () => world.model.requests.length > 0);
    expect(await onlyRow(world)).toMatchObject({ id, activity: "working", prompt });
    tui.press("Escape");
    await recorded(world, id, "turn_aborted");
    expect(await onlyRow(world)).toMatchObject({ id, activity: "idle" });

    await say(tui, askToLeave);
    await recorded(world, id, "function_call");
    await tui.shows(/would you like to run/i);
    expect(await onlyRow(world)).toMatchObject({
      id,
      activity: "unclear",
      reasonCode: "tool-call-pending",
      waiting: null,
    });
    tui.press("Enter");
    await recorded(world, id, "task_complete");
    expect(await onlyRow(world)).toMatchObject({ id, activity: "idle", permission: "on-request, workspace-write" });

    await submit(tui, "/new");
    await tui.shows(/Use current Git worktree/);
    tui.press("Enter");
    const second = await waitFor("the new thread", () => lockedThreads(tui.pid).find((thread) => thread !== id));
    await ready(tui);
    const again = "afresh ;; HOLD=afresh";
    await say(tui, again);
    await recorded(world, second, "UserMessage");
    expect(await rowOf(world, second)).toMatchObject({ activity: "working", process: { pid: tui.pid } });
    expect(await rowOf(world, id)).toMatchObject({ activity: "idle", process: { pid: tui.pid } });
    tui.close();
    await tui.exited;
    expect(await rowOf(world, second)).toMatchObject({ state: "stopped", outcome: "cut-off", process: null });
    expect(await rowOf(world, id)).toMatchObject({ state: "stopped", outcome: "completed", process: null });

    const resumed = world.open([codexBinary(), "resume", id]);
    await waitFor("its lock", () => lockedThreads(resumed.pid).includes(id));
    expect(await rowOf(world, id)).toMatchObject({
      state: "running",
      link: "announced",
      process: { pid: resumed.pid },
    });
    const refused = exec(world, "resume", id, "me too");
    expect(await refused.exited).toEqual({ code: 1, signal: null });
    expect(await rowOf(world, id)).toMatchObject({ state: "running", process: { pid: resumed.pid }, processes: [] });
    const owners = (await list(world)).sessions.flatMap(({ process }) => process?.pid ?? []);
    expect(owners).toEqual([resumed.pid]);
  });
});

describe("the terminal interface with the shared daemon", () => {
  test("working, approval, answered, viewers, one killed, /quit, the daemon killed", async () => {
    await using world = await createTestHome({ codexDaemon: "shared", codexApproval: "on-request" });
    const tui = world.open([codexBinary()]);
    await ready(tui);
    const { id, server } = await waitFor("the daemon's thread", () => servedThread(world));
    const served = { id, served: true, process: { pid: server } };
    expect(await onlyRow(world)).toMatchObject({ ...served, activity: "idle", prompt: null });

    await say(tui, askToLeave);
    await recorded(world, id, "function_call");
    await tui.shows(/would you like to run/i);
    expect(await onlyRow(world)).toMatchObject({
      ...{ ...served, activity: "waiting" },
      waiting: { kind: "permission", tool: "exec_command", text: "touch made (May I make it)" },
    });
    tui.press("Enter");
    await recorded(world, id, "task_complete");
    await waitFor("the made file", () => existsSync(join(world.cwd, "made")));
    expect(await onlyRow(world)).toMatchObject({ ...served, activity: "idle", waiting: null });

    const viewer = world.open([codexBinary(), "resume", id]);
    await viewer.shows(/make it/);
    await say(viewer, "hello ;; HOLD=answer");
    await waitFor("its second turn", () => turns(world, id) === 2);
    expect(await onlyRow(world)).toMatchObject({ ...served, activity: "working" });
    for (const each of [viewer, tui]) {
      each.signal("SIGKILL");
      await each.exited;
      expect(await onlyRow(world)).toMatchObject({ ...served, activity: "working", processes: [] });
    }
    world.model.release("answer");
    await waitFor("its end", () => ends(world, id) === 2);
    await expectSoon(world, id, "idle");

    const last = world.open([codexBinary(), "resume", id]);
    await last.shows(/make it/);
    await say(last, "once more ;; HOLD=more");
    await waitFor("its third turn", () => turns(world, id) === 3);
    expect(await onlyRow(world)).toMatchObject({ ...served, activity: "working" });
    last.signal("SIGKILL");
    await last.exited;
    process.kill(server, "SIGKILL");
    await waitFor("its end", () => stateOf(world, server) === null);
    expect(await onlyRow(world)).toMatchObject({ id, state: "stopped", outcome: "cut-off", served: false });
    const { complete, problems } = await list(world);
    expect({ complete, problems }).toEqual({ complete: true, problems: [] });
  });

  test("sessions of the daemon and of exec at the same time", async () => {
    await using world = await createTestHome({ codexDaemon: "shared" });
    const tui = world.open([codexBinary()]);
    await ready(tui);
    const { id, server } = await waitFor("the daemon's thread", () => servedThread(world));
    const prompt = "hello ;; SAY=the answer";
    await say(tui, prompt);
    await recorded(world, id, "task_complete");
    await tui.shows(/• the answer/);
    await submit(tui, "/quit");
    await tui.exited;
    const alone = "alone ;; HOLD=alone";
    const agent = exec(world, alone);
    const other = await started(agent);
    await recorded(world, other, "UserMessage");
    await expectSessions(world, [
      { id, pid: server, expected: running("idle", prompt, 1) },
      { id: other, pid: agent.pid, expected: running("working", alone, 0) },
    ]);
    agent.signal("SIGTERM");
    await agent.exited;
    process.kill(server, "SIGKILL");
    await waitFor("its end", () => stateOf(world, server) === null);
    await expectSessions(world, [
      { id, pid: null, expected: stopped("completed", prompt, 1) },
      { id: other, pid: null, expected: stopped("cut-off", alone, 0) },
    ]);
  });
});

const execWith = (world: TestHome, options: StartOptions, ...args: string[]): Headless =>
  world.start([codexBinary(), "exec", "--json", ...args], options);

const exec = (world: TestHome, ...args: string[]): Headless => execWith(world, {}, ...args);

const present = <T>(value: T | undefined): T[] => (value === undefined ? [] : [value]);

/** The list equals the schedule and the kernel's locks: exactly the process that holds a lock is the owner. */
async function expectSessions(world: TestHome, sessions: readonly CapturedSession[]): Promise<void> {
  const named = sessions.filter(({ id }) => id !== "");
  if (named.length === sessions.length) await expectList(world, "codex", sessions);
  const held = world.processes().flatMap(({ pid }) => lockedThreads(pid).map((thread) => `${thread} ${pid}`));
  const rows = (await list(world)).sessions.filter(({ id, state }) => id !== null && state === "running");
  const isSubagent = (lock: string): boolean =>
    sessions.some(({ expected }) => expected.background !== undefined) && !named.some(({ id }) => lock.startsWith(id));
  expect(rows.map(({ id, process }) => `${id} ${process?.pid}`).sort()).toEqual(
    held.filter((lock) => !isSubagent(lock)).sort(),
  );
}

async function onlyRow(world: TestHome): Promise<Listed> {
  const { sessions } = await list(world);
  const [row] = sessions;
  if (row === undefined || sessions.length > 1) throw new Error(`not one row: ${JSON.stringify(sessions)}`);
  return row;
}

/** The daemon closes a turn in its record a moment before it says so itself. */
const expectSoon = (world: TestHome, id: string, activity: string): Promise<true> =>
  waitFor(`${id} to be ${activity}`, async () => (await rowOf(world, id)).activity === activity);

const stateOf = (world: TestHome, pid: number): string | null =>
  world.processes().find((seen) => seen.pid === pid)?.state ?? null;

const marks = (world: TestHome, id: string, kind: string): number =>
  readLines(rollout(world, id) ?? "").filter((line) => JSON.stringify(line).includes(`"type":"${kind}"`)).length;
const turns = (world: TestHome, id: string): number => marks(world, id, "task_started");
const ends = (world: TestHome, id: string): number => marks(world, id, "task_complete");

function servedThread(world: TestHome): { id: string; server: number } | null {
  for (const { pid, argv } of world.processes())
    if (argv.includes("app-server")) for (const id of lockedThreads(pid)) return { id, server: pid };
  return null;
}
