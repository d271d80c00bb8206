// --on-start and --on-exit with the demo agent: run at least once, whatever dies, and never a part of a session.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, HostProtocol } from "../../src/adapters/adapter.ts";
import { demo } from "../../src/adapters/demo.ts";
import { checkHooks } from "../../src/cli/launch-order.ts";
import { waitFor } from "../conformance/wait.ts";
import { ActingWorld, isAlive, readProcess } from "./acting.ts";
import { repositoryWorld } from "./repository.ts";
import { binary } from "./world.ts";

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

const linesOf = (world: ActingWorld, name: string): string => {
  const path = join(world.work, name);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
};

const untilGo = "tool:until [ -e go ]; do sleep 0.02; done";
const go = (world: ActingWorld): void => writeFileSync(join(world.work, "go"), "");

const launchOf = async (world: ActingWorld, id: string): Promise<Launch> =>
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
async function ended(world: ActingWorld, id: string): Promise<Launch["hooks"]> {
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

async function variables(world: ActingWorld, name: string): Promise<Record<string, string>> {
  const lines = (await world.untilFile(name)).split("\n");
  return Object.fromEntries(
    lines
      .flatMap((line) => [/^([A-Za-z_]\w*)=(.*)$/.exec(line)?.slice(1, 3) ?? []])
      .filter((pair) => pair.length === 2),
  );
}

const ours = (env: Record<string, string>) =>
  Object.fromEntries(Object.entries(env).filter(([key]) => key.startsWith("AGENTCTL_") && key !== "AGENTCTL_HOME"));

async function holderKilled(world: ActingWorld): Promise<void> {
  const [holder] = world.holders().filter(({ pid, session }) => pid === session);
  process.kill(holder?.pid ?? 0, "SIGKILL");
  await waitFor("the holder's end", () => !isAlive(holder?.pid ?? 0));
}

const runners = (world: ActingWorld) => world.processes().filter(({ argv }) => argv.includes("run-hook"));

describe("what a hook gets", () => {
  test("the branch of its place, where the record does not tell it", async () => {
    await using here = await repositoryWorld();
    const file = join(here.root, "branch");
    await here.launchHere("say:x", "--worktree", "--name", "w", "--on-start", `echo "$AGENTCTL_BRANCH" >'${file}'`);
    await waitFor("the hook", () => existsSync(file) && readFileSync(file, "utf8") === "agentctl/w\n");
    await here.untilAlone();
  });

  test("the session's facts and no tag; on-start first, on-exit after the end", async () => {
    await using world = new ActingWorld();
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

  test("the caller's own values of variables that agentctl sets for the agent", async () => {
    await using world = new ActingWorld();
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

  test("a kernel session of its own, nothing on stdin, its output in a file of its owner's", async () => {
    await using world = new ActingWorld();
    const command = "cat; echo to out; echo to err >&2; echo $$ >pid; sleep 600";
    const id = await world.launched("say:x", "--on-exit", command);
    await waitFor("the hook", () => linesOf(world, "pid") !== "");
    const pid = Number(linesOf(world, "pid"));
    expect(readProcess(pid)).toMatchObject({ pid, session: pid });
    expect((await launchOf(world, id)).hooks?.exit).toMatchObject({ state: "running", endedAt: null });
    expect((await world.run(["status", id])).out).toContain("on exit       running, since ");
    const log = world.kept().find((path) => /logs\/.*\.on-exit$/.test(path)) ?? "";
    await waitFor("its output", () => readFileSync(log, "utf8") === "to out\nto err\n");
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });

  test("the outcome of a failed and of a cut-off session, with the exit status", async () => {
    for (const [steps, status, outcome] of [
      ["end:failed", "1", "failed"],
      ["exit:7", "7", "cut-off"],
    ] as const) {
      await using world = new ActingWorld();
      await world.launched(steps, "--on-exit", toFile("exit"));
      expect(ours(await variables(world, "exit"))).toMatchObject({
        AGENTCTL_EXIT_STATUS: status,
        AGENTCTL_OUTCOME: outcome,
      });
    }
  });

  test("the outcome also where the last line of the record comes after the end of the process", async () => {
    await using world = new ActingWorld();
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

  test("HOME to work in, where the session's directory is gone", async () => {
    await using world = new ActingWorld();
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

  test("a home of agentctl's that is named by a relative path", async () => {
    await using world = new ActingWorld();
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

describe("how it goes", () => {
  test("one that fails is shown by status, and changes nothing else", async () => {
    await using world = new ActingWorld();
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

  test("run answers as ever, and its hooks are run", async () => {
    await using world = new ActingWorld();
    const hooks = ["--on-start", "echo start >>order; exit 5", "--on-exit", "echo exit >>order; exit 5"];
    const { code, out } = await world.agentctl("run", "demo", "-p", "say:x", "--permission", "bypass", ...hooks);
    expect([code, out]).toEqual([0, "x\n"]);
    await waitFor("both", () => linesOf(world, "order") === "start\nexit\n");
    await world.untilAlone();
  });

  test("on-start does not hold up the answer; on-exit waits for its end", async () => {
    await using world = new ActingWorld();
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

  test("one that kills its own kernel session", async () => {
    await using world = new ActingWorld();
    const id = await world.launched("say:x", "--on-exit", "sleep 600 & kill -9 0");
    const hooks = await ended(world, id);
    expect(hooks?.exit).toEqual(hook("sleep 600 & kill -9 0", { status: 137 }));
  });

  test("100 MB of output do not fill the disk", async () => {
    await using world = new ActingWorld();
    await ended(world, await world.launched("say:x", "--on-exit", "head -c 104857600 /dev/zero"));
    const log = world.kept().find((path) => path.endsWith(".on-exit") && path.includes("/logs/")) ?? "";
    expect(statSync(log).size).toBeLessThanOrEqual(1024 * 1024);
    expect(readFileSync(log, "latin1").slice(-60)).toContain("more bytes were not kept\n");
  });

  test("a start that fails has no hooks, and nothing is left", async () => {
    await using world = new ActingWorld();
    const hooks = ["--on-start", "echo >started", "--on-exit", "echo >ended"];
    const { code } = await world.agentctl("launch", "demo", "-p", "x", ...hooks, "--", "--fail-start", "no");
    expect(code).toBe(7);
    await world.untilAlone();
    expect(world.kept()).toEqual([]);
    expect(readdirSync(world.work)).toEqual([]);
  });

  test("are refused where sessions begin in a host", () => {
    const hosted = { ...demo, host: { ...(demo.host as HostProtocol), create: () => Promise.withResolvers<never>() } };
    const adapter = hosted as unknown as Adapter;
    expect(() => checkHooks({ start: null, exit: "true" }, adapter)).toThrow("begins its sessions in a host");
    expect(() => checkHooks({ start: null, exit: null }, adapter)).not.toThrow();
    expect(() => checkHooks({ start: null, exit: "true" }, demo)).not.toThrow();
  });

  test("an empty command is a mistake", async () => {
    await using world = new ActingWorld();
    expect(await world.agentctl("launch", "demo", "x", "--on-exit", " ")).toMatchObject({ code: 2, out: "" });
  });
});

describe("every end", () => {
  const busy = "tool:echo >tool; sleep 600";

  test.each([
    ["--max-time", ["--max-time", "1s"], null],
    ["stop", [], "stop"],
    ["interrupt", [], "interrupt"],
  ] as const)("by %s", async (_name, flags, command) => {
    await using world = new ActingWorld();
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
    await using world = new ActingWorld();
    const job = world.begin([binary, "run", "demo", "-p", busy, "--permission", "bypass", "--on-exit", toFile("exit")]);
    await world.untilFile("tool");
    // Before that the start has not succeeded, and what is ended then has no hooks.
    while (!job.said().includes("has begun")) await Bun.sleep(10);
    job.kill(signal);
    await job.answer;
    expect(ours(await variables(world, "exit"))).toMatchObject({
      AGENTCTL_EXIT_STATUS: "130",
      AGENTCTL_OUTCOME: "interrupted",
    });
    await world.untilAlone();
  });

  test("of the agent by SIGKILL", async () => {
    await using world = new ActingWorld();
    await world.launched(busy, "--on-exit", toFile("exit"));
    process.kill((await world.oneAgent()).pid, "SIGKILL");
    expect(ours(await variables(world, "exit"))).toMatchObject({
      AGENTCTL_EXIT_STATUS: "137",
      AGENTCTL_OUTCOME: "cut-off",
    });
  });

  test("when the launcher was killed before the session began", async () => {
    await using world = new ActingWorld();
    const args = ["launch", "demo", "say:x", "--on-exit", toFile("exit"), "--", "--announce-after", "1000"];
    const job = world.begin([binary, ...args]);
    await world.oneAgent();
    job.kill("SIGKILL");
    await job.answer;
    expect(ours(await variables(world, "exit"))).toMatchObject({ AGENTCTL_OUTCOME: "completed" });
    await world.untilAlone();
  });

  test("of a wrapper that leaves its agent behind is not yet the agent's", async () => {
    await using world = new ActingWorld();
    const path = world.write("agent", `#!/bin/sh\nexec 3<&0; ${binary} "$@" <&3 & sleep 1\n`, 0o755);
    const args = ["launch", "demo", untilGo, "--on-exit", toFile("exit")];
    const { code, out } = await world.begin([binary, ...args], { env: { AGENTCTL_DEMO_BIN: path } }).answer;
    expect(code).toBe(0);
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

describe("late, where the holder was killed", () => {
  test("only when the agent is gone, and by the next command that acts", async () => {
    await using world = new ActingWorld();
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

  test("by the stop that ends its agent", async () => {
    await using world = new ActingWorld();
    const id = await world.launched("tool:sleep 600", "--on-exit", toFile("exit"));
    await holderKilled(world);
    expect((await world.agentctl("stop", id)).code).toBe(0);
    expect(ours(await variables(world, "exit"))).toMatchObject({ AGENTCTL_LATE: "1", AGENTCTL_OUTCOME: "interrupted" });
  });

  test("once, by several commands at once", async () => {
    await using world = new ActingWorld();
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

  test("again, where its runner was killed; not while the command itself goes on", async () => {
    await using world = new ActingWorld();
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

  test("one that ends its runner each time is given up", async () => {
    await using world = new ActingWorld();
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
      problem: "it was cut off 3 times; it is not run again",
    });
  });
});

describe("a hook that calls agentctl", () => {
  test("reads the result and launches the next one, in the same place, as a person would", async () => {
    await using world = new ActingWorld();
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

  test("stops its own session from on-start", async () => {
    await using world = new ActingWorld();
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

test("what a holder left to be run is not run by an agent's call", async () => {
  await using world = new ActingWorld();
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

test("from inside an agent's session hooks are refused", async () => {
  await using world = new ActingWorld();
  const inner = `${binary} launch demo -p x --permission edit --share --on-exit true`;
  await world.launched(`tool:${inner} >answer.out 2>answer.err; echo $? >code.tmp; mv code.tmp code`);
  expect(await world.untilFile("code")).toBe("5\n");
  expect(readFileSync(join(world.work, "answer.err"), "utf8")).toContain(
    "called from inside an agent's session: no --on-start, no --on-exit",
  );
});

test("agentctl's folder removed meanwhile: the hook is not known any more, and nothing comes back", async () => {
  await using world = new ActingWorld();
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
