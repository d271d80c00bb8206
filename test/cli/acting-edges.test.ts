// What acting once got wrong, or nearly: environments, leftovers, races, names, escape sequences.
import { describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { ActingWorld } from "./acting.ts";
import { Host, Stage } from "./live.ts";
import { binary } from "./world.ts";

/** Starts the demo agent only once its world has a file `go`. */
const slow = (world: ActingWorld): string =>
  world.write("slow.sh", `#!/bin/sh\nuntil [ -e ${world.root}/go ]; do sleep 0.02; done\nexec ${binary} "$@"\n`, 0o755);

describe("the agent's environment", () => {
  test("is the caller's: also under names that a shell cannot use, or that its holder uses itself", async () => {
    await using world = new ActingWorld();
    const mine = {
      limit: "mine",
      main: "mine",
      tag: "mine",
      exit: "mine",
      given: "mine",
      agentctl: "mine",
      "my.var": "a b\nc",
      "BASH_FUNC_foo%%": "() { echo hi; }",
    };
    const { answer } = world.begin([binary, "launch", "demo", "-p", "work:600"], { env: mine });
    const { code, err } = await answer;
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(await world.oneAgent()).toMatchObject({ env: { ...mine, PWD: world.work } });
    expect(world.kept().filter((path) => path.endsWith(".env"))).toEqual([]);
  });
});

describe("nothing is left running", () => {
  test("after a start that failed: also what the program left elsewhere", async () => {
    await using world = new ActingWorld();
    const program = world.write("w.sh", "#!/bin/sh\nsetsid sleep 777 & echo cannot >&2\nexit 4\n", 0o755);
    const { answer } = world.begin([binary, "launch", "demo", "hi"], { env: { AGENTCTL_DEMO_BIN: program } });
    expect(await answer).toMatchObject({ code: 7, err: expect.stringContaining("cannot") });
    await world.untilAlone();
  });

  test("after a run that went well; what is not its own is said", async () => {
    await using world = new ActingWorld();
    const { code, out } = await world.agentctl("run", "demo", "-p", "tool:setsid sleep 700 >/dev/null 2>&1 &\nsay:ok");
    expect({ code, out }).toEqual({ code: 0, out: "ok\n" });
    await world.untilAlone();
    const daemon = await world.agentctl("run", "demo", "-p", "tool:cd / && setsid sleep 700 >/dev/null 2>&1 &\nsay:ok");
    expect(daemon).toMatchObject({
      code: 0,
      out: "ok\n",
      err: expect.stringMatching(/left: pid \d+ (?:sleep|setsid): a daemon/),
    });
  });

  test("when the time is over and agentctl itself is gone", async () => {
    await using world = new ActingWorld();
    const copy = join(world.root, "agentctl");
    copyFileSync(binary, copy);
    const id = (
      await world.begin([copy, "launch", "demo", "work:600", "--max-time", "1s"], {
        env: { AGENTCTL_DEMO_BIN: binary },
      }).answer
    ).out.trim();
    rmSync(copy);
    await world.untilAlone();
    expect(await world.row(id)).toMatchObject({ state: "stopped" });
  });
});

describe("a program that takes its time to become the agent", () => {
  test("is the only one to go on with a session, also with --share", async () => {
    await using world = new ActingWorld();
    const id = await world.launched("say:one");
    await world.until(id, "completed");
    const env = { AGENTCTL_DEMO_BIN: slow(world) };
    const first = world.begin([binary, "send", id, "work:600", "--share"], { env });
    await waitFor("its holder", () => world.holders().length === 1);
    const second = world.begin([binary, "send", id, "work:600", "--share"], { env });
    // It is seen to look, again and again, and not to start.
    await waitFor("its looks", () => world.holders().length === 1);
    writeFileSync(join(world.root, "go"), "");
    expect((await first.answer).code).toBe(0);
    expect(await second.answer).toMatchObject({ code: 5, err: expect.stringContaining("live elsewhere") });
    expect(world.launchedAgents()).toHaveLength(1);
  });

  test("has its name already", async () => {
    await using world = new ActingWorld();
    const env = { AGENTCTL_DEMO_BIN: slow(world) };
    const first = world.begin([binary, "launch", "demo", "work:600", "--name", "one"], { env });
    await waitFor("its holder", () => world.holders().length === 1);
    const { code, err } = await world.agentctl("launch", "demo", "x", "--name", "one", "--share");
    expect({ code, err }).toEqual({ code: 5, err: expect.stringContaining("the name one is taken") });
    writeFileSync(join(world.root, "go"), "");
    expect((await first.answer).code).toBe(0);
  });
});

describe("names and launches", () => {
  test("a session goes on without a name that another one has taken", async () => {
    await using world = new ActingWorld();
    const old = await world.launched("say:one", "--name", "envy");
    await world.until(old, "completed");
    await world.launched("work:600", "--name", "envy");
    const { code, out, err } = await world.agentctl("send", old, "hello", "--share");
    expect({ code, out }).toEqual({ code: 0, out: `${old}\n` });
    expect(err).toContain("without its name envy");
  });

  test("an older launch of a continued session still means it", async () => {
    await using world = new ActingWorld();
    const { id, launch } = await world.json<{ id: string; launch: string }>("launch", "demo", "say:one");
    await world.until(id, "completed");
    await world.agentctl("send", id, "say:two");
    expect(await world.json<{ id: string }>("status", `launch:${launch}`)).toMatchObject({ id });
  });

  test("a name in a note that cannot be read is not `not found`", async () => {
    await using world = new ActingWorld();
    await world.launched("work:600", "--name", "x");
    for (const path of world.kept()) if (path.endsWith(".json")) writeFileSync(path, "{");
    expect((await world.agentctl("status", "x")).code).toBe(8);
  });
});

describe("for scripts", () => {
  test("a group is a list, also of one", async () => {
    await using world = new ActingWorld();
    await world.launched("say:done", "--group", "g");
    const waited = JSON.parse((await world.agentctl("wait", "--group", "g", "--json")).out) as unknown[];
    const stopped = JSON.parse((await world.agentctl("stop", "--group", "g", "--json")).out) as unknown[];
    expect([waited.length, stopped.length]).toEqual([1, 1]);
  });

  test("stop tells the exit status", async () => {
    await using world = new ActingWorld();
    const id = await world.launched("work:600");
    expect(await world.json<object>("stop", id)).toMatchObject({ state: "stopped", launch: { exit: { status: 130 } } });
  });

  test("a hosted session is not started anew: flags of a start are refused", async () => {
    await using stage = new Stage();
    const host = new Host(stage);
    const id = await host.start("Fix it");
    for (const flags of [
      ["--permission", "read"],
      ["--model", "x"],
      ["--max-time", "1s"],
      ["--", "--anything"],
    ]) {
      const { code, err } = await stage.run(["send", id, "more", ...flags]);
      expect([flags[0], code, err.includes("cannot be passed on")]).toEqual([flags[0], 5, true]);
    }
  });

  test("a permission that a session was launched with is said when it goes on", async () => {
    await using world = new ActingWorld();
    const id = await world.launched("say:one", "--permission", "bypass");
    await world.until(id, "completed");
    expect((await world.agentctl("send", id, "say:two")).err).toContain("--permission bypass, as it was launched");
  });
});

describe("messages, not stack traces", () => {
  test.each([
    ["is a link", (folder: string) => symlinkSync("/nowhere", join(folder, "agentctl", "launch.lock"))],
    ["is a folder", (folder: string) => mkdirSync(join(folder, "agentctl", "launch.lock"))],
  ])("the lock %s", async (_what, spoil) => {
    await using world = new ActingWorld();
    const runtime = join(world.root, "runtime");
    mkdirSync(join(runtime, "agentctl"), { recursive: true, mode: 0o700 });
    spoil(runtime);
    const { answer } = world.begin([binary, "launch", "demo", "x"], { env: { XDG_RUNTIME_DIR: runtime } });
    expect(await answer).toMatchObject({ code: 1, err: expect.stringContaining("nothing was started") });
    expect(world.kept()).toEqual([]);
  });

  test("stdin is a folder", async () => {
    await using world = new ActingWorld();
    const { code, err } = await world.begin(["/bin/sh", "-c", `${binary} launch demo - </`]).answer;
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("from standard input: a folder") });
  });

  test("a repository's settings reach the terminal without their escape sequences", async () => {
    await using world = new ActingWorld();
    mkdirSync(join(world.work, ".claude"));
    const mode = "x\u001b]0;pwned\u0007\u001b[31m";
    writeFileSync(join(world.work, ".claude", "settings.json"), JSON.stringify({ permissions: { defaultMode: mode } }));
    const program = world.write("claude", "#!/bin/sh\nexit 1\n", 0o755);
    const { answer } = world.begin([binary, "launch", "claude", "hi"], { env: { AGENTCTL_CLAUDE_CODE_BIN: program } });
    const { err } = await answer;
    expect(err).toContain('claude-code: its own mode "x');
    expect(err.includes("\u001b")).toBe(false);
  });

  test("the limit was not over where it completed", async () => {
    await using world = new ActingWorld();
    const { code, out, err } = await world.agentctl("run", "demo", "say:hello", "--max-time", "1s");
    expect({ code, out }).toEqual({ code: 0, out: "hello\n" });
    expect(err).not.toContain("was over");
  });
});

test("the runtime folder must be an absolute path", async () => {
  await using world = new ActingWorld();
  const { answer } = world.begin([binary, "run", "demo", "say:x"], { env: { XDG_RUNTIME_DIR: "." } });
  expect((await answer).code).toBe(0);
  expect(() => readFileSync(join(world.work, "agentctl", "launch.lock"))).toThrow();
});
