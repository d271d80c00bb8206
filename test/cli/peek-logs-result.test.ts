// agentctl peek, logs and result with the built binary: messages, exact token counts, and following a live record.
import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  closeSync,
  openSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { binary, type List, TestHome } from "./test-home.ts";

interface Said {
  at: string | null;
  role: string;
  text: string;
  tool: string | null;
}

const talk = [
  { type: "prompt", text: "paint it" },
  { type: "reply", text: "Looking first." },
  { type: "tool", name: "shell", input: "ls\n-la" },
  { type: "tool-result", name: "shell", text: "a\nb\nc", denied: false },
  { type: "reply", text: "It is blue." },
  { type: "end", outcome: "completed" },
];

const pathOf = (world: TestHome, id: string): string => join(world.home, "sessions", `${id}.jsonl`);

const add = (world: TestHome, id: string, line: Record<string, unknown>): void =>
  appendFileSync(pathOf(world, id), `${JSON.stringify({ at: new Date().toISOString(), ...line })}\n`);

const saidIn = (text: string): Said[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Said);

test("people see local times with their offset, JSON has UTC", async () => {
  await using world = new TestHome();
  const id = world.record([{ type: "prompt", text: "x", at: "2026-11-01T23:30:00.000Z" }]);
  const env = { TZ: "Asia/Kolkata" };
  expect((await world.run(["peek", id], { env })).out).toContain("2026-11-02 05:00:00+05:30 user");
  expect((await world.run(["status", id], { env })).out).toContain("2026-11-02 05:00:00+05:30 (");
  expect((await world.run(["peek", id, "--json"], { env })).out).toContain('"2026-11-01T23:30:00.000Z"');
});

describe("peek", () => {
  test("shows the last messages in full, and tool calls and results on one line", async () => {
    await using world = new TestHome();
    const id = world.record(talk);
    const { code, out, err } = await world.run(["peek", id]);
    expect([code, err]).toEqual([0, ""]);
    expect(out.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d /g, "")).toBe(
      "user\n  paint it\nagent\n  Looking first.\ntool shell  ls -la\nresult shell  a b c\nagent\n  It is blue.\n",
    );
    const last = await world.json<{ id: string; status: string; messages: Said[] }>("peek", id, "-n", "2");
    expect(last).toMatchObject({ id, status: "completed" });
    expect(last.messages.map(({ role, text, tool }) => [role, text, tool])).toEqual([
      ["result", "a\nb\nc", "shell"],
      ["agent", "It is blue.", null],
    ]);
  });

  test("wraps to the terminal, cuts long messages and says how much is left", async () => {
    await using world = new TestHome();
    const id = world.record([
      { type: "prompt", text: "wörld 世界 ".repeat(30) },
      { type: "tool", name: "shell", input: "x".repeat(500) },
      { type: "reply", text: "line\n".repeat(100) },
    ]);
    const { out } = await world.run(["peek", id], { env: { COLUMNS: "60" } });
    for (const line of out.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(60);
    expect(out).toContain("… 60 more lines");
  });

  test("reads a record of 50 MB with little processor time and memory", async () => {
    await using world = new TestHome();
    const small = world.record(talk);
    const large = world.record(talk);
    const file = openSync(pathOf(world, large), "a");
    const line = `${JSON.stringify({ type: "reply", at: new Date().toISOString(), text: "y".repeat(1000) })}\n`;
    for (let count = 0; count < 50; count += 1) writeSync(file, line.repeat(1000));
    closeSync(file);
    const measure = async (id: string) => {
      const child = Bun.spawn([binary, "peek", id], { env: world.env, stdout: "pipe" });
      const out = await child.stdout.text();
      await child.exited;
      const used = child.resourceUsage();
      // Processor time: the machine may be busy with other tests.
      return { ms: Number(used?.cpuTime.total ?? 0) / 1000, out, bytes: used?.maxRSS ?? 0 };
    };
    const before = await measure(small);
    const { ms, out, bytes } = await measure(large);
    expect(out).toContain("yyyy");
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThan(1000);
    expect(bytes - before.bytes).toBeLessThan(30 * 1024 * 1024);
  });

  test("counts broken and unknown lines on stderr and continues", async () => {
    await using world = new TestHome();
    const id = world.record(talk);
    appendFileSync(pathOf(world, id), '{ broken\n\x00\xff\n{"type":"weather"}\n');
    add(world, id, { type: "reply", text: "after it" });
    appendFileSync(pathOf(world, id), '{"type":"reply","text":"not yet a li');
    const { code, out, err } = await world.run(["peek", id, "-n", "2"]);
    expect(code).toBe(0);
    expect(out).toMatch(/It is blue\.\n.*agent\n {2}after it\n$/);
    expect(err).toBe("agentctl: 2 broken lines skipped\nagentctl: 1 line of an unknown kind skipped\n");
  });
});

