// agentctl launch with the demo agent prints the id of a session that exists, or fails and leaves nothing behind.
import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import { claudeInvocation } from "../../src/agents/claude-code/invocation.ts";
import { demo } from "../../src/agents/demo/index.ts";
import { checkPromptFits } from "../../src/service/launch-plan.ts";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { isAlive, LaunchTestHome, readProcess } from "./test-home-launch.ts";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Neither a process nor a file. */
const expectNothing = (world: LaunchTestHome): void => {
  expect(world.processes().map(({ argv }) => argv)).toEqual([]);
  expect(world.kept()).toEqual([]);
};

describe("the answer", () => {
  test("names the command that fits: result for a session that is over, logs -f for one that runs", async () => {
    await using world = new LaunchTestHome();
    const { err } = await world.agentctl("launch", "demo", "say:done", "--permission", "edit");
    const next = err.includes(" is completed in ") ? "result" : "logs -f";
    expect(err).toMatch(new RegExp(`; agentctl ${next} [0-9a-f]{8}\n$`));
  });

  test("is the id of a session that is listed and working", async () => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await world.agentctl("launch", "demo", "Fix it\nwork:600", "--permission", "edit");
    expect([code, out.trim()]).toEqual([0, expect.stringMatching(uuid)]);
    const id = out.trim();
    const agent = await world.oneAgent();
    const ref = id.slice(0, 8);
    // Announced, its turn may begin a moment later.
    expect(err.replace("is starting in", "is working in")).toBe(
      `agentctl: ${ref} is working in ~/work (pid ${agent.pid}); agentctl logs -f ${ref}\n`,
    );
    await world.promptOf(id);
    expect((await world.list()).sessions).toMatchObject([
      {
        id,
        state: "running",
        activity: "working",
        process: { pid: agent.pid },
        cwd: world.work,
        home: world.home,
        prompt: "Fix it\nwork:600",
      },
    ]);
  });

  test("is the id even if the agent has already finished; its directory is free", async () => {
    await using world = new LaunchTestHome();
    for (let count = 0; count < 2; count += 1) {
      const { code, out } = await world.agentctl("launch", "demo", "Fix it");
      expect(code).toBe(0);
      await world.untilAlone();
      expect(await world.row(out.trim())).toMatchObject({ status: "completed", launch: { exit: { status: 0 } } });
    }
  });

  test("as JSON has exactly the keys of the contract", async () => {
    await using world = new LaunchTestHome();
    const args = ["launch", "demo", "work:600", "--permission", "bypass", "--name", "n", "--group", "g", "--json"];
    const { out, code } = await world.agentctl(...args);
    expect(code).toBe(0);
    const answer = JSON.parse(out) as Record<string, unknown>;
    const agent = await world.oneAgent();
    expect(answer).toEqual({
      id: expect.stringMatching(uuid),
      ref: String(answer["id"]).slice(0, 8),
      agent: "demo",
      launch: agent.env["AGENTCTL_TAG"],
      process: { pid: agent.pid, start: expect.stringMatching(/^\d+$/), boot: expect.stringMatching(uuid) },
      cwd: world.work,
      group: "g",
      permission: "bypass",
    });
  });

  test("has its name, group and labels in the list", async () => {
    await using world = new LaunchTestHome();
    const flags = ["--name", "api fix", "--group", "g/1", "--label", "a=1", "--label", "b=x=y"];
    const id = await world.launched("work:600", ...flags);
    expect((await world.row(id)).launch).toMatchObject({
      name: "api fix",
      group: "g/1",
      labels: { a: "1", b: "x=y" },
      exit: null,
    });
    expect((await world.json<{ id: string }>("status", "api fix")).id).toBe(id);
  });

  test.each([
    ["-dash", "must begin with a letter or a digit"],
    ["", "must begin with a letter or a digit"],
    ["n".repeat(201), "may have at most 200 characters"],
    ["a*b", "takes letters, digits, spaces and . _ / -"],
  ])("%j is not a valid name, and the error says why", async (name, why) => {
    await using world = new LaunchTestHome();
    for (const flag of ["--name", "--group"]) {
      const { code, err } = await world.agentctl("launch", "demo", "x", flag, name);
      expect([code, err]).toEqual([2, `agentctl: ${flag} ${why}\n  agentctl launch --help\n`]);
    }
    expectNothing(world);
  });

  test("a name of a live session is refused, and free after its end", async () => {
    await using world = new LaunchTestHome();
    const first = await world.launched("tool:until [ -e go ]; do sleep 0.02; done", "--name", "n");
    const second = await world.agentctl("launch", "demo", "x", "--name", "n", "--share");
    expect(second).toMatchObject({ code: 5, out: "" });
    expect(second.err).toContain(`the name n is taken: demo ${first}`);
    expect(world.launchedAgents()).toHaveLength(1);
    writeFileSync(join(world.work, "go"), "");
    await world.untilAlone();
    const third = await world.launched("x", "--name", "n");
    expect((await world.json<{ id: string }>("status", "n")).id).toBe(third);
  });

  test("is the id if the agent prints a warning and continues", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("stderr:API Error: 529 overloaded, retrying\ntool:echo >tried; sleep 600");
    await world.untilFile("tried");
    expect(await world.row(id)).toMatchObject({ state: "running" });
    expect((await world.agentctl("launch", "demo", "x")).code).toBe(5);
  });

  test("comes even if stderr is closed", async () => {
    await using world = new LaunchTestHome();
    const { code, out } = await world.begin(["sh", "-c", `${binary} launch demo work:600 2>/dev/full`]).answer;
    expect([code, out.trim()]).toEqual([0, expect.stringMatching(uuid)]);
    await world.oneAgent();
  });

  test("the exit status is kept beside the row", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("exit:7");
    await world.untilAlone();
    expect(await world.row(id)).toMatchObject({ status: "cut-off", launch: { exit: { status: 7 } } });
  });

  test("--max-time ends the session", async () => {
    await using world = new LaunchTestHome();
    const id = await world.launched("tool:sleep 600", "--max-time", "1s");
    expect(world.processes().length).toBeGreaterThan(0);
    await world.untilAlone();
    expect(await world.row(id)).toMatchObject({ status: "interrupted", launch: { exit: { status: 130 } } });
  });
});

