// --on-start and --on-exit with the demo agent: each hook runs at least once, even if processes are killed, and outside the session.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, ServerProtocol } from "../../src/agents/adapter.ts";
import { demo } from "../../src/agents/demo/index.ts";
import { checkHooks } from "../../src/service/launch-plan.ts";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { isAlive, LaunchTestHome, readProcess } from "./test-home-launch.ts";
import { createRepositoryHome } from "./test-home-repository.ts";

interface Hook {
  command: string;
  state: string;
  begunAt: string | null;
  endedAt: string | null;
  status: number | null;
  timedOut: boolean;
  late: boolean;
  attempts: number;
  problem: string | null;
}

interface Launch {
  id: string;
  exit: { status: number } | null;
  hooks: { start: Hook | null; exit: Hook | null } | null;
}

const linesOf = (world: LaunchTestHome, name: string): string => {
  const path = join(world.work, name);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

const untilGo = "tool:until [ -e go ]; do sleep 0.02; done";
const go = (world: LaunchTestHome): void => writeFileSync(join(world.work, "go"), "");

const launchOf = async (world: LaunchTestHome, id: string): Promise<Launch> =>
  (await world.json<{ launch: Launch }>("status", id)).launch;

const hook = (command: string, news: Partial<Hook>): Hook => ({
  command,
  state: "ended",
  begunAt: expect.any(String),
  endedAt: expect.any(String),
  status: 0,
  timedOut: false,
  late: false,
  attempts: 1,
  problem: null,
  ...news,
});

/** When everything is over: a process that is just becoming another program cannot be seen to be of this world. */
async function ended(world: LaunchTestHome, id: string): Promise<Launch["hooks"]> {
  for (const end = performance.now() + 10_000; ; ) {
    const { hooks } = await launchOf(world, id);
    const open = [hooks?.start, hooks?.exit].some((each) => each != null && each.state !== "ended");
    if (!open || performance.now() > end) {
      await world.untilAlone();
      return hooks;
    }
  }
}

/** Everything that the hook found, once it is whole. */
const toFile = (name: string): string => `env >${name}.tmp; pwd >>${name}.tmp; mv ${name}.tmp ${name}`;

async function variables(world: LaunchTestHome, name: string): Promise<Record<string, string>> {
  const lines = (await world.untilFile(name)).split("\n");
  return Object.fromEntries(
    lines
      .flatMap((line) => [/^([A-Za-z_]\w*)=(.*)$/.exec(line)?.slice(1, 3) ?? []])
      .filter((pair) => pair.length === 2),
  );
}

const ours = (env: Record<string, string>) =>
  Object.fromEntries(Object.entries(env).filter(([key]) => key.startsWith("AGENTCTL_") && key !== "AGENTCTL_HOME"));

async function holderKilled(world: LaunchTestHome): Promise<void> {
  const [holder] = world.holders().filter(({ pid, session }) => pid === session);
  process.kill(holder?.pid ?? 0, "SIGKILL");
  await waitFor("the holder's end", () => !isAlive(holder?.pid ?? 0));
}

const runners = (world: LaunchTestHome) => world.processes().filter(({ argv }) => argv.includes("run-hook"));

describe("a hook gets", () => {
  test("the branch of its directory if the record does not name one", async () => {
    await using here = await createRepositoryHome();
    const file = join(here.root, "branch");
    await here.launchHere("say:x", "--worktree", "--name", "w", "--on-start", `echo "$AGENTCTL_BRANCH" >'${file}'`);
    await waitFor("the hook", () => existsSync(file) && readFileSync(file, "utf8") === "agentctl/w\n");
    await here.untilAlone();
  });

  test("the facts of the session and no tag; on-start runs first, on-exit after the exit", async () => {
    await using world = new LaunchTestHome();
    const start = toFile("start");
    const exit = toFile("exit");
    const flags = ["--name", "n", "--group", "g", "--model", "m-1", "--on-start", start, "--on-exit", exit];
    const id = await world.launched(untilGo, ...flags);
    const begun = await variables(world, "start");
    const { id: launch } = await launchOf(world, id);
    const facts = {
      AGENTCTL_SESSION_ID: id,
      AGENTCTL_AGENT: "demo",
      AGENTCTL_CWD: world.work,
      AGENTCTL_GROUP: "g",
      AGENTCTL_NAME: "n",
      AGENTCTL_MODEL: expect.stringMatching(/^(m-1)?$/),
      AGENTCTL_BRANCH: "",
      AGENTCTL_LAUNCH_ID: launch,
    };
    expect(ours(begun)).toEqual({ ...facts, AGENTCTL_EXIT_STATUS: "", AGENTCTL_OUTCOME: "" });
    expect(existsSync(join(world.work, "exit"))).toBe(false);
    expect((await launchOf(world, id)).hooks?.exit).toEqual(
      hook(exit, { state: "pending", begunAt: null, endedAt: null, status: null, attempts: 0 }),
    );
    go(world);
    const over = await variables(world, "exit");
    expect(ours(over)).toEqual({
      ...facts,
      AGENTCTL_MODEL: "m-1",
      AGENTCTL_EXIT_STATUS: "0",
      AGENTCTL_OUTCOME: "completed",
    });
    for (const env of [begun, over]) {
      expect(Object.keys(env).filter((key) => /TAG|DEMO_AGENT_SESSION/.test(key))).toEqual([]);
      expect(env["PWD"]).toBe(world.work);
    }
    const hooks = await ended(world, id);
    expect(hooks).toEqual({ start: hook(start, {}), exit: hook(exit, {}) });
  });

  test("the caller's values of variables that agentctl sets for the agent", async () => {
    await using world = new LaunchTestHome();
    const own = JSON.stringify({ model: `a "b" $(c) \`d\` \\ 'e'\tf` });
    const agents = {
      copilot: {
        env: { COPILOT_ALLOW_ALL: "true" },
        script:
          'for w; do case $w in --session-id=*) i=$(echo $w | cut -d= -f2);; esac; done; echo "{\\"type\\":\\"result\\",\\"sessionId\\":\\"$i\\"}"',
        of: "COPILOT_ALLOW_ALL",
        agents: "false",
      },
      opencode: {
        env: { OPENCODE_CONFIG_CONTENT: own },
        script:
          '[ "$1" = run ] || exit 0; while [ "$1" != --session ]; do shift; done; echo "{\\"sessionID\\":\\"$2\\"}"',
        of: "OPENCODE_CONFIG_CONTENT",
        agents: expect.stringContaining('"agentctl-edit"'),
      },
    };
    for (const [agent, { env, script, of, agents: wanted }] of Object.entries(agents)) {
      const bin = world.write(
        agent,
        `#!/bin/sh\n[ "$1" = import ] || { ${toFile(`${agent}-agent`)}; }\n${script}\n`,
        0o755,
      );
      const hooks = ["--on-start", toFile(`${agent}-start`), "--on-exit", toFile(`${agent}-exit`)];
      const job = world.begin([binary, "launch", agent, "x", "--permission", "edit", ...hooks], {
        env: { ...env, [`AGENTCTL_${agent.toUpperCase()}_BIN`]: bin },
      });
      expect((await job.answer).code).toBe(0);
      const [given, start, exit] = await Promise.all(
        ["agent", "start", "exit"].map((name) => variables(world, `${agent}-${name}`)),
      );
      expect([agent, given?.[of], start?.[of], exit?.[of]]).toEqual([
        agent,
        wanted,
        ...Object.values(env),
        ...Object.values(env),
      ]);
      for (const found of [given, start, exit])
        expect(Object.keys(found ?? {}).filter((name) => name.startsWith("AGENTCTL_TAG_SET"))).toEqual([]);
      await world.untilAlone();
    }
  });

  test("its own kernel session, an empty stdin, and a private file for its output", async () => {
    await using world = new LaunchTestHome();
    const command = "cat; echo to out; echo to err >&2; echo $$ >pid; sleep 600";
    const id = await world.launched("say:x", "--on-exit", command);
    await waitFor("the hook", () => linesOf(world, "pid") !== "");
    const pid = Number(linesOf(world, "pid"));
    expect(readProcess(pid)).toMatchObject({ pid, session: pid });
    expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "running", endedAt: null });
    expect((await world.run(["status", id])).out).toContain("on exit       running since ");
    const log = world.kept().find((path) => /logs\/.*\.on-exit$/.test(path)) ?? "";
    await waitFor("its output", () => readFileSync(log, "utf8") === "to out\nto err\n");
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });

  test("the outcome of a failed and of a cut-off session, with the exit status", async () => {
    for (const [steps, status, outcome] of [
      ["end:failed", "1", "failed"],
      ["exit:7", "7", "cut-off"],
    ] as const) {
      await using world = new LaunchTestHome();
      await world.launched(steps, "--on-exit", toFile("exit"));
      expect(ours(await variables(world, "exit"))).toMatchObject({
        AGENTCTL_EXIT_STATUS: status,
        AGENTCTL_OUTCOME: outcome,
      });
    }
  });

  test("the outcome even if the last line of the record comes after the exit of the process", async () => {
    await using world = new LaunchTestHome();
    // A wrapper's child writes on for a moment when the agent is gone.
    const script = [
      "#!/bin/sh",
      `${binary} "$@"`,
      `for record in ${world.home}/sessions/*.jsonl; do`,
      `  end=$(tail -n 1 "$record"); head -n -1 "$record" >"$record.cut"; cat "$record.cut" >"$record"; rm "$record.cut"`,
      `  ( trap '' HUP; sleep 0.6; printf '%s\\n' "$end" >>"$record" ) & `,
      "done",
    ].join("\n");
    const path = world.write("agent", `${script}\n`, 0o755);
    const args = ["launch", "demo", "say:x", "--on-exit", toFile("exit")];
    const { code } = await world.begin([binary, ...args], { env: { AGENTCTL_DEMO_BIN: path } }).answer;
    expect(code).toBe(0);
    expect((await variables(world, "exit"))["AGENTCTL_OUTCOME"]).toBe("completed");
  });

  test("HOME as its directory if the session's directory is gone", async () => {
    await using world = new LaunchTestHome();
    const gone = world.folder("gone");
    const id = await world.launched(
      'tool:cd /; rmdir "$OLDPWD"',
      "--cwd",
      gone,
      "--on-exit",
      `cd; ${toFile("exit")}; pwd >here`,
    );
    await waitFor("the hook", () => existsSync(join(world.root, "here")));
    const env = readFileSync(join(world.root, "exit"), "utf8");
    expect(env).toContain(`AGENTCTL_CWD=${gone}\n`);
    expect(env).toContain(`\nPWD=${world.root}\n`);
    const hooks = await ended(world, id);
    expect(hooks?.exit).toMatchObject({ status: 0 });
  });

  test("an absolute AGENTCTL_HOME even if it was relative", async () => {
    await using world = new LaunchTestHome();
    const args = [
      "launch",
      "demo",
      "say:x",
      "--cwd",
      world.work,
      "--on-start",
      toFile("start"),
      "--on-exit",
      toFile("exit"),
    ];
    const env = { AGENTCTL_HOME: "kept" };
    expect((await world.begin([binary, ...args], { env, cwd: world.root }).answer).code).toBe(0);
    for (const name of ["start", "exit"])
      expect((await variables(world, name))["AGENTCTL_HOME"]).toBe(join(world.root, "kept"));
    await world.untilAlone();
  });
});

