// agentctl interrupt: the turn ends, the session stays, and nothing is touched that was not meant.
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { paneOf, typeInPane } from "../../src/control/tmux.ts";
import { readProcess } from "../../src/observe/processes.ts";
import { AtTerminal, Host, isAlive, lastType, promptsOf, recordPath, Stage, story, Tmux, until } from "./live.ts";
import { binary } from "./world.ts";

const short = (id: string): string => id.slice(0, 8);
const busy = "tool:until [ -e go ]; do sleep 0.02; done";

/** Launched, and in its tool. */
async function working(stage: Stage, ...flags: string[]): Promise<string> {
  const id = await stage.launch(busy, ...flags);
  await until("the tool", () => lastType(stage, id) === "tool");
  return id;
}

describe("a headless agent", () => {
  test("ends with its turn, its tool too, and can be continued", async () => {
    await using stage = new Stage();
    const id = await working(stage);
    expect(await stage.run(["interrupt", id])).toEqual({ code: 0, out: `${short(id)} is interrupted\n`, err: "" });
    expect(story(stage, id).at(-1)).toEqual({ type: "end", outcome: "interrupted" });
    await until("everything's end", () => stage.pids().length === 0);
    expect((await stage.run(["send", id, "go on"])).code).toBe(0);
    await stage.wait(id);
    expect(promptsOf(stage, id)).toEqual([busy, "go on"]);
    expect((await stage.list()).sessions).toMatchObject([{ id, outcome: "completed" }]);
  });

  test("a suspended one, too", async () => {
    await using stage = new Stage();
    const id = await working(stage);
    const { process: agent } = await stage.until(id, "working");
    process.kill(agent?.pid ?? 0, "SIGSTOP");
    expect(await stage.run(["interrupt", id])).toMatchObject({ code: 0, out: `${short(id)} is interrupted\n` });
  });

  test("one that ignores it: exit 6, still working", async () => {
    await using stage = new Stage();
    const id = await stage.launch(`ignore:SIGINT\n${busy}`);
    await until("the tool", () => lastType(stage, id) === "tool");
    expect(await stage.run(["interrupt", id, "--timeout", "1s"])).toEqual({
      code: 6,
      out: `${short(id)} is working\n`,
      err: "",
    });
  }, 25_000);

  test("called by its pid, or from its place", async () => {
    await using stage = new Stage();
    for (const way of ["pid", "place"]) {
      const id = await working(stage);
      const { process: agent } = await stage.until(id, "working");
      const reference = way === "pid" ? `pid:${agent?.pid}` : ".";
      const answer = await stage.run(["interrupt", reference], { cwd: stage.folder("work") });
      expect(answer).toEqual({ code: 0, out: `${short(id)} is interrupted\n`, err: "" });
      await until("everything's end", () => stage.pids().length === 0);
    }
  });

  test("--json is the session as it is now", async () => {
    await using stage = new Stage();
    const id = await working(stage);
    expect(await stage.json("interrupt", id)).toMatchObject({ id, state: "stopped", outcome: "interrupted" });
  });
});

describe("without a turn", () => {
  test("an idle agent is left alone", async () => {
    await using stage = new Stage();
    const agent = stage.start(["prompt:x", "end", "idle"]);
    await stage.until(agent.id, "idle");
    const before = story(stage, agent.id);
    const out = `${short(agent.id)} is idle: no turn was going on\n`;
    expect(await stage.run(["interrupt", agent.id])).toEqual({ code: 0, out, err: "" });
    expect(isAlive(agent.pid)).toBe(true);
    expect(story(stage, agent.id)).toEqual(before);
  });

  test("a stopped one", async () => {
    await using stage = new Stage();
    const id = await stage.past("first");
    const out = `${short(id)} is completed: no turn was going on\n`;
    expect(await stage.run(["interrupt", id])).toEqual({ code: 0, out, err: "" });
  });

  test("unknown is not idle: exit 8", async () => {
    await using stage = new Stage();
    const id = await stage.past("first");
    rmSync(recordPath(stage, id));
    mkdirSync(recordPath(stage, id));
    const { code, out, err } = await stage.run(["interrupt", id]);
    expect([code, out]).toEqual([8, ""]);
    expect(err).toContain(`cannot tell whether ${short(id)} is running`);
  });
});

