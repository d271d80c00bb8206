// The demo agent as a program: its output, its record, and its reaction to signals.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, binary, TestHome } from "./test-home.ts";

type Line = Record<string, unknown>;

/** A demo agent with a prompt on stdin. */
class Agent {
  private constructor(
    private readonly child: Bun.Subprocess<Blob, "pipe", "pipe">,
    readonly pid: number,
  ) {}

  static start(world: TestHome, args: readonly string[], stdin = ""): Agent {
    const child = Bun.spawn([binary, "demo-agent", ...args], {
      env: world.env,
      cwd: world.folder("work"),
      stdin: new Blob([stdin]),
      stdout: "pipe",
      stderr: "pipe",
    });
    return new Agent(child, child.pid);
  }

  async ended(): Promise<Answer> {
    const { child } = this;
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, out, err };
  }

  async kill(signal: NodeJS.Signals): Promise<Answer> {
    this.child.kill(signal);
    return await this.ended();
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

const headless = async (world: TestHome, prompt: string, ...args: string[]): Promise<Answer & { id: string }> => {
  const id = crypto.randomUUID();
  return { id, ...(await Agent.start(world, ["-p", "--session-id", id, ...args], prompt).ended()) };
};

const recordPath = (world: TestHome, id: string): string => join(world.home, "sessions", `${id}.jsonl`);

const linesOf = (world: TestHome, id: string): Line[] =>
  existsSync(recordPath(world, id))
    ? readFileSync(recordPath(world, id), "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line)
    : [];

/** The lines of the record without times and tokens. */
const story = (world: TestHome, id: string): Line[] =>
  linesOf(world, id).map(({ at: _at, tokens: _tokens, ...rest }) => rest);

const isEmpty = (world: TestHome): boolean => !existsSync(world.home);

async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`timed out waiting for ${what}`);
    await Bun.sleep(5);
  }
}

const lastType = (world: TestHome, id: string): unknown => linesOf(world, id).at(-1)?.["type"];