describe("a hook", () => {
  test("that fails is shown by status, and changes nothing else", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("say:x", "--on-start", "exit 4", "--on-exit", "echo no; exit 3");
    const hooks = await ended(world, id);
    expect(await world.row(id)).toMatchObject({ status: "completed", launch: { exit: { status: 0 } } });
    expect(hooks).toEqual({
      start: hook("exit 4", { status: 4 }),
      exit: hook("echo no; exit 3", { status: 3 }),
    });
    const { out } = await world.run(["status", id]);
    expect(out).toMatch(
      /\n {2}on start {6}failed: exit status 4 \(\d+s ago\); its output: ~\/\.agentctl\/logs\/\S+\.on-start\n/,
    );
    expect(out).toMatch(
      /\n {2}on exit {7}failed: exit status 3 \(\d+s ago\); its output: ~\/\.agentctl\/logs\/\S+\.on-exit\n/,
    );
  });

  test("of run does not change the answer", async () => {
    await using world = new LaunchTestHome();
    const hooks = ["--on-start", "echo start >>order; exit 5", "--on-exit", "echo exit >>order; exit 5"];
    const { code, out } = await world.agentctl("run", "demo", "-p", "say:x", "--permission", "bypass", ...hooks);
    expect([code, out]).toEqual([0, "x\n"]);
    await waitFor("both", () => linesOf(world, "order") === "start\nexit\n");
    await world.untilAlone();
  });

  test("on-start does not delay the answer; on-exit waits until on-start has ended", async () => {
    await using world = new LaunchTestHome();
    const start = "echo >begun; until [ -e start-may-end ]; do sleep 0.02; done; echo start >>order";
    const id = await world.launched("say:x", "--on-start", start, "--on-exit", "echo exit >>order");
    await world.untilFile("begun");
    await waitFor("the end of the agent", () => world.launchedAgents().length === 0 && world.holders().length === 0);
    expect((await launchOf(world, id)).hooks).toMatchObject({
      start: { state: "running" },
      exit: { state: "pending" },
    });
    writeFileSync(join(world.work, "start-may-end"), "");
    await waitFor("both", () => linesOf(world, "order") === "start\nexit\n");
    await world.untilAlone();
  });

  test("may kill its own kernel session", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("say:x", "--on-exit", "sleep 600 & kill -9 0");
    const hooks = await ended(world, id);
    expect(hooks?.exit).toEqual(hook("sleep 600 & kill -9 0", { status: 137 }));
  });

  test("with 100 MB of output does not fill the disk", async () => {
    await using world = new LaunchTestHome();
    await ended(world, await world.launched("say:x", "--on-exit", "head -c 104857600 /dev/zero"));
    const log = world.kept().find((path) => path.endsWith(".on-exit") && path.includes("/logs/")) ?? "";
    expect(statSync(log).size).toBeLessThanOrEqual(1024 * 1024);
    expect(readFileSync(log, "latin1").slice(-60)).toContain("more bytes were not kept\n");
  });

  test("does not run for a start that fails, and leaves nothing", async () => {
    await using world = new LaunchTestHome();
    const hooks = ["--on-start", "echo >started", "--on-exit", "echo >ended"];
    const { code } = await world.agentctl("launch", "demo", "-p", "x", ...hooks, "--", "--fail-start", "no");
    expect(code).toBe(7);
    await world.untilAlone();
    expect(world.kept()).toEqual([]);
    expect(readdirSync(world.work)).toEqual([]);
  });

  test("is refused for agents whose sessions start in a server", () => {
    const served = {
      ...demo,
      server: { ...(demo.server as ServerProtocol), create: () => Promise.withResolvers<never>() },
    };
    const adapter = served as unknown as Adapter;
    expect(() => checkHooks({ start: null, exit: "true" }, adapter)).toThrow("hooks-not-supported");
    expect(() => checkHooks({ start: null, exit: null }, adapter)).not.toThrow();
    expect(() => checkHooks({ start: null, exit: "true" }, demo)).not.toThrow();
  });

  test("with an empty command is a usage error", async () => {
    await using world = new LaunchTestHome();
    expect(await world.agentctl("launch", "demo", "x", "--on-exit", " ")).toMatchObject({ code: 2, out: "" });
  });
});