describe("a start that fails is an error and leaves nothing", () => {
  test.each([
    [
      "its last words",
      ["--", "--fail-start", "Not logged in · Please run /login"],
      "Not logged in · Please run /login",
    ],
    ["an option it does not know", ["--", "--what"], "demo-agent: unknown option --what"],
  ])("%s", async (_name, args, words) => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await world.agentctl("launch", "demo", "-p", "x", "--permission", "edit", ...args);
    expect([code, out]).toEqual([7, ""]);
    expect(err).toStartWith("agentctl: Demo agent (built in) exited before it started a session (exit status");
    expect(err).toContain(words);
    expectNothing(world);
    expect((await world.list()).sessions).toEqual([]);
  });

  test("prints only the last lines of a long output, without escape sequences", async () => {
    await using world = new LaunchTestHome();
    const script =
      "#!/bin/sh\ni=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo \"line $i\"; done >&2\nprintf '\\033[31mred\\033[0m\\n' >&2; exit 3\n";
    const path = world.write("agent", script, 0o755);
    const { code, err } = await world.begin([binary, "launch", "demo", "x"], { env: { AGENTCTL_DEMO_BIN: path } })
      .answer;
    expect(code).toBe(7);
    expect(err).toContain("(exit status 3)");
    expect(err).toContain("line 100000\nred\n");
    expect(err).not.toContain("line 99988\n");
    expectNothing(world);
  });

  test.each([
    [
      "is not executable",
      "#!/bin/sh\n",
      0o644,
      /AGENTCTL_DEMO_BIN does not name a program: .*\n {2}set it to an executable file/,
    ],
    [
      "has no interpreter",
      "#!/no/such/shell\n",
      0o755,
      /exited before it started a session \(exit status 12[67]\):\n.*not found/,
    ],
    ["is no program", "\x7fELF garbage\0", 0o755, /exited before it started a session \(exit status 12[67]\):\n./],
  ])("a binary that %s", async (_name, text, mode, message) => {
    await using world = new LaunchTestHome();
    const path = world.write("agent", text, mode);
    const { code, out, err } = await world.begin([binary, "launch", "demo", "x", "--permission", "edit"], {
      env: { AGENTCTL_DEMO_BIN: path },
    }).answer;
    expect([code, out]).toEqual([7, ""]);
    expect(err).toMatch(message);
    expectNothing(world);
  });

  test("a missing program is reported with its install command", async () => {
    await using world = new LaunchTestHome();
    const missing = join(world.root, "nowhere");
    const override = await world.begin([binary, "launch", "claude", "x"], {
      env: { AGENTCTL_CLAUDE_CODE_BIN: missing },
    }).answer;
    expect(override).toMatchObject({ code: 7, out: "" });
    expect(override.err).toContain(`AGENTCTL_CLAUDE_CODE_BIN does not name a program: ${missing}`);
    for (const [agent, command] of [
      ["claude", "claude"],
      ["codex", "codex"],
    ] as const) {
      const { code, err } = await world.begin([binary, "launch", agent, "x"], { env: { PATH: world.work } }).answer;
      expect(code).toBe(7);
      expect(err).toMatch(new RegExp(`is not installed: no ${command} in PATH\\n {2}\\S.*install`));
    }
    expectNothing(world);
  });

  test("an agent that does not start in time is ended", async () => {
    await using world = new LaunchTestHome();
    const args = ["-p", "x", "--start-timeout", "1s", "--permission", "edit"];
    const { code, out, err } = await world.agentctl("launch", "demo", ...args, "--", "--announce-after", "600000");
    expect([code, out]).toEqual([6, ""]);
    expect(err).toBe(
      "agentctl: Demo agent (built in) did not begin a session within 1 s and was stopped\nit printed nothing\n  use --start-timeout to give it more time\n",
    );
    expectNothing(world);
  });

  test("a wrapper that hangs is ended with its children", async () => {
    await using world = new LaunchTestHome();
    const path = world.write("agent", "#!/bin/sh\ntrap '' INT TERM\nsleep 600 & sleep 601; sleep 602\n", 0o755);
    const { code } = await world.begin([binary, "launch", "demo", "x", "--start-timeout", "1s"], {
      env: { AGENTCTL_DEMO_BIN: path },
    }).answer;
    expect(code).toBe(6);
    expectNothing(world);
  });

  test.each([["SIGINT"], ["SIGTERM"], ["SIGHUP"]] as const)("%s during the start", async (signal) => {
    await using world = new LaunchTestHome();
    const launch = world.begin([binary, "launch", "demo", "x", "--", "--announce-after", "600000"]);
    await world.oneAgent();
    launch.kill(signal);
    expect(await launch.answer).toMatchObject({ code: 130, out: "" });
    expectNothing(world);
  });

  test("a full disk", async () => {
    await using world = new LaunchTestHome();
    const home = world.folder("tiny");
    const script = [
      `mount -t tmpfs -o size=64k,mode=700 none ${home}`,
      `${binary} launch demo x; echo full $?`,
      `ls -A ${home}/launches ${home}/logs`,
    ];
    for (const fill of ["head -c 65536 /dev/zero", "head -c 20000 /dev/zero"]) {
      const lines = [
        script[0],
        `${fill} >${home}/fill`,
        script[1]?.replace("demo x", `demo -F ${home}/../long`),
        script[2],
      ];
      world.write("long", "x".repeat(100_000));
      const { out, err } = await world.begin(["unshare", "-m", "sh", "-c", lines.join("\n")], {
        env: { AGENTCTL_HOME: home },
      }).answer;
      expect(err).toContain(`agentctl: nothing was started: no space left for ${home}\n`);
      expect(out).toStartWith("full 1\n");
      expect(out).not.toMatch(/\.(json|out|err|prompt|tmp)/);
      expect(world.processes()).toEqual([]);
    }
  });

  test("a home that cannot be written", async () => {
    await using world = new LaunchTestHome();
    const path = world.write("file", "");
    const { code, err } = await world.begin([binary, "launch", "demo", "x"], { env: { AGENTCTL_HOME: path } }).answer;
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`cannot write to ${path}: .*\\n {2}set AGENTCTL_HOME to use another folder\\n`));
    expectNothing(world);
  });
});

