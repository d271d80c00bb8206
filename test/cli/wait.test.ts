// agentctl wait with live agents: every way in which a session can reach the awaited status.
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Agent } from "./test-home.ts";
import {
  type RunningCommand,
  recordPath,
  Server,
  ServerTestHome,
  statusOf,
  story,
  until,
} from "./test-home-servers.ts";

/** A step that lasts until the file is there. */
const untilThere = (name: string): string => `tool:until [ -e ${name} ]; do sleep 0.02; done`;

const make = (stage: ServerTestHome, name: string): void => writeFileSync(join(stage.root, "work", name), "");

const completed = [
  { type: "prompt", text: "x" },
  { type: "end", outcome: "completed" },
];

/** So many files the kernel watches for it. */
const watches = ({ pid }: RunningCommand): number =>
  readdirSync(`/proc/${pid}/fd`)
    .map((fd) => {
      try {
        if (readlinkSync(`/proc/${pid}/fd/${fd}`) !== "anon_inode:inotify") return 0;
        return readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8").split("inotify wd:").length - 1;
      } catch (error) {
        if (error instanceof Error && "code" in error && error.code === "ENOENT") return 0;
        throw error;
      }
    })
    .reduce((sum, count) => sum + count, 0);

/** Asleep in poll(2), after all looks. "0": this kernel does not say where. */
const isResting = ({ pid }: RunningCommand): boolean =>
  /^(0|poll_schedule_timeout.*)$/.test(readFileSync(`/proc/${pid}/wchan`, "utf8")) &&
  statusOf(pid, "State").startsWith("S");

/** It has looked, found that it must wait, and rests. */
async function waiting(stage: ServerTestHome, ...args: string[]): Promise<RunningCommand> {
  const begun = stage.begin("wait", ...args);
  await until("the watch", () => begun.isOver || (watches(begun) > 0 && isResting(begun)));
  if (begun.isOver) throw new Error(`it did not wait: ${JSON.stringify(await begun.answer())}`);
  return begun;
}

async function working(stage: ServerTestHome, steps: readonly string[]): Promise<Agent> {
  const agent = stage.start(["prompt:x", ...steps]);
  await stage.until(agent.id, "working");
  return agent;
}

describe("a session that already has the status", () => {
  test.each([
    ["completed", 0, completed],
    ["failed", 10, [completed[0], { type: "end", outcome: "failed" }]],
    ["interrupted", 10, [completed[0], { type: "end", outcome: "interrupted" }]],
    ["cut-off", 10, [completed[0]]],
  ] as const)("%s: exit %i", async (word, code, lines) => {
    await using stage = new ServerTestHome();
    const id = stage.record(lines.map((line) => ({ ...line })));
    for (const goal of ["done", "stopped", "idle", "waiting"]) {
      const answer = await stage.run(["wait", id, "--until", goal]);
      expect(answer).toMatchObject({ code, err: "" });
      expect(answer.out).toStartWith(`${id} ${word}`);
      expect(answer.out).toEndWith("\n");
    }
    expect(await stage.json("wait", id)).toMatchObject({ id, state: "stopped", outcome: word });
  });

  test("and continued under another id: exit 11", async () => {
    await using stage = new ServerTestHome();
    const next = crypto.randomUUID();
    const id = stage.record([...completed, { type: "continued", by: next }]);
    expect(await stage.run(["wait", id])).toEqual({ code: 11, out: `${id} continues as ${next}\n`, err: "" });
  });

  test("because it is idle or waits for a person", async () => {
    await using stage = new ServerTestHome();
    const idle = stage.start(["prompt:x", "end", "idle"]);
    const asking = stage.start(["prompt:x", "ask:question:Which one?"]);
    await stage.until(idle.id, "idle");
    await stage.until(asking.id, "waiting");
    expect(await stage.run(["wait", idle.id])).toEqual({ code: 0, out: `${idle.id} idle\n`, err: "" });
    const out = `${asking.id} waiting: Which one?\n`;
    expect(await stage.run(["wait", asking.id])).toEqual({ code: 11, out, err: "" });
    expect(await stage.run(["wait", asking.id, "--until", "waiting"])).toEqual({ code: 0, out, err: "" });
  });

  test("because it is idle after a failed turn: exit 10", async () => {
    await using stage = new ServerTestHome();
    const agent = stage.start(["prompt:x", "end:failed", "idle"]);
    await stage.until(agent.id, "idle");
    expect((await stage.run(["wait", agent.id])).code).toBe(10);
  });
});