describe("on-exit runs after the end", () => {
  const busy = "tool:echo >tool; sleep 600";

  test.each([
    ["--max-time", ["--max-time", "1s"], null],
    ["stop", [], "stop"],
    ["interrupt", [], "interrupt"],
  ] as const)("by %s", async (_name, flags, command) => {
    await using world = new LaunchTestHome();
    const id = await world.launched(busy, "--on-exit", toFile("exit"), ...flags);
    await world.untilFile("tool");
    if (command !== null) await world.agentctl(command, id);
    expect(ours(await variables(world, "exit"))).toMatchObject({
      AGENTCTL_EXIT_STATUS: "130",
      AGENTCTL_OUTCOME: "interrupted",
    });
    const hooks = await ended(world, id);
    expect(hooks?.exit).toMatchObject({ status: 0, late: false });
  });

  test.each(["SIGINT", "SIGKILL"] as const)("of run by %s", async (signal) => {
    await using world = new LaunchTestHome();
    const job = world.begin([binary, "run", "demo", "-p", busy, "--permission", "bypass", "--on-exit", toFile("exit")]);
    await world.untilFile("tool");
    // Before that the start has not succeeded, and what is ended then has no hooks.
    while (!job.said().includes("agentctl: started ")) await Bun.sleep(10);
    job.kill(signal);
    await job.answer;
    expect(ours(await variables(world, "exit"))).toMatchObject({
      AGENTCTL_EXIT_STATUS: "130",
      AGENTCTL_OUTCOME: "interrupted",
    });
    await world.untilAlone();
  });

  test("of the agent by SIGKILL", async () => {
    await using world = new LaunchTestHome();
    await world.launched(busy, "--on-exit", toFile("exit"));
    process.kill((await world.oneAgent()).pid, "SIGKILL");
    expect(ours(await variables(world, "exit"))).toMatchObject({
      AGENTCTL_EXIT_STATUS: "137",
      AGENTCTL_OUTCOME: "cut-off",
    });
  });

  test("even if the launcher was killed before the session began", async () => {
    await using world = new LaunchTestHome();
    const args = ["launch", "demo", "say:x", "--on-exit", toFile("exit"), "--", "--announce-after", "1000"];
    const job = world.begin([binary, ...args]);
    await world.oneAgent();
    job.kill("SIGKILL");
    await job.answer;
    expect(ours(await variables(world, "exit"))).toMatchObject({ AGENTCTL_OUTCOME: "completed" });
    await world.untilAlone();
  });

  test("of the agent, not of a wrapper that exits before it", async () => {
    await using world = new LaunchTestHome();
    const path = world.write(
      "agent",
      `#!/bin/sh\nexec 3<&0; ${binary} "$@" <&3 & until [ -e left ]; do sleep 0.02; done\n`,
      0o755,
    );
    const args = ["launch", "demo", untilGo, "--on-exit", toFile("exit")];
    const { code, out } = await world.begin([binary, ...args], { env: { AGENTCTL_DEMO_BIN: path } }).answer;
    expect(code).toBe(0);
    writeFileSync(join(world.work, "left"), "");
    await waitFor("the wrapper's end", () => world.holders().length === 0);
    await waitFor("the runner", () => runners(world).length === 1);
    expect((await world.agentctl("stop", "--group", "none")).code).not.toBe(0);
    expect(await world.row(out.trim())).toMatchObject({ state: "running" });
    expect(existsSync(join(world.work, "exit"))).toBe(false);
    go(world);
    expect(ours(await variables(world, "exit"))).toMatchObject({ AGENTCTL_OUTCOME: "completed" });
    await world.untilAlone();
  });
});

