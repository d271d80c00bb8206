// agentctl stop with real processes and the built binary: signals, references, servers, questions and answers.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { isAlive } from "./test-home-launch.ts";
import { AtTerminal, quoted, StopTestHome, says, stateOf, stays } from "./test-home-stop.ts";

// A busy machine is slow, not wrong.
setDefaultTimeout(60_000);

/** The last whole line: the agent may be in the middle of writing the next one. An empty file has none. */
function lastLine(world: StopTestHome, id: string): Record<string, unknown> {
  const lines = readFileSync(join(world.home, "sessions", `${id}.jsonl`), "utf8").split("\n");
  return JSON.parse(lines.at(-2) ?? "{}") as Record<string, unknown>;
}

describe("the gentlest signal comes first", () => {
  test("after SIGINT the record and the answer say interrupted", async () => {
    await using world = new StopTestHome();
    const agent = await world.working();
    expect(await world.stop(agent.id)).toEqual({
      code: 0,
      out: `${agent.id.slice(0, 8)} is stopped: interrupted (pid ${agent.pid} by SIGINT)\n`,
      err: "",
    });
    expect(isAlive(agent.pid)).toBe(false);
    expect(lastLine(world, agent.id)).toMatchObject({ type: "end", outcome: "interrupted" });
  });

  test.each([
    [["ignore:SIGINT"], "SIGTERM"],
    [["ignore:SIGINT", "ignore:SIGTERM"], "SIGKILL"],
  ])("with %p the agent ends by %s, within the grace period", async (steps, signal) => {
    await using world = new StopTestHome();
    const agent = await world.working(steps);
    const began = performance.now();
    expect(await world.stop(agent.id, "--grace", "1s")).toMatchObject({
      code: 0,
      out: `${agent.id.slice(0, 8)} is stopped in the middle of a turn (pid ${agent.pid} by ${signal})\n`,
    });
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(isAlive(agent.pid)).toBe(false);
  });

  test("--now sends SIGKILL to the agent and its tool", async () => {
    await using world = new StopTestHome();
    const agent = await world.working([`tool:${stays("tool")}`]);
    const tool = await world.pidIn("tool");
    expect((await world.stop(agent.id, "--now")).out).toBe(
      `${agent.id.slice(0, 8)} is stopped in the middle of a turn (pid ${agent.pid} by SIGKILL, pid ${tool} by SIGKILL)\n`,
    );
    expect([agent.pid, tool].filter(isAlive)).toEqual([]);
  });

  test("a suspended agent is ended", async () => {
    await using world = new StopTestHome();
    const agent = await world.working();
    process.kill(agent.pid, "SIGSTOP");
    await waitFor("its suspension", () => stateOf(agent.pid) === "T");
    expect((await world.stop(agent.id)).out).toContain(`is stopped: interrupted (pid ${agent.pid} by SIGINT)`);
  });

  test("an agent in uninterruptible sleep (D), which gets no gentle signal, is ended", async () => {
    await using world = new StopTestHome();
    const id = world.record([{ type: "prompt", text: "x" }]);
    // The parent of a vfork sleeps until its child is gone. The compiler is bun's own.
    const script = `import { cc } from "bun:ffi";
      import { writeFileSync } from "node:fs";
      for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => {});
      writeFileSync("sleeper.c", "int vfork(void); int pause(void); void *signal(int, void *); int fall(void) { if (vfork() == 0) for (signal(15, 0);;) pause(); return 0; }");
      cc({ source: "./sleeper.c", symbols: { fall: { args: [], returns: "int" } } }).symbols.fall();`;
    writeFileSync(join(world.work, "sleeper.ts"), script);
    const sleeper = Bun.spawn([world.linkAs("demo-agent", process.execPath), "sleeper.ts"], {
      env: world.env,
      cwd: world.work,
      stdio: ["ignore", "ignore", "inherit"],
    });
    const childOf = () => world.processes().find(({ parent }) => parent === sleeper.pid);
    // Waiting for a disk is D as well, for a moment.
    await waitFor("its sleep", () => childOf() !== undefined && stateOf(sleeper.pid) === "D");
    const child = childOf();
    world.announce(id, sleeper.pid);
    await world.until(id, "working");
    const answer = await world.stopJson(id, "--grace", "1s");
    expect(answer).toMatchObject({ state: "stopped", outcome: "cut-off", ended: [sleeper.pid, child?.pid ?? 0] });
    expect([sleeper.pid, child?.pid ?? 0].filter(isAlive)).toEqual([]);
  });

  test("--json has the current session, the result, and the ended and left processes", async () => {
    await using world = new StopTestHome();
    const agent = await world.working();
    const [before] = (await world.list()).sessions;
    const answer = await world.stopJson(agent.id);
    const [after] = (await world.list()).sessions;
    expect(answer).toEqual({
      ...after,
      result: "stopped",
      ended: [agent.pid],
      leftovers: [],
    } as unknown as typeof answer);
    expect(before?.state).toBe("running");
    expect(answer).toMatchObject({ state: "stopped", outcome: "interrupted", status: "interrupted", process: null });
  });

  test("a process without a record is ended", async () => {
    await using world = new StopTestHome();
    const silent = world.start(["--no-announce", "--announce-after", "600000"], {});
    await waitFor("its process", () => isAlive(silent.pid));
    const row = async () => (await world.list()).sessions.find(({ process }) => process?.pid === silent.pid);
    while ((await row()) === undefined);
    const answer = await world.stopJson(`pid:${silent.pid}`, "-y");
    expect(answer).toMatchObject({ state: "stopped", outcome: null, process: null, ended: [silent.pid] });
  });
});

