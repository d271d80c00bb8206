// agentctl stop ends the tools, servers and orphans of a session, and leaves and names processes that may belong to others.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { endProcesses, signalProcess } from "../../src/control/end-processes.ts";
import { readProcess } from "../../src/observe/processes.ts";
import { waitFor } from "../conformance/wait.ts";
import { binary } from "./test-home.ts";
import { isAlive } from "./test-home-launch.ts";
import { leaves, parentOf, quoted, StopTestHome, says, spawnAt, startOf, stays, ticksLater } from "./test-home-stop.ts";

// A busy machine is slow, not wrong.
setDefaultTimeout(60_000);

const alive = (...pids: number[]): boolean[] => pids.map(isAlive);

describe("stop ends", () => {
  test("a tool's child that ignores SIGTERM", async () => {
    await using world = new StopTestHome();
    const agent = await world.working([`tool:setsid sh -c ${quoted(stays("stubborn", "trap '' TERM;"))} & wait`]);
    const stubborn = await world.pidIn("stubborn");
    expect((await world.stop(agent.id)).out).toBe(
      `${agent.id.slice(0, 8)} is stopped: interrupted (pid ${agent.pid} by SIGINT, pid ${stubborn} by SIGKILL)\n`,
    );
    expect(alive(agent.pid, stubborn)).toEqual([false, false]);
  });

  test("grandchildren without a mark, in their own process groups", async () => {
    await using world = new StopTestHome();
    const grandchild = `env -u DEMO_AGENT_SESSION setsid sh -c ${quoted(stays("grandchild"))} & wait`;
    const child = `${says("child")}; ${grandchild}`;
    const agent = await world.working([`tool:env -u DEMO_AGENT_SESSION setsid sh -c ${quoted(child)} & wait`]);
    const pids = [await world.pidIn("child"), await world.pidIn("grandchild")];
    const { ended, leftovers } = await world.stopJson(agent.id);
    // The tool's shell may exit before it is killed.
    expect(ended).toEqual(expect.arrayContaining(pids));
    expect([ended.length <= 2 + pids.length, leftovers]).toEqual([true, []]);
    expect(alive(...pids)).toEqual([false, false]);
  });

  test("a process at a terminal that the agent made for its tool", async () => {
    await using world = new StopTestHome();
    const id = world.record([{ type: "prompt", text: "x" }]);
    // Stands in for Codex and Gemini, which run their tools so.
    const program = `Bun.spawn(["sh", "-c", ${JSON.stringify(stays("inside"))}], { terminal: { data() {} } });
      setInterval(() => {}, 1000);`;
    const agent = world.begin([world.linkAs("demo-agent", process.execPath), world.write("agent.ts", program)]);
    const inside = await world.pidIn("inside");
    expect([parentOf(inside), readProcess(inside)?.tty]).toEqual([agent.pid, expect.stringMatching(/^\/dev\/pts\//)]);
    world.announce(id, agent.pid);
    expect(await world.stopJson(id)).toMatchObject({ leftovers: [] });
    expect(alive(agent.pid, inside)).toEqual([false, false]);
  });

  test("a headless browser with its children", async () => {
    await using world = new StopTestHome();
    const browser = world.linkAs("firefox", "/bin/sh");
    const script = `${says("browser")}; ${browser} -c ${quoted(stays("page"))} & wait`;
    const agent = await world.working([`tool:setsid ${browser} -c ${quoted(script)} --headless & wait`]);
    const pids = [await world.pidIn("browser"), await world.pidIn("page")];
    expect(await world.stopJson(agent.id)).toMatchObject({ leftovers: [] });
    expect(alive(...pids)).toEqual([false, false]);
  });

  test("a server that left the process tree and works in the project", async () => {
    await using world = new StopTestHome();
    const agent = await world.working([`tool:${leaves(stays("server"))}`]);
    const server = await world.pidIn("server");
    await waitFor("its new parent", () => parentOf(server) === 1);
    expect(await world.stopJson(agent.id)).toMatchObject({ ended: [agent.pid, server], leftovers: [] });
    expect(isAlive(server)).toBe(false);
  });

  test("processes with the tag of a launch after its holder and agent were killed", async () => {
    await using world = new StopTestHome();
    const id = await world.launched(
      `x\ntool:env -u DEMO_AGENT_SESSION setsid sh -c ${quoted(stays("tagged"))} & wait\nwork:600`,
    );
    const tagged = await world.pidIn("tagged");
    const agent = await world.oneAgent();
    for (const { pid } of world.holders()) process.kill(pid, "SIGKILL");
    await waitFor("the end of the holder", () => world.holders().length === 0);
    expect(isAlive(agent.pid)).toBe(true);
    process.kill(agent.pid, "SIGKILL");
    await waitFor("the end of the agent", () => !isAlive(agent.pid));
    expect((await world.stopJson(id)).ended).toContain(tagged);
    await world.untilAlone();
  });

  test("a session whose holder was killed before", async () => {
    await using world = new StopTestHome();
    const id = await world.launched("x\nwork:600");
    const agent = await world.oneAgent();
    for (const { pid } of world.holders()) process.kill(pid, "SIGKILL");
    await waitFor("the end of the holder", () => world.holders().length === 0);
    expect(await world.stopJson(id)).toMatchObject({ outcome: "interrupted", ended: [agent.pid], leftovers: [] });
    await world.untilAlone();
  });
});

describe("stop leaves", () => {
  /** Stops the session: these stay and are said with the reason; with --leftovers they go. */
  async function expectLeft(world: StopTestHome, id: string, left: Record<number, string>): Promise<void> {
    const pids = Object.keys(left).map(Number);
    const { leftovers } = await world.stopJson(id);
    expect(Object.fromEntries(leftovers.map(({ pid, whyCode }) => [pid, whyCode]))).toEqual(left);
    expect(alive(...pids)).toEqual(pids.map(() => true));
    const { code, out } = await world.stop(id);
    expect([code, out]).toEqual([0, expect.stringContaining("--leftovers stops them, too\n")]);
    for (const pid of pids) expect(out).toContain(`left: pid ${pid} `);
    expect(alive(...pids)).toEqual(pids.map(() => true));
    expect(await world.stopJson(id, "--leftovers", "--now")).toMatchObject({ leftovers: [] });
    expect(alive(...pids)).toEqual(pids.map(() => false));
  }

  test("a daemon with its children in the project", async () => {
    await using world = new StopTestHome();
    const worker = `cd ${quoted(world.work)}; ${stays("worker")}`;
    const daemon = `${says("daemon")}; sh -c ${quoted(worker)} & cd /; wait; exec sleep 600`;
    const agent = await world.working([`tool:${leaves(daemon)}`]);
    const [pid, child] = [await world.pidIn("daemon"), await world.pidIn("worker")];
    const why = "daemon";
    await expectLeft(world, agent.id, { [pid]: why, [child]: "below-spared-process" });
  });

  const people = "multiplexer";

  test("a terminal multiplexer and its panes", async () => {
    await using world = new StopTestHome();
    // Stands in for tmux: its name, its place in the tree, its children.
    const server = world.linkAs("tmux: server", "/bin/sh");
    const script = `${says("server")}; setsid sh -c ${quoted(stays("pane"))} & wait`;
    const agent = await world.working([`tool:${leaves(`exec ${quoted(server)} -c ${quoted(script)}`)}`]);
    const [pid, pane] = [await world.pidIn("server"), await world.pidIn("pane")];
    await expectLeft(world, agent.id, { [pid]: people, [pane]: "below-spared-process" });
  });

  test("processes in a terminal multiplexer that was there before", async () => {
    await using world = new StopTestHome();
    const server = world.linkAs("tmux: server", "/bin/sh");
    const id = crypto.randomUUID();
    const pane = `DEMO_AGENT_SESSION=${id} setsid sh -c ${quoted(stays("pane"))} & ${says("server")}; wait`;
    world.begin([server, "-c", pane]);
    const pid = await world.pidIn("pane");
    await world.working([], { id });
    await expectLeft(world, id, { [pid]: "below-spared-process" });
  });

  test.if(Bun.which("tmux") !== null)("a real tmux, its panes, and what was started in them", async () => {
    await using world = new StopTestHome();
    const pane = `setsid sh -c ${quoted(stays("inner"))} & ${stays("pane")}`;
    const tmux = `TMUX_TMPDIR=${quoted(world.root)} tmux -L stop -f /dev/null new-session -d ${quoted(pane)}`;
    const agent = await world.working([`tool:${tmux}`]);
    const [inner, shell] = [await world.pidIn("inner"), await world.pidIn("pane")];
    const below = "below-spared-process";
    const server = parentOf(shell);
    expect(readProcess(server)?.name).toBe("tmux: server");
    await expectLeft(world, agent.id, { [server]: people, [shell]: below, [inner]: below });
  });

  test.each(["kitty", "firefox", "code"])("%s with its children, even below the agent", async (name) => {
    await using world = new StopTestHome();
    const program = world.linkAs(name, "/bin/sh");
    const script = `${says("program")}; setsid sh -c ${quoted(stays("inside"))} & wait`;
    const agent = await world.working([`tool:setsid ${program} -c ${quoted(script)} & wait`]);
    const [pid, inside] = [await world.pidIn("program"), await world.pidIn("inside")];
    const why = "window";
    await expectLeft(world, agent.id, { [pid]: why, [inside]: "below-spared-process" });
  });

  test("a process with a loaded window toolkit and a display", async () => {
    await using world = new StopTestHome();
    const library = world.write("libgtk-3.so.0.2409.32", "x".repeat(4096));
    const program = (name: string) => {
      const text = `globalThis.kept = Bun.mmap(${JSON.stringify(library)});
        require("node:fs").writeFileSync("${name}", String(process.pid));
        setInterval(() => {}, 1000);`;
      return `setsid ${process.execPath} ${world.write(`${name}.js`, text)}`;
    };
    const both = `DISPLAY=:0 ${program("shown")} & env -u DISPLAY -u WAYLAND_DISPLAY ${program("hidden")} & wait`;
    const agent = await world.working([`tool:${both}`]);
    const [shown, hidden] = [await world.pidIn("shown"), await world.pidIn("hidden")];
    await expectLeft(world, agent.id, { [shown]: "window" });
    expect(isAlive(hidden)).toBe(false);
  });

  test("a process below the agent at another program's terminal, and that program", async () => {
    await using world = new StopTestHome();
    const agent = await world.working([
      `tool:setsid script -qec ${quoted(`exec sh -c ${quoted(stays("person"))}`)} /dev/null & wait`,
    ]);
    const person = await world.pidIn("person");
    const keeper = parentOf(person);
    expect(readProcess(keeper)?.name).toBe("script");
    await expectLeft(world, agent.id, {
      [person]: "has-terminal",
      [keeper]: "terminal-depends-on-it",
    });
  });

  test("a process with its own terminal, and the process at its other end", async () => {
    await using world = new StopTestHome();
    const agent = await world.working([
      `tool:${leaves(`exec script -qec ${quoted(`exec sh -c ${quoted(stays("person"))}`)} /dev/null`)}`,
    ]);
    const person = await world.pidIn("person");
    const keeper = parentOf(person);
    await expectLeft(world, agent.id, {
      [person]: "has-terminal",
      [keeper]: "terminal-depends-on-it",
    });
  });

  test("another live session below the agent, with its tools and their processes elsewhere", async () => {
    await using world = new StopTestHome();
    const inner = crypto.randomUUID();
    const tool = `${leaves(stays("server"))}; ${stays("tool")}`;
    const nested = `exec ${world.linkAs("demo-agent", binary)} --session-id ${inner} prompt:y ${quoted(`tool:${tool}`)}`;
    const agent = await world.working([`tool:setsid sh -c ${quoted(nested)} & wait`]);
    const pids = [await world.pidIn("tool"), await world.pidIn("server")] as const;
    const { process: owner } = await world.until(inner, "working");
    const has = "has-session";
    await expectLeft(world, agent.id, {
      [owner?.pid ?? 0]: has,
      [pids[0]]: "below-spared-process",
      ...(await isMarkedOnlyInside(pids[1], inner)),
    });
  });

  /** The inner agent overwrote the mark of the outer one: nothing leads from that to the server. */
  async function isMarkedOnlyInside(pid: number, session: string): Promise<Record<number, string>> {
    expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toContain(`DEMO_AGENT_SESSION=${session}\0`);
    return {};
  }
});

describe("a session inside another session", () => {
  test("is named even if only the process tree leads to it", async () => {
    await using world = new StopTestHome();
    const inner = crypto.randomUUID();
    const nested = `env -u DEMO_AGENT_SESSION setsid ${binary} demo-agent --session-id ${inner} prompt:y work:600 & wait`;
    const agent = await world.working([`tool:${nested}`]);
    const { process: owner } = await world.until(inner, "working");
    const why = `it has the session ${inner}`;
    expect((await world.stopJson(agent.id)).leftovers).toMatchObject([{ pid: owner?.pid ?? 0, why }]);
    expect(isAlive(owner?.pid ?? 0)).toBe(true);
  });

  test("is left if a shell became an agent during the stop of the outer session", async () => {
    await using world = new StopTestHome();
    const [outer, inner] = [world.record([{ type: "prompt", text: "x" }]), crypto.randomUUID()];
    const nested = `while [ ! -e interrupted ]; do sleep 0.01; done; exec ${binary} demo-agent --session-id ${inner} prompt:y work:600`;
    const shell = `setsid sh -c ${quoted(`${says("shell")}; ${nested}`)} &`;
    // Ends only when the inner one has begun.
    const begun = join(world.home, "sessions", `${inner}.jsonl`);
    const ends = `trap ': >interrupted' INT; until [ -e ${quoted(begun)} ]; do sleep 0.01; done`;
    const agent = world.begin([world.linkAs("demo-agent", "/bin/sh"), "-c", `${shell} ${ends}`]);
    const pid = await world.pidIn("shell");
    world.announce(outer, agent.pid);
    const { ended, leftovers } = await world.stopJson(outer);
    expect([ended[0], ended.includes(pid)]).toEqual([agent.pid, false]);
    expect(leftovers).toMatchObject([{ pid, why: `it has the session ${inner}` }]);
    expect(await world.until(inner, "working")).toMatchObject({ process: { pid } });
  });

  test("is ended with its own tools; the outer session and its tools stay", async () => {
    await using world = new StopTestHome();
    const inner = crypto.randomUUID();
    const own = `${leaves(stays("inner-server"))}; setsid sh -c ${quoted(stays("inner-tool"))} & wait`;
    const nested = `${world.linkAs("demo-agent", binary)} --session-id ${inner} prompt:y ${quoted(`tool:${own}`)}`;
    const outer = await world.launched(`x\ntool:${leaves(stays("outer-server"))}; setsid ${nested} & wait\nwork:600`);
    const mine = [await world.pidIn("inner-tool"), await world.pidIn("inner-server")];
    const server = await world.pidIn("outer-server");
    const owner = (await world.until(inner, "working")).process?.pid ?? 0;
    const outerPid = (await world.row(outer)).process?.pid ?? 0;
    const answer = await world.stopJson(inner);
    expect(answer).toMatchObject({ outcome: "interrupted", leftovers: [] });
    expect([...answer.ended].sort()).toEqual([owner, ...mine].sort());
    expect(alive(outerPid, server)).toEqual([true, true]);
    // And then the outer one with what the inner one had no business with.
    expect((await world.stopJson(outer)).ended).toContain(server);
    await world.untilAlone();
  });

  test("keeps its server, even if the server carries the tag of the outer session", async () => {
    await using world = new StopTestHome();
    const inner = crypto.randomUUID();
    const own = `${leaves(stays("server"))}; exec sleep 600`;
    const nested = `setsid ${world.linkAs("demo-agent", binary)} --session-id ${inner} prompt:y ${quoted(`tool:${own}`)} & wait`;
    const outer = await world.launched(`x\ntool:${nested}\nwork:600`);
    const server = await world.pidIn("server");
    const owner = (await world.until(inner, "working")).process?.pid ?? 0;
    const { leftovers } = await world.stopJson(outer);
    expect(leftovers).toContainEqual(
      expect.objectContaining({ pid: server, why: `a tool of the live session ${inner}` }),
    );
    expect(leftovers).toContainEqual(expect.objectContaining({ pid: owner, why: `it has the session ${inner}` }));
    expect(alive(server, owner)).toEqual([true, true]);
  });
});

describe("stop never signals a wrong process", () => {
  test.each([
    ["another program", () => ["sleep", "600"]],
    ["another agent", () => [binary, "demo-agent", "--session-id", crypto.randomUUID(), "prompt:y", "work:600"]],
  ])("D5: %s with the pid of a dead agent that had announced itself", async (_name, command) => {
    await using world = new StopTestHome();
    const agent = await world.working();
    await agent.end("SIGKILL");
    await ticksLater();
    const victim = await spawnAt(agent.pid, command(), world);
    for (const flags of [[], ["--now", "--leftovers", "-y"]])
      expect(await world.stopJson(agent.id, ...flags)).toMatchObject({ state: "stopped", ended: [], leftovers: [] });
    expect([victim.exitCode, isAlive(victim.pid)]).toEqual([null, true]);
  });

  test("D5: a process that gets the pid between the scan and the signal", async () => {
    await using world = new StopTestHome();
    const first = Bun.spawn(["sleep", "600"], { env: world.env });
    const seen = readProcess(first.pid)?.identity ?? { pid: 0, start: "", boot: "" };
    first.kill("SIGKILL");
    await first.exited;
    await ticksLater();
    const victim = await spawnAt(first.pid, ["sleep", "600"], world);
    expect(startOf(victim.pid)).not.toBe(seen.start);
    expect(signalProcess(seen, "SIGKILL")).toBe(false);
    expect(await endProcesses([{ process: seen, steps: [{ signal: "SIGKILL", patienceMs: 0 }] }])).toEqual({
      ended: [{ process: seen, by: null }],
      survivors: [],
    });
    expect(signalProcess({ ...seen, start: startOf(victim.pid), boot: "another boot" }, "SIGKILL")).toBe(false);
    expect(isAlive(victim.pid)).toBe(true);
    expect(signalProcess({ ...seen, start: startOf(victim.pid) }, "SIGKILL")).toBe(true);
    await victim.exited;
  });

  test("D5: a process that gets the pid while stop waits for the owner's exit", async () => {
    await using world = new StopTestHome();
    const deaf = Bun.spawn(["sh", "-c", "trap '' INT; echo; exec sleep 600"], { env: world.env, stdout: "pipe" });
    await deaf.stdout.getReader().read();
    const seen = readProcess(deaf.pid)?.identity ?? { pid: 0, start: "", boot: "" };
    const ending = endProcesses([
      {
        process: seen,
        steps: [
          { signal: "SIGINT", patienceMs: 60_000 },
          { signal: "SIGKILL", patienceMs: 0 },
        ],
      },
    ]);
    await ticksLater();
    deaf.kill("SIGTERM");
    await deaf.exited;
    const victim = await spawnAt(deaf.pid, ["sleep", "600"], world);
    expect(await ending).toEqual({ ended: [{ process: seen, by: "SIGINT" }], survivors: [] });
    expect(isAlive(victim.pid)).toBe(true);
  });

  test("D1, D2, S12: a process whose arguments only mention agentctl, a daemon or the session", async () => {
    await using world = new StopTestHome();
    const agent = await world.working();
    const words = ["agentctl", "daemon", "demo-agent", agent.id, `demo:${agent.id}`];
    const named = (name: string) => world.linkAs(name, "/bin/sleep");
    const bystanders = [
      world.begin(["/bin/sh", "-c", "sleep 600; :", ...words]),
      world.begin([named("vim"), "600", "0"], { env: { NOTES: `AGENTCTL_TAG_SESSION=demo:${agent.id}` } }),
      world.begin([named("agentctl"), "600"], { env: { AGENTCTL_TAG_SESSION: `demo:${agent.id}0` } }),
      world.begin([named("notes-on-agentctl-daemon"), "600"], { env: { DEMO_AGENT_SESSION: agent.id.slice(0, 8) } }),
    ];
    await waitFor("all of them", () => bystanders.every(({ pid }) => isAlive(pid)));
    const answer = await world.stopJson(agent.id, "--now", "--leftovers");
    expect(answer).toMatchObject({ ended: [agent.pid], leftovers: [] });
    expect(bystanders.map(({ pid }) => isAlive(pid))).toEqual([true, true, true, true]);
  });
});

describe("a process that does not end", () => {
  test("is reported with its state after every signal was tried", async () => {
    await using world = new StopTestHome();
    const deaf = Bun.spawn(["sh", "-c", "trap '' TERM; echo; exec sleep 600"], { env: world.env, stdout: "pipe" });
    await deaf.stdout.getReader().read();
    const row = readProcess(deaf.pid);
    if (row === null) throw new Error("it is gone");
    const outcome = await endProcesses([{ process: row.identity, steps: [{ signal: "SIGTERM", patienceMs: 20 }] }]);
    expect(outcome).toMatchObject({
      ended: [],
      survivors: [{ row: { identity: row.identity }, why: { code: "did-not-exit", state: "S" } }],
    });
  });

  const uids = Number(/^\s*0\s+\d+\s+(\d+)/m.exec(readFileSync("/proc/self/uid_map", "utf8"))?.[1] ?? 0);
  // Needs a second user: as root outside of a user namespace of one.
  test.if(process.getuid?.() === 0 && uids > 65534)(
    "that we may not signal is reported with exit 6, and the rest is ended",
    async () => {
      await using world = new StopTestHome();
      const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
      const sudo = join(world.root, "sudo");
      copyFileSync(Bun.which("setpriv") ?? "/usr/bin/setpriv", sudo);
      Bun.spawnSync(["chown", "-R", "65534", world.root]);
      Bun.spawnSync(["chown", "0", sudo]);
      chmodSync(sudo, 0o4755);
      const id = crypto.randomUUID();
      const tool = `setsid sh -c ${quoted(stays("own"))} & setsid ${sudo} --reuid=0 --clear-groups sh -c ${quoted(stays("foreign"))} & wait`;
      const agent = world.begin([...nobody, binary, "demo-agent", "--session-id", id, "prompt:x", `tool:${tool}`]);
      const [own, foreign] = [await world.pidIn("own"), await world.pidIn("foreign")];
      const { code, out, err } = await world.begin([...nobody, binary, "stop", id]).answer;
      expect([code, err]).toEqual([6, ""]);
      expect(out).toContain(`is stopped: interrupted (pid ${agent.pid} by SIGINT, `);
      expect(out).toMatch(new RegExp(`pid ${own} by SIGTERM[,)]`));
      expect(out).toContain(`  left: pid ${foreign} sleep 600: not permitted to signal pid ${foreign}\n`);
      expect(alive(agent.pid, own, foreign)).toEqual([false, false, true]);
    },
  );
});