describe("on-exit runs late if the holder was killed:", () => {
  test("by the next acting command after the agent has exited", async () => {
    await using world = new LaunchTestHome();
    const other = world.folder("other");
    const id = await world.launched(untilGo, "--on-exit", toFile("exit"));
    await holderKilled(world);
    await world.launched("say:x", "--cwd", other);
    await waitFor("the other one's end", () => world.launchedAgents().length === 1);
    expect(runners(world)).toEqual([]);
    expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "pending" });
    go(world);
    await world.untilAlone();
    // Asking changes nothing.
    expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "pending" });
    expect((await world.run(["status", id])).out).toContain("on exit       not run yet\n");
    await world.launched("say:x", "--cwd", other);
    const env = await variables(world, "exit");
    expect(ours(env)).toMatchObject({
      AGENTCTL_SESSION_ID: id,
      AGENTCTL_CWD: world.work,
      AGENTCTL_EXIT_STATUS: "",
      AGENTCTL_OUTCOME: "completed",
      AGENTCTL_LATE: "1",
    });
    const hooks = await ended(world, id);
    expect(hooks?.exit).toEqual(hook(toFile("exit"), { late: true }));
    expect((await world.run(["status", id])).out).toMatch(/\n {2}on exit {7}done \(\d+s ago, late\)\n/);
  });

  test("by the stop that ends the agent", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("tool:sleep 600", "--on-exit", toFile("exit"));
    await holderKilled(world);
    expect((await world.agentctl("stop", id)).code).toBe(0);
    expect(ours(await variables(world, "exit"))).toMatchObject({ AGENTCTL_LATE: "1", AGENTCTL_OUTCOME: "interrupted" });
  });

  test("once, even with several commands at the same time", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched(untilGo, "--on-exit", "echo run >>count; sleep 0.3");
    await holderKilled(world);
    go(world);
    await world.untilAlone();
    const acts = Array.from({ length: 4 }, () => world.agentctl("stop", id));
    expect((await Promise.all(acts)).map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    await ended(world, id);
    await world.agentctl("stop", id);
    await world.untilAlone();
    expect(linesOf(world, "count")).toBe("run\n");
  });

  test("again if its runner was killed, and not while its command still runs", async () => {
    await using world = new LaunchTestHome();
    const command = "echo run >>count; until [ -e hook-may-end ]; do sleep 0.02; done";
    const id = await world.launched("say:x", "--on-exit", command);
    await world.untilFile("count");
    await waitFor("its process is written down", () =>
      world
        .kept()
        .some(
          (path) =>
            path.includes("/launches/") &&
            path.endsWith(".on-exit") &&
            !readFileSync(path, "utf8").includes('"process":null'),
        ),
    );
    const [runner] = runners(world);
    process.kill(runner?.pid ?? 0, "SIGKILL");
    await waitFor("its end", () => runners(world).length === 0);
    expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "running" });
    await world.agentctl("stop", id);
    expect(linesOf(world, "count")).toBe("run\n");
    writeFileSync(join(world.work, "hook-may-end"), "");
    await world.untilAlone();
    expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "cut-off" });
    await world.agentctl("stop", id);
    const hooks = await ended(world, id);
    expect(linesOf(world, "count")).toBe("run\nrun\n");
    expect(hooks?.exit).toEqual(hook(command, { late: true, attempts: 2 }));
  });

  test("not forever if the command kills its runner each time", async () => {
    await using world = new LaunchTestHome();
    const command = "echo run >>count; kill -9 $PPID";
    const id = await world.launched("say:x", "--on-exit", command);
    for (const before of ["run\n", "run\nrun\n", "run\nrun\nrun\n"]) {
      await waitFor("it", () => linesOf(world, "count") === before);
      await world.untilAlone();
      await world.agentctl("stop", id);
    }
    const hooks = await ended(world, id);
    expect(linesOf(world, "count")).toBe("run\nrun\nrun\n");
    expect(hooks?.exit).toMatchObject({
      state: "ended",
      status: null,
      attempts: 3,
      problem: "was cut off 3 times; not run again",
    });
  });
});

