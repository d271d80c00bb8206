// agentctl list with the built binary: shown and hidden sessions, filters, and stores that cannot be read.
import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, TestHome } from "./test-home.ts";
import { AtTerminal, ServerTestHome, until } from "./test-home-servers.ts";

const done = [
  { type: "prompt", text: "do it" },
  { type: "end", outcome: "completed" },
];

test("on a fresh host there are no sessions and no problems, and no file is created", async () => {
  await using world = new TestHome();
  expect(await world.run(["list"])).toEqual({ code: 0, out: "No sessions.\n", err: "" });
  expect((await world.list()).sessions).toEqual([]);
  const { out } = await world.run([]);
  expect(out).toContain("agentctl demo");
  expect([...new Bun.Glob("**/*").scanSync({ cwd: world.root, dot: true, onlyFiles: false })]).toEqual([]);
});

test("list shows running and unknown sessions; -a adds those stopped within a week and counts older ones", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:paint", "work:60"]);
  const finished = world.record(done);
  const longAgo = new Date(Date.now() - 30 * 86_400_000).toISOString();
  const old = world.record(done.map((line) => ({ ...line, at: longAgo })));
  await world.until(agent.id, "working");
  const plain = await world.json<{ sessions: { id: string }[] }>("list");
  expect(plain.sessions.map(({ id }) => id)).toEqual([agent.id]);
  const all = await world.list();
  expect(all.sessions.map(({ id }) => id).sort()).toEqual([agent.id, finished].sort());
  expect(all.omitted.older).toBe(1);
  const older = await world.list("--since", "60d");
  expect(older.sessions.map(({ id }) => id)).toContain(old);
  expect((await world.run(["list", "-a"])).out).toContain("1 older not shown");
});

test("the row of a waiting session has its question, in JSON and in the table", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:deploy", "ask:permission:May I push?", "end", "idle"]);
  const row = await world.until(agent.id, "waiting");
  expect(row).toMatchObject({
    state: "running",
    activity: "waiting",
    link: "announced",
    process: { pid: agent.pid },
    waiting: { kind: "permission", text: "May I push?", tool: "shell", options: ["yes", "no"] },
  });
  expect((await world.run(["ps", "--needs-me"])).out).toContain("permission: May I push?");
  expect((await world.run([])).out).toMatch(/Needs you \(1\)\n.*May I push\? +\[agentctl attach /);
  expect((await world.run([], { env: { COLUMNS: "60" } })).out).toContain(`[agentctl attach ${row.ref}]`);
  agent.type("yes");
  await world.until(agent.id, "idle");
  expect((await world.run([])).out).toMatch(/Your turn \(1\)/);
});

test("statusline counts waiting, idle and working sessions, and prints nothing without running ones", async () => {
  await using world = new TestHome();
  expect(await world.run(["statusline"])).toEqual({ code: 0, out: "", err: "" });
  const asking = world.start(["prompt:deploy", "ask:permission:May I push?", "end", "idle"]);
  const working = [world.start(["prompt:paint", "work:60"]), world.start(["prompt:paint", "work:60"])];
  await world.until(asking.id, "waiting");
  for (const { id } of working) await world.until(id, "working");
  expect((await world.run(["statusline"])).out).toBe("1 needs you · 2 working\n");
  world.record(done);
  rmSync(join(world.home, "sessions"), { recursive: true });
  symlinkSync("sessions", join(world.home, "sessions"));
  expect((await world.run(["statusline"])).out).toEndWith(" · ?\n");
});

test("-q prints ids, --columns selects columns; sessions that need a person come first", async () => {
  await using world = new TestHome();
  expect((await world.run(["list", "--needs-me"])).out).toBe("No session needs you.\n");
  const asking = world.start(["prompt:deploy", "ask:permission:May I push?", "end", "idle"]);
  await world.until(asking.id, "waiting");
  const working = world.start(["prompt:paint", "work:60"]);
  await world.until(working.id, "working");
  expect((await world.run(["list", "-q"])).out).toBe(`${asking.id}\n${working.id}\n`);
  const { out } = await world.run(["list", "--columns", "status,id"]);
  expect(out).toBe(`STATUS   ID\nwaiting  ${asking.id}\nworking  ${working.id}\n`);
  expect((await world.run(["list", "--columns", "status,colour"])).code).toBe(2);
});

