// agentctl run with the demo agent: the answer is on stdout, progress on stderr, and no process survives the command.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { isAlive, LaunchTestHome, type Process, type Running } from "./test-home-launch.ts";

const run = (world: LaunchTestHome, prompt: string, ...args: string[]) =>
  world.agentctl("run", "demo", "-p", prompt, "--permission", "bypass", ...args);

describe("the answer", () => {
  test("is alone on stdout; progress is on stderr", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await run(
      world,
      "say:first\ntool:echo loud; echo louder >&2\nedit:a:b\nsay:It\\'s done",
    );
    expect([code, out]).toEqual([0, "It\\'s done\n"]);
    const [begun, ...progress] = err.trim().split("\n");
    expect(begun).toMatch(/^agentctl: started ([0-9a-f-]{36}) \(agentctl status \1\)$/);
    expect(progress).toEqual(["agent: first", "shell: echo loud; echo louder >&2", "edit: a:b", "agent: It\\'s done"]);
    await world.untilAlone();
  });

  test("as JSON is the session after its end, with the result", async () => {
    await using world = new LaunchTestHome();
    const { code, out } = await run(world, "say:one\nsay:two", "--json", "--name", "n", "--group", "g");
    expect(code).toBe(0);
    const answer = JSON.parse(out) as Record<string, unknown>;
    expect(answer).toMatchObject({
      agent: "demo",
      state: "stopped",
      outcome: "completed",
      permission: "bypass",
      cwd: world.work,
      result: "two",
      denied: 0,
      launch: { name: "n", group: "g", exit: { status: 0 } },
    });
    expect(Object.keys(answer)).toEqual([...Object.keys(await world.row(String(answer["id"]))), "result"]);
  });

  test("of a failed turn exits with 10 and prints its last message", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await run(world, "say:I cannot\nend:failed");
    expect([code, out]).toEqual([10, "I cannot\n"]);
    expect(err).toContain("failed; this is not a final answer");
  });

  test("of an agent that exits in the middle of its turn exits with 10", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await run(world, "say:half\nexit:0");
    expect(code).toBe(10);
    expect(err).toContain("was cut off; this is not a final answer");
  });

  test("of a failed agent has the end of its stderr and its exit status", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await run(world, "stderr:one\nstderr:fatal: out of credits\nexit:9");
    expect([code, out]).toEqual([10, ""]);
    expect(err).toMatch(
      /was cut off; this is not a final answer \(exit status 9\)\n {2}its stderr ended with:\n {4}one\n {4}fatal: out of credits\n$/,
    );
    const fine = await run(world, "stderr:a word\nsay:done");
    expect([fine.code, fine.err]).toEqual([0, expect.not.stringContaining("a word")]);
  });

  test.each([
    ["tool:make deploy\nsay:all done", "1 tool call was denied"],
    ["tool:make deploy\nedit:a:b\nsay:all done", "2 tool calls were denied"],
  ])("after %j with --permission read says: %s", async (prompt, calls) => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await world.agentctl("run", "demo", prompt, "--permission", "read");
    expect([code, out]).toEqual([0, "all done\n"]);
    expect(err).toMatch(new RegExp(`\nagentctl: [0-9a-f]{8}: ${calls}\n$`));
  });

  test("of a session that needs a person exits with 11, and the session is ended", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await run(world, "say:half\nask:permission:May I drop the table?");
    expect([code, out]).toEqual([11, ""]);
    expect(err).toContain("it waits for a person: May I drop the table?");
    expect(world.launchedAgents()).toEqual([]);
    await world.untilAlone();
    expect((await world.list()).sessions).toMatchObject([{ state: "stopped", outcome: "interrupted" }]);
  });

  test("of a session that needs a person, as JSON, is the session after its end", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await run(world, "say:half\nask:question:Which color?", "--json");
    expect(code).toBe(11);
    const answer = JSON.parse(out) as Record<string, unknown>;
    const ended = { state: "stopped", activity: null, outcome: "interrupted", waiting: null, process: null };
    expect(answer).toMatchObject({ ...ended, result: null, launch: { exit: { status: expect.any(Number) } } });
    expect(err).toContain("it waits for a person: Which color?");
    expect(err).toContain(`no person can answer here: ${answer["ref"]} was stopped\n`);
    await world.untilAlone();
  });

  test("of an agent that never starts is its error, exit 7", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await run(world, "x", "--", "--fail-start", "Not logged in");
    expect([code, out]).toEqual([7, ""]);
    expect(err).toContain("Not logged in");
    expect(world.kept()).toEqual([]);
  });

  test("may go to a closed stdout without an error of the agent", async () => {
    await using world = new LaunchTestHome();
    const script = `{ ${binary} run demo -p 'edit:made:x' --permission edit; echo $? >code; } | head -c 0`;
    await world.begin(["sh", "-c", script]).answer;
    expect((await world.untilFile("code")).trim()).toBe("0");
    expect(existsSync(join(world.work, "made"))).toBe(true);
    expect((await world.list()).sessions).toMatchObject([{ outcome: "completed" }]);
    await world.untilAlone();
  });

  test("may come with a closed stderr", async () => {
    await using world = new LaunchTestHome();
    const script = `{ ${binary} run demo -p 'work:0.3\nsay:hello' 2>&3 >answer; echo $? >code; } 3>&1 | head -c 0`;
    await world.begin(["sh", "-c", script]).answer;
    expect((await world.untilFile("code")).trim()).toBe("0");
    expect(readFileSync(join(world.work, "answer"), "utf8")).toBe("hello\n");
    await world.untilAlone();
  });
});

