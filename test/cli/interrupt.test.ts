// agentctl interrupt ends the turn of a session, keeps the session, and touches no other process.
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { paneOf, typeInPane } from "../../src/control/tmux.ts";
import { readProcess } from "../../src/observe/processes.ts";
import { binary } from "./test-home.ts";
import {
  AtTerminal,
  isAlive,
  lastType,
  promptsOf,
  recordPath,
  Server,
  ServerTestHome,
  story,
  Tmux,
  until,
} from "./test-home-servers.ts";

const short = (id: string): string => id.slice(0, 8);
const busy = "tool:until [ -e go ]; do sleep 0.02; done";

/** Launched, and in its tool. */
async function working(stage: ServerTestHome, ...flags: string[]): Promise<string> {
  const id = await stage.launch(busy, ...flags);
  await until("the tool", () => lastType(stage, id) === "tool");
  return id;
}

describe("a headless agent", () => {
  test("ends with its turn and its tool, and can be continued", async () => {
    await using stage = new ServerTestHome();
    const id = await working(stage);
    expect(await stage.run(["interrupt", id])).toEqual({ code: 0, out: `${short(id)} is interrupted\n`, err: "" });
    expect(story(stage, id).at(-1)).toEqual({ type: "end", outcome: "interrupted" });
    await until("everything's end", () => stage.pids().length === 0);
    expect((await stage.run(["send", id, "go on"])).code).toBe(0);
    await stage.wait(id);
    expect(promptsOf(stage, id)).toEqual([busy, "go on"]);
    expect((await stage.list()).sessions).toMatchObject([{ id, outcome: "completed" }]);
  });

  test("is interrupted even if it is suspended", async () => {
    await using stage = new ServerTestHome();
    const id = await working(stage);
    const { process: agent } = await stage.until(id, "working");
    process.kill(agent?.pid ?? 0, "SIGSTOP");
    expect(await stage.run(["interrupt", id])).toMatchObject({ code: 0, out: `${short(id)} is interrupted\n` });
  });

  test("that ignores the signal is still working: exit 6", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.launch(`ignore:SIGINT\n${busy}`);
    await until("the tool", () => lastType(stage, id) === "tool");
    expect(await stage.run(["interrupt", id, "--timeout", "1s"])).toEqual({
      code: 6,
      out: `${short(id)} is working\n`,
      err: "",
    });
  }, 25_000);

  test("is found by its pid or from its directory", async () => {
    await using stage = new ServerTestHome();
    for (const way of ["pid", "place"]) {
      const id = await working(stage);
      const { process: agent } = await stage.until(id, "working");
      const reference = way === "pid" ? `pid:${agent?.pid}` : ".";
      const answer = await stage.run(["interrupt", reference], { cwd: stage.folder("work") });
      expect(answer).toEqual({ code: 0, out: `${short(id)} is interrupted\n`, err: "" });
      await until("everything's end", () => stage.pids().length === 0);
    }
  });

  test("prints its current state with --json", async () => {
    await using stage = new ServerTestHome();
    const id = await working(stage);
    expect(await stage.json("interrupt", id)).toMatchObject({ id, state: "stopped", outcome: "interrupted" });
  });
});

describe("without a turn", () => {
  test("an idle agent is left alone", async () => {
    await using stage = new ServerTestHome();
    const agent = stage.start(["prompt:x", "end", "idle"]);
    await stage.until(agent.id, "idle");
    const before = story(stage, agent.id);
    const out = `${short(agent.id)} is idle: no turn was running\n`;
    expect(await stage.run(["interrupt", agent.id])).toEqual({ code: 0, out, err: "" });
    expect(isAlive(agent.pid)).toBe(true);
    expect(story(stage, agent.id)).toEqual(before);
  });

  test("a stopped session is reported as stopped", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const out = `${short(id)} is completed: no turn was running\n`;
    expect(await stage.run(["interrupt", id])).toEqual({ code: 0, out, err: "" });
  });

  test("an unknown session is not called idle: exit 8", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    rmSync(recordPath(stage, id));
    mkdirSync(recordPath(stage, id));
    const { code, out, err } = await stage.run(["interrupt", id]);
    expect([code, out]).toEqual([8, ""]);
    expect(err).toContain(`cannot tell whether ${short(id)} is running`);
  });
});

test("a served session: the server ends the turn and keeps running", async () => {
  await using stage = new ServerTestHome();
  const server = new Server(stage);
  const id = await server.start("Fix it");
  expect(await stage.run(["interrupt", id])).toEqual({ code: 0, out: `${short(id)} is idle\n`, err: "" });
  expect(story(stage, id).at(-1)).toEqual({ type: "end", outcome: "interrupted" });
  expect(await stage.run(["interrupt", id])).toMatchObject({
    code: 0,
    out: `${short(id)} is idle: no turn was running\n`,
  });
  expect(isAlive(server.pid)).toBe(true);
});

