// agentctl send: a message reaches its session once, in the session's own directory and home.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary } from "./test-home.ts";
import {
  AtTerminal,
  isAlive,
  promptsOf,
  recordPath,
  Server,
  ServerTestHome,
  story,
  until,
} from "./test-home-servers.ts";

interface Told {
  id: string;
  permission: string | null;
  group: string | null;
  launch: { id: string; name: string | null; group: string | null; labels: Record<string, string> };
}

/** Stays busy until the file `go` is there. */
const busy = "tool:until [ -e go ]; do sleep 0.02; done";

const notesOf = (stage: ServerTestHome): string[] =>
  readdirSync(join(stage.root, ".agentctl/launches"))
    .filter((name) => name.endsWith(".json"))
    .sort();

describe("a stopped session", () => {
  test("continues under its id, in its own directory, with only the message (D29)", async () => {
    await using stage = new ServerTestHome();
    const directory = stage.folder("a place", "it's here");
    const id = await stage.past("first", "--cwd", directory);
    const newer = await stage.past("somebody else's");
    const message = "MESSAGE-XYZ\ntool:pwd >where\nsay:second answer";
    const { code, out, err } = await stage.run(["send", id, message], { cwd: "/" });
    expect([code, out]).toEqual([0, `${id}\n`]);
    expect(err).toMatch(/; agentctl (logs -f|result) [0-9a-f]{8}\n$/);
    await stage.wait(id);
    expect(story(stage, id).slice(1)).toEqual([
      { type: "prompt", text: "first" },
      { type: "reply", text: "done: first" },
      { type: "end", outcome: "completed" },
      { type: "prompt", text: message },
      { type: "tool", name: "shell", input: "pwd >where" },
      { type: "tool-result", name: "shell", text: "exit 0", denied: false },
      { type: "reply", text: "second answer" },
      { type: "end", outcome: "completed" },
    ]);
    expect(readFileSync(join(directory, "where"), "utf8")).toBe(`${directory}\n`);
    expect(promptsOf(stage, newer)).toEqual(["somebody else's"]);
    expect((await stage.list()).sessions).toHaveLength(2);
  });

  test("continues in its own home, even if only config.json names it", async () => {
    await using stage = new ServerTestHome();
    const other = stage.folder("other home");
    mkdirSync(join(stage.root, ".config/agentctl"), { recursive: true });
    writeFileSync(join(stage.root, ".config/agentctl/config.json"), JSON.stringify({ homes: { demo: [other] } }));
    const id = stage.record(
      [
        { type: "prompt", text: "first" },
        { type: "end", outcome: "completed" },
      ],
      undefined,
      other,
    );
    const { code, err } = await stage.run(["send", id, 'tool:printf %s "$DEMO_AGENT_HOME" >home']);
    expect([code, err]).toEqual([0, expect.stringContaining(id.slice(0, 8))]);
    await stage.wait(id);
    expect(promptsOf(stage, id, other)).toHaveLength(2);
    expect(readFileSync(join(stage.root, "work/home"), "utf8")).toBe(other);
    expect(existsSync(stage.home)).toBe(false);
  });

  test("keeps the name, group, labels and permission of its launch", async () => {
    await using stage = new ServerTestHome();
    const about = ["--name", "painter", "--group", "night", "--label", "k=v", "--label", "of=two words"];
    const id = await stage.past("first", ...about, "--permission", "read");
    const first = await stage.json<Told>("status", id);
    expect((await stage.run(["send", "painter", "edit:file:x"])).code).toBe(0);
    await stage.wait(id);
    const now = await stage.json<Told>("status", "painter");
    expect(now).toMatchObject({
      id,
      launch: { name: "painter", group: "night", labels: { k: "v", of: "two words" } },
    });
    expect(now.launch.id).not.toBe(first.launch.id);
    expect(existsSync(join(stage.root, "work/file"))).toBe(false);
    expect(story(stage, id).at(-3)).toMatchObject({ type: "tool-result", denied: true });
  });

  test("takes --permission for this message and later ones", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first", "--permission", "read");
    const told = await stage.json<Told>("send", id, "edit:one:x", "--permission", "edit");
    expect(told).toMatchObject({ id, permission: "edit", group: null });
    await stage.wait(id);
    await stage.run(["send", id, "edit:two:x"]);
    await stage.wait(id);
    expect(["one", "two"].map((name) => existsSync(join(stage.root, "work", name)))).toEqual([true, true]);
    expect(await stage.run(["send", id, "x", "--permission", "all"])).toMatchObject({ code: 2 });
  });

  test("is refused with a hint if its directory is gone", async () => {
    await using stage = new ServerTestHome();
    const directory = stage.folder("gone");
    const id = await stage.past("first", "--cwd", directory);
    rmSync(directory, { recursive: true });
    const { code, out, err } = await stage.run(["send", id, "x"]);
    expect([code, out]).toEqual([5, ""]);
    expect(err).toContain(`its directory ${directory} is gone\n  make the directory again`);
    expect(promptsOf(stage, id)).toEqual(["first"]);
  });

  test("that cannot be continued gives the reason, leaves nothing running, and keeps its old note", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first", "--name", "painter");
    const [before, record] = [notesOf(stage), story(stage, id)];
    const { code, out, err } = await stage.run(["send", "painter", "x", "--", "--fail-start", "Not logged in"]);
    expect([code, out]).toEqual([7, ""]);
    expect(err).toContain("exited before it started a session (exit status 1):\nNot logged in\n");
    expect([notesOf(stage), story(stage, id), stage.pids()]).toEqual([before, record, []]);
    expect((await stage.json<Told>("status", "painter")).id).toBe(id);
    expect(readdirSync(join(stage.root, ".agentctl/logs"))).toHaveLength(2);
  });

  test("accepts exactly one of twenty simultaneous messages", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const sends = Array.from({ length: 20 }, (_, index) => stage.run(["send", id, `${busy}\nsay:message ${index}`]));
    const answers = await Promise.all(sends);
    expect(answers.map(({ code }) => code).sort()).toEqual([0, ...Array<number>(19).fill(5)]);
    for (const { code, out, err } of answers)
      if (code === 5) expect([out, err]).toEqual(["", expect.stringContaining("is open elsewhere: pid ")]);
    const winner = answers.findIndex(({ code }) => code === 0);
    expect(promptsOf(stage, id)).toEqual(["first", `${busy}\nsay:message ${winner}`]);
    writeFileSync(join(stage.root, "work/go"), "");
    await stage.wait(id);
    await until("the holder's end", () => stage.pids().length === 0);
    expect(story(stage, id).at(-2)).toEqual({ type: "reply", text: `message ${winner}` });
    expect(notesOf(stage)).toHaveLength(2);
  }, 30_000);
});