describe("a hook that runs agentctl", () => {
  test("can read the result and launch the next session in the same directory", async () => {
    await using world = new LaunchTestHome();
    const next = `${binary} launch demo -p say:second --permission bypass >next.tmp 2>next.err`;
    const command = `${binary} result $AGENTCTL_SESSION_ID >result; ${next}; echo $? >code; mv next.tmp next`;
    await world.launched("say:first", "--on-exit", command);
    const second = (await world.untilFile("next")).trim();
    expect([readFileSync(join(world.work, "result"), "utf8"), readFileSync(join(world.work, "code"), "utf8")]).toEqual([
      "first\n",
      "0\n",
    ]);
    await world.untilAlone();
    expect(await world.row(second)).toMatchObject({ status: "completed" });
  });

  test("can stop its own session from on-start", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched(
      "tool:sleep 600",
      "--on-start",
      `${binary} stop $AGENTCTL_SESSION_ID >stopped 2>&1`,
      "--on-exit",
      toFile("exit"),
    );
    expect((await variables(world, "exit"))["AGENTCTL_OUTCOME"]).toBe("interrupted");
    const hooks = await ended(world, id);
    expect(hooks?.start).toMatchObject({ status: 0 });
  });
});

test("a late on-exit is not run by a command of an agent", async () => {
  await using world = new LaunchTestHome();
  const other = world.folder("other");
  const inner = `${binary} launch demo -p say:x --permission edit --share`;
  const steps = `tool:until [ -e go ]; do sleep 0.02; done; ${inner} >answer 2>&1; echo $? >code.tmp; mv code.tmp code`;
  await world.launched(steps, "--cwd", other);
  const id = await world.launched(untilGo, "--on-exit", toFile("exit"));
  const [, holder] = world.holders().sort((a, b) => a.pid - b.pid);
  process.kill(holder?.pid ?? 0, "SIGKILL");
  go(world);
  await waitFor("its end", () => world.launchedAgents().length === 1);
  writeFileSync(join(other, "go"), "");
  await world.untilAlone();
  expect(readFileSync(join(other, "code"), "utf8")).toBe("0\n");
  expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "pending" });
});

