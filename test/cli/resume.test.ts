// agentctl resume: this process becomes the agent's terminal interface, in the session's directory, for one caller at a time.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, type Listed } from "./test-home.ts";
import {
  AtTerminal,
  argvOf,
  environmentOf,
  isAlive,
  promptsOf,
  Server,
  ServerTestHome,
  statusOf,
  story,
  until,
} from "./test-home-servers.ts";

/** Waits until the process at this terminal has the session, idle. */
const becomesAgent = (stage: ServerTestHome, id: string): Promise<Listed> => stage.until(id, "idle");

const configure = (stage: ServerTestHome, homes: string[]): void => {
  mkdirSync(join(stage.root, ".config/agentctl"), { recursive: true });
  writeFileSync(join(stage.root, ".config/agentctl/config.json"), JSON.stringify({ homes: { demo: homes } }));
};

describe("at a terminal", () => {
  test("this process becomes the agent, in its directory", async () => {
    await using stage = new ServerTestHome();
    const directory = stage.folder("a place", "it's here");
    const id = await stage.past("first", "--cwd", directory);
    const shell = new AtTerminal(stage, ["/bin/sh", "-c", `'${binary}' resume ${id}; echo "status=$?"`], {
      env: { MY_OWN: "kept", DEMO_AGENT_SESSION: "another's", AGENTCTL_TAG: "another's" },
    });
    const pid = (await becomesAgent(stage, id)).process?.pid ?? 0;
    expect(statusOf(pid, "PPid")).toBe(String(shell.pid));
    expect(argvOf(pid)).toEqual([binary, "demo-agent", "--resume", id, "idle"]);
    expect(readlinkSync(`/proc/${pid}/cwd`)).toBe(directory);
    const env = environmentOf(pid);
    expect(env).toContain(`PWD=${directory}`);
    expect(env).toContain("MY_OWN=kept");
    expect(env.filter((each) => /^(DEMO_AGENT_SESSION|AGENTCTL_TAG)/.test(each))).toEqual([]);
    // It is a terminal's program like any other: what a person types reaches it, and so does Ctrl-C.
    shell.type("typed\r");
    await until("the answer", () => promptsOf(stage, id).length === 2);
    expect(promptsOf(stage, id)).toEqual(["first", "typed"]);
    shell.type("\x03");
    await until("its end", () => !isAlive(pid));
    expect((await stage.list()).sessions).toMatchObject([{ id, state: "stopped" }]);
  });

  test("the process stays the same, with nothing of agentctl left in it", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const plain = stage.start(["prompt:x", "end", "idle"]);
    await stage.until(plain.id, "idle");
    const resumed = new AtTerminal(stage, [binary, "resume", id]);
    const row = await becomesAgent(stage, id);
    expect(row.process?.pid).toBe(resumed.pid);
    const filesOf = (pid: number): string[] =>
      readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
        const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
        return target.includes("launch.lock") ? [target] : [];
      });
    expect(filesOf(resumed.pid)).toEqual([]);
    // The lock is released: another command can start while this one is open.
    expect((await stage.run(["send", await stage.past("another", "--share"), "x", "--share"])).code).toBe(0);
  });

  test("signals that Bun ignores are not ignored in the agent", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    // The demo agent is Bun again and ignores them itself: a shell in its place shows what was handed on.
    const program = join(stage.root, "agent.sh");
    writeFileSync(program, "#!/bin/sh\ngrep SigIgn /proc/self/status >signals.tmp; mv signals.tmp signals\n", {
      mode: 0o755,
    });
    const resumed = new AtTerminal(stage, [binary, "resume", id], { env: { AGENTCTL_DEMO_BIN: program } });
    expect(await resumed.ended()).toBe(0);
    const ignored = await Bun.file(join(stage.root, "work/signals")).text();
    expect(ignored).toBe("SigIgn:\t0000000000000000\n");
  });

  test("it uses a home that only config.json names", async () => {
    await using stage = new ServerTestHome();
    const other = stage.folder("other home");
    configure(stage, [other]);
    const id = stage.record(
      [
        { type: "prompt", text: "first" },
        { type: "end", outcome: "completed" },
      ],
      undefined,
      other,
    );
    const resumed = new AtTerminal(stage, [binary, "resume", id]);
    await becomesAgent(stage, id);
    expect(environmentOf(resumed.pid)).toContain(`DEMO_AGENT_HOME=${other}`);
    resumed.type("typed\r");
    await until("the answer", () => promptsOf(stage, id, other).length === 2);
    expect(existsSync(stage.home)).toBe(false);
  });

  test("--fork is a new session with a parent; the old one stays, even a live one", async () => {
    await using stage = new ServerTestHome();
    const agent = stage.start(["prompt:x", "end", "idle"]);
    await stage.until(agent.id, "idle");
    const before = story(stage, agent.id);
    const fork = new AtTerminal(stage, [binary, "resume", agent.id, "--fork"]);
    const copy = async () => (await stage.list()).sessions.find(({ parent }) => parent === agent.id);
    await until("the copy", async () => (await copy()) !== undefined);
    const row = await copy();
    expect(row).toMatchObject({ parent: agent.id, process: { pid: fork.pid } });
    expect(story(stage, agent.id)).toEqual(before);
    expect(isAlive(agent.pid)).toBe(true);
  });

  test("arguments after -- reach the agent", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const resumed = new AtTerminal(stage, [binary, "resume", id, "--", "--model", "demo-9"]);
    await becomesAgent(stage, id);
    expect(argvOf(resumed.pid).slice(1)).toEqual(["demo-agent", "--resume", id, "--model", "demo-9", "idle"]);
  });

  test("of eight callers at once one wins", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const all = Array.from({ length: 8 }, () => new AtTerminal(stage, [binary, "resume", id]));
    const ended = new Map<AtTerminal, number>();
    for (const each of all) void each.ended().then((code) => ended.set(each, code));
    await until("seven of them", () => ended.size === 7);
    expect([...ended.values()]).toEqual(Array(7).fill(5));
    for (const each of ended.keys()) expect(each.shown).toContain("is open elsewhere: pid ");
    const winner = all.find((each) => !ended.has(each));
    expect((await becomesAgent(stage, id)).process?.pid).toBe(winner?.pid ?? 0);
  });
});