describe("a live agent", () => {
  test("goes through every status, and wait returns at each", async () => {
    await using stage = new ServerTestHome();
    const steps = [untilThere("one"), "ask:question:Which one?", untilThere("two"), "end", "idle"];
    const agent = await working(stage, steps);
    const { id } = agent;

    const [forPerson, forDone] = [await waiting(stage, id, "--until", "waiting"), await waiting(stage, id)];
    make(stage, "one");
    expect(await forPerson.answer()).toEqual({ code: 0, out: `${id} waiting: Which one?\n`, err: "" });
    expect(await forDone.answer()).toEqual({ code: 11, out: `${id} waiting: Which one?\n`, err: "" });

    const forIdle = await waiting(stage, id, "--until", "idle");
    agent.type("this one");
    await stage.until(id, "working");
    expect(forIdle.isOver).toBe(false);
    const forDoneAgain = await waiting(stage, id);
    make(stage, "two");
    expect(await forIdle.answer()).toEqual({ code: 0, out: `${id} idle\n`, err: "" });
    expect(await forDoneAgain.answer()).toEqual({ code: 0, out: `${id} idle\n`, err: "" });

    const [forEnd, forNothing] = [
      await waiting(stage, id, "--until", "stopped"),
      await waiting(stage, id, "--until", "waiting"),
    ];
    agent.type("one more");
    await until("the answer", () => story(stage, id).filter(({ type }) => type === "prompt").length === 2);
    await stage.until(id, "idle");
    expect([forEnd.isOver, forNothing.isOver]).toEqual([false, false]);
    await agent.end("SIGTERM");
    for (const each of [forEnd, forNothing])
      expect(await each.answer()).toEqual({ code: 0, out: `${id} completed\n`, err: "" });
  });

  test.each([
    ["SIGINT", "interrupted"],
    ["SIGTERM", "cut-off"],
    ["SIGKILL", "cut-off"],
  ] as const)("ended by %s: exit 10, within a second", async (signal, word) => {
    await using stage = new ServerTestHome();
    const agent = await working(stage, ["work:600"]);
    const wait = await waiting(stage, agent.id);
    await agent.end(signal);
    const ended = performance.now();
    const { code, out } = await wait.answer();
    expect([code, out]).toEqual([10, expect.stringContaining(`${agent.id} ${word}`)]);
    expect(performance.now() - ended).toBeLessThan(1_000);
  });

  test("with background work is idle, but not done", async () => {
    await using stage = new ServerTestHome();
    const agent = stage.start(["prompt:x", "background:1:0", "end", untilThere("go"), "background:0:0", "idle"]);
    await stage.until(agent.id, "idle");
    const wait = await waiting(stage, agent.id);
    expect((await stage.run(["wait", agent.id, "--until", "idle"])).code).toBe(0);
    expect((await stage.run(["wait", agent.id, "--timeout", "2s"])).code).toBe(6);
    expect(wait.isOver).toBe(false);
    make(stage, "go");
    expect(await wait.answer()).toEqual({ code: 0, out: `${agent.id} idle\n`, err: "" });
  });

  test("that is suspended is still waited for", async () => {
    await using stage = new ServerTestHome();
    const agent = await working(stage, [untilThere("go"), "end"]);
    process.kill(agent.pid, "SIGSTOP");
    const wait = await waiting(stage, agent.id);
    make(stage, "go");
    expect((await stage.run(["wait", agent.id, "--timeout", "1s"])).code).toBe(6);
    expect(wait.isOver).toBe(false);
    process.kill(agent.pid, "SIGCONT");
    expect(await wait.answer()).toEqual({ code: 0, out: `${agent.id} completed\n`, err: "" });
  });

  test("in a server is waited for", async () => {
    await using stage = new ServerTestHome();
    const server = new Server(stage);
    const id = await server.start("Fix it");
    const wait = await waiting(stage, id);
    await server.tell(`ask ${id} Which one?`, id, "question");
    expect(await wait.answer()).toEqual({ code: 11, out: `${id} waiting: Which one?\n`, err: "" });
    const end = await waiting(stage, id, "--until", "stopped");
    await server.tell(`end ${id}`, id, "end");
    expect(await end.answer()).toEqual({ code: 0, out: `${id} completed\n`, err: "" });
  });

  test("is found by its pid before its session is known", async () => {
    await using stage = new ServerTestHome();
    const child = Bun.spawn(
      [
        join(import.meta.dir, "../../dist/agentctl"),
        "demo-agent",
        "--announce-after",
        "1500",
        "prompt:x",
        untilThere("go"),
        "end",
      ],
      { env: stage.env, cwd: stage.folder("work"), stdin: "ignore", stdout: "ignore", stderr: "inherit" },
    );
    const reference = `pid:${child.pid}`;
    await until("the process", async () => (await stage.list()).sessions.length === 1);
    const wait = await waiting(stage, reference);
    expect((await stage.list()).sessions).toMatchObject([{ id: null, process: { pid: child.pid } }]);
    // The announcements, the record, its folder: it knows the session now.
    await until("its session", () => watches(wait) === 3);
    expect((await stage.list()).sessions).toMatchObject([{ status: "working" }]);
    make(stage, "go");
    expect(await wait.answer()).toEqual({ code: 0, out: `${reference} completed\n`, err: "" });
  });

  test("whose record is removed is gone when it exits", async () => {
    await using stage = new ServerTestHome();
    const agent = await working(stage, ["work:600"]);
    const wait = await waiting(stage, agent.id);
    rmSync(recordPath(stage, agent.id));
    await stage.until(agent.id, "unclear");
    expect(wait.isOver).toBe(false);
    await agent.end();
    rmSync(join(stage.home, "live"), { recursive: true });
    const { code, out } = await wait.answer();
    expect([code, out]).toEqual([10, `${agent.id} is gone and left no record\n`]);
  });
});