describe("several", () => {
  test("by name print one line each", async () => {
    await using stage = new ServerTestHome();
    const [first, second] = [await working(stage), await working(stage, "--share")];
    const third = await stage.past("first", "--share");
    const { code, out } = await stage.run(["interrupt", second, first, third]);
    expect(code).toBe(0);
    expect(out).toBe(
      `${short(second)} is interrupted\n${short(first)} is interrupted\n${short(third)} is completed: no turn was running\n`,
    );
  });

  test("of a group are interrupted, and no other session", async () => {
    await using stage = new ServerTestHome();
    const ours = [await working(stage, "--group", "g"), await working(stage, "--group", "g", "--share")];
    const other = await working(stage, "--share");
    const rows = await stage.json<{ id: string; outcome: string }[]>("interrupt", "--group", "g");
    expect(rows.map(({ id, outcome }) => [id, outcome]).sort()).toEqual(ours.map((id) => [id, "interrupted"]).sort());
    await stage.until(other, "working");
    expect((await stage.run(["interrupt", "--group", "none"])).code).toBe(3);
  });

  test("are not interrupted if one of them cannot be", async () => {
    await using stage = new ServerTestHome();
    const id = await working(stage);
    const weak = weaklyLinked(stage);
    await stage.until(weak.id, "working");
    const { code, err } = await stage.run(["interrupt", id, weak.id]);
    expect([code, err]).toEqual([5, expect.stringContaining(`cannot be sure which process has ${short(weak.id)}`)]);
    await stage.until(id, "working");
    expect(isAlive(weak.pid)).toBe(true);
  });
});

/** Its arguments alone say which session it has. */
const weaklyLinked = (stage: ServerTestHome) =>
  stage.start(["--no-announce", "prompt:x", "work:600"], { cwd: stage.folder("elsewhere") });

test("a process that is linked only by its arguments is signalled only with -y", async () => {
  await using stage = new ServerTestHome();
  const { id, pid } = weaklyLinked(stage);
  expect((await stage.until(id, "working")).link).toBe("argv");
  const { code, out, err } = await stage.run(["interrupt", id]);
  expect([code, out]).toEqual([5, ""]);
  expect(err).toContain(`cannot be sure which process has ${short(id)}: pid ${pid} matches only by its arguments\n`);
  expect([isAlive(pid), lastType(stage, id)]).toEqual([true, "prompt"]);
  expect(await stage.run(["interrupt", id, "-y"])).toMatchObject({ code: 0, out: `${short(id)} is interrupted\n` });
});

describe("keys, typed in a tmux pane", () => {
  async function catIn(
    stage: ServerTestHome,
  ): Promise<{ tmux: Tmux; pane: string; row: NonNullable<ReturnType<typeof readProcess>> }> {
    const tmux = new Tmux(stage);
    const pane = await tmux.open("-s", "main", "cat", "-v");
    const pid = Number(await tmux.ask(pane, "#{pane_pid}"));
    // A moment before, it is still a copy of the tmux server.
    await until("cat", async () => readProcess(pid)?.name === "cat");
    const row = readProcess(pid, "with details");
    if (row === null) throw new Error("cat is gone");
    return { tmux, pane, row };
  }

  test("reach the program, and no other pane", async () => {
    await using stage = new ServerTestHome();
    const { tmux, pane, row } = await catIn(stage);
    const other = await tmux.run("split-window", "-t", pane, "-P", "-F", "#{pane_id}", "cat", "-v");
    const found = await paneOf(row, stage.env);
    expect(found).toMatchObject({ id: pane, name: "main:0.0", session: "main" });
    if (found === null) return;
    expect(await typeInPane(found, "Escape", stage.env)).toBe(true);
    await until("the key", async () => (await tmux.screen(pane)) === "^[");
    expect(await tmux.screen(other)).toBe("");
  });

  test("reach the program even if the pane is scrolled back", async () => {
    await using stage = new ServerTestHome();
    const { tmux, pane, row } = await catIn(stage);
    const found = await paneOf(row, stage.env);
    await tmux.run("copy-mode", "-t", pane);
    expect(found !== null && (await typeInPane(found, "Escape", stage.env))).toBe(true);
    await until("the key", async () => (await tmux.screen(pane)) === "^[");
    expect(await tmux.ask(pane, "#{pane_in_mode}")).toBe("0");
  });

  test("are not typed if the pane is gone", async () => {
    await using stage = new ServerTestHome();
    const { tmux, pane, row } = await catIn(stage);
    const found = await paneOf(row, stage.env);
    await tmux.open("-s", "stays", "cat");
    await tmux.run("kill-pane", "-t", pane);
    expect(found !== null && (await typeInPane(found, "Escape", stage.env))).toBe(false);
  });

  test("are not typed into a terminal that is not a pane", async () => {
    await using stage = new ServerTestHome();
    await catIn(stage);
    const id = crypto.randomUUID();
    const { pid } = new AtTerminal(stage, [binary, "demo-agent", "--session-id", id, "idle"]);
    const row = readProcess(pid);
    expect(row !== null && (await paneOf(row, stage.env))).toBeNull();
  });
});