describe("a launcher that is killed", () => {
  test("right after the agent's start leaves a session that is listed, with its name", async () => {
    await using world = new LaunchTestHome();
    const args = ["launch", "demo", "x", "--name", "n", "--label", "a=b", "--", "--announce-after", "600000"];
    const launch = world.begin([binary, ...args]);
    const agent = await world.oneAgent();
    launch.kill("SIGKILL");
    await launch.answer;
    const id = agent.env["AGENTCTL_TAG_SESSION"]?.replace("demo:", "");
    expect((await world.list()).sessions).toMatchObject([
      {
        id,
        state: "running",
        link: "assigned",
        process: { pid: agent.pid },
        launch: { name: "n", labels: { a: "b" } },
      },
    ]);
  });

  test("right after the holder's start leaves a session that starts and is listed by its name", async () => {
    await using world = new LaunchTestHome();
    const launch = world.begin([binary, "launch", "demo", "work:600", "--name", "n"]);
    await waitFor("the holder", () => world.holders().length > 0);
    launch.kill("SIGKILL");
    await launch.answer;
    const agent = await world.oneAgent();
    const id = agent.env["AGENTCTL_TAG_SESSION"]?.replace("demo:", "") ?? "";
    expect(await world.until(id, "working")).toMatchObject({ id, launch: { name: "n" } });
  });
});