describe("a session that is already stopped", () => {
  test("is a success that says so", async () => {
    await using world = new StopTestHome();
    const id = world.record([
      { type: "prompt", text: "x" },
      { type: "end", outcome: "completed" },
    ]);
    const out = `${id.slice(0, 8)} was already stopped (completed)\n`;
    expect(await world.stop(id)).toEqual({ code: 0, out, err: "" });
    expect(await world.stopJson(id)).toMatchObject({ state: "stopped", ended: [], leftovers: [] });
  });

  test("loses the tools that a crash left behind", async () => {
    await using world = new StopTestHome();
    const agent = await world.working([`tool:${stays("tool")}`]);
    const tool = await world.pidIn("tool");
    await agent.end("SIGKILL");
    expect(isAlive(tool)).toBe(true);
    expect(await world.stop(agent.id)).toEqual({
      code: 0,
      out: `${agent.id.slice(0, 8)} was already stopped; processes that it had left running were stopped: pid ${tool} by SIGTERM\n`,
      err: "",
    });
    expect(isAlive(tool)).toBe(false);
    expect((await world.stop(agent.id)).out).toContain("was already stopped (cut-off)");
  });

  test("may have a zombie as its process (D17)", async () => {
    await using world = new StopTestHome();
    const id = crypto.randomUUID();
    const script = `"$1" demo-agent --session-id "$2" prompt:x work:600 & echo $! >agent.tmp; mv agent.tmp agent; exec sleep 600`;
    world.begin(["/bin/sh", "-c", script, "sh", binary, id]);
    const pid = await world.pidIn("agent");
    await world.until(id, "working");
    process.kill(pid, "SIGKILL");
    await waitFor("the zombie", () => stateOf(pid) === "Z");
    expect((await world.stop(id)).out).toBe(`${id.slice(0, 8)} was already stopped (cut-off)\n`);
    expect(stateOf(pid)).toBe("Z");
  });
});