const busy = "tool:sleep 600 & echo >tool; wait";

interface Job {
  job: Running;
  agentctl: Process;
  agent: Process;
}

async function busyRun(
  world: LaunchTestHome,
  options: { steps?: string; args?: string[]; wrap?: string[] } = {},
): Promise<Job> {
  const { steps = busy, args = [], wrap = [] } = options;
  const job = world.begin([...wrap, binary, "run", "demo", "-p", steps, "--permission", "bypass", ...args]);
  await world.untilFile("tool");
  await waitFor("its begin", () => job.said().includes("agentctl: started "));
  await waitFor("its child", () => world.processes().some(({ argv }) => argv[0] === "sleep"));
  const agentctl = world.processes().find(({ argv }) => argv[1] === "run");
  if (agentctl === undefined) throw new Error("no agentctl run");
  return { job, agentctl, agent: await world.oneAgent() };
}

describe("all processes end", () => {
  test.each([["SIGINT"], ["SIGTERM"], ["SIGHUP"]] as const)("with %s to agentctl: exit 130", async (signal) => {
    await using world = new LaunchTestHome();
    const { job } = await busyRun(world);
    job.kill(signal);
    expect(await job.answer).toMatchObject({ code: 130, out: "" });
    await world.untilAlone();
    expect((await world.list()).sessions).toMatchObject([
      { outcome: "interrupted", launch: { exit: { status: 130 } } },
    ]);
  });

  test("with the process group of the terminal or the job", async () => {
    await using world = new LaunchTestHome();
    const { job, agentctl } = await busyRun(world, { wrap: ["setsid", "sh", "-c", '"$@"; :', "sh"] });
    expect(agentctl.session).not.toBe(agentctl.pid);
    process.kill(-agentctl.session, "SIGTERM");
    await job.answer;
    await world.untilAlone();
  });

  test("when agentctl itself is killed", async () => {
    await using world = new LaunchTestHome();
    const { job } = await busyRun(world);
    job.kill("SIGKILL");
    await job.answer;
    await world.untilAlone();
    expect((await world.list()).sessions).toMatchObject([{ outcome: "interrupted" }]);
  });

  test("when the whole process group is killed", async () => {
    await using world = new LaunchTestHome();
    const { job, agentctl } = await busyRun(world, { wrap: ["setsid", "sh", "-c", '"$@"; :', "sh"] });
    process.kill(-agentctl.session, "SIGKILL");
    await job.answer;
    await world.untilAlone();
  });

  test("when agentctl is killed before the agent has started", async () => {
    await using world = new LaunchTestHome();
    const job = world.begin([binary, "run", "demo", "x", "--", "--announce-after", "600000"]);
    await world.oneAgent();
    job.kill("SIGKILL");
    await job.answer;
    await world.untilAlone();
  });

  test("at the time limit: exit 10, with a message", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await run(world, busy, "--max-time", "1s");
    expect(code).toBe(10);
    expect(err).toContain("agentctl: stopped: --max-time 1s was reached\n");
    await world.untilAlone();
    expect((await world.list()).sessions).toMatchObject([{ outcome: "interrupted" }]);
  });

  test("when agentctl is killed long before the time limit; no timer process is left", async () => {
    await using world = new LaunchTestHome();
    const { job } = await busyRun(world, { args: ["--max-time", "1h"] });
    expect(world.processes().some(({ argv }) => argv[1] === "3600")).toBe(true);
    job.kill("SIGKILL");
    await job.answer;
    await world.untilAlone();
  });

  test("when the agent is done; no timer process is left", async () => {
    await using world = new LaunchTestHome();
    expect((await run(world, "say:x", "--max-time", "1h")).out).toBe("x\n");
    await world.untilAlone();
  });

  test("even if an agent and a tool ignore SIGINT and SIGTERM", async () => {
    await using world = new LaunchTestHome();
    const steps =
      "ignore:SIGINT\nignore:SIGTERM\ntool:trap '' INT TERM; sleep 600 & echo >tool; while :; do wait; done";
    const { job } = await busyRun(world, { steps });
    job.kill("SIGINT");
    expect((await job.answer).code).toBe(130);
    await world.untilAlone();
    expect((await world.list()).sessions).toMatchObject([{ outcome: "cut-off", launch: { exit: { status: 137 } } }]);
  }, 40_000);

  test("at once after a second SIGINT", async () => {
    await using world = new LaunchTestHome();
    const steps = "ignore:SIGINT\nignore:SIGTERM\ntool:sleep 600 & echo >tool; wait";
    const { job, agent } = await busyRun(world, { steps });
    const begun = performance.now();
    const codes: number[] = [];
    const ended = job.answer.then((answer) => {
      codes.push(answer.code);
    });
    // As an impatient person does: two that come at once would be one.
    while (codes.length === 0 && performance.now() - begun < 8_000) {
      job.kill("SIGINT");
      await Promise.race([ended, Bun.sleep(100)]);
    }
    // The two gentle signals alone would be given ten seconds.
    expect(codes).toEqual([130]);
    await world.untilAlone();
    expect(isAlive(agent.pid)).toBe(false);
  }, 20_000);
});