describe("headless", () => {
  test("records the prompt and the reply, closes the turn, and prints the reply", async () => {
    await using world = new TestHome();
    const { id, ...answer } = await headless(world, "Fix the login test\nand be quick\n", "--model", "demo-9");
    expect(answer).toEqual({ code: 0, out: "done: Fix the login test\n", err: "" });
    expect(story(world, id)).toEqual([
      {
        type: "session",
        version: 1,
        id,
        cwd: join(world.root, "work"),
        model: "demo-9",
        parent: null,
        permission: null,
      },
      { type: "prompt", text: "Fix the login test\nand be quick\n" },
      { type: "reply", text: "done: Fix the login test" },
      { type: "end", outcome: "completed" },
    ]);
    expect(readdirSync(join(world.home, "live"))).toEqual([]);
  });

  test("runs the lines that are steps in order; other lines are text", async () => {
    await using world = new TestHome();
    const prompt = [
      "Please do:",
      "title:A title",
      "idle",
      "work:soon",
      "work:0.01",
      " say:indented",
      "edit:sub/a.txt:one: two",
      "background:1:2",
      "stderr:careful",
      "prompt:no",
      "say:first",
      "continued:00000000-dead-4bee-8bad-c0ffee000000",
      "say:last: with a colon",
      "end",
    ].join("\n");
    const { id, ...answer } = await headless(world, prompt);
    expect(answer).toEqual({ code: 0, out: "last: with a colon\n", err: "careful\n" });
    expect(story(world, id).slice(1)).toEqual([
      { type: "prompt", text: prompt },
      { type: "title", text: "A title" },
      { type: "tool", name: "edit", input: "sub/a.txt:one: two" },
      { type: "tool-result", name: "edit", text: "wrote sub/a.txt", denied: false },
      { type: "background", shells: 1, subagents: 2 },
      { type: "reply", text: "first" },
      { type: "continued", by: "00000000-dead-4bee-8bad-c0ffee000000" },
      { type: "reply", text: "last: with a colon" },
      { type: "end", outcome: "completed" },
    ]);
    expect(readFileSync(join(world.root, "work/sub/a.txt"), "utf8")).toBe("one: two");
  });

  test("exits with status 1 after a failed turn, and writes the reply before the end", async () => {
    await using world = new TestHome();
    const { id, ...answer } = await headless(world, "x\nend:failed");
    expect(answer).toEqual({ code: 1, out: "done: x\n", err: "" });
    expect(story(world, id).slice(2)).toEqual([
      { type: "reply", text: "done: x" },
      { type: "end", outcome: "failed" },
    ]);
  });

  test("the reply has at most 60 whole characters of the first line", async () => {
    await using world = new TestHome();
    const { out } = await headless(world, `\n${"😀".repeat(61)}\nsecond`);
    expect(out).toBe(`done: ${"😀".repeat(60)}\n`);
  });

  test.each([
    ["nothing", ""],
    ["white space", " \n\t\r\n"],
  ])("%s is not a prompt", async (_name, prompt) => {
    await using world = new TestHome();
    expect(await headless(world, prompt)).toMatchObject({ code: 1, out: "", err: "demo-agent: no prompt\n" });
    expect(isEmpty(world)).toBe(true);
  });

  test("accepts a prompt of at most 16 MB", async () => {
    await using world = new TestHome();
    const prompt = `\ufeffé\u0000\r\n${"x".repeat(16 * 1024 * 1024 - 8)}`;
    expect(Buffer.byteLength(prompt)).toBe(16 * 1024 * 1024);
    const { id, code } = await headless(world, prompt);
    expect(code).toBe(0);
    expect(linesOf(world, id)[1]?.["text"] === prompt).toBe(true);
    const { id: other, ...answer } = await headless(world, `${prompt}x`);
    expect(answer).toEqual({ code: 1, out: "", err: "demo-agent: the prompt is longer than 16 MB\n" });
    expect(existsSync(recordPath(world, other))).toBe(false);
  });

  test("--script replaces the steps of the prompt", async () => {
    await using world = new TestHome();
    const script = join(world.root, "script");
    writeFileSync(script, "title:scripted\n\nsay:by script\nend:interrupted\n");
    const { id, ...answer } = await headless(world, "say:by prompt", "--script", script);
    expect(answer).toEqual({ code: 0, out: "by script\n", err: "" });
    expect(
      story(world, id)
        .slice(1)
        .map(({ type }) => type),
    ).toEqual(["prompt", "title", "reply", "end"]);
  });

  test("steps in the arguments follow the steps of the prompt", async () => {
    await using world = new TestHome();
    expect(await headless(world, "say:one", "say:two")).toMatchObject({ code: 0, out: "two\n" });
  });

  test("exit ends at once and leaves the turn open", async () => {
    await using world = new TestHome();
    const { id, ...answer } = await headless(world, "x\nexit:7\nsay:never");
    expect(answer).toEqual({ code: 7, out: "", err: "" });
    expect(story(world, id).slice(1)).toEqual([{ type: "prompt", text: "x\nexit:7\nsay:never" }]);
    expect((await world.list()).sessions).toMatchObject([{ id, state: "stopped", outcome: "cut-off" }]);
  });

  test("ask waits for a person without a limit", async () => {
    await using world = new TestHome();
    const id = crypto.randomUUID();
    const agent = Agent.start(world, ["-p", "--session-id", id], "ask:permission:May I?");
    const row = await world.until(id, "waiting");
    expect(row.waiting).toMatchObject({ kind: "permission", text: "May I?" });
    expect((await agent.kill("SIGINT")).code).toBe(130);
    expect(story(world, id).at(-1)).toEqual({ type: "end", outcome: "interrupted" });
  });
});

describe("permission", () => {
  test.each([
    ["read", true, true],
    ["edit", true, false],
    ["bypass", false, false],
    [null, false, false],
  ] as const)("%p allows and denies tools", async (permission, toolDenied, editDenied) => {
    await using world = new TestHome();
    const flags = permission === null ? [] : ["--permission", permission];
    const { id, code } = await headless(world, "tool:: >ran\nedit:edited:x", ...flags);
    expect(code).toBe(0);
    const text = `denied: its permission is ${permission}`;
    expect(story(world, id).filter(({ type }) => type === "tool-result")).toEqual([
      { type: "tool-result", name: "shell", text: toolDenied ? text : "exit 0", denied: toolDenied },
      { type: "tool-result", name: "edit", text: editDenied ? text : "wrote edited", denied: editDenied },
    ]);
    const work = join(world.root, "work");
    expect([existsSync(join(work, "ran")), existsSync(join(work, "edited"))]).toEqual([!toolDenied, !editDenied]);
    expect(linesOf(world, id)[0]?.["permission"]).toBe(permission);
    const status = await world.json<{ permission: unknown; denied: unknown }>("status", id);
    expect(status).toMatchObject({ permission, denied: Number(toolDenied) + Number(editDenied) });
  });

  test("is refused if it is unknown", async () => {
    await using world = new TestHome();
    const { code, err } = await headless(world, "x", "--permission", "all");
    expect([code, err, isEmpty(world)]).toEqual([2, "demo-agent: unknown permission all\n", true]);
  });
});

test("a failed edit is a tool result and does not end the agent", async () => {
  await using world = new TestHome();
  const { id, code } = await headless(world, "edit:/dev/null/x:y");
  expect(code).toBe(0);
  expect(story(world, id)[3]?.["text"]).toStartWith("cannot write /dev/null/x: ");
});