describe("a reference", () => {
  test.each<[string, (agent: { id: string; pid: number }) => string]>([
    ["its id", ({ id }) => id],
    ["a prefix", ({ id }) => id.slice(0, 12)],
    ["its process", ({ pid }) => `pid:${pid}`],
    [".", () => "."],
  ])("finds a session started by hand by %s (D28, D27)", async (_name, reference) => {
    await using world = new StopTestHome();
    const other = world.start(["prompt:y", "work:600"], { cwd: world.folder("elsewhere") });
    const agent = await world.working();
    await world.until(other.id, "working");
    expect(await world.stop(reference(agent))).toMatchObject({ code: 0, err: "" });
    expect([isAlive(agent.pid), isAlive(other.pid)]).toEqual([false, true]);
  });

  test("finds a launched session by each of its names (D27)", async () => {
    await using world = new StopTestHome();
    const other = await world.working([], { cwd: world.folder("elsewhere") });
    const flags = ["--name", "painter", "--group", "nightly", "--label", "kind=paint"];
    for (const reference of [["painter"], ["@last"], ["launch"], ["--group", "nightly"], ["--label", "kind=paint"]]) {
      const id = await world.launched("x\nwork:600", ...flags);
      const agent = await world.oneAgent();
      const note = (await world.row(id)).launch?.id;
      const words = reference[0] === "launch" ? [`launch:${note}`] : reference;
      const { code, out } = await world.stop(...words);
      expect([words, code, out.split("\n")[0]]).toEqual([
        words,
        0,
        expect.stringMatching(new RegExp(`^${id.slice(0, 8)} is stopped: interrupted`)),
      ]);
      expect(isAlive(agent.pid)).toBe(false);
      await waitFor("the end of its holder", () => world.holders().length === 0);
      for (const { pid } of world.launchedAgents()) expect(pid).toBe(0);
    }
    expect(isAlive(other.pid)).toBe(true);
  });

  test("that is ambiguous ends nothing (D35)", async () => {
    await using world = new StopTestHome();
    const ids = ["01a1e12a-0000-7000-8000-000000000001", "01a1e12a-0000-7000-8000-000000000002"];
    const agents = ids.map((id) => world.start(["prompt:x", "work:600"], { id }));
    for (const id of ids) await world.until(id, "working");
    const { code, err } = await world.stop("01a1e12a");
    expect(code).toBe(4);
    expect(err).toContain("01a1e12a matches several sessions");
    expect(agents.map(({ pid }) => isAlive(pid))).toEqual([true, true]);
  });

  test("beside a wrong one ends nothing", async () => {
    await using world = new StopTestHome();
    const agent = await world.working();
    expect(await world.stop(agent.id, "nobody")).toMatchObject({ code: 3, out: "" });
    expect(await world.stop("--group", "nobody")).toMatchObject({ code: 3, out: "" });
    expect(await world.stop()).toMatchObject({ code: 2, out: "" });
    expect(isAlive(agent.pid)).toBe(true);
  });

  test("to a finished session does not end a live one in the same directory (D7)", async () => {
    await using world = new StopTestHome();
    const finished = world.record([
      { type: "prompt", text: "x" },
      { type: "end", outcome: "completed" },
    ]);
    const live = await world.working([`tool:${stays("tool")}`]);
    const tool = await world.pidIn("tool");
    for (const flags of [[], ["--now", "--leftovers", "-y"]])
      expect(await world.stopJson(finished, ...flags)).toMatchObject({ id: finished, ended: [], leftovers: [] });
    expect([live.pid, tool].map(isAlive)).toEqual([true, true]);
  });

  test("to a session that exists in two homes ends only the right one", async () => {
    await using world = new StopTestHome();
    const id = world.record([{ type: "prompt", text: "x" }]);
    const copy = join(world.root, "copied-home");
    world.record([{ type: "prompt", text: "x" }], id, copy);
    const resume = (home: string, name: string) =>
      world.begin([binary, "demo-agent", "--resume", id, "prompt:y", `tool:${stays(name)}`], {
        env: { DEMO_AGENT_HOME: home },
      });
    const [here, there] = [resume(world.home, "here"), resume(copy, "there")];
    const [hereTool, thereTool] = [await world.pidIn("here"), await world.pidIn("there")];
    const answer = await world.stopJson(`pid:${here.pid}`, "--now");
    expect(answer).toMatchObject({ home: world.home, ended: [here.pid, hereTool] });
    expect([there.pid, thereTool].map(isAlive)).toEqual([true, true]);
    expect(answer.leftovers.map(({ pid }) => pid).sort()).toEqual([thereTool].sort());
  });
});