test("a hosted session: its host ends the turn, and lives", async () => {
  await using stage = new Stage();
  const host = new Host(stage);
  const id = await host.start("Fix it");
  expect(await stage.run(["interrupt", id])).toEqual({ code: 0, out: `${short(id)} is idle\n`, err: "" });
  expect(story(stage, id).at(-1)).toEqual({ type: "end", outcome: "interrupted" });
  expect(await stage.run(["interrupt", id])).toMatchObject({
    code: 0,
    out: `${short(id)} is idle: no turn was going on\n`,
  });
  expect(isAlive(host.pid)).toBe(true);
});

describe("several", () => {
  test("by name, one line each", async () => {
    await using stage = new Stage();
    const [first, second] = [await working(stage), await working(stage, "--share")];
    const third = await stage.past("first", "--share");
    const { code, out } = await stage.run(["interrupt", second, first, third]);
    expect(code).toBe(0);
    expect(out).toBe(
      `${short(second)} is interrupted\n${short(first)} is interrupted\n${short(third)} is completed: no turn was going on\n`,
    );
  });

  test("a group, and nobody else", async () => {
    await using stage = new Stage();
    const ours = [await working(stage, "--group", "g"), await working(stage, "--group", "g", "--share")];
    const other = await working(stage, "--share");
    const rows = await stage.json<{ id: string; outcome: string }[]>("interrupt", "--group", "g");
    expect(rows.map(({ id, outcome }) => [id, outcome]).sort()).toEqual(ours.map((id) => [id, "interrupted"]).sort());
    await stage.until(other, "working");
    expect((await stage.run(["interrupt", "--group", "none"])).code).toBe(3);
  });

  test("if one of them cannot be, none is", async () => {
    await using stage = new Stage();
    const id = await working(stage);
    const weak = weaklyLinked(stage);
    await stage.until(weak.id, "working");
    const { code, err } = await stage.run(["interrupt", id, weak.id]);
    expect([code, err]).toEqual([5, expect.stringContaining(`${short(weak.id)}: which process has this session`)]);
    await stage.until(id, "working");
    expect(isAlive(weak.pid)).toBe(true);
  });
});

/** Its arguments alone say which session it has. */
const weaklyLinked = (stage: Stage) =>
  stage.start(["--no-announce", "prompt:x", "work:600"], { cwd: stage.folder("elsewhere") });

test("a process that has the session only by its arguments is not signalled", async () => {
  await using stage = new Stage();
  const { id, pid } = weaklyLinked(stage);
  expect((await stage.until(id, "working")).link).toBe("argv");
  const { code, out, err } = await stage.run(["interrupt", id]);
  expect([code, out]).toEqual([5, ""]);
  expect(err).toBe(`agentctl: ${short(id)}: which process has this session is not sure\n  agentctl why ${short(id)}\n`);
  expect([isAlive(pid), lastType(stage, id)]).toEqual([true, "prompt"]);
});

describe("keys, typed in a tmux pane", () => {
  async function catIn(
    stage: Stage,
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
    await using stage = new Stage();
    const { tmux, pane, row } = await catIn(stage);
    const other = await tmux.run("split-window", "-t", pane, "-P", "-F", "#{pane_id}", "cat", "-v");
    const found = await paneOf(row, stage.env);
    expect(found).toMatchObject({ id: pane, name: "main:0.0", session: "main" });
    if (found === null) return;
    expect(await typeInPane(found, "Escape", stage.env)).toBe(true);
    await until("the key", async () => (await tmux.screen(pane)) === "^[");
    expect(await tmux.screen(other)).toBe("");
  });

  test("also where somebody scrolls back", async () => {
    await using stage = new Stage();
    const { tmux, pane, row } = await catIn(stage);
    const found = await paneOf(row, stage.env);
    await tmux.run("copy-mode", "-t", pane);
    expect(found !== null && (await typeInPane(found, "Escape", stage.env))).toBe(true);
    await until("the key", async () => (await tmux.screen(pane)) === "^[");
    expect(await tmux.ask(pane, "#{pane_in_mode}")).toBe("0");
  });

  test("nowhere, if the pane is gone", async () => {
    await using stage = new Stage();
    const { tmux, pane, row } = await catIn(stage);
    const found = await paneOf(row, stage.env);
    await tmux.open("-s", "stays", "cat");
    await tmux.run("kill-pane", "-t", pane);
    expect(found !== null && (await typeInPane(found, "Escape", stage.env))).toBe(false);
  });

  test("a terminal that is no pane is none", async () => {
    await using stage = new Stage();
    await catIn(stage);
    const id = crypto.randomUUID();
    const { pid } = new AtTerminal(stage, [binary, "demo-agent", "--session-id", id, "idle"]);
    const row = readProcess(pid);
    expect(row !== null && (await paneOf(row, stage.env))).toBeNull();
  });
});