describe("a conversation that continues under another id", () => {
  test("is not followed by its id, and is followed by name and launch", async () => {
    await using stage = new ServerTestHome();
    const [second, third] = [crypto.randomUUID(), crypto.randomUUID()];
    const goOn = (id: string) => ["end:completed", `continued:${id}`];
    const first = await stage.launch([untilThere("one"), ...goOn(second)].join("\n"), "--name", "painter");
    await stage.until(first, "working");
    const launch = (await stage.list()).sessions.find(({ id }) => id === first)?.launch?.id;
    const names = ["painter", `launch:${launch}`, "@last"];
    const untilStopped = (name: string) => waiting(stage, name, "--until", "stopped");
    const byId = await untilStopped(first);
    const early = await Promise.all(names.map(untilStopped));

    const next = stage.start(["prompt:x", untilThere("two"), ...goOn(third)], { id: second });
    await stage.until(next.id, "working");
    make(stage, "one");
    expect(await byId.answer()).toEqual({ code: 11, out: `${first} continues as ${second}\n`, err: "" });
    const late = await Promise.all(names.map(untilStopped));

    const last = stage.start(["prompt:x", untilThere("three"), "end"], { id: third });
    await stage.until(third, "working");
    const bySecond = await untilStopped(second);
    make(stage, "two");
    expect(await bySecond.answer()).toMatchObject({ code: 11, out: `${second} continues as ${third}\n` });
    expect([...early, ...late].map(({ isOver }) => isOver)).toEqual(Array(6).fill(false));
    make(stage, "three");
    const answers = await Promise.all([...early, ...late].map((each) => each.answer()));
    expect(answers).toEqual([...names, ...names].map((name) => ({ code: 0, out: `${name} completed\n`, err: "" })));
    expect(last.id).toBe(third);
  }, 20_000);
});