describe("several sessions", () => {
  const thirty = 30;

  test("of a group, thirty at once, end in about the time of one; without a terminal there is no question", async () => {
    await using world = new StopTestHome();
    const other = await world.working([], { cwd: world.folder("elsewhere") });
    // Each takes half of its grace, a second.
    const agents = Array.from({ length: thirty }, () => world.start(["ignore:SIGINT", "prompt:x", "work:600"]));
    for (const { id } of agents) world.note(id, { group: "night" });
    for (const { id } of agents) await waitFor(id, () => existsSync(join(world.home, "sessions", `${id}.jsonl`)));
    for (const { id } of agents) await waitFor(id, () => lastLine(world, id)["type"] === "prompt");
    const began = performance.now();
    const { code, out } = await world.stop("--group", "night", "--grace", "2s");
    expect(performance.now() - began).toBeLessThan(thirty * 500);
    expect(code).toBe(0);
    const expected = agents.map(
      ({ id, pid }) => `${id.slice(0, 8)} is stopped in the middle of a turn (pid ${pid} by SIGTERM)`,
    );
    expect(out.trim().split("\n").sort()).toEqual(expected.sort());
    expect(agents.filter(({ pid }) => isAlive(pid))).toEqual([]);
    expect(isAlive(other.pid)).toBe(true);
  });

  test("more than three need a confirmation at a terminal", async () => {
    await using world = new StopTestHome();
    const agents = await Promise.all([1, 2, 3, 4].map(() => world.working([], { cwd: world.folder("elsewhere") })));
    for (const { id } of agents) world.note(id, { group: "night" });
    const finished = world.record([
      { type: "prompt", text: "x" },
      { type: "end", outcome: "completed" },
    ]);
    world.note(finished, { group: "night" });

    const slip = new AtTerminal(world, ["stop", "--group", "night"]);
    await slip.shows("Stop 4 sessions? [y/N] ");
    slip.type("n\n");
    const no = await slip.ended();
    expect([no.code, agents.map(({ pid }) => isAlive(pid))]).toEqual([5, [true, true, true, true]]);
    expect(no.shown).toContain("not confirmed; nothing was done");

    const [first, second, third] = agents.map(({ id }) => id);
    const few = new AtTerminal(world, ["stop", first ?? "", "--json"]);
    expect((await few.ended()).shown).not.toContain("[y/N]");
    const again = world.start(["prompt:x", "work:600"]);
    await world.until(again.id, "working");

    const meant = new AtTerminal(world, ["stop", second ?? "", third ?? "", agents[3]?.id ?? "", again.id]);
    await meant.shows("Stop 4 sessions? [y/N] ");
    meant.type("y\n");
    expect((await meant.ended()).code).toBe(0);
    expect([...agents, again].filter(({ pid }) => isAlive(pid))).toEqual([]);
  });

  test("need no confirmation with -y", async () => {
    await using world = new StopTestHome();
    const agents = await Promise.all([1, 2, 3, 4].map(() => world.working([], { cwd: world.folder("elsewhere") })));
    const { code, shown } = await new AtTerminal(world, ["stop", "-y", ...agents.map(({ id }) => id)]).ended();
    expect([code, shown.includes("[y/N]")]).toEqual([0, false]);
    expect(agents.filter(({ pid }) => isAlive(pid))).toEqual([]);
  });
});

