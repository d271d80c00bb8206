// agentctl inside an agent's session: the guard allows some commands, and a person can turn it off.
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inside } from "./run-inside-agent.ts";
import { binary } from "./test-home.ts";
import { LaunchTestHome, toFiles } from "./test-home-launch.ts";

/** The tool has left the tree: its parent is the first process, its kernel session its own. */
const reparented = (command: string): string => {
  const orphan = `until grep -q "^PPid:.1$" /proc/$$/status; do sleep 0.01; done; ${command}`;
  return `setsid sh -c '${orphan}' & :`;
};

const refused = "agentctl: called from inside an agent's session: ";
const lift = `\n  a person can lift this: {"insideAgents": "free"} in agentctl's config.json\n`;

const elsewhere = (world: LaunchTestHome): string => world.folder("elsewhere");

const free = (world: LaunchTestHome, value: unknown = "free"): void => {
  mkdirSync(join(world.root, ".config/agentctl"), { recursive: true });
  writeFileSync(join(world.root, ".config/agentctl/config.json"), JSON.stringify({ insideAgents: value }));
};

describe("@self", () => {
  test("is the session of the agent whose tool runs the command", async () => {
    await using world = new LaunchTestHome();
    const { id, answer } = await inside(world, "$AGENTCTL status @self --json");
    expect(answer.code).toBe(0);
    expect(JSON.parse(answer.out)).toMatchObject({ id, state: "running" });
  });

  test("is an error outside a session", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await world.agentctl("status", "@self");
    expect(code).toBe(3);
    expect(err).toContain("does not run inside a session");
  });
});

describe.each([
  ["below the agent", (command: string) => command],
  ["out of its tree", reparented],
])("%s", (_name, wrap) => {
  test("bypass is refused, and nothing is started", async () => {
    await using world = new LaunchTestHome();
    const { answer } = await inside(
      world,
      "$AGENTCTL launch demo x --permission bypass --cwd ../elsewhere",
      wrapped(wrap, world),
    );
    expect(answer).toEqual({ code: 5, out: "", err: `${refused}--permission must be read or edit${lift}` });
    expect(world.kept()).toEqual([]);
  });

  test.each([
    ["without a value, where the agent's own setting allows everything", "$AGENTCTL launch demo x", "own setting"],
    [
      "behind --",
      "$AGENTCTL launch demo x --permission edit -- --permission bypass",
      "arguments after -- are not allowed",
    ],
  ])("bypass %s is refused, too", async (_way, command, words) => {
    await using world = new LaunchTestHome();
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect(answer).toMatchObject({ code: 5, out: "", err: expect.stringContaining(words) });
    expect(world.kept()).toEqual([]);
  });

  test("@self is the caller's session", async () => {
    await using world = new LaunchTestHome();
    const { id, answer } = await inside(world, "$AGENTCTL status @self --json", wrapped(wrap, world));
    expect(JSON.parse(answer.out)).toMatchObject({ id });
  });

  test("edit is allowed, in the caller's own directory", async () => {
    await using world = new LaunchTestHome();
    const { id, answer } = await inside(
      world,
      "$AGENTCTL launch demo edit:made:x --permission edit",
      wrapped(wrap, world),
    );
    expect([answer.code, answer.err.includes("same directory:")]).toEqual([0, false]);
    expect(await world.untilFile("made")).toBe("x");
    const row = await world.until(answer.out.trim(), "completed");
    expect(row.id).not.toBe(id);
  });

  test.each([
    ["stop", "stop $TARGET -y"],
    ["send", "send $TARGET hello"],
    ["interrupt", "interrupt $TARGET"],
  ])("%s of another session is refused", async (_command, words) => {
    await using world = new LaunchTestHome();
    const target = await world.launched("work:600", "--cwd", elsewhere(world));
    const command = `TARGET=${target}; $AGENTCTL ${words}`;
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect(answer).toMatchObject({ code: 5, out: "" });
    expect(answer.err).toContain(`${refused}${target.slice(0, 8)} is not one of its own sessions${lift}`);
    expect(await world.row(target)).toMatchObject({ state: "running" });
  });

  test("it may stop a session that it launched", async () => {
    await using world = new LaunchTestHome();
    elsewhere(world);
    // A session of the same place would not begin before the first one is over.
    const command = [
      "first=$($AGENTCTL launch demo work:600 --permission edit --cwd ../elsewhere)",
      'echo "$first"',
      "$AGENTCTL stop $first -y >&2",
    ].join("; ");
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect(answer.code).toBe(0);
    expect(await world.row(answer.out.trim())).toMatchObject({ state: "stopped" });
  });

  test("a person's setting turns the guard off", async () => {
    await using world = new LaunchTestHome();
    free(world);
    const target = await world.launched("work:600", "--cwd", elsewhere(world));
    const command = `$AGENTCTL stop ${target} -y && $AGENTCTL launch demo x --permission bypass --cwd ../elsewhere`;
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect([answer.code, answer.err.includes("refused")]).toEqual([0, false]);
    expect(await world.row(target)).toMatchObject({ state: "stopped" });
  });
});

