// One session at a time may work in a directory or git worktree. This is derived from live sessions, not from stored locks.
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { LaunchTestHome } from "./test-home-launch.ts";

const tryIn = (world: LaunchTestHome, cwd: string, ...args: string[]) =>
  world.begin([binary, "launch", "demo", "x", "--permission", "edit", ...args], { cwd }).answer;

describe("a directory with a working session", () => {
  test("refuses a launch and names the session, its start and its terminal", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("work:600");
    const agent = await world.oneAgent();
    expect(await tryIn(world, world.work)).toEqual({
      code: 5,
      out: "",
      err: [
        `agentctl: cannot launch in ~/work: demo ${id.slice(0, 8)} is working there (pid ${agent.pid})`,
        "  use --worktree for a separate checkout, or --share to start anyway\n",
      ].join("\n"),
    });
    expect(world.launchedAgents()).toHaveLength(1);
    expect(world.kept().filter((file) => file.endsWith(".json"))).toHaveLength(1);
  });

  test("accepts a launch with --share, with a note", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("work:600");
    const { code, err } = await tryIn(world, world.work, "--share");
    expect(code).toBe(0);
    expect(err).toContain(`agentctl: same directory: demo ${id.slice(0, 8)} is working there`);
    const second = await world.launched("work:600", "--share");
    for (const each of [id, second]) expect(await world.row(each)).toMatchObject({ state: "running" });
  });

  test("is occupied by a session started by hand while it works or waits; an idle one is only named", async () => {
    await using world = new LaunchTestHome();
    const agent = world.start(["prompt:x", "ask:permission:May I?", "end", "idle"], { cwd: world.work });
    await world.until(agent.id, "waiting");
    const refused = await tryIn(world, world.work);
    expect(refused.code).toBe(5);
    expect(refused.err).toContain(`demo ${agent.id.slice(0, 8)} is waiting there`);
    agent.type("yes");
    await world.until(agent.id, "idle");
    const { code, err } = await tryIn(world, world.work);
    expect(code).toBe(0);
    expect(err).toContain(`agentctl: same directory: demo ${agent.id.slice(0, 8)} is idle there`);
  });

  test("is occupied by a session whose record cannot be read", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("work:600");
    writeFileSync(join(world.home, "sessions", `${id}.jsonl`), "{broken");
    expect((await tryIn(world, world.work)).code).toBe(5);
  });

  test("is the same through a link and from every folder of its git worktree", async () => {
    await using world = new LaunchTestHome();
    const repository = world.folder("repository");
    mkdirSync(join(repository, ".git"));
    const [deep, other] = [world.folder("repository", "a", "b"), world.folder("repository", "c")];
    symlinkSync(deep, join(world.root, "link"));
    const worktree = world.folder("repository", "worktrees", "w");
    writeFileSync(join(worktree, ".git"), "gitdir: elsewhere\n");
    await world.launched("work:600", "--cwd", deep);
    for (const cwd of [repository, other, deep]) expect((await tryIn(world, cwd)).code).toBe(5);
    expect((await tryIn(world, world.work, "--cwd", join(world.root, "link"))).code).toBe(5);
    for (const cwd of [world.work, worktree]) expect((await tryIn(world, cwd)).code).toBe(0);
  });

  test("without git does not include its parent or its subfolders", async () => {
    await using world = new LaunchTestHome();
    const [middle, below, sibling] = [world.folder("a/b"), world.folder("a/b/c"), world.folder("a/bb")];
    await world.launched("work:600", "--cwd", middle);
    expect((await tryIn(world, middle)).code).toBe(5);
    for (const cwd of [world.folder("a"), below, sibling]) expect((await tryIn(world, cwd)).code).toBe(0);
  });

  test("stays occupied, with the same statuses, after all of agentctl's files were removed", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("work:600", "--name", "n");
    const { launch, ...before } = await world.row(id);
    expect(launch).toMatchObject({ name: "n" });
    rmSync(join(world.root, ".agentctl"), { recursive: true });
    expect(await world.row(id)).toEqual({ ...before, launch: null, name: null });
    expect((await tryIn(world, world.work)).code).toBe(5);
  });
});