describe("weak links", () => {
  test.each([
    ["directory", []],
    ["arguments", ["--session-id", "0c0ffee0-dead-4bee-8bad-c0ffee000000"]],
  ])("a session known only by its %s is refused without -y", async (what, flags) => {
    await using world = new StopTestHome();
    const agent = world.begin([binary, "demo-agent", "--no-announce", ...flags, "prompt:x", "work:600"]);
    const row = async () => (await world.list()).sessions.find(({ process }) => process?.pid === agent.pid);
    while ((await row())?.status !== "working");
    const { id, ref } = (await row()) ?? { id: null, ref: "" };
    expect(await world.stop(id ?? "")).toEqual({
      code: 5,
      out: "",
      err: `agentctl: cannot be sure which process has ${ref}: pid ${agent.pid} matches only by its ${what}\n  use -y to continue anyway; nothing was done\n`,
    });
    expect(isAlive(agent.pid)).toBe(true);
    expect((await world.stop(id ?? "", "-y")).out).toBe(
      `${ref} is stopped: interrupted (pid ${agent.pid} by SIGINT)\n`,
    );
    expect(isAlive(agent.pid)).toBe(false);
  });

  test("at a terminal a confirmation is asked for", async () => {
    await using world = new StopTestHome();
    const agent = await world.working(["--no-announce"]);
    const asked = new AtTerminal(world, ["stop", agent.id]);
    await asked.shows("matches only by its arguments. Continue? [y/N] ");
    asked.type("\n");
    expect([(await asked.ended()).code, isAlive(agent.pid)]).toEqual([5, true]);
    const again = new AtTerminal(world, ["stop", agent.id]);
    await again.shows("[y/N] ");
    again.type("yes\n");
    expect([(await again.ended()).code, isAlive(agent.pid)]).toEqual([0, false]);
  });

  test("an unknown session is left alone with all its processes: exit 8", async () => {
    await using world = new StopTestHome();
    const id = world.record([{ type: "prompt", text: "x" }]);
    const marked = world.begin(["sleep", "600"], { env: { DEMO_AGENT_SESSION: id } });
    const agent = await world.working();
    writeFileSync(join(world.home, "live", "4194303.json"), "broken");
    Bun.spawnSync(["rm", "-r", join(world.home, "live")]);
    writeFileSync(join(world.home, "live"), "not a folder");
    for (const flags of [[], ["-y", "--now", "--leftovers"]]) {
      const { code, out, err } = await world.stop(id, ...flags);
      expect([code, out]).toEqual([8, ""]);
      expect(err).toContain(`cannot tell whether ${id.slice(0, 8)} is running`);
    }
    expect([marked.pid, agent.pid].map(isAlive)).toEqual([true, true]);
  });
});