describe("a tool", () => {
  /** A shell with a child: it prints both pids and stays. */
  const command = "sleep 60 & echo $DEMO_AGENT_SESSION $$ $! >tool.tmp; mv tool.tmp tool; wait";

  const startTool = async (world: TestHome): Promise<{ id: string; agent: Agent; mark: string; pids: number[] }> => {
    const id = crypto.randomUUID();
    const agent = Agent.start(world, ["-p", "--session-id", id], `tool:${command}`);
    const path = join(world.root, "work/tool");
    await until("the tool", () => existsSync(path));
    const [mark = "", ...pids] = readFileSync(path, "utf8").trim().split(" ");
    return { id, agent, mark, pids: pids.map(Number) };
  };

  test("carries the session in its environment, and dies with all its children on SIGINT to the agent", async () => {
    await using world = new TestHome();
    const { id, agent, mark, pids } = await startTool(world);
    expect([mark, pids.map(isAlive)]).toEqual([id, [true, true]]);
    expect(await agent.kill("SIGINT")).toEqual({ code: 130, out: "", err: "" });
    await until("the tool's end", () => !pids.some(isAlive));
    expect(story(world, id).slice(2)).toEqual([
      { type: "tool", name: "shell", input: command },
      { type: "end", outcome: "interrupted" },
    ]);
    expect(readdirSync(join(world.home, "live"))).toEqual([]);
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("continues after %s ended the agent, and the record has no end of the turn", async (signal, code) => {
    await using world = new TestHome();
    const { id, agent, pids } = await startTool(world);
    try {
      expect(await agent.kill(signal)).toEqual({ code, out: "", err: "" });
      expect(pids.map(isAlive)).toEqual([true, true]);
      expect(lastType(world, id)).toBe("tool");
      expect((await world.list()).sessions).toMatchObject([{ id, state: "stopped", outcome: "cut-off" }]);
      expect(readdirSync(join(world.home, "live"))).toEqual([]);
    } finally {
      process.kill(-(pids[0] ?? Number.NaN), "SIGKILL");
    }
  });

  /** A zombie is dead. */
  const isAlive = (pid: number): boolean =>
    existsSync(`/proc/${pid}/stat`) && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
});

test("the step `ignore` makes the agent ignore signals", async () => {
  await using world = new TestHome();
  const id = crypto.randomUUID();
  const prompt =
    "ignore:SIGTERM\nignore:SIGINT\nignore:SIGHUP\ntool:until [ -e go ]; do sleep 0.02; done\nsay:still here";
  const agent = Agent.start(world, ["-p", "--session-id", id], prompt);
  await until("the tool", () => lastType(world, id) === "tool");
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) agent.signal(signal);
  writeFileSync(join(world.root, "work/go"), "");
  expect(await agent.ended()).toEqual({ code: 0, out: "still here\n", err: "" });
});

describe("the start", () => {
  test("--announce-after delays announcement and record", async () => {
    await using world = new TestHome();
    const before = Date.now();
    const { id, code } = await headless(world, "x", "--announce-after", "400");
    expect(code).toBe(0);
    expect(Date.parse(String(linesOf(world, id)[0]?.["at"]))).toBeGreaterThanOrEqual(before + 400);
    const late = Agent.start(world, ["-p", "--announce-after", "600000"], "x");
    expect((await late.kill("SIGTERM")).code).not.toBe(0);
    expect([readdirSync(join(world.home, "sessions")), readdirSync(join(world.home, "live"))]).toEqual([
      [`${id}.jsonl`],
      [],
    ]);
  });

  test("--fail-start prints the reason and writes nothing", async () => {
    await using world = new TestHome();
    const { id: _id, ...answer } = await headless(world, "x", "--fail-start", "Not logged in");
    expect(answer).toEqual({ code: 1, out: "", err: "Not logged in\n" });
    expect(isEmpty(world)).toBe(true);
  });

  test("--resume continues only a session that has a record", async () => {
    await using world = new TestHome();
    const { id } = await headless(world, "one");
    expect(await Agent.start(world, ["-p", "--resume", id], "two").ended()).toEqual({
      code: 0,
      out: "done: two\n",
      err: "",
    });
    expect(story(world, id).map(({ type }) => type)).toEqual([
      "session",
      "prompt",
      "reply",
      "end",
      "prompt",
      "reply",
      "end",
    ]);
    const missing = crypto.randomUUID();
    const answer = await Agent.start(world, ["-p", "--resume", missing], "x").ended();
    expect(answer).toEqual({ code: 1, out: "", err: `demo-agent: no such session: ${missing}\n` });
    expect(readdirSync(join(world.home, "sessions"))).toEqual([`${id}.jsonl`]);
  });

  test("--session-id needs an unused id", async () => {
    await using world = new TestHome();
    const { id } = await headless(world, "one");
    const before = linesOf(world, id);
    const answer = await Agent.start(world, ["-p", "--session-id", id], "two").ended();
    expect(answer).toEqual({ code: 1, out: "", err: `demo-agent: session id in use: ${id}\n` });
    expect(linesOf(world, id)).toEqual(before);
  });

  test("--parent with a new id is a fork", async () => {
    await using world = new TestHome();
    const { id: parent } = await headless(world, "one");
    const { id } = await headless(world, "two", "--parent", parent);
    const row = (await world.list()).sessions.find((session) => session.id === id);
    expect(row).toMatchObject({ parent, outcome: "completed" });
  });

  test.each([
    [["--what", "x"], "unknown option --what"],
    [["--model"], "--model needs a value"],
    [["jump:high"], 'unknown step "jump:high"'],
    [["--resume", "x"], "--session-id and --resume cannot be combined"],
  ])("%p is a usage error", async (args, message) => {
    await using world = new TestHome();
    expect(await headless(world, "x", ...args)).toMatchObject({ code: 2, err: `demo-agent: ${message}\n` });
    expect(isEmpty(world)).toBe(true);
  });
});

describe("a server", () => {
  class Server implements AsyncDisposable {
    private readonly child;
    readonly socket: string;

    constructor(private readonly world: TestHome) {
      this.child = Bun.spawn([binary, "demo-agent", "serve"], {
        env: world.env,
        cwd: world.folder("work"),
        stdin: "pipe",
        stdout: "ignore",
        stderr: "inherit",
      });
      this.socket = join(world.home, "servers", `${this.child.pid}.sock`);
    }

    async tell(line: string, id: string, sign: string): Promise<void> {
      await until("the server", () => existsSync(this.socket));
      this.child.stdin.write(`${line}\n`);
      this.child.stdin.flush();
      await until(sign, () => lastType(this.world, id) === sign);
    }

    async ask(...pieces: string[]): Promise<string> {
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      let heard = "";
      const connection = await Bun.connect({
        unix: this.socket,
        socket: {
          data: (_connection, chunk) => {
            heard += chunk.toString();
          },
          close: () => resolve(heard),
          error: (_connection, error) => reject(error),
        },
      });
      for (const piece of pieces) {
        connection.write(piece);
        await Bun.sleep(5); // so that the pieces arrive one by one
      }
      return await promise;
    }

    signal(signal: NodeJS.Signals): void {
      this.child.kill(signal);
    }

    async [Symbol.asyncDispose](): Promise<void> {
      this.child.kill("SIGKILL");
      await this.child.exited;
    }
  }

  test("ends a turn on request, and keeps the session", async () => {
    await using world = new TestHome();
    await using server = new Server(world);
    const id = crypto.randomUUID();
    await server.tell(`start ${id} Fix it`, id, "prompt");
    expect(await server.ask("inter", `rupt ${id}`, "\n")).toBe("interrupted");
    expect(await server.ask(`interrupt ${id}\n`)).toBe("no-turn");
    expect(await server.ask(`interrupt ${crypto.randomUUID()}\n`)).toBe("no-turn");
    expect(JSON.parse(await server.ask("?\n"))).toEqual({ sessions: [{ id, activity: "idle", waiting: null }] });
    expect(story(world, id).slice(1)).toEqual([
      { type: "prompt", text: "Fix it" },
      { type: "end", outcome: "interrupted" },
    ]);
    await world.until(id, "idle");
  });

  test("ends a turn that waits for a person", async () => {
    await using world = new TestHome();
    await using server = new Server(world);
    const id = crypto.randomUUID();
    await server.tell(`start ${id} Fix it`, id, "prompt");
    await server.tell(`ask ${id} Which one?`, id, "question");
    await world.until(id, "waiting");
    expect(await server.ask(`interrupt ${id}\n`)).toBe("interrupted");
    expect((await world.until(id, "idle")).waiting).toBeNull();
  });

  test("accepts a message of any length for its session", async () => {
    await using world = new TestHome();
    await using server = new Server(world);
    const id = crypto.randomUUID();
    await server.tell(`start ${id} Fix it`, id, "prompt");
    const text = `two\nlines "quoted" é ${"\u0001x".repeat(300_000)}`;
    const { code, out } = await world.run(["send", id, "-F", fileIn(world, text)]);
    expect({ code, out }).toEqual({ code: 0, out: `${id}\n` });
    expect(story(world, id).slice(2)).toEqual([
      { type: "prompt", text },
      { type: "reply", text: "done" },
      { type: "end", outcome: "completed" },
    ]);
    await world.until(id, "idle");
    expect(await server.ask(`message ${crypto.randomUUID()} "x"\n`)).toBe("no such session");
  });
});

function fileIn(world: TestHome, text: string): string {
  const path = join(world.root, "message");
  writeFileSync(path, text);
  return path;
}
