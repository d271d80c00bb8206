// An agent that runs agentctl inside its session cannot get around the guard by a hidden command, or by a value that the agent
// would take for an option.

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inside } from "../cli/run-inside-agent.ts";
import { binary } from "../cli/test-home.ts";
import { isAlive, LaunchTestHome, toFiles } from "../cli/test-home-launch.ts";
import { ServerTestHome, Tmux } from "../cli/test-home-servers.ts";
import { StopTestHome } from "../cli/test-home-stop.ts";
import { waitFor } from "../conformance/wait.ts";

const refused = "agentctl: called from inside an agent's session: ";

/** A session that a person has launched elsewhere, and its launch. */
async function launchOfPerson(world: LaunchTestHome, ...args: string[]): Promise<{ id: string; launch: string }> {
  const words = ["launch", "demo", "work:600", "--cwd", world.folder("elsewhere"), "--json", ...args];
  const { code, out, err } = await world.agentctl(...words);
  if (code !== 0) throw new Error(`launch: ${err}`);
  return JSON.parse(out) as { id: string; launch: string };
}

const status = async (world: LaunchTestHome, id: string): Promise<string> => (await world.row(id)).state;

describe("end-launch", () => {
  test("is refused for a person's launch inside an agent's session", async () => {
    await using world = new LaunchTestHome();
    const { id, launch } = await launchOfPerson(world);
    const { answer } = await inside(world, `$AGENTCTL end-launch ${launch}`);
    expect(answer).toMatchObject({ code: 5, out: "" });
    expect(answer.err).toStartWith(`${refused}${id.slice(0, 8)} is not one of its own`);
    expect(await status(world, id)).toBe("running");
  });

  test("is refused for a launch that has no session yet", async () => {
    await using world = new LaunchTestHome();
    const slow = world.begin([
      binary,
      "launch",
      "demo",
      "x",
      "--cwd",
      world.folder("elsewhere"),
      "--",
      "--announce-after",
      "600000",
    ]);
    const agent = await world.oneAgent();
    const { answer } = await inside(world, `$AGENTCTL end-launch ${agent.env["AGENTCTL_TAG"]}`);
    expect(answer.code).toBe(5);
    expect(isAlive(agent.pid)).toBe(true);
    slow.kill("SIGINT");
    await slow.answer;
  });

  test("is refused if the caller only looks like the holder of the launch", async () => {
    await using world = new LaunchTestHome();
    const { id, launch } = await launchOfPerson(world);
    for (const [name, start] of [
      ["child", ""],
      ["leader", "setsid --wait "],
    ] as const) {
      const forged = `${start}sh -c '"$AGENTCTL" end-launch ${launch}; exit $?' agentctl-holder exit ${launch}`;
      const { answer } = await inside(world, `. ${world.write(name, `${forged}\n`)}`, (text) => text, name);
      expect([name, answer.code]).toEqual([name, 5]);
    }
    expect(await status(world, id)).toBe("running");
  });

  test("is allowed for the agent's own launch, and always for the holder", async () => {
    await using world = new LaunchTestHome();
    world.folder("elsewhere");
    const command = [
      "$AGENTCTL launch demo work:600 --permission edit --cwd ../elsewhere --json >own.json",
      `$AGENTCTL end-launch $(sed 's/.*"launch":"\\([^"]*\\)".*/\\1/' own.json)`,
    ].join(" && ");
    const { answer } = await inside(world, `. ${world.write("command", `${command}\n`)}`);
    expect(answer).toMatchObject({ code: 0, err: expect.not.stringContaining("refused") });
    const { id } = JSON.parse(readFileSync(join(world.work, "own.json"), "utf8")) as { id: string };
    expect(await status(world, id)).toBe("stopped");

    const limited = "$AGENTCTL launch demo work:600 --permission edit --max-time 1s --cwd ../elsewhere";
    const nested = await inside(world, limited, (text) => text, "limited");
    expect(nested.answer.code).toBe(0);
    expect((await world.until(nested.answer.out.trim(), "interrupted")).state).toBe("stopped");
    const plain = await launchOfPerson(world, "--max-time", "1s");
    await world.until(plain.id, "interrupted");
  });
});