describe("logs", () => {
  test("shows the conversation from its start, or its last messages, or those since a time", async () => {
    await using world = new TestHome();
    const old = new Date(Date.now() - 3_600_000).toISOString();
    const id = world.record([{ type: "prompt", text: "long ago", at: old }, ...talk]);
    const texts = async (...args: string[]) =>
      saidIn((await world.run(["logs", id, "--json", ...args])).out).map(({ text }) => text);
    expect(await texts()).toEqual(["long ago", "paint it", "Looking first.", "ls\n-la", "a\nb\nc", "It is blue."]);
    expect(await texts("-n", "1")).toEqual(["It is blue."]);
    expect(await texts("--since", "10m")).toEqual(["paint it", "Looking first.", "ls\n-la", "a\nb\nc", "It is blue."]);
    expect(await texts("--since", old)).toHaveLength(6);
    expect(await texts("--since", "10m", "-n", "2")).toEqual(["a\nb\nc", "It is blue."]);
    expect((await world.run(["logs", id])).out).toContain("user\n  long ago\n");
    for (const bad of [["-n", "0"], ["--since", "soon"], ["--raw", "--json"], ["extra"]])
      expect((await world.run(["logs", id, ...bad])).code).toBe(2);
  });

  test("--raw prints the record byte for byte, including broken lines", async () => {
    await using world = new TestHome();
    const id = world.record(talk);
    appendFileSync(pathOf(world, id), Buffer.from([0x7b, 0xff, 0xfe, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0x0a]));
    const child = Bun.spawn([binary, "logs", id, "--raw"], { env: world.env, stdout: "pipe" });
    expect(Buffer.from(await child.stdout.bytes())).toEqual(Buffer.from(await Bun.file(pathOf(world, id)).bytes()));
    const { out } = await world.run(["logs", id, "--raw", "-n", "2"]);
    expect(out.split("\n").map((line) => line.slice(0, 2))).toEqual(['{"', "{\ufffd", ""]);
  });

  test("prints no escape sequence to a terminal, raw or not", async () => {
    await using world = new TestHome();
    const evil = "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u009b2J \u202eback\u0000";
    const id = world.record([
      { type: "prompt", text: evil },
      { type: "tool", name: evil, input: evil },
      { type: "tool-result", name: evil, text: evil },
      { type: "reply", text: evil },
      { type: "end", outcome: "completed" },
    ]);
    appendFileSync(pathOf(world, id), `not JSON ${evil}\n`);
    for (const command of [["peek"], ["logs"], ["logs", "--raw"], ["result"]]) {
      let screen = "";
      const terminal = new Bun.Terminal({
        cols: 100,
        rows: 30,
        data(_terminal, data) {
          screen += Buffer.from(data);
        },
      });
      const child = Bun.spawn([binary, ...command, id], { env: { ...world.env, NO_COLOR: "1" }, terminal });
      await child.exited;
      while (!screen.includes("back")) await Bun.sleep(5);
      terminal.close();
      expect(screen.replaceAll("\r\n", "\n")).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]/);
    }
    for (const command of [["peek"], ["logs"], ["result"]]) {
      const { out } = await world.run([...command, id, "--json"]);
      expect(out).toContain("red");
      expect(out).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|\\u00(1b|07|9b|00)/);
    }
  });
});

/** `logs -f --json`, and what it has printed so far. */
class Following implements AsyncDisposable {
  private readonly child;
  private readonly reader;
  private text = "";
  err = "";

  constructor(world: TestHome, id: string, ...args: string[]) {
    this.child = Bun.spawn([binary, "logs", id, "-f", "--json", ...args], {
      env: world.env,
      stdout: "pipe",
      stderr: "pipe",
    });
    this.reader = this.child.stdout.getReader();
    void this.listen();
  }

  private async listen(): Promise<void> {
    for await (const bytes of this.child.stderr) this.err += Buffer.from(bytes);
  }

  async next(): Promise<string> {
    while (!this.text.includes("\n")) {
      const { value, done } = await this.reader.read();
      if (done) throw new Error(`logs -f ended: ${this.err}`);
      this.text += Buffer.from(value);
    }
    const end = this.text.indexOf("\n");
    const line = this.text.slice(0, end);
    this.text = this.text.slice(end + 1);
    return (JSON.parse(line) as Said).text;
  }

  async hears(words: string): Promise<void> {
    while (!this.err.includes(words)) await Bun.sleep(2);
  }