describe("refused", () => {
  test("without a terminal, with hints to two other ways", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    expect(await stage.run(["resume", id])).toEqual({
      code: 5,
      out: "",
      err: `agentctl: the agent's interface needs a terminal\n  agentctl send ${id} TEXT continues without one; --print shows the command\n`,
    });
    // A session that does not exist cannot be resumed in another way either.
    const { code, err } = await stage.run(["resume", "nobody"]);
    expect([code, err]).toEqual([3, expect.stringContaining("no session nobody")]);
  });

  test("if the session is live in another process", async () => {
    await using stage = new ServerTestHome();
    const agent = stage.start(["prompt:x", "end", "idle"]);
    await stage.until(agent.id, "idle");
    const resumed = new AtTerminal(stage, [binary, "resume", agent.id]);
    expect(await resumed.ended()).toBe(5);
    expect(resumed.shown).toContain(`is open elsewhere: pid ${agent.pid}`);
    expect(await stage.run(["resume", agent.id, "--print"])).toMatchObject({ code: 5, out: "" });
  });

  test("if its directory is gone", async () => {
    await using stage = new ServerTestHome();
    const directory = stage.folder("gone");
    const id = await stage.past("first", "--cwd", directory);
    rmSync(directory, { recursive: true });
    const resumed = new AtTerminal(stage, [binary, "resume", id]);
    expect(await resumed.ended()).toBe(5);
    expect(resumed.shown).toContain(`its directory ${directory} is gone`);
    expect(await stage.run(["resume", id, "--print"])).toMatchObject({ code: 5, out: "" });
  });

  test("if the reference matches no session", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    expect((await stage.run(["resume"])).code).toBe(2);
    expect((await stage.run(["resume", id, "and a message"])).code).toBe(2);
  });
});

describe("--print", () => {
  /** What the line does in a shell that knows nothing but HOME. */
  const pasted = async (stage: ServerTestHome, line: string, env: Record<string, string> = {}): Promise<AtTerminal> => {
    const { HOME = "", PATH = "" } = stage.env;
    const bare = Object.fromEntries(Object.keys(stage.env).map((key) => [key, ""]));
    return new AtTerminal(stage, ["/bin/bash", "-c", line], { env: { ...bare, HOME, PATH, ...env }, cwd: "/" });
  };

  test.each([
    "plain",
    "with spaces",
    `it's "quoted" $HOME \`x\` é`,
    "new\nline \x1b[31m\u009b",
    "hidden \u200b\u202e\u{e0041}",
  ])("prints a command that works when pasted: %p", async (name) => {
    await using stage = new ServerTestHome();
    const directory = stage.folder(name);
    const id = await stage.past("first", "--cwd", directory);
    const { code, out, err } = await stage.run(["resume", id, "--print"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^[^\x00-\x1f\x7f-\x9f]+\n$/);
    const shell = await pasted(stage, out);
    const { process } = await becomesAgent(stage, id);
    expect(process?.pid).toBe(shell.pid);
    expect(readlinkSync(`/proc/${shell.pid}/cwd`)).toBe(directory);
    expect(environmentOf(shell.pid)).toContain(`DEMO_AGENT_HOME=${stage.home}`);
  });

  test("prints a command that sets the agent's default home", async () => {
    await using stage = new ServerTestHome();
    const usual = stage.folder(".demo-agent");
    const id = stage.record(
      [
        { type: "prompt", text: "first" },
        { type: "end", outcome: "completed" },
      ],
      undefined,
      usual,
    );
    // Here another home is set: without a variable the agent would not find its session.
    const { out } = await stage.run(["resume", id, "--print"]);
    const shell = await pasted(stage, out, { DEMO_AGENT_HOME: stage.home });
    expect((await becomesAgent(stage, id)).process?.pid).toBe(shell.pid);
    const plain = await stage.run(["resume", id, "--print", "--fork"], { env: { DEMO_AGENT_HOME: "" } });
    expect(plain.out).toStartWith(`cd ${stage.root}/work && ${binary} demo-agent --session-id `);
  });

  test("starts nothing, needs no terminal, and works with --fork", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const { out } = await stage.run(["resume", id, "--print", "--fork"]);
    expect(out).toMatch(new RegExp(` demo-agent --session-id [0-9a-f-]{36} --parent ${id} idle\\n$`));
    expect(stage.pids()).toEqual([]);
    expect((await stage.list()).sessions).toHaveLength(1);
  });
});

test("a served session can be opened beside its server", async () => {
  await using stage = new ServerTestHome();
  const id = await new Server(stage).start("Fix it");
  expect(await stage.run(["resume", id, "--print"])).toMatchObject({
    code: 0,
    out: expect.stringContaining(`--resume ${id}`),
  });
});