describe("run-hook", () => {
  test.each(["start", "exit", "late"])(
    "does not run %s of a person's launch inside an agent's session",
    async (when) => {
      await using world = new LaunchTestHome();
      const hook = join(world.root, "hook");
      const { launch } = await launchOfPerson(world, "--on-exit", `echo ran >${hook}`);
      const { answer } = await inside(world, `$AGENTCTL run-hook ${when} ${launch} /`);
      expect(answer).toMatchObject({ code: 5, out: "" });
      expect(answer.err).toStartWith(`${refused}run-hook is not allowed`);
      expect(existsSync(hook)).toBe(false);
    },
  );
});

describe("exec-agent", () => {
  test("does nothing unless the holder of a launch runs it", async () => {
    await using world = new LaunchTestHome();
    const file = world.write("variables.json", "{}");
    const made = join(world.root, "made");
    expect(await world.agentctl("exec-agent", file, "touch", made)).toMatchObject({ code: 5, out: "" });
    const forged = `"$0" exec-agent ${file} touch ${made}; exit $?`;
    const answer = await world.begin(["sh", "-c", forged, binary, "agentctl-holder", "exit", "launch"]).answer;
    expect(answer.code).toBe(5);
    expect([existsSync(made), existsSync(file)]).toEqual([false, true]);
  });
});

describe("demo-agent", () => {
  test.each(["", "--permission bypass"])("runs no commands inside an agent's session: %s", async (flags) => {
    await using world = new LaunchTestHome();
    const { answer } = await inside(world, `$AGENTCTL demo-agent ${flags} prompt:x "tool:touch ran" say:done end`);
    expect(answer.code).toBe(0);
    expect(existsSync(join(world.work, "ran"))).toBe(false);
    const [record] = readdirSync(join(world.home, "sessions"))
      .map((name) => readFileSync(join(world.home, "sessions", name), "utf8"))
      .filter((text) => text.includes('"input":"touch ran"'));
    expect(record).toContain("denied: called from inside an agent's session");
  });

  test("runs commands if a person has allowed it", async () => {
    await using world = new LaunchTestHome();
    world.folder(".config/agentctl");
    world.write(".config/agentctl/config.json", '{"insideAgents": "free"}');
    expect((await inside(world, `$AGENTCTL demo-agent prompt:x "tool:touch ran" end`)).answer.code).toBe(0);
    expect(existsSync(join(world.work, "ran"))).toBe(true);
  });
});

describe("a value that starts with a dash", () => {
  test("does not become an option of the agent: --model", async () => {
    await using world = new LaunchTestHome();
    const { answer } = await inside(world, "$AGENTCTL launch demo x --permission edit --model=--permission=bypass");
    expect(answer).toMatchObject({ code: 2, out: "" });
    expect(answer.err).toStartWith('agentctl: --model cannot take "--permission=bypass": it begins with a dash');
    expect(world.kept()).toEqual([]);
    const branch = await world.agentctl("launch", "demo", "x", "--model", "-x", "--worktree");
    expect([branch.code, branch.err.includes("dash")]).toEqual([2, true]);
  });

  test("does not become an option of the agent: an id in a forged record", async () => {
    await using world = new StopTestHome();
    const id = "--yolo";
    const chats = world.folder(".gemini/tmp/project/chats");
    writeFileSync(join(chats, "../.project_root"), world.work);
    const at = new Date().toISOString();
    const lines = [
      { sessionId: id, projectHash: "0", startTime: at, lastUpdated: at, kind: "main" },
      { id: "1", timestamp: at, type: "user", content: [{ text: "x" }] },
    ];
    writeFileSync(
      join(chats, `session-2026-11-16T06-55-${id}.jsonl`),
      lines.map((line) => `${JSON.stringify(line)}\n`).join(""),
    );
    world.note(id, { name: "forged", agent: "gemini", home: join(world.root, ".gemini") });
    const started = join(world.root, "started");
    world.env["AGENTCTL_GEMINI_BIN"] = world.write("gemini", `#!/bin/sh\necho "$@" >${started}\n`, 0o755);
    for (const words of [
      ["send", "forged", "hello", "--permission", "edit"],
      ["resume", "forged", "--print"],
    ]) {
      const { code, out, err } = await world.agentctl(...words);
      expect([code, out, err]).toEqual([
        2,
        "",
        expect.stringContaining('--resume cannot take "--yolo": it begins with a dash'),
      ]);
    }
    expect(existsSync(started)).toBe(false);
  });
});