  async end(signal: NodeJS.Signals): Promise<unknown> {
    this.child.kill(signal);
    await this.child.exited;
    return this.child.signalCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

describe("logs -f", () => {
  test("prints each line within 100 ms after it was written, until Ctrl-C", async () => {
    await using world = new TestHome();
    const id = world.record(talk);
    await using following = new Following(world, id, "-n", "1");
    expect(await following.next()).toBe("It is blue.");
    const delays: [first: number, second: number][] = [];
    for (let count = 0; count < 15; count += 1) {
      await Bun.sleep(20);
      // Two in quick succession: the kernel's word about the second one may get lost on its way to us.
      const first = performance.now();
      add(world, id, { type: "reply", text: `line ${count}` });
      await Bun.sleep(1);
      const second = performance.now();
      add(world, id, { type: "reply", text: `and ${count}` });
      expect(await following.next()).toBe(`line ${count}`);
      const between = performance.now();
      expect(await following.next()).toBe(`and ${count}`);
      delays.push([between - first, performance.now() - second]);
    }
    const median = (values: number[]) => values.sort((a, b) => a - b)[7];
    expect(median(delays.map(([first]) => first))).toBeLessThan(100);
    expect(median(delays.map(([, second]) => second))).toBeLessThan(100);
    expect(await following.end("SIGINT")).toBe("SIGINT");
  });

  test("waits for complete lines of a live agent", async () => {
    await using world = new TestHome();
    const agent = world.start(["prompt:first", "say:ready", "end", "idle"]);
    await world.until(agent.id, "idle");
    await using following = new Following(world, agent.id);
    expect([await following.next(), await following.next()]).toEqual(["first", "ready"]);
    agent.type("second");
    expect([await following.next(), await following.next()]).toEqual(["second", "done"]);
    const line = JSON.stringify({ type: "reply", at: new Date().toISOString(), text: "in two parts" });
    appendFileSync(pathOf(world, agent.id), line.slice(0, 20));
    await Bun.sleep(50);
    appendFileSync(pathOf(world, agent.id), `${line.slice(20)}\n`);
    expect(await following.next()).toBe("in two parts");
  });

  test("continues with a note when the record is cut, replaced, or removed with its folder", async () => {
    await using world = new TestHome();
    const id = world.record(talk);
    const path = pathOf(world, id);
    await using following = new Following(world, id, "-n", "1");
    expect(await following.next()).toBe("It is blue.");

    truncateSync(path, 0);
    await following.hears("was cut or replaced");
    add(world, id, { type: "reply", text: "after the cut" });
    expect(await following.next()).toBe("after the cut");

    const whole = await Bun.file(path).text();
    writeFileSync(`${path}.new`, `${whole}${JSON.stringify({ type: "reply", text: "the same and more" })}\n`);
    renameSync(`${path}.new`, path);
    expect(await following.next()).toBe("the same and more");

    writeFileSync(`${path}.new`, `${JSON.stringify({ type: "reply", text: "something else ".repeat(100) })}\n`);
    renameSync(`${path}.new`, path);
    expect(await following.next()).toStartWith("something else");

    rmSync(join(world.home, "sessions"), { recursive: true });
    await following.hears("is gone");
    world.record([{ type: "reply", text: "back again" }], id);
    expect(await following.next()).toBe("back again");
    // Watched again, not only looked at once a second.
    const started = performance.now();
    for (const text of ["and", "on", "and on"]) {
      add(world, id, { type: "reply", text });
      expect(await following.next()).toBe(text);
    }
    expect(performance.now() - started).toBeLessThan(1500);
  });
});

describe("result", () => {
  test("is the last message of the last turn; exit code and stderr say how it ended", async () => {
    await using world = new TestHome();
    const completed = world.record(talk);
    expect(await world.run(["result", completed])).toEqual({ code: 0, out: "It is blue.\n", err: "" });

    const failed = world.record([...talk, { type: "prompt", text: "again" }, { type: "end", outcome: "failed" }]);
    const answer = await world.run(["result", failed]);
    expect([answer.code, answer.out]).toEqual([10, ""]);
    expect(answer.err).toContain("failed");

    const cut = world.record([...talk, { type: "prompt", text: "again" }, { type: "reply", text: "half a" }]);
    expect(await world.run(["result", cut])).toMatchObject({ code: 10, out: "half a\n" });
    expect(await world.json("result", cut)).toMatchObject({ outcome: "cut-off", text: "half a" });
  });

  test("of a session that continues under another id names that id and exits with 11", async () => {
    await using world = new TestHome();
    const next = crypto.randomUUID();
    const id = world.record([...talk, { type: "continued", by: next }]);
    const err = `agentctl: ${id.slice(0, 8)} continues as ${next}\n`;
    expect(await world.run(["result", id])).toEqual({ code: 11, out: "It is blue.\n", err });
    expect(await world.run(["result", id, "--json"])).toMatchObject({ code: 11, err });
  });

  test("of a working or waiting session is not ready; of an idle one it is that of the last turn", async () => {
    await using world = new TestHome();
    const working = world.start(["prompt:x", "say:so far", "work:60"]);
    const waiting = world.start(["prompt:x", "ask:permission:May I?", "end", "idle"], { cwd: world.folder("other") });
    await world.until(working.id, "working");
    await world.until(waiting.id, "waiting");
    const busy = await world.run(["result", working.id]);
    expect([busy.code, busy.out]).toEqual([6, ""]);
    expect(busy.err).toContain("still going on");
    expect(await world.json("result", working.id)).toMatchObject({ id: working.id, outcome: null, text: null });
    const asking = await world.run(["result", waiting.id]);
    expect([asking.code, asking.out]).toEqual([11, ""]);
    expect(asking.err).toContain("May I?");
    waiting.type("yes");
    await world.until(waiting.id, "idle");
    waiting.type("and now?");
    while ((await world.run(["result", waiting.id])).out !== "done\n");
    expect(await world.json("result", waiting.id)).toMatchObject({ outcome: "completed", text: "done" });
  });

  test("of a missing session is not found, of an unreadable record it is unknown", async () => {
    await using world = new TestHome();
    for (const command of ["peek", "logs", "result"]) {
      expect((await world.run([command, "nobody"])).code).toBe(3);
      expect((await world.run([command])).code).toBe(2);
    }
    const id = crypto.randomUUID();
    world.folder("demo-home", "sessions", `${id}.jsonl`);
    for (const command of ["peek", "logs", "result"]) expect((await world.run([command, id])).code).toBe(8);
  });
});

test("tokens and denied calls are counted in full by status, result and list --tokens, not by list", async () => {
  await using world = new TestHome();
  const tokens = (input: number, output: number, cacheRead: number, cacheWrite: number) => ({
    tokens: { input, output, cacheRead, cacheWrite },
  });
  const id = world.record([
    { type: "prompt", text: "count" },
    // The same message written twice, as agents do: the later line counts.
    { type: "reply", at: "2026-11-01T00:00:00.001Z", text: "a", ...tokens(1, 1, 1, 1) },
    { type: "reply", at: "2026-11-01T00:00:00.001Z", text: "a", ...tokens(10, 200, 3000, 40000) },
    { type: "reply", at: "2026-11-01T00:00:00.002Z", text: "b", ...tokens(5, 6, 7, 8) },
    { type: "tool-result", name: "shell", text: "no", denied: true },
    { type: "tool-result", name: "shell", text: "no", denied: true },
    { type: "tool-result", name: "shell", text: "yes", denied: false },
    { type: "end", outcome: "completed" },
  ]);
  const sum = { input: 15, output: 206, cacheRead: 3007, cacheWrite: 40008, total: 43236 };
  const counted = { tokens: sum, denied: 2, costUsd: null, costSource: null };
  expect(await world.json<object>("status", id)).toMatchObject(counted);
  expect(await world.json<object>("result", id)).toEqual({ id, outcome: "completed", text: "b", ...counted });
  expect((await world.run(["result", id])).err).toContain(": 2 tool calls were denied\n");
  expect((await world.run(["wait", id])).out).toContain("completed; 2 tool calls were denied\n");
  expect(await world.json<object>("wait", id)).toMatchObject({ denied: 2 });
  expect((await world.list("--tokens")).sessions).toMatchObject([counted]);
  expect((await world.json<List>("list", "-a")).sessions).toMatchObject([{ tokens: null, denied: null }]);
  expect((await world.run(["list", "-a", "--tokens"])).out).toMatch(/TOKENS.*\n.* 43\.2k /);
  expect((await world.run(["status", id])).out).toContain("43236 (15 input, 206 output, 3007 from cache");
});

test("a cost is estimated if the model has a known price", async () => {
  await using world = new TestHome();
  const reply = {
    type: "reply",
    text: "a",
    tokens: { input: 1_000_000, output: 1_000_000, cacheRead: 0, cacheWrite: 0 },
  };
  const lines = [{ type: "prompt", text: "x" }, reply, { type: "end", outcome: "completed" }];
  const id = world.record(lines);
  const text = (await Bun.file(pathOf(world, id)).text()).replace('"demo-1"', '"claude-haiku-4-5-20251001"');
  writeFileSync(pathOf(world, id), text);
  expect(await world.json<object>("result", id)).toMatchObject({ costUsd: 6, costSource: "estimated" });
  expect((await world.run(["status", id])).out).toContain("~$6.00");
});

test("logs -f of a live session without a record waits for its first message", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:x", "end", "idle"]);
  await world.until(agent.id, "idle");
  rmSync(join(world.home, "sessions", `${agent.id}.jsonl`));
  const child = Bun.spawn([binary, "logs", "-f", agent.id], { env: world.env, stdout: "pipe", stderr: "pipe" });
  try {
    await Bun.sleep(300);
    agent.type("the first words");
    const { value } = await child.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toContain("the first words");
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});
