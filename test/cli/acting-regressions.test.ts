// Earlier bugs of acting commands: environments, leftover processes, races, names, escape sequences.
import { describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { LaunchTestHome } from "./test-home-launch.ts";
import { Server, ServerTestHome } from "./test-home-servers.ts";

/** Starts the demo agent only once its world has a file `go`. */
const slow = (world: LaunchTestHome): string =>
  world.write("slow.sh", `#!/bin/sh\nuntil [ -e ${world.root}/go ]; do sleep 0.02; done\nexec ${binary} "$@"\n`, 0o755);

describe("the agent's environment", () => {
  test("is the caller's, including names that a shell cannot use or that the holder uses itself", async () => {
    await using world = new LaunchTestHome();
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
  test("after a failed start, including processes that the program moved to another session", async () => {
    await using world = new LaunchTestHome();
    const program = world.write("w.sh", "#!/bin/sh\nsetsid sleep 777 & echo cannot >&2\nexit 4\n", 0o755);
    const { answer } = world.begin([binary, "launch", "demo", "hi"], { env: { AGENTCTL_DEMO_BIN: program } });
    expect(await answer).toMatchObject({ code: 7, err: expect.stringContaining("cannot") });
    await world.untilAlone();
  });

  test("after a successful run; processes that are not its own are named", async () => {
    await using world = new LaunchTestHome();
    const { code, out } = await world.agentctl("run", "demo", "-p", "tool:setsid sleep 700 >/dev/null 2>&1 &\nsay:ok");
    expect({ code, out }).toEqual({ code: 0, out: "ok\n" });
    await world.untilAlone();
    const daemon = await world.agentctl("run", "demo", "-p", "tool:cd / && setsid sleep 700 >/dev/null 2>&1 &\nsay:ok");
    expect(daemon).toMatchObject({
      code: 0,
      out: "ok\n",
      err: expect.stringMatching(/left running: pid \d+ (?:sleep|setsid): a daemon/),
    });
  });

  test("at the time limit, even if agentctl has exited", async () => {
    await using world = new LaunchTestHome();
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

describe("a slow program that becomes the agent later", () => {
  test("is the only one that continues the session, even with --share", async () => {
    await using world = new LaunchTestHome();
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
    expect(await second.answer).toMatchObject({ code: 5, err: expect.stringContaining("open elsewhere") });
    expect(world.launchedAgents()).toHaveLength(1);
  });

  test("already has its name", async () => {
    await using world = new LaunchTestHome();
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
  test("a continued session loses a name that another session has taken", async () => {
    await using world = new LaunchTestHome();
    const old = await world.launched("say:one", "--name", "envy");
    await world.until(old, "completed");
    await world.launched("work:600", "--name", "envy");
    const { code, out, err } = await world.agentctl("send", old, "hello", "--share");
    expect({ code, out }).toEqual({ code: 0, out: `${old}\n` });
    expect(err).toContain("without its name envy");
  });

  test("the id of an older launch still refers to the continued session", async () => {
    await using world = new LaunchTestHome();
    const { id, launch } = await world.json<{ id: string; launch: string }>("launch", "demo", "say:one");
    await world.until(id, "completed");
    await world.agentctl("send", id, "say:two");
    expect(await world.json<{ id: string }>("status", `launch:${launch}`)).toMatchObject({ id });
  });

  test(`a reference by name is not "not found" while a note cannot be read`, async () => {
    await using world = new LaunchTestHome();
    await world.launched("work:600", "--name", "x");
    for (const path of world.kept()) if (path.endsWith(".json")) writeFileSync(path, "{");
    expect((await world.agentctl("status", "x")).code).toBe(8);
  });
});

describe("output for scripts", () => {
  test("a group is a JSON list, even with one session", async () => {
    await using world = new LaunchTestHome();
    await world.launched("say:done", "--group", "g");
    const waited = JSON.parse((await world.agentctl("wait", "--group", "g", "--json")).out) as unknown[];
    const stopped = JSON.parse((await world.agentctl("stop", "--group", "g", "--json")).out) as unknown[];
    expect([waited.length, stopped.length]).toEqual([1, 1]);
  });

  test("stop prints the exit status", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("work:600");
    expect(await world.json<object>("stop", id)).toMatchObject({ state: "stopped", launch: { exit: { status: 130 } } });
  });

  test("send to a served session refuses flags of a start", async () => {
    await using stage = new ServerTestHome();
    const server = new Server(stage);
    const id = await server.start("Fix it");
    for (const flags of [
      ["--permission", "read"],
      ["--model", "x"],
      ["--max-time", "1s"],
      ["--", "--anything"],
    ]) {
      const { code, err } = await stage.run(["send", id, "more", ...flags]);
      expect([flags[0], code, /ha(s|ve) no effect/.test(err)]).toEqual([flags[0], 5, true]);
    }
  });

  test("send prints the permission of the launch", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("say:one", "--permission", "bypass");
    await world.until(id, "completed");
    expect((await world.agentctl("send", id, "say:two")).err).toContain("--permission bypass, as it was launched");
  });
});

describe("errors have a message and no stack trace", () => {
  test.each([
    ["is a link", (folder: string) => symlinkSync("/nowhere", join(folder, "agentctl", "launch.lock"))],
    ["is a folder", (folder: string) => mkdirSync(join(folder, "agentctl", "launch.lock"))],
  ])("when the lock %s", async (_what, spoil) => {
    await using world = new LaunchTestHome();
    const runtime = join(world.root, "runtime");
    mkdirSync(join(runtime, "agentctl"), { recursive: true, mode: 0o700 });
    spoil(runtime);
    const { answer } = world.begin([binary, "launch", "demo", "x"], { env: { XDG_RUNTIME_DIR: runtime } });
    expect(await answer).toMatchObject({ code: 1, err: expect.stringContaining("nothing was started") });
    expect(world.kept()).toEqual([]);
  });

  test("when stdin is a folder", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await world.begin(["/bin/sh", "-c", `${binary} launch demo - </`]).answer;
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining("from standard input: a folder") });
  });

  test("when a repository's settings have escape sequences", async () => {
    await using world = new LaunchTestHome();
    mkdirSync(join(world.work, ".claude"));
    const mode = "x\u001b]0;pwned\u0007\u001b[31m";
    writeFileSync(join(world.work, ".claude", "settings.json"), JSON.stringify({ permissions: { defaultMode: mode } }));
    const program = world.write("claude", "#!/bin/sh\nexit 1\n", 0o755);
    const { answer } = world.begin([binary, "launch", "claude", "hi"], { env: { AGENTCTL_CLAUDE_CODE_BIN: program } });
    const { err } = await answer;
    expect(err).toContain('claude-code: its own mode "x');
    expect(err.includes("\u001b")).toBe(false);
  });

  test("a session that completed did not reach its time limit", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await world.agentctl("run", "demo", "say:hello", "--max-time", "1s");
    expect({ code, out }).toEqual({ code: 0, out: "hello\n" });
    expect(err).not.toContain("was reached");
  });
});

test("the runtime folder must be an absolute path", async () => {
  await using world = new LaunchTestHome();
  const { answer } = world.begin([binary, "run", "demo", "say:x"], { env: { XDG_RUNTIME_DIR: "." } });
  expect((await answer).code).toBe(0);
  expect(() => readFileSync(join(world.work, "agentctl", "launch.lock"))).toThrow();
});