test("variables that run code in an agent are passed on from a person, and not from an agent", async () => {
  await using world = new LaunchTestHome();
  world.folder("elsewhere");
  world.env["NODE_OPTIONS"] = "--no-warnings";
  world.env["LD_LIBRARY_PATH"] = "/of/a/person";
  const set = "BUN_OPTIONS=--preload=/evil.js BASH_ENV=/evil.sh BUN_INSPECT=1 LD_LIBRARY_PATH=/evil";
  const { answer } = await inside(world, `${set} $AGENTCTL launch demo work:600 --permission edit --cwd ../elsewhere`);
  expect(answer.code).toBe(0);
  const [agent] = world.launchedAgents();
  const names = ["BUN_OPTIONS", "BASH_ENV", "BUN_INSPECT", "LD_LIBRARY_PATH", "NODE_OPTIONS"];
  expect(names.map((name) => agent?.env[name])).toEqual([undefined, undefined, undefined, undefined, "--no-warnings"]);
});

test("stop --server is refused while the server has sessions of others", async () => {
  await using world = new StopTestHome();
  const server = Bun.spawn([binary, "demo-agent", "serve"], {
    ...{ env: world.env, cwd: world.folder("elsewhere"), stdin: "pipe", stdout: "ignore", stderr: "inherit" },
  });
  await waitFor("the server", () => existsSync(join(world.home, "servers", `${server.pid}.sock`)));
  const [own, other] = [crypto.randomUUID(), crypto.randomUUID()];
  for (const id of [own, other]) server.stdin.write(`start ${id} Fix it\n`);
  server.stdin.flush();
  for (const id of [own, other]) await world.until(id, "working");
  const caller = crypto.randomUUID();
  world.note(own, { launchedBy: `demo:${caller}` });
  const tool = toFiles(`"$AGENTCTL" stop ${own} --server -y`);
  world.start(["prompt:x", `tool:${tool}`, "work:600"], { cwd: world.work, id: caller, env: { AGENTCTL: binary } });
  expect(Number(await world.untilFile("answer.code"))).toBe(5);
  expect(await world.untilFile("answer.err")).toContain(`${refused}${other.slice(0, 8)} is not one of its own`);
  expect(isAlive(server.pid)).toBe(true);
});

test("attach does not switch a person's terminal when an agent runs it", async () => {
  await using stage = new ServerTestHome();
  const tmux = new Tmux(stage);
  const target = crypto.randomUUID();
  const first = await tmux.open(
    "-s",
    "agents",
    binary,
    "demo-agent",
    "--session-id",
    target,
    "prompt:x",
    "end",
    "idle",
  );
  await tmux.run("new-window", "-t", "agents", "cat");
  await stage.until(target, "idle");
  const answer = join(stage.root, "answer");
  stage.start(["prompt:x", `tool:${binary} attach ${target} >${answer}.out 2>&1; echo $? >${answer}`, "work:600"]);
  await waitFor("the answer", () => existsSync(answer) && readFileSync(answer, "utf8") !== "");
  expect([readFileSync(answer, "utf8"), readFileSync(`${answer}.out`, "utf8")]).toEqual([
    "5\n",
    expect.stringContaining("called from inside an agent's session: attach is not allowed"),
  ]);
  expect(await tmux.ask(first, "#{window_active}")).toBe("0");
});