describe("several", () => {
  test("print one line each, and the worst is the exit code", async () => {
    await using stage = new ServerTestHome();
    const good = stage.record(completed);
    const bad = stage.record([{ type: "prompt", text: "x" }]);
    const asking = stage.start(["prompt:x", "ask:question:Which one?"]);
    await stage.until(asking.id, "waiting");
    const codes = async (...ids: string[]) => (await stage.run(["wait", ...ids])).code;
    expect(await codes(good, good)).toBe(0);
    expect(await codes(good, asking.id)).toBe(11);
    expect(await codes(asking.id, good, bad)).toBe(10);
    const { out } = await stage.run(["wait", good, asking.id, bad]);
    expect(out.split("\n").map((line) => line.split(" ")[0])).toEqual([good, asking.id, bad, ""]);
    expect(await stage.json("wait", good, bad)).toMatchObject([{ id: good }, { id: bad, outcome: "cut-off" }]);
  });

  test("with --any end at the first, with its exit code", async () => {
    await using stage = new ServerTestHome();
    const [slow, quick] = [await working(stage, ["work:600"]), await working(stage, [untilThere("go"), "end:failed"])];
    const wait = await waiting(stage, slow.id, quick.id, "--any");
    make(stage, "go");
    expect(await wait.answer()).toEqual({ code: 10, out: `${quick.id} failed\n`, err: "" });
  });

  test("are selected by group and labels", async () => {
    await using stage = new ServerTestHome();
    const one = await stage.launch(untilThere("one"), "--group", "g", "--label", "k=v");
    const two = await stage.launch(untilThere("two"), "--group", "g", "--share");
    await stage.launch(untilThere("never"), "--share");
    const [group, label] = [await waiting(stage, "--group", "g"), await waiting(stage, "--label", "k=v")];
    make(stage, "one");
    expect(await label.answer()).toEqual({ code: 0, out: `${one} completed\n`, err: "" });
    expect(group.isOver).toBe(false);
    make(stage, "two");
    const { code, out } = await group.answer();
    expect([code, out.trim().split("\n").sort()]).toEqual([0, [one, two].map((id) => `${id} completed`).sort()]);
    expect((await stage.run(["wait", "--group", "none"])).code).toBe(3);
  });

  test("of a group are called by their names, or by ids if two have the same name", async () => {
    await using stage = new ServerTestHome();
    for (const name of ["alpha", "beta"]) await stage.past("x", "--group", "g", "--name", name);
    const first = await stage.run(["wait", "--group", "g"]);
    expect([first.code, first.out.split("\n").sort()]).toEqual([0, ["", "alpha completed", "beta completed"]]);
    const again = await stage.past("x", "--group", "g", "--name", "beta");
    const { out } = await stage.run(["wait", "--group", "g"]);
    expect(out).toContain("alpha completed\n");
    expect(out).toContain(`${again} completed\n`);
    expect(out).not.toContain("beta");
  });

  test("can be thirty", async () => {
    await using stage = new ServerTestHome();
    const agents = Array.from({ length: 30 }, () => stage.start(["prompt:x", untilThere("go"), "end"]));
    await until("all of them", async () => {
      const { sessions } = await stage.list();
      return sessions.filter(({ status }) => status === "working").length === 30;
    });
    const wait = await waiting(stage, ...agents.map(({ id }) => id));
    make(stage, "go");
    const { code, out, err } = await wait.answer();
    expect([code, err]).toEqual([0, ""]);
    expect(out).toBe(agents.map(({ id }) => `${id} completed\n`).join(""));
  }, 30_000);
});