describe("the prompt", () => {
  const odd = `"two"\n'lines' $HOME \`id\` \\n %s\té 😀\r\n-x --version\n${"long ".repeat(210_000)}`;

  test("arrives unchanged at any size, from a file and from stdin", async () => {
    await using world = new LaunchTestHome();
    const path = world.write("prompt", odd);
    const answers = [
      await world.begin([binary, "launch", "demo", "-F", path, "--share"]).answer,
      await world.begin([binary, "launch", "demo", "-", "--share"], { stdin: odd }).answer,
      await world.begin([binary, "launch", "demo", "-F", "-", "--share"], { stdin: odd }).answer,
    ];
    for (const { code, out } of answers) {
      expect(code).toBe(0);
      expect((await world.promptOf(out.trim())) === odd).toBe(true);
    }
  });

  test.each([
    ["--version"],
    ["--help me fix this"],
    ["please review the daemon code"],
    ["-"],
    ["-x"],
    ["'\" $(id)\n`id`"],
  ])("may be %p after -p", async (prompt) => {
    await using world = new LaunchTestHome();
    expect(await world.promptOf(await world.launched(prompt))).toBe(prompt);
  });

  test("keeps a byte order mark", async () => {
    await using world = new LaunchTestHome();
    const { out } = await world.begin([binary, "launch", "demo", "-"], { stdin: "\ufeffx" }).answer;
    expect(await world.promptOf(out.trim())).toBe("\ufeffx");
  });

  test.each([
    ["NUL", { stdin: "a\0b" }, ["-"], "the prompt contains a NUL character"],
    ["no UTF-8", { stdin: Buffer.from([0x61, 0xff]) }, ["-"], "the prompt is not text: not UTF-8"],
    ["nothing", { stdin: "" }, ["-"], "the prompt is empty"],
    ["white space", {}, [" \n\t"], "the prompt is empty"],
    ["no source", {}, [], "needs a prompt"],
    ["two sources", {}, ["x", "-p", "y"], "the prompt was given twice"],
    ["a word and a file", {}, ["x", "-F", "/etc/hostname"], "the prompt was given twice"],
    ["two words", {}, ["fix", "it"], "put the prompt in quotes; unexpected argument: it"],
    ["a file that is not there", {}, ["-F", "nowhere"], "cannot read the prompt from nowhere: no such file"],
    ["a directory", {}, ["-F", "/"], "cannot read the prompt from /: "],
    ["too long", { stdin: Buffer.alloc(16 * 1024 * 1024 + 1, "x") }, ["-"], "the prompt is longer than 16777216 bytes"],
  ] as const)("%s is refused", async (_name, options, args, message) => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await world.begin([binary, "launch", "demo", ...args], options).answer;
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
    expectNothing(world);
  });

  test.each([
    [["demo", "--worktree", "feature/z", "fix it"], "did you mean --worktree=feature/z? agentctl launch --help"],
    [["demo", "fix it", "--worktree", "feature/z"], "did you mean --worktree=feature/z? agentctl launch --help"],
    [["demo", "--worktree", "feature/z", "-p", "x"], "did you mean --worktree=feature/z? agentctl launch --help"],
    [["--worktree", "feature/z", "demo", "fix it"], "did you mean --worktree=feature/z? agentctl launch --help"],
    [["--agent", "demo", "--worktree", "z", "x"], "did you mean --worktree=z? agentctl launch --help"],
    [["--worktree", "demo", "fix", "it"], "agentctl launch --help"],
    [["demo", "--worktree", "fix it", "-p", "x"], "agentctl launch --help"],
  ])(
    "%j: a branch after --worktree without = is not taken as the prompt, and the error says so",
    async (args, hint) => {
      await using world = new LaunchTestHome();
      const { code, err } = await world.agentctl("launch", ...args);
      expect([code, err.split("\n  ")[1]]).toEqual([2, `${hint}\n`]);
      expectNothing(world);
    },
  );

  test("is in no process's arguments or environment, and in no file that others can read", async () => {
    await using world = new LaunchTestHome();
    const secret = "the-secret-of-this-prompt";
    const path = world.write("prompt", `${secret}\nwork:600`, 0o600);
    const launch = world.begin([binary, "launch", "demo", "-F", path]);
    const seen = new Set<string>();
    const look = (): void => {
      for (const { argv, env } of world.processes()) seen.add(JSON.stringify([argv, env]));
    };
    await waitFor("the agent", () => {
      look();
      return world.launchedAgents().length > 0;
    });
    const { out } = await launch.answer;
    look();
    expect([...seen].some((text) => text.includes("demo-agent"))).toBe(true);
    expect([...seen].filter((text) => text.includes(secret))).toEqual([]);
    expect(await world.promptOf(out.trim())).toContain(secret);
    expect(world.kept().filter((file) => file.endsWith(".prompt"))).toEqual([]);
    const [agent] = world.launchedAgents();
    expect(readdirSync(`/proc/${agent?.pid}/fd`)).toContain("0");
  });

  test("can be an argument of up to 128 KB minus one byte", () => {
    const invocation = { ...demo.invocation, promptBy: "argument" } as const;
    const byArgument: Adapter = { ...demo, invocation };
    const fits = "é".repeat(64 * 1024 - 1);
    expect(() => checkPromptFits(fits, byArgument)).not.toThrow();
    expect(() => checkPromptFits(`${fits}é`, byArgument)).toThrow(
      "the prompt is 131072 bytes long; Demo agent (built in) takes it as an argument",
    );
    expect(() => checkPromptFits(`${fits}é`, demo)).not.toThrow();
  });
});

