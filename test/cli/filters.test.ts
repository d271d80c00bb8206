// Filters: the same for list and for the commands that act on several sessions.
import { describe, expect, test } from "bun:test";
import { type Listed, TestHome } from "./test-home.ts";
import { ServerTestHome } from "./test-home-servers.ts";

const working = ["prompt:x", "work:60"];

describe("an acting command selects by", () => {
  test("--status, --cwd and --agent", async () => {
    await using world = new TestHome();
    const [here, there] = [world.folder("here"), world.folder("there")];
    const one = world.start(working, { cwd: here });
    const two = world.start(["prompt:x", "end", "idle"], { cwd: there });
    await world.until(one.id, "working");
    await world.until(two.id, "idle");
    const waited = async (...args: string[]) =>
      (await world.json<Listed[]>("wait", "--until", "idle", "--timeout", "1s", ...args)).map(({ id }) => id);
    expect(await waited("--status", "idle")).toEqual([two.id]);
    expect(await waited("--cwd", there, "--agent", "demo")).toEqual([two.id]);
    expect((await world.run(["stop", "--agent", "codex"])).code).toBe(3);
    expect((await world.run(["stop", "--status", "wroking"])).err).toContain("did you mean working?");
    const stopped = await world.json<Listed[]>("stop", "--cwd", "here");
    expect(stopped.map(({ id, state }) => [id, state])).toEqual([[one.id, "stopped"]]);
    expect((await world.until(two.id, "idle")).state).toBe("running");
  });

  test("no directory if --cwd is empty", async () => {
    await using world = new TestHome();
    const agent = world.start(working, { cwd: world.root });
    await world.until(agent.id, "working");
    expect(await world.run(["stop", "--cwd", ""], { cwd: world.root })).toMatchObject({ code: 2, out: "" });
    expect((await world.until(agent.id, "working")).state).toBe("running");
  });

  test("--all: every running session, and no other", async () => {
    await using world = new TestHome();
    const agents = [world.start(working), world.start(working)];
    const old = world.record([{ type: "prompt", text: "x" }]);
    for (const { id } of agents) await world.until(id, "working");
    expect(await world.run(["stop", agents[0]?.id ?? "", "--all"])).toMatchObject({ code: 2, out: "" });
    const stopped = await world.json<Listed[]>("stop", "--all");
    expect(stopped.map(({ id }) => id).sort()).toEqual(agents.map(({ id }) => id).sort());
    expect(stopped.map(({ id }) => id)).not.toContain(old);
    expect((await world.run(["stop", "--all"])).code).toBe(3);
  });
});

describe("an agent's name", () => {
  test.each(["stop", "send", "wait", "status", "logs"])(
    "is not a session for %s, and the error names its sessions",
    async (command) => {
      await using world = new ServerTestHome();
      const agent = world.start(working);
      const { ref } = await world.until(agent.id, "working");
      const { code, err } = await world.run([command, "demo", ...(command === "send" ? ["hello"] : [])]);
      expect([code, err]).toEqual([3, `agentctl: demo is an agent, not a session\n  its sessions: ${ref} (working)\n`]);
      const none = await world.run([command, "claude", ...(command === "send" ? ["hello"] : [])]);
      expect([none.code, none.err]).toEqual([3, expect.stringContaining("agentctl list -a --agent claude-code")]);
    },
  );
});