describe("--timeout", () => {
  test("exits with 6 and names running and finished sessions", async () => {
    await using stage = new ServerTestHome();
    const over = stage.record(completed);
    const agent = await working(stage, ["work:600"]);
    const begun = performance.now();
    expect(await stage.run(["wait", over, agent.id, "--timeout", "1s"])).toEqual({
      code: 6,
      out: `${over} completed\n`,
      err: `agentctl: not done after 1s: ${agent.id} is working\n`,
    });
    expect(performance.now() - begun).toBeGreaterThan(1_000);
    const { code, out } = await stage.run(["wait", agent.id, "--timeout", "0s", "--json"]);
    expect([code, JSON.parse(out).activity]).toEqual([6, "working"]);
    expect((await stage.run(["wait", agent.id, "--timeout", "soon"])).code).toBe(2);
    expect((await stage.run(["wait", agent.id, "--until", "later"])).code).toBe(2);
  });
});

describe("an unknown session", () => {
  const times = (text: string, part: string): number => text.split(part).length - 1;

  test("whose record cannot be read is reported once and waited for", async () => {
    await using stage = new ServerTestHome();
    const id = stage.record(completed);
    const path = recordPath(stage, id);
    renameSync(path, join(stage.root, "aside"));
    mkdirSync(path);
    const wait = await waiting(stage, id);
    await until("the word", () => wait.err.includes(`${id} is unknown (`));
    // Another kind of unreadable: looked at again, and no second word.
    rmSync(path, { recursive: true });
    Bun.spawnSync(["mkfifo", path]);
    const other = await waiting(stage, id, "--timeout", "2s");
    expect(await other.answer()).toMatchObject({ code: 6, err: expect.stringContaining(`${id} is unknown`) });
    expect(wait.isOver).toBe(false);
    renameSync(join(stage.root, "aside"), path);
    expect(await wait.answer()).toMatchObject({ code: 0, out: `${id} completed\n` });
    expect(times(wait.err, "is unknown")).toBe(1);
  }, 10_000);

  test("is not gone because its store cannot be read", async () => {
    await using stage = new ServerTestHome();
    const agent = await working(stage, [untilThere("go"), "end"]);
    const wait = await waiting(stage, agent.id);
    const [sessions, aside] = [join(stage.home, "sessions"), join(stage.home, "aside")];
    process.kill(agent.pid, "SIGSTOP");
    renameSync(sessions, aside);
    writeFileSync(sessions, "");
    await agent.end();
    rmSync(join(stage.home, "live"), { recursive: true });
    await until("the word", () => wait.isOver || wait.err.includes(`${agent.id} is unknown (`));
    expect(wait.isOver).toBe(false);
    rmSync(sessions);
    renameSync(aside, sessions);
    expect(await wait.answer()).toMatchObject({ code: 10, out: expect.stringContaining(`${agent.id} cut-off`) });
  });
});

describe("while wait waits", () => {
  /** In seconds, of user and system time. */
  const usedBy = (pid: number): number => {
    const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ");
    return fields
      .split(" ")
      .slice(11, 13)
      .reduce((sum, ticks) => sum + Number(ticks) / 100, 0);
  };

  test("it sleeps, and Ctrl-C ends it at once", async () => {
    await using stage = new ServerTestHome();
    const agent = await working(stage, ["work:600"]);
    const wait = await waiting(stage, agent.id);
    const before = usedBy(wait.pid);
    expect((await stage.run(["wait", agent.id, "--timeout", "3s"])).code).toBe(6);
    expect(usedBy(wait.pid) - before).toBeLessThan(0.3);
    const sent = performance.now();
    wait.kill("SIGINT");
    await wait.answer();
    expect(wait.signal).toBe("SIGINT");
    expect(performance.now() - sent).toBeLessThan(500);
  }, 10_000);
});