describe("the environment of the agent", () => {
  test("is the caller's, without variables of another session", async () => {
    await using world = new LaunchTestHome();
    const scrubbed = {
      CLAUDECODE: "1",
      CLAUDE_CODE_SESSION_ID: "other",
      CODEX_THREAD_ID: "other",
      DEMO_AGENT_SESSION: "other",
      AGENTCTL_TAG: "other",
      AGENTCTL_TAG_SID: "1",
      AGENTCTL_TAG_SESSION: "demo:other",
    };
    const launch = world.begin([binary, "launch", "demo", "tool:echo $MYVAR >seen; sleep 600", "--json"], {
      env: { ...scrubbed, MYVAR: "from the caller\nin two lines", PWD: "/somewhere" },
    });
    const { id, launch: tag } = JSON.parse((await launch.answer).out) as { id: string; launch: string };
    await waitFor("the tool", () => world.processes().some(({ argv }) => argv[0] === "sleep"));
    expect(await world.untilFile("seen")).toBe("from the caller in two lines\n");
    const [holder] = world.holders();
    const [agent] = world.launchedAgents();
    const tool = world.processes().find(({ argv }) => argv[0] === "sleep");
    const marks = (env: Record<string, string> = {}) =>
      Object.fromEntries(Object.entries(env).filter(([key]) => key in scrubbed));
    const tags = {
      AGENTCTL_TAG: tag,
      AGENTCTL_TAG_SID: String(holder?.pid),
      AGENTCTL_TAG_SESSION: `demo:${id}`,
    };
    expect(marks(holder?.env)).toEqual({});
    expect(marks(agent?.env)).toEqual(tags);
    expect(marks(tool?.env)).toEqual({ ...tags, DEMO_AGENT_SESSION: id });
    expect([holder?.session, agent?.session]).toEqual([holder?.pid, holder?.pid]);
    expect(tool?.session).not.toBe(holder?.pid);
    expect(agent?.env["PWD"]).toBe(world.work);
  });

  test("has the real directory, even if a link was given", async () => {
    await using world = new LaunchTestHome();
    symlinkSync(world.work, join(world.root, "link"));
    const link = join(world.root, "link");
    const answers = [
      await world.begin([binary, "launch", "demo", "work:600", "--cwd", "../link"]).answer,
      // A shell would keep a PWD that leads to the same directory.
      await world.begin([binary, "launch", "demo", "work:600", "--share"], { cwd: link, env: { PWD: link } }).answer,
    ];
    for (const { out } of answers) expect((await world.row(out.trim())).cwd).toBe(world.work);
    expect(world.launchedAgents().map(({ env }) => env["PWD"])).toEqual([world.work, world.work]);
  });

  test("has only the descriptors that it needs, and reacts to SIGINT", async () => {
    await using world = new LaunchTestHome();
    await world.launched("tool:ls -l /proc/self/fd | sed 's/.* //' >fds; sleep 600");
    const agent = await world.oneAgent();
    await world.untilFile("fds");
    const links = await world.begin([
      "sh",
      "-c",
      `readlink /proc/${agent.pid}/fd/0 /proc/${agent.pid}/fd/1 /proc/${agent.pid}/fd/2`,
    ]).answer;
    expect(links.out).toMatch(/logs\/\S+\.prompt \(deleted\)\n\S+\.out\n\S+\.err\n$/);
    expect(await world.begin(["sh", "-c", `readlink /proc/${agent.pid}/fd/*`]).answer).not.toMatchObject({
      out: expect.stringContaining("launch.lock"),
    });
    const ignored = /^SigIgn:\s+(\S+)$/m.exec(readFileSync(`/proc/${agent.pid}/status`, "latin1"))?.[1] ?? "";
    // HUP 1, INT 2, QUIT 3, TERM 15
    expect(BigInt(`0x${ignored}`) & 0x4007n).toBe(0n);
  });

  test.each([
    ["not there", "no such directory: "],
    ["a file", "not a directory: "],
  ])("a directory that is %s is named as the cause, not the program", async (what, message) => {
    await using world = new LaunchTestHome();
    const path = what === "a file" ? world.write("file", "") : join(world.root, "nowhere");
    const { code, out, err } = await world.agentctl("launch", "demo", "x", "--cwd", path);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toBe(`agentctl: ${message}${path}\n`);
    expectNothing(world);
  });

  test("the agent has the caller's umask; agentctl's own files are private", async () => {
    await using world = new LaunchTestHome();
    const script = `umask 022; ${binary} launch demo 'edit:made:x'`;
    expect((await world.begin(["sh", "-c", script]).answer).code).toBe(0);
    await world.untilAlone();
    const mode = (path: string) => statSync(path).mode & 0o777;
    const home = join(world.root, ".agentctl");
    expect([home, join(home, "launches"), join(home, "logs")].map(mode)).toEqual([0o700, 0o700, 0o700]);
    const files = world.kept();
    expect(files.map((file) => file.replace(/.*\./, "")).sort()).toEqual(["err", "exit", "json", "out"]);
    expect(files.map(mode)).toEqual([0o600, 0o600, 0o600, 0o600]);
    expect(mode(join(world.work, "made"))).toBe(0o644);
  });

  test("relative paths are resolved from the caller's directory", async () => {
    await using world = new LaunchTestHome();
    world.write("wrapper", `#!/bin/sh\nexec ${binary} "$@"\n`, 0o755);
    const env = { AGENTCTL_DEMO_BIN: "./wrapper", AGENTCTL_HOME: "state", DEMO_AGENT_HOME: "data" };
    const { code, out } = await world.begin([binary, "launch", "demo", "x", "--cwd", "work"], { cwd: world.root, env })
      .answer;
    expect(code).toBe(0);
    await world.untilAlone();
    expect(readdirSync(join(world.root, "data/sessions"))).toEqual([`${out.trim()}.jsonl`]);
    const kept = readdirSync(join(world.root, "state/launches")).map((name) => name.replace(/.*\./, ""));
    expect(kept.sort()).toEqual(["exit", "json"]);
    expect(readdirSync(world.work)).toEqual([]);
  });

  test("files in a home that others can read are still private", async () => {
    await using world = new LaunchTestHome();
    mkdirSync(join(world.root, ".agentctl"), { mode: 0o755 });
    chmodSync(join(world.root, ".agentctl"), 0o755);
    await world.launched("x");
    expect(statSync(join(world.root, ".agentctl/launches")).mode & 0o777).toBe(0o700);
    expect(statSync(join(world.root, ".agentctl/logs")).mode & 0o777).toBe(0o700);
  });
});