describe("a server", () => {
  test.each([[[]], [["--now"]]])(
    "with %p keeps running with its other sessions when one session is stopped; an idle session has nothing to stop",
    async (flags) => {
      await using world = new StopTestHome();
      const [id, other] = [crypto.randomUUID(), crypto.randomUUID()];
      const server = await world.serving(id, other);
      const ref = id.slice(0, 8);
      expect(await world.stop(id, ...flags)).toEqual({
        code: 0,
        out: `${ref}: its turn was interrupted; it stays idle in its server (pid ${server}); --server stops that, too\n`,
        err: "",
      });
      expect(isAlive(server)).toBe(true);
      expect(await world.until(other, "working")).toMatchObject({ state: "running" });
      expect(await world.stop(id, ...flags)).toEqual({
        code: 5,
        out: `${ref} is idle in its server (pid ${server}): nothing was stopped; --server stops the server and 1 other session\n`,
        err: "",
      });
      const again = await world.agentctl("stop", id, "--json", ...flags);
      expect([again.code, JSON.parse(again.out)]).toMatchObject([
        5,
        { state: "running", activity: "idle", ended: [], result: "nothing-to-stop" },
      ]);
      expect(await world.stopJson(other, ...flags)).toMatchObject({ activity: "idle", result: "turn-interrupted" });
    },
  );

  test("keeps the tools of its other sessions", async () => {
    await using world = new StopTestHome();
    const [id, other] = [crypto.randomUUID(), crypto.randomUUID()];
    await world.serving(id, other);
    const tool = (session: string, name: string) =>
      world.begin(["/bin/sh", "-c", stays(name)], { env: { DEMO_AGENT_SESSION: session } });
    const [mine, theirs] = [tool(id, "mine"), tool(other, "theirs")];
    await world.pidIn("mine");
    await world.pidIn("theirs");
    expect(await world.stopJson(id)).toMatchObject({ ended: [mine.pid], leftovers: [] });
    expect([mine.pid, theirs.pid].map(isAlive)).toEqual([false, true]);
  });

  test("is ended by --server, once, if all its sessions are named", async () => {
    await using world = new StopTestHome();
    const [id, other] = [crypto.randomUUID(), crypto.randomUUID()];
    const server = await world.serving(id, other);
    const { code, out } = await world.stop(id, other, "--server");
    expect([code, out]).toEqual([
      0,
      [id, other]
        .map((each) => `${each.slice(0, 8)} is stopped in the middle of a turn (pid ${server} by SIGINT)\n`)
        .join(""),
    ]);
    expect(isAlive(server)).toBe(false);
  });

  test("needs a confirmation for --server, which names the other sessions that would end", async () => {
    await using world = new StopTestHome();
    const [id, other, third] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
    const server = await world.serving(id, other, third);
    const elsewhere = await world.working([], { cwd: world.folder("elsewhere") });
    const named = [other, third].map((each) => `demo ${each.slice(0, 8)}`);
    const what = `the server of ${id.slice(0, 8)} (pid ${server}) also serves 2 other sessions, which would end with it: `;
    const refused = await world.stop(id, "--server");
    expect(refused).toMatchObject({ code: 5, out: "" });
    expect(refused.err).toStartWith(`agentctl: ${what}`);
    for (const each of named) expect(refused.err).toContain(`${each} (working)`);
    expect(refused.err).toContain("use -y to stop them all");
    expect(refused.err).not.toContain(elsewhere.id.slice(0, 8));
    for (const [typed, code] of [
      ["n\n", 5],
      ["y\n", 0],
    ] as const) {
      const terminal = new AtTerminal(world, ["stop", id, "--server"]);
      await terminal.shows("Stop them all?");
      terminal.type(typed);
      const { code: exit, shown } = await terminal.ended();
      for (const each of named) expect(shown).toContain(each);
      expect([exit, isAlive(server)]).toEqual([code, code === 5]);
    }
    expect(isAlive(elsewhere.pid)).toBe(true);
  });

  test("is ended with -y without a question, and the ended sessions are named", async () => {
    await using world = new StopTestHome();
    const [id, other] = [crypto.randomUUID(), crypto.randomUUID()];
    const server = await world.serving(id, other);
    const { code, out, err } = await world.stop(id, "--server", "-y");
    expect([code, out]).toEqual([
      0,
      `${id.slice(0, 8)} is stopped in the middle of a turn (pid ${server} by SIGINT)\n`,
    ]);
    expect(err).toContain(`demo ${other.slice(0, 8)} (working)`);
    expect(await world.until(other, "cut-off")).toMatchObject({ state: "stopped" });
  });

  test("has no option under the old name of --server", async () => {
    await using world = new StopTestHome();
    expect(await world.stop("x", "--host")).toMatchObject({ code: 2, out: "" });
  });

  test("whose turn continues is not reported as stopped", async () => {
    await using world = new StopTestHome();
    const id = world.record([{ type: "prompt", text: "x" }]);
    const program = `import { mkdirSync } from "node:fs";
      mkdirSync(process.env.DEMO_AGENT_HOME + "/servers", { recursive: true });
      Bun.listen({ unix: process.env.DEMO_AGENT_HOME + "/servers/" + process.pid + ".sock", socket: { data(socket, data) {
        socket.end(String(data).startsWith("interrupt") ? "interrupted" :
          JSON.stringify({ sessions: [{ id: "${id}", activity: "working", waiting: null }] }));
      } } });`;
    const server = world.begin([
      world.linkAs("agentctl", process.execPath),
      world.write("demo-agent", program),
      "serve",
    ]);
    await waitFor("the server", () => existsSync(join(world.home, "servers", `${server.pid}.sock`)));
    const { code, out } = await world.agentctl("stop", id, "--grace", "0s", "--json");
    expect([code, JSON.parse(out)]).toMatchObject([6, { activity: "working", result: "still-running" }]);
  });

  test("that fails does not prevent the end of other sessions", async () => {
    await using world = new StopTestHome();
    const id = world.record([{ type: "prompt", text: "x" }]);
    const agent = await world.working([], { cwd: world.folder("elsewhere") });
    // The process names its session once; the next command finds no process.
    const program = `import { mkdirSync } from "node:fs";
      mkdirSync(process.env.DEMO_AGENT_HOME + "/servers", { recursive: true });
      const server = Bun.listen({ unix: process.env.DEMO_AGENT_HOME + "/servers/" + process.pid + ".sock", socket: { data(socket) {
        server.stop();
        socket.end(JSON.stringify({ sessions: [{ id: "${id}", activity: "working", waiting: null }] }));
      } } });
      setInterval(() => {}, 1000);`;
    const server = world.begin([
      world.linkAs("agentctl", process.execPath),
      world.write("demo-agent", program),
      "serve",
    ]);
    const socket = join(world.home, "servers", `${server.pid}.sock`);
    await waitFor("the server", () => existsSync(socket));
    const { code, out } = await world.stop(id, agent.id);
    expect(out).toContain(`${id.slice(0, 8)} was not stopped: its server ${socket} cannot be`);
    // The truth: a server that is silent now may have taken up what was written since its start.
    expect(out).toContain(
      `${agent.id.slice(0, 8)} may still be running: its server does not answer (process ${server.pid})\n`,
    );
    expect([code, isAlive(server.pid), isAlive(agent.pid)]).toEqual([8, true, false]);
  });
});