test("filters select sessions", async () => {
  await using world = new TestHome();
  const here = world.folder("here");
  mkdirSync(join(here, ".git"));
  const agent = world.start(["title:Garden work", "prompt:plant", "work:60"], { cwd: world.folder("here", "below") });
  const failed = world.record([
    { type: "prompt", text: "x" },
    { type: "end", outcome: "failed" },
  ]);
  const cut = world.record([{ type: "prompt", text: "x" }]);
  await world.until(agent.id, "working");
  const ids = async (...args: string[]) =>
    (await world.json<{ sessions: { id: string }[] }>("list", ...args)).sessions.map(({ id }) => id);
  expect(await ids("--status", "failed")).toEqual([failed]);
  expect(await ids("--status", "cut-off")).toEqual([cut]);
  expect(await ids("--status", "running")).toEqual([agent.id]);
  expect(await ids("--cwd", here)).toEqual([agent.id]);
  expect(await ids("--cwd", world.root)).toEqual([]);
  for (const word of ["GARDEN", "plant", "below"]) expect(await ids("--grep", word)).toEqual([agent.id]);
  expect(await ids("-a", "--grep", "died in")).toEqual([]);
  expect(await ids("--needs-me")).toEqual([]);
  expect(await ids("--served")).toEqual([]);
  expect(await ids("-a", "--limit", "2")).toHaveLength(2);
  expect(await ids("--agent", "demo")).toEqual([agent.id]);
  for (const bad of [
    ["--agent", "nobody"],
    ["--status", "alive"],
    ["--since", "soon"],
    ["--limit", "0"],
    ["--label", "x"],
    ["--cwd", "/not/there"],
    ["word"],
  ])
    expect((await world.run(["list", ...bad])).code).toBe(2);
});

test("an unreadable store is a problem, a missing one is not; live agents are still shown", async () => {
  await using world = new TestHome();
  const stopped = world.record(done);
  const agent = world.start(["prompt:x", "work:60"]);
  await world.until(agent.id, "working");
  rmSync(join(world.home, "sessions"), { recursive: true });
  writeFileSync(join(world.home, "sessions"), "not a folder");
  const { code, out, err } = await world.run(["list", "-a", "--json"]);
  const list = JSON.parse(out);
  expect(code).toBe(0);
  expect(list.complete).toBe(false);
  expect(list.problems[0]).toMatchObject({ code: "store-unreadable", agent: "demo" });
  expect(list.sessions).toMatchObject([{ id: agent.id, state: "running", activity: "unclear" }]);
  expect(err).toContain("not a folder");
  expect((await world.run(["list", "--strict"])).code).toBe(8);
  expect((await world.run(["status", stopped])).code).toBe(8);
  expect((await world.run(["doctor"])).code).toBe(8);
});

test("an unreadable store is not called empty", async () => {
  await using world = new TestHome();
  mkdirSync(world.home);
  writeFileSync(join(world.home, "sessions"), "not a folder");
  for (const words of [["list"], ["list", "-a"], []]) {
    const { code, out, err } = await world.run(words);
    expect(code).toBe(0);
    expect(out).toMatch(/^No (sessions that could|running session was) .*agentctl doctor/);
    expect(err).toContain("not a folder");
  }
});

test("one bad file affects one row", async () => {
  await using world = new TestHome();
  const good = world.record(done);
  const bad = crypto.randomUUID();
  mkdirSync(join(world.home, "sessions", `${bad}.jsonl`));
  const binary = crypto.randomUUID();
  writeFileSync(join(world.home, "sessions", `${binary}.jsonl`), crypto.getRandomValues(new Uint8Array(60_000)));
  writeFileSync(join(world.home, "sessions", "not-a-session.jsonl"), "{}\n");
  Bun.spawnSync([
    "mkfifo",
    join(world.home, "sessions", "pipe.jsonl"),
    join(world.home, "sessions", `${crypto.randomUUID()}.jsonl`),
  ]);
  const { sessions, complete } = await world.list();
  expect(complete).toBe(false);
  expect(sessions.filter(({ state }) => state === "unknown")).toHaveLength(3);
  expect(sessions.find(({ id }) => id === good)).toMatchObject({ state: "stopped", outcome: "completed" });
  expect(sessions).toHaveLength(4);
});