describe("permission", () => {
  test.each([
    ["read", false, false, 2],
    ["edit", true, false, 1],
    ["bypass", true, true, 0],
  ] as const)("%s", async (permission, edits, runs, denied) => {
    await using world = new LaunchTestHome();
    const prompt = "edit:edited:x\ntool:echo >ran";
    const { out, err } = await world.agentctl("launch", "demo", "-p", prompt, "--permission", permission);
    await world.untilAlone();
    const files = readdirSync(world.work);
    expect([files.includes("edited"), files.includes("ran")]).toEqual([edits, runs]);
    expect(await world.json("status", out.trim())).toMatchObject({ permission, denied });
    expect(err).not.toContain("as its script says");
  });

  test("without one, a note says what that means", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await world.agentctl("launch", "demo", "x");
    expect(code).toBe(0);
    expect(err).toStartWith("agentctl: demo: it edits files and runs every command\n");
  });

  const where = { home: "/h", supportFolder: "/home/me/.agentctl/support", cwd: "/c", at: 0 };

  test("without one, no flag gives more permission", async () => {
    await using world = new LaunchTestHome();
    await world.launched("work:600");
    expect((await world.oneAgent()).argv.slice(1, 3)).toEqual(["demo-agent", "-p"]);
    expect((await world.oneAgent()).argv).not.toContain("--permission");
    const order = {
      kind: "new",
      session: "s",
      from: null,
      model: null,
      permission: null,
      prompt: "x",
      extra: [],
    } as const;
    expect(claudeInvocation.headless({ ...order, ...where }).join(" ")).not.toMatch(/permission/);
  });

  test("an unknown one is refused", async () => {
    await using world = new LaunchTestHome();
    const { code, err } = await world.agentctl("launch", "demo", "x", "--permission", "all");
    expect(code).toBe(2);
    expect(err).toContain("no such permission: all (read, edit, bypass)");
    expectNothing(world);
  });

  test("a permission that the agent refuses as root is refused at once", async () => {
    const order = { kind: "new", session: null, from: null, model: null, prompt: "x", extra: [] } as const;
    const asked = (permission: "edit" | "bypass", isRoot: boolean, env: Record<string, string>) =>
      claudeInvocation.refuses?.({ ...order, ...where, permission }, { isRoot, env });
    expect(asked("bypass", true, {})).toMatchObject({ code: "bypass-as-root" });
    expect(asked("bypass", true, { IS_SANDBOX: "1" })).toBeNull();
    expect(asked("bypass", false, {})).toBeNull();
    expect(asked("edit", true, {})).toBeNull();
    await using world = new LaunchTestHome();
    const { code, err } = await world.begin([binary, "launch", "claude", "x", "--permission", "bypass"], {
      env: { AGENTCTL_CLAUDE_CODE_BIN: "/bin/true" },
    }).answer;
    expect(code).toBe(7);
    expect(err).toContain("Claude Code refuses to skip permissions as root");
    expectNothing(world);
  });
});