describe("a directory is not occupied by", () => {
  test("a session that was killed, whose record is open and whose announcement is still there", async () => {
    await using world = new LaunchTestHome();
    const agent = world.start(["prompt:x", "work:600"], { cwd: world.work });
    await world.until(agent.id, "working");
    await agent.end("SIGKILL");
    expect(existsSync(join(world.home, "live", `${agent.pid}.json`))).toBe(true);
    expect((await tryIn(world, world.work)).code).toBe(0);
  });

  test("an announcement whose pid now belongs to another program", async () => {
    await using world = new LaunchTestHome();
    const agent = world.start(["prompt:x", "work:600"], { cwd: world.work });
    await world.until(agent.id, "working");
    const live = join(world.home, "live");
    const announcement = JSON.parse(readFileSync(join(live, `${agent.pid}.json`), "utf8")) as Record<string, unknown>;
    await agent.end("SIGKILL");
    // The number is ours now, or that of an agent that began at another time.
    const other = world.start(["prompt:x", "work:600"], { cwd: world.folder("other") });
    await world.until(other.id, "working");
    writeFileSync(join(live, `${process.pid}.json`), JSON.stringify({ ...announcement, pid: process.pid }));
    writeFileSync(join(live, `${other.pid}.json`), JSON.stringify({ ...announcement, pid: other.pid }));
    expect((await tryIn(world, world.work)).code).toBe(0);
  });

  test("a launcher that was killed before it started anything", async () => {
    await using world = new LaunchTestHome();
    // It waits for its prompt, so it has not come to the lock.
    const launch = Bun.spawn([binary, "launch", "demo", "-"], { env: world.env, cwd: world.work, stdin: "pipe" });
    launch.kill("SIGKILL");
    await launch.exited;
    expect((await tryIn(world, world.work)).code).toBe(0);
  });
});