test("hooks are refused inside an agent's session", async () => {
  await using world = new LaunchTestHome();
  const inner = `${binary} launch demo -p x --permission edit --share --on-exit true`;
  await world.launched(`tool:${inner} >answer.out 2>answer.err; echo $? >code.tmp; mv code.tmp code`);
  expect(await world.untilFile("code")).toBe("5\n");
  expect(readFileSync(join(world.work, "answer.err"), "utf8")).toContain(
    "called from inside an agent's session: --on-start and --on-exit are not allowed",
  );
});

test("if agentctl's folder is removed meanwhile, the hook does not run and the folder is not created again", async () => {
  await using world = new LaunchTestHome();
  const id = await world.launched(
    untilGo,
    "--on-start",
    "until [ -e go ]; do sleep 0.02; done",
    "--on-exit",
    "echo >ended",
  );
  await waitFor("on-start", () => runners(world).length === 1);
  const own = join(world.root, ".agentctl");
  await waitFor("its end, whatever is being written there", () => {
    rmSync(own, { recursive: true, force: true });
    return !existsSync(own);
  });
  go(world);
  await world.untilAlone();
  expect(existsSync(own)).toBe(false);
  expect(existsSync(join(world.work, "ended"))).toBe(false);
  expect(await world.row(id)).toMatchObject({ status: "completed", launch: null });
});