describe("the agent", () => {
  const both = { AGENTCTL_CLAUDE_CODE_BIN: "/bin/true", AGENTCTL_CODEX_BIN: "/bin/true" };

  test.each([
    ["nothing at all", [], {}, 2, "launch needs a prompt: TEXT, -p TEXT, -F FILE, or - for standard input"],
    ["its name is unknown", ["nosuch", "x"], {}, 2, "no agent is called nosuch (known: claude-code, codex, "],
    ["its name is misspelled", ["cluade", "x"], {}, 2, "did you mean claude?"],
    [
      "it is left out and none is installed",
      ["x"],
      {},
      7,
      "no agent is installed\n  agentctl adapters shows how to install one",
    ],
    [
      "left out, there are two",
      ["x"],
      both,
      2,
      "which agent? claude-code, codex are installed\n  agentctl launch claude-code …",
    ],
    [
      "left out, there is one",
      ["x", "--permission", "bypass"],
      { AGENTCTL_CLAUDE_CODE_BIN: "/bin/true" },
      7,
      "Claude Code refuses to skip permissions as root",
    ],
  ] as const)("%s", async (_name, args, env, exit, message) => {
    await using world = new LaunchTestHome();
    const { code, out, err } = await world.begin([binary, "launch", ...args], { env: { PATH: world.work, ...env } })
      .answer;
    expect([code, out]).toEqual([exit, ""]);
    expect(err).toContain(message);
    expectNothing(world);
  });
});

test("a caller whose directory was removed gets an error", async () => {
  await using world = new LaunchTestHome();
  const script = `mkdir gone && cd gone && rmdir ../gone && exec ${binary} launch demo x`;
  const { code, out, err } = await world.begin(["sh", "-c", script]).answer;
  expect([code, out]).toEqual([1, ""]);
  // Bun's own word, before any line of ours runs.
  expect(err).toContain("The current working directory was deleted");
  expectNothing(world);
});

test("a session survives its launcher, its terminal's process group and a SIGHUP to its holder", async () => {
  await using world = new LaunchTestHome();
  const { out } = await world.begin([
    "setsid",
    "-w",
    "sh",
    "-c",
    `${binary} launch demo 'tool:until [ -e go ]; do sleep 0.02; done'`,
  ]).answer;
  const [holder] = world.holders();
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT"] as const) process.kill(holder?.pid ?? 0, signal);
  expect(isAlive(holder?.pid ?? 0)).toBe(true);
  expect(readProcess(holder?.pid ?? 0)?.parent).toBe(1);
  writeFileSync(join(world.work, "go"), "");
  await world.untilAlone();
  expect(await world.row(out.trim())).toMatchObject({ status: "completed", launch: { exit: { status: 0 } } });
});