describe("a race", () => {
  test("of twenty launches in one directory has one winner, and the others leave nothing", async () => {
    await using world = new LaunchTestHome();
    const launches = Array.from({ length: 20 }, () =>
      world.begin([binary, "launch", "demo", "work:600", "--permission", "edit"]),
    );
    const answers = await Promise.all(launches.map(({ answer }) => answer));
    const codes = answers.map(({ code }) => code).sort();
    expect(codes).toEqual([0, ...Array.from({ length: 19 }, () => 5)]);
    const winner = answers.find(({ code }) => code === 0)?.out.trim();
    for (const { code, err } of answers)
      if (code === 5) expect(err).toContain(`cannot launch in ~/work: demo ${winner?.slice(0, 8)} is `);
    expect(world.processes().map(({ argv }) => argv[1])).toEqual(["-c", "demo-agent"]);
    expect(world.kept().filter((file) => file.endsWith(".json"))).toHaveLength(1);
  }, 60_000);

  test("of launches in different directories has no loser", async () => {
    await using world = new LaunchTestHome();
    const numbers = [1, 2, 3, 4, 5, 6];
    const launches = numbers.map((number) =>
      world.begin([binary, "launch", "demo", `say:I am ${number}`, "--cwd", world.folder(`place-${number}`), "--json"]),
    );
    const answers = await Promise.all(launches.map(({ answer }) => answer));
    expect(answers.map(({ code }) => code)).toEqual([0, 0, 0, 0, 0, 0]);
    await world.untilAlone();
    const outputs = answers.map(({ out }) => {
      const { launch } = JSON.parse(out) as { launch: string };
      return readFileSync(join(world.root, ".agentctl/logs", `${launch}.out`), "utf8");
    });
    expect(outputs).toEqual(numbers.map((number) => `I am ${number}\n`));
  });

  test("for one name has one winner, even with a slow wrapper", async () => {
    await using world = new LaunchTestHome();
    const env = { AGENTCTL_DEMO_BIN: world.write("wrapper", `#!/bin/sh\nsleep 0.5\nexec ${binary} "$@"\n`, 0o755) };
    const launches = [1, 2, 3, 4].map((number) => {
      const words = ["launch", "demo", "work:600", "--name", "n", "--cwd", world.folder(`place-${number}`)];
      return world.begin([binary, ...words], { env });
    });
    const codes = (await Promise.all(launches.map(({ answer }) => answer))).map(({ code }) => code).sort();
    expect(codes).toEqual([0, 5, 5, 5]);
  });

  test.each([
    ["holder", (world: LaunchTestHome) => world.holders()],
    ["agent", (world: LaunchTestHome) => world.launchedAgents()],
  ] as const)("still has one winner if the winning launch is killed as soon as its %s runs", async (_name, sign) => {
    await using world = new LaunchTestHome();
    const args = ["launch", "demo", "work:600", "--permission", "edit", "--", "--announce-after", "300"];
    const launch = world.begin([binary, ...args]);
    await waitFor("its start", () => sign(world).length > 0);
    launch.kill("SIGKILL");
    await launch.answer;
    const answers = await Promise.all([1, 2, 3].map(() => tryIn(world, world.work)));
    expect(answers.map(({ code }) => code)).toEqual([5, 5, 5]);
    expect(world.launchedAgents()).toHaveLength(1);
    const [agent] = world.launchedAgents();
    await world.until(agent?.env["AGENTCTL_TAG_SESSION"]?.replace("demo:", "") ?? "", "working");
  });

  test("whose winner is a slow wrapper without its launcher refuses all others", async () => {
    await using world = new LaunchTestHome();
    const script = `#!/bin/sh\nuntil [ -e go ]; do sleep 0.02; done\nexec ${binary} "$@"\n`;
    const env = { AGENTCTL_DEMO_BIN: world.write("wrapper", script, 0o755) };
    const launch = world.begin([binary, "launch", "demo", "work:600"], { env });
    await waitFor("the wrapper", () => world.processes().some(({ argv }) => argv[1]?.endsWith("/wrapper") === true));
    launch.kill("SIGKILL");
    await launch.answer;
    const { code, err } = await tryIn(world, world.work);
    expect(code).toBe(5);
    expect(err).toContain("another launch is starting there (pid ");
    writeFileSync(join(world.work, "go"), "");
    const id = (await world.oneAgent()).env["AGENTCTL_TAG_SESSION"]?.replace("demo:", "") ?? "";
    await world.until(id, "working");
  }, 20_000);

  test("with a slow wrapper does not delay launches in other directories", async () => {
    await using world = new LaunchTestHome();
    const env = { AGENTCTL_DEMO_BIN: world.write("wrapper", "#!/bin/sh\nsleep 600\n", 0o755) };
    const launch = world.begin([binary, "launch", "demo", "work:600"], { env });
    await waitFor("the wrapper", () => world.processes().some(({ argv }) => argv[1]?.endsWith("/wrapper") === true));
    expect((await tryIn(world, world.folder("other"))).code).toBe(0);
    launch.kill("SIGINT");
    expect((await launch.answer).code).toBe(130);
    await world.untilAlone();
  });

  test("ends when the agent's process is visible; a slow start does not delay other directories", async () => {
    await using world = new LaunchTestHome();
    const slow = world.begin([binary, "launch", "demo", "x", "--", "--announce-after", "600000"]);
    await world.oneAgent();
    expect((await tryIn(world, world.folder("other"))).code).toBe(0);
    slow.kill("SIGINT");
    expect((await slow.answer).code).toBe(130);
  });
});