test("escape sequences reach neither a terminal nor JSON", async () => {
  await using world = new TestHome();
  const evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u009b2J \u202eback\u0000";
  const id = world.record([
    { type: "title", text: evil },
    { type: "prompt", text: evil },
    { type: "question", kind: "permission", text: evil },
  ]);
  for (const args of [
    ["list", "-a"],
    ["list", "-a", "--json"],
    ["status", id],
    ["status", id, "--json"],
    ["why", id],
    ["why", id, "--json"],
  ]) {
    const { out } = await world.run(args);
    expect(out).toContain(id.slice(0, 8));
    expect(out).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|\\u00(1b|07|9b|00)/);
  }
});

test("a home with several names is one store; more homes can be configured", async () => {
  await using world = new TestHome();
  const id = world.record(done);
  symlinkSync(world.home, join(world.root, "linked"));
  const other = join(world.root, "other");
  const second = world.record(done, undefined, other);
  const config = join(world.folder(".config", "agentctl"), "config.json");
  writeFileSync(config, JSON.stringify({ homes: { demo: [join(world.root, "linked"), other] } }));
  expect((await world.list()).sessions.map((session) => session.id).sort()).toEqual([id, second].sort());
  writeFileSync(config, "{ broken");
  const { problems, sessions } = await world.list();
  expect(problems.map(({ code }) => code)).toEqual(["config-unreadable"]);
  expect(sessions).toHaveLength(1);
});

test("a live agent in an unknown home is found, with the other sessions of that home", async () => {
  await using world = new TestHome();
  const elsewhere = world.folder("elsewhere");
  const stopped = world.record(done, undefined, elsewhere);
  const agent = world.start(["prompt:x", "work:60"], { env: { DEMO_AGENT_HOME: elsewhere } });
  await world.until(agent.id, "working");
  expect((await world.list()).sessions.map(({ id, home }) => [id, home])).toContainEqual([stopped, elsewhere]);
});

test("--watch prints one JSON value per change", async () => {
  await using world = new TestHome();
  const child = Bun.spawn([join(import.meta.dir, "../../dist/agentctl"), "list", "-a", "-w", "--json"], {
    env: world.env,
    stdout: "pipe",
  });
  try {
    const reader = child.stdout.getReader();
    let text = "";
    const next = async (): Promise<{ sessions: { status: string }[] }> => {
      while (!text.includes("\n")) text += new TextDecoder().decode((await reader.read()).value);
      const end = text.indexOf("\n");
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      return JSON.parse(line);
    };
    expect((await next()).sessions).toEqual([]);
    world.record(done);
    expect((await next()).sessions.map(({ status }) => status)).toEqual(["completed"]);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

test("list creates, changes and removes no file", async () => {
  await using world = new TestHome();
  world.record(done);
  const agent = world.start(["prompt:x", "work:60"]);
  await world.until(agent.id, "working");
  utimesSync(join(world.home, "sessions"), 1, 1);
  const snapshot = () =>
    [...new Bun.Glob("**/*").scanSync({ cwd: world.root, dot: true, onlyFiles: false })]
      .sort()
      .map((name) => [name, Bun.file(join(world.root, name)).lastModified]);
  const before = snapshot();
  const about = ["status", "why", "peek", "logs", "result"].map((command) => [command, agent.id]);
  for (const args of [["list", "-a"], ["list", "-a", "--tokens"], ...about, ["doctor"], ["adapters"], []])
    await world.run(args);
  expect(snapshot()).toEqual(before);
});

describe("--watch on a terminal", () => {
  const watching = async (stage: ServerTestHome): Promise<AtTerminal> => {
    const terminal = new AtTerminal(stage, [binary, "list", "-a", "-w"]);
    await until("the table", () => terminal.shown.includes("STATUS"));
    expect(terminal.shown).toStartWith("\x1b[?1049h");
    return terminal;
  };

  test.each([
    ["q", 0],
    ["\x03", 130],
  ])("the key %j leaves the alternate screen", async (key, code) => {
    await using stage = new ServerTestHome();
    stage.record(done);
    const terminal = await watching(stage);
    terminal.type(key);
    expect(await terminal.ended()).toBe(code);
    expect(terminal.shown).toEndWith("\x1b[?1049l");
  });

  test("a signal leaves the alternate screen, too", async () => {
    await using stage = new ServerTestHome();
    stage.record(done);
    const terminal = await watching(stage);
    process.kill(terminal.pid, "SIGTERM");
    expect(await terminal.ended()).toBe(130);
    expect(terminal.shown).toEndWith("\x1b[?1049l");
  });
});