describe("inside a session", () => {
  const stopFromTool = (what: string) =>
    `tool:${binary} stop ${what} >answer.out 2>answer.err; echo $? >answer.tmp; mv answer.tmp answer; exec sleep 600`;
  const answer = async (world: StopTestHome) => ({
    code: Number(await world.untilFile("answer")),
    out: readFileSync(join(world.work, "answer.out"), "utf8"),
    err: readFileSync(join(world.work, "answer.err"), "utf8"),
  });

  test.each([[{}], [{ insideAgents: "free" }]])(
    "with %p its own session is refused before any signal",
    async (config) => {
      await using world = new StopTestHome();
      world.configure(config);
      const agent = world.start(["prompt:x", stopFromTool("@self"), "work:600"]);
      expect(await answer(world)).toMatchObject({ code: 5, out: "" });
      expect(isAlive(agent.pid)).toBe(true);
    },
  );

  test("another session is stopped only if a person allows it", async () => {
    await using world = new StopTestHome();
    const other = await world.working([], { cwd: world.folder("elsewhere") });
    const agent = world.start(["prompt:x", stopFromTool(other.id), "work:600"]);
    expect(await answer(world)).toMatchObject({ code: 5, out: "" });
    expect(isAlive(other.pid)).toBe(true);
    await agent.end();
    Bun.spawnSync(["rm", join(world.work, "answer")]);
    world.configure({ insideAgents: "free" });
    world.start(["prompt:x", stopFromTool(other.id), "work:600"]);
    expect(await answer(world)).toMatchObject({ code: 0 });
    expect(isAlive(other.pid)).toBe(false);
  });

  test("the caller's own processes are never ended, even as orphans of a crashed agent", async () => {
    await using world = new StopTestHome();
    world.configure({ insideAgents: "free" });
    const id = crypto.randomUUID();
    const inner = `${says("tool")}; while [ ! -e crashed ]; do sleep 0.01; done; ${binary} stop ${id} >answer.out 2>answer.err; echo $? >answer.tmp; mv answer.tmp answer; exec sleep 600`;
    const script = `setsid sh -c ${quoted(stays("sibling"))} & ${inner}`;
    const agent = world.start(["prompt:x", `tool:${script}`, "work:600"], { id });
    const [tool, sibling] = [await world.pidIn("tool"), await world.pidIn("sibling")];
    await agent.end("SIGKILL");
    writeFileSync(join(world.work, "crashed"), "");
    expect(await answer(world)).toMatchObject({
      code: 0,
      out: `${id.slice(0, 8)} was already stopped; processes that it had left running were stopped: pid ${sibling} by SIGTERM\n`,
    });
    expect([tool, sibling].map(isAlive)).toEqual([true, false]);
  });
});