describe("refused", () => {
  test("a session that is live elsewhere, with its pid and terminal", async () => {
    await using stage = new ServerTestHome();
    const id = crypto.randomUUID();
    const agent = new AtTerminal(stage, [binary, "demo-agent", "--session-id", id, "prompt:x", "end", "idle"]);
    const { process } = await stage.until(id, "idle");
    expect(process?.pid).toBe(agent.pid);
    const { code, err } = await stage.run(["send", id, "message"]);
    expect(code).toBe(5);
    expect(err).toMatch(new RegExp(`is open elsewhere: pid ${agent.pid} on /dev/pts/\\d+, idle\\n  agentctl attach `));
    expect(promptsOf(stage, id)).toEqual(["x"]);
    expect(isAlive(agent.pid)).toBe(true);
  });

  test("an unknown session (exit 8) and a missing one (exit 3)", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    const path = recordPath(stage, id);
    renameSync(path, `${path}.aside`);
    mkdirSync(path);
    const unread = await stage.run(["send", id, "message"]);
    expect([unread.code, unread.out]).toEqual([8, ""]);
    expect(unread.err).toContain(id.slice(0, 8));
    expect((await stage.run(["send", crypto.randomUUID(), "message"])).code).toBe(8);
    rmSync(path, { recursive: true });
    renameSync(`${path}.aside`, path);
    expect((await stage.run(["send", crypto.randomUUID(), "message"])).code).toBe(3);
    expect(stage.pids()).toEqual([]);
    expect(promptsOf(stage, id)).toEqual(["first"]);
  });

  test("a process that has no session yet", async () => {
    await using stage = new ServerTestHome();
    const agent = new AtTerminal(stage, [binary, "demo-agent", "--announce-after", "600000", "idle"]);
    await until("the process", async () => (await stage.list()).sessions.length === 1);
    const { code, err } = await stage.run(["send", `pid:${agent.pid}`, "message"]);
    expect([code, err]).toEqual([5, `agentctl: pid:${agent.pid} has no session yet: nothing to continue\n`]);
  });

  test("a prefix that two sessions share: exit 4, and the references that tell them apart (D35)", async () => {
    await using stage = new ServerTestHome();
    const lines = [
      { type: "prompt", text: "x" },
      { type: "end", outcome: "completed" },
    ];
    const ids = ["01a1e12a-0000-7000-8000-000000000001", "01a1e12a-0000-7000-8000-000000000002"];
    for (const id of ids) stage.record(lines, id);
    for (const command of [
      ["send", "01a1e12a", "message"],
      ["wait", "01a1e12a"],
      ["resume", "01a1e12a", "--print"],
    ]) {
      const { code, out, err } = await stage.run(command);
      expect([code, out]).toEqual([4, ""]);
      for (const id of ids) expect(err).toContain(`  ${id}  demo `);
    }
    expect((await stage.run(["send", ids[1] ?? "", "message"])).code).toBe(0);
    await stage.wait(ids[1] ?? "");
    expect(ids.map((id) => promptsOf(stage, id).length)).toEqual([1, 2]);
  });

  test("no message, no session", async () => {
    await using stage = new ServerTestHome();
    const id = await stage.past("first");
    expect((await stage.run(["send"])).code).toBe(2);
    expect((await stage.run(["send", id])).code).toBe(2);
    expect((await stage.run(["send", id, " "])).code).toBe(2);
    expect(promptsOf(stage, id)).toEqual(["first"]);
  });
});

describe("a served session", () => {
  test("gets the message through its server", async () => {
    await using stage = new ServerTestHome();
    const server = new Server(stage);
    const id = await server.start("Fix it");
    const message = "--two\nlines of 'it' \"all\" é";
    const { code, out, err } = await stage.run(["send", id, "-p", message]);
    expect([code, out, err]).toEqual([
      0,
      `${id}\n`,
      `agentctl: sent through its server: the agent started working on the message; ${id.slice(0, 8)} is idle\n`,
    ]);
    expect(promptsOf(stage, id)).toEqual(["Fix it", message]);
    expect(await stage.json("send", id, "again")).toMatchObject({ id, agent: "demo", launch: null, permission: null });
    expect(promptsOf(stage, id)).toHaveLength(3);
    expect(stage.pids()).toEqual([server.pid]);
  });

  test("accepts a message that is longer than an argument can be", async () => {
    await using stage = new ServerTestHome();
    const id = await new Server(stage).start("Fix it");
    const file = join(stage.root, "message");
    const message = "é".repeat(1024 * 1024);
    writeFileSync(file, message);
    expect((await stage.run(["send", id, "-F", file])).code).toBe(0);
    const [, taken] = promptsOf(stage, id);
    expect(taken === message).toBe(true);
  });
});
