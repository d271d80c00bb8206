// agentctl called from inside an agent's session: what it may do there, and what a person's word lifts.
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ActingWorld, toFiles } from "./acting.ts";
import { inside } from "./inside.ts";
import { binary } from "./world.ts";

/** The tool has left the tree: its parent is the first process, its kernel session its own. */
const reparented = (command: string): string => {
  const orphan = `until grep -q "^PPid:.1$" /proc/$$/status; do sleep 0.01; done; ${command}`;
  return `setsid sh -c '${orphan}' & :`;
};

const refused = "agentctl: called from inside an agent's session: ";
const lift = `\n  a person can lift this: {"insideAgents": "free"} in agentctl's config.json\n`;

const elsewhere = (world: ActingWorld): string => world.folder("elsewhere");

const free = (world: ActingWorld, value: unknown = "free"): void => {
  mkdirSync(join(world.root, ".config/agentctl"), { recursive: true });
  writeFileSync(join(world.root, ".config/agentctl/config.json"), JSON.stringify({ insideAgents: value }));
};

describe("@self", () => {
  test("is the session of the agent whose tool asks", async () => {
    await using world = new ActingWorld();
    const { id, answer } = await inside(world, "$AGENTCTL status @self --json");
    expect(answer.code).toBe(0);
    expect(JSON.parse(answer.out)).toMatchObject({ id, state: "running" });
  });

  test("is nobody outside", async () => {
    await using world = new ActingWorld();
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
    await using world = new ActingWorld();
    const { answer } = await inside(
      world,
      "$AGENTCTL launch demo x --permission bypass --cwd ../elsewhere",
      wrapped(wrap, world),
    );
    expect(answer).toEqual({ code: 5, out: "", err: `${refused}at most --permission edit${lift}` });
    expect(world.kept()).toEqual([]);
  });

  test.each([
    ["without a value, where the agent's own setting allows everything", "$AGENTCTL launch demo x", "own setting"],
    [
      "behind --",
      "$AGENTCTL launch demo x --permission edit -- --permission bypass",
      "no arguments of the agent's own",
    ],
  ])("bypass %s is refused, too", async (_way, command, words) => {
    await using world = new ActingWorld();
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect(answer).toMatchObject({ code: 5, out: "", err: expect.stringContaining(words) });
    expect(world.kept()).toEqual([]);
  });

  test("@self is the session it runs in", async () => {
    await using world = new ActingWorld();
    const { id, answer } = await inside(world, "$AGENTCTL status @self --json", wrapped(wrap, world));
    expect(JSON.parse(answer.out)).toMatchObject({ id });
  });

  test("edit is allowed, in the caller's own place", async () => {
    await using world = new ActingWorld();
    const { id, answer } = await inside(
      world,
      "$AGENTCTL launch demo edit:made:x --permission edit",
      wrapped(wrap, world),
    );
    expect([answer.code, answer.err.includes("not alone")]).toEqual([0, false]);
    expect(await world.untilFile("made")).toBe("x");
    const row = await world.until(answer.out.trim(), "completed");
    expect(row.id).not.toBe(id);
  });

  test.each([
    ["stop", "stop $TARGET -y"],
    ["send", "send $TARGET hello"],
    ["interrupt", "interrupt $TARGET"],
  ])("%s of a session that is not its own is refused", async (_command, words) => {
    await using world = new ActingWorld();
    const target = await world.launched("work:600", "--cwd", elsewhere(world));
    const command = `TARGET=${target}; $AGENTCTL ${words}`;
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect(answer).toMatchObject({ code: 5, out: "" });
    expect(answer.err).toContain(`${refused}${target.slice(0, 8)} is not one of its own${lift}`);
    expect(await world.row(target)).toMatchObject({ status: "working" });
  });

  test("it may stop what it launched", async () => {
    await using world = new ActingWorld();
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

  test("a person's word lifts it", async () => {
    await using world = new ActingWorld();
    free(world);
    const target = await world.launched("work:600", "--cwd", elsewhere(world));
    const command = `$AGENTCTL stop ${target} -y && $AGENTCTL launch demo x --permission bypass --cwd ../elsewhere`;
    const { answer } = await inside(world, command, wrapped(wrap, world));
    expect([answer.code, answer.err.includes("refused")]).toEqual([0, false]);
    expect(await world.row(target)).toMatchObject({ state: "stopped" });
  });
});

/** A command with quotes of its own goes into a file. */
function wrapped(wrap: (command: string) => string, world: ActingWorld): (command: string) => string {
  elsewhere(world);
  return (command) => wrap(`. ${world.write("command", `${command}\n`)}`);
}

test("a descendant of a descendant is one's own", async () => {
  await using world = new ActingWorld();
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
  expect(await world.row(answer.out.trim())).toMatchObject({ status: "working" });
});

test("its own session is not its own to stop", async () => {
  await using world = new ActingWorld();
  const { id, answer } = await inside(world, "$AGENTCTL stop @self -y");
  expect(answer.code).toBe(5);
  expect(answer.err).toContain(`${refused}${id.slice(0, 8)} is not one of its own`);
  expect(await world.row(id)).toMatchObject({ state: "running" });
});

test("nor is it when it runs inside of another one, which may", async () => {
  await using world = new ActingWorld();
  const inner = world.write("inner", `${toFiles("$AGENTCTL stop @self -y", "inner")}\n`);
  symlinkSync(binary, join(world.root, "demo-agent"));
  const command = `../demo-agent prompt:x "tool:. ${inner}" end >&2`;
  expect((await inside(world, command)).answer.code).toBe(0);
  expect(await world.untilFile("inner.code")).toBe("5\n");
  expect(await world.untilFile("inner.err")).toContain(refused);
});

test("a mark of a session that is over guards nobody", async () => {
  await using world = new ActingWorld();
  const id = await world.launched("x");
  await world.untilAlone();
  const { code } = await world.begin([binary, "launch", "demo", "x", "--permission", "bypass"], {
    env: { DEMO_AGENT_SESSION: id },
  }).answer;
  expect(code).toBe(0);
});

test("another session in the caller's place still occupies it", async () => {
  await using world = new ActingWorld();
  const other = world.start(["prompt:x", "work:600"], { cwd: world.work });
  await world.until(other.id, "working");
  const { answer } = await inside(world, "$AGENTCTL launch demo x --permission edit");
  expect(answer.code).toBe(5);
  expect(answer.err).toContain(`demo ${other.id} is working there`);
  expect(answer.err.match(/ there/g)).toHaveLength(1);
});

test("a word that the config does not know guards, and is said", async () => {
  await using world = new ActingWorld();
  free(world, "yes");
  const problem = '"insideAgents" must be "guarded" or "free"';
  const { problems } = await world.list();
  expect(problems).toMatchObject([{ code: "config-unreadable", message: problem }]);
  expect((await world.agentctl("doctor")).out).toContain(problem);
  const { answer } = await inside(world, "$AGENTCTL launch demo x --permission bypass");
  expect(answer.code).toBe(5);
});