test("a killed holder loses the exit status, and nothing else", async () => {
  await using world = new LaunchTestHome();
  const id = await world.launched("tool:until [ -e go ]; do sleep 0.02; done");
  const [holder] = world.holders();
  process.kill(holder?.pid ?? 0, "SIGKILL");
  await waitFor("its end", () => !isAlive(holder?.pid ?? 0));
  const row = await world.row(id);
  expect(row).toMatchObject({ status: "working", link: "announced" });
  await Bun.write(join(world.work, "go"), "");
  await world.untilAlone();
  expect(await world.row(id)).toMatchObject({ status: "completed", launch: { exit: null } });
});

test("Ctrl-C ends the agent even if its holder was killed", async () => {
  await using world = new LaunchTestHome();
  const { job } = await busyRun(world);
  const [holder] = world.holders().filter(({ pid, session }) => pid === session);
  process.kill(holder?.pid ?? 0, "SIGKILL");
  await waitFor("its end", () => !isAlive(holder?.pid ?? 0));
  job.kill("SIGINT");
  expect((await job.answer).code).toBe(130);
  await world.untilAlone();
});

test("a directory with a working session is refused", async () => {
  await using world = new LaunchTestHome();
  await world.launched("work:600");
  const { code, out, err } = await run(world, "x");
  expect([code, out]).toEqual([5, ""]);
  expect(err).toContain("cannot launch in ");
});