describe("the launch lock", () => {
  const tryWith = (world: LaunchTestHome, env: Record<string, string>) =>
    world.begin([binary, "launch", "demo", "x", "--permission", "edit"], { env }).answer;
  const inHome = (world: LaunchTestHome): boolean => existsSync(join(world.root, ".agentctl/run/launch.lock"));

  test("is in XDG_RUNTIME_DIR and in agentctl's home, and private", async () => {
    await using world = new LaunchTestHome();
    const runtime = world.folder("runtime");
    chmodSync(runtime, 0o700);
    expect((await tryWith(world, { XDG_RUNTIME_DIR: runtime })).code).toBe(0);
    expect([existsSync(join(runtime, "agentctl/launch.lock")), inHome(world)]).toEqual([true, true]);
    expect(statSync(join(runtime, "agentctl")).mode & 0o777).toBe(0o700);
    expect(statSync(join(world.root, ".agentctl/run/launch.lock")).mode & 0o777).toBe(0o600);
  });

  test("is only in agentctl's home if the runtime folder is missing or others can write to it", async () => {
    await using world = new LaunchTestHome();
    const open = world.folder("open");
    chmodSync(open, 0o770);
    for (const runtime of [open, join(world.root, "nowhere"), world.write("file", "")]) {
      expect((await tryWith(world, { XDG_RUNTIME_DIR: runtime })).code).toBe(0);
      expect(inHome(world)).toBe(true);
      await world.untilAlone();
    }
    expect(readdirSync(open)).toEqual([]);
  });

  test("is not taken in a home or folder that other users can write to", async () => {
    await using world = new LaunchTestHome();
    const open = world.folder("open");
    chmodSync(open, 0o777);
    expect((await tryWith(world, { AGENTCTL_HOME: open })).code).toBe(1);
    chmodSync(open, 0o700);
    expect((await tryWith(world, { AGENTCTL_HOME: open })).code).toBe(0);
    await world.untilAlone();
    chmodSync(join(open, "run"), 0o770);
    const { code, err } = await tryWith(world, { AGENTCTL_HOME: open });
    expect([code, err]).toEqual([
      1,
      `agentctl: ${open}/run is writable by other users\n  set AGENTCTL_HOME to a folder of yours\n`,
    ]);
    expect(world.processes()).toEqual([]);
  });

  test("is only in XDG_RUNTIME_DIR if agentctl's home is read-only", async () => {
    await using world = new LaunchTestHome();
    const runtime = world.folder("runtime");
    chmodSync(runtime, 0o700);
    const id = await world.launched("x");
    await world.untilAlone();
    rmSync(join(world.root, ".agentctl/run/launch.lock"));
    const script = `mount --bind "$HOME/.agentctl" "$HOME/.agentctl" && mount -o remount,bind,ro "$HOME/.agentctl" && exec script -qec "${binary} resume ${id}" /dev/null`;
    const resumed = world.begin(["unshare", "-m", "sh", "-c", script], {
      env: { XDG_RUNTIME_DIR: runtime, TERM: "xterm" },
    });
    await world.until(id, "idle");
    resumed.kill("SIGKILL");
    await resumed.answer;
  });

  test("is no longer waited for after Ctrl-C", async () => {
    await using world = new LaunchTestHome();
    const runtime = world.folder("runtime");
    chmodSync(runtime, 0o700);
    mkdirSync(join(runtime, "agentctl"), { mode: 0o700 });
    const lock = join(runtime, "agentctl/launch.lock");
    const holder = world.begin(["flock", lock, "sh", "-c", "touch locked; exec sleep 600"]);
    await world.untilFile("locked");
    const launch = world.begin([binary, "launch", "demo", "x"], { env: { XDG_RUNTIME_DIR: runtime } });
    await waitFor("its first word", () => launch.said() !== "");
    launch.kill("SIGINT");
    expect(await launch.answer).toMatchObject({ code: 130, out: "" });
    holder.kill("SIGKILL");
    expect(world.kept()).toEqual([]);
  });
});