/** A command that contains quotes goes into a file. */
function wrapped(wrap: (command: string) => string, world: LaunchTestHome): (command: string) => string {
  elsewhere(world);
  return (command) => wrap(`. ${world.write("command", `${command}\n`)}`);
}

test("a session may act on its indirect descendants", async () => {
  await using world = new LaunchTestHome();
  elsewhere(world);
  free(world);
  // The second session launches a third one; then the first one ends that.
  const id = join(world.work, "third");
  const third = `$AGENTCTL launch demo work:600 --permission edit --cwd ../third >${id}.tmp; mv ${id}.tmp ${id}`;
  world.folder("third");
  const prompt = world.write("prompt", `tool:${third}\nwork:600`);
  const command = [
    `$AGENTCTL launch demo -F ${prompt} --permission bypass --cwd ../elsewhere`,
    "until [ -e third ]; do sleep 0.02; done",
    'echo {} >"$HOME/.config/agentctl/config.json"',
    "$AGENTCTL stop $(cat third) -y >&2",
  ].join("; ");
  const { answer } = await inside(world, `. ${world.write("command", `${command}\n`)}`);
  expect(answer.code).toBe(0);
  expect(await world.row((await world.untilFile("third")).trim())).toMatchObject({ state: "stopped" });
  expect(await world.row(answer.out.trim())).toMatchObject({ state: "running" });
});

test("a session may not stop itself", async () => {
  await using world = new LaunchTestHome();
  const { id, answer } = await inside(world, "$AGENTCTL stop @self -y");
  expect(answer.code).toBe(5);
  expect(answer.err).toContain(`${refused}${id.slice(0, 8)} is not one of its own`);
  expect(await world.row(id)).toMatchObject({ state: "running" });
});

test("a session inside another one may not stop itself; the outer one may stop it", async () => {
  await using world = new LaunchTestHome();
  const inner = world.write("inner", `${toFiles("$AGENTCTL stop @self -y", "inner")}\n`);
  symlinkSync(binary, join(world.root, "demo-agent"));
  const command = `../demo-agent prompt:x "tool:. ${inner}" end >&2`;
  expect((await inside(world, command)).answer.code).toBe(0);
  expect(await world.untilFile("inner.code")).toBe("5\n");
  expect(await world.untilFile("inner.err")).toContain(refused);
});

test("the mark of a stopped session has no effect", async () => {
  await using world = new LaunchTestHome();
  const id = await world.launched("x");
  await world.untilAlone();
  const { code } = await world.begin([binary, "launch", "demo", "x", "--permission", "bypass"], {
    env: { DEMO_AGENT_SESSION: id },
  }).answer;
  expect(code).toBe(0);
});

test("another session in the caller's directory still occupies it", async () => {
  await using world = new LaunchTestHome();
  const other = world.start(["prompt:x", "work:600"], { cwd: world.work });
  await world.until(other.id, "working");
  const { answer } = await inside(world, "$AGENTCTL launch demo x --permission edit");
  expect(answer.code).toBe(5);
  expect(answer.err).toContain(`demo ${other.id.slice(0, 8)} is working there`);
  expect(answer.err.match(/ there/g)).toHaveLength(1);
});

test("an unknown value in the config keeps the guard on, with a warning", async () => {
  await using world = new LaunchTestHome();
  free(world, "yes");
  const problem = 'insideAgents must be "guarded" or "free"';
  const { problems } = await world.list();
  expect(problems).toMatchObject([{ code: "config-unreadable", message: problem }]);
  expect((await world.agentctl("doctor")).out).toContain(problem);
  const { answer } = await inside(world, "$AGENTCTL launch demo x --permission bypass");
  expect(answer.code).toBe(5);
});
