// The command line itself: help, references, exit codes, and output to a closed pipe.
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { binary, type Listed, TestHome } from "./test-home.ts";
import { ServerTestHome } from "./test-home-servers.ts";

const done = [
  { type: "prompt", text: "do it" },
  { type: "end", outcome: "completed" },
];

describe("help", () => {
  test.each([["--help"], ["-h"], ["help"]])("%s lists every command", async (flag) => {
    await using world = new TestHome();
    const { code, out } = await world.run([flag]);
    expect(code).toBe(0);
    expect(out).toMatchSnapshot();
  });

  test.each(
    "list ls ps status why peek logs result launch run send resume attach interrupt stop wait diff compare name label worktree lock du prune config statusline adapters doctor demo".split(
      " ",
    ),
  )("of %s has a usage and examples", async (name) => {
    await using world = new TestHome();
    const { code, out, err } = await world.run([name, "--help"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("Usage: agentctl");
    expect(out).toContain("Examples:\n  agentctl");
    expect(await world.run(["help", name])).toEqual({ code, out, err });
  });

  test("--version is the version of the package", async () => {
    await using world = new TestHome();
    expect((await world.run(["--version"])).out).toBe(`agentctl ${version}\n`);
  });
});

describe("a usage error exits with 2 and says what to do", () => {
  test.each([
    [["lsit"], "unknown command lsit", "did you mean list?"],
    [["frobnicate"], "unknown command frobnicate", "agentctl --help"],
    [["list", "--jsn"], "unknown option --jsn", "did you mean --json?"],
    [["list", "--since"], "--since needs a value", "agentctl list --help"],
    [["list", "--json=1"], "--json takes no value", "agentctl list --help"],
    [["status"], "status needs a session", "agentctl status --help"],
    [["why", "a", "b"], "takes one session", "agentctl why --help"],
    [["launhc"], "unknown command launhc", "did you mean launch?"],
    [["list", "aux"], "unexpected argument: aux", "agentctl list --help"],
    [["doctor", "aux"], "unexpected argument: aux", "agentctl doctor --help"],
    [["rm", "3f2a"], "unknown command rm", "agentctl worktree remove"],
  ])("%p", async (args, message, hint) => {
    await using world = new TestHome();
    const { code, out, err } = await world.run(args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
    expect(err).toContain(hint);
  });
});

describe("a suggestion", () => {
  test.each(["top", "show", "sotp", "stpo", "prnue", "interupt", "prun"])(
    "for %s never destroys anything",
    async (word) => {
      await using world = new TestHome();
      const { code, err } = await world.run([word]);
      expect([code, err.match(/did you mean (stop|prune|interrupt)/)]).toEqual([2, null]);
    },
  );
});

describe("an alias", () => {
  test.each([
    [["kill"], ["stop"]],
    [["start"], ["launch"]],
    [
      ["watch", "aux"],
      ["list", "--watch", "aux"],
    ],
    [["tail"], ["logs", "--follow"]],
    [["-v"], ["--version"]],
    [
      ["worktree", "rm"],
      ["worktree", "remove"],
    ],
    [
      ["lock", "ls"],
      ["lock", "list"],
    ],
  ])("%p means %p", async (alias, args) => {
    await using world = new TestHome();
    expect(await world.run(alias)).toEqual(await world.run(args));
  });
});

describe("--json on an error", () => {
  test("prints an error object on stdout and the text on stderr", async () => {
    await using world = new TestHome();
    const { code, out, err } = await world.run(["status", "3f2a", "--json"]);
    expect([code, err]).toEqual([3, expect.stringMatching(/^agentctl: no session 3f2a\n {2}/)]);
    expect(JSON.parse(out)).toEqual({
      error: {
        ...{ code: "session-not-found", message: "no session 3f2a", hint: expect.any(String) },
        ...{ exit: 3, retryable: false, facts: { reference: "3f2a" } },
      },
    });
  });

  test("says that another try may succeed where something could not be read", async () => {
    await using world = new TestHome();
    mkdirSync(world.home);
    symlinkSync("sessions", join(world.home, "sessions"));
    const { code, out } = await world.run(["status", "3f2a", "--json"]);
    expect([code, JSON.parse(out).error]).toEqual([
      8,
      expect.objectContaining({ code: "reference-unresolved", retryable: true }),
    ]);
  });

  test("adds no second value to an answer", async () => {
    await using world = new TestHome();
    mkdirSync(world.home);
    symlinkSync("sessions", join(world.home, "sessions"));
    const { code, out } = await world.run(["list", "--strict", "--json"]);
    expect([code, JSON.parse(out).complete]).toEqual([8, false]);
  });
});

describe("a reference", () => {
  test("is an id, a unique prefix, or pid:<n>", async () => {
    await using world = new TestHome();
    const agent = world.start(["prompt:x", "work:60"]);
    const { ref } = await world.until(agent.id, "working");
    for (const reference of [agent.id, ref, agent.id.slice(0, 5), `pid:${agent.pid}`])
      expect((await world.json<Listed>("status", reference)).id).toBe(agent.id);
  });

  test("with several matches is refused with the candidates, whose ids are long enough to differ", async () => {
    await using world = new TestHome();
    const ids = ["0193b3a1-0000-7000-8000-000000000001", "0193b3a1-0000-7000-8000-000000000002"];
    for (const id of ids) world.record(done, id);
    const { code, err } = await world.run(["status", "0193b3a1"]);
    expect(code).toBe(4);
    for (const id of ids) expect(err).toContain(id);
    const refs = (await world.list()).sessions.map(({ ref }) => ref);
    for (const ref of refs) expect((await world.run(["status", ref])).code).toBe(0);
    const [exact = ""] = ids;
    expect((await world.json<Listed>("status", exact)).id).toBe(exact);
  });

  test("without a match is not found, or unknown if something could not be read", async () => {
    await using world = new TestHome();
    expect((await world.run(["status", "nobody"])).code).toBe(3);
    world.record(done);
    // An unreadable file still has a name, and the name is different.
    mkdirSync(join(world.home, "sessions", `${crypto.randomUUID()}.jsonl`));
    expect((await world.run(["status", "nobody"])).code).toBe(3);
    renameSync(join(world.home, "sessions"), join(world.home, "elsewhere"));
    symlinkSync("sessions", join(world.home, "sessions"));
    expect((await world.run(["status", "nobody"])).code).toBe(8);
    expect((await world.run(["status", ""])).code).toBe(8);
  });

  test("`.` is the session of this git worktree, and is refused if there are two", async () => {
    await using world = new TestHome();
    const repository = world.folder("repo");
    mkdirSync(join(repository, ".git"));
    const below = world.folder("repo", "deep", "er");
    const agent = world.start(["prompt:x", "work:60"], { cwd: below });
    await world.until(agent.id, "working");
    expect(JSON.parse((await world.run(["status", ".", "--json"], { cwd: repository })).out).id).toBe(agent.id);
    expect((await world.run(["status", "."], { cwd: world.folder("repository") })).code).toBe(3);
    const second = world.start(["prompt:x", "work:60"], { cwd: repository });
    await world.until(second.id, "working");
    expect((await world.run(["status", "."], { cwd: below })).code).toBe(4);
  });

  test("with several matches shows how the candidates differ", async () => {
    await using world = new ServerTestHome();
    const named = await world.past("paint the door", "--name", "painter");
    const other = world.record([{ type: "prompt", text: "count the beans" }]);
    const { code, err } = await world.run(["status", "."], { cwd: world.folder("work") });
    expect(code).toBe(4);
    const lines = err.split("\n");
    expect(lines.find((line) => line.includes(named.slice(0, 8)))).toMatch(
      / painter +demo +completed .*paint the door/,
    );
    expect(lines.find((line) => line.includes(other.slice(0, 8)))).toMatch(/ demo +cut-off .*count the beans/);
    expect(err).not.toContain("prefix");
  });

  test("`.` is the live session of this directory, or else its last one", async () => {
    await using world = new TestHome();
    const cwd = world.folder("work");
    const old = world.record([]);
    const one = async () => JSON.parse((await world.run(["status", ".", "--json"], { cwd })).out).id;
    expect(await one()).toBe(old);
    const agent = world.start(["prompt:x", "work:60"], { cwd });
    await world.until(agent.id, "working");
    // Files that are not records, and records of removed sessions, are not read.
    mkdirSync(join(world.home, "sessions", `${crypto.randomUUID()}.jsonl`));
    const { out, err } = await world.run(["status", ".", "--json"], { cwd });
    expect([JSON.parse(out).id, err]).toEqual([agent.id, ""]);
    await agent.end();
    expect((await world.run(["status", "."], { cwd })).code).toBe(4);
  });

  test("@self is the session that the command runs in, by kernel ancestry", async () => {
    await using world = new TestHome();
    const answer = join(world.root, "self.json");
    const agent = world.start(["prompt:x", `tool:${binary} status @self --json >${answer}`, "end", "idle"]);
    await world.until(agent.id, "idle");
    expect(JSON.parse(readFileSync(answer, "utf8"))).toMatchObject({ id: agent.id, activity: "working" });
    expect((await world.run(["status", "@self"])).code).toBe(3);
  });

  test("that is the name of one session and the short id of another is refused with both", async () => {
    await using world = new ServerTestHome();
    const other = world.record(done);
    const { ref } = (await world.list()).sessions[0] ?? { ref: "" };
    const named = await world.past("done", "--name", ref);
    const { code, err } = await world.run(["status", ref]);
    expect([code, err.includes(named.slice(0, 8)), err.includes(other)]).toEqual([4, true, true]);
    for (const id of [other, named]) expect((await world.json<Listed>("status", id)).id).toBe(id);
    // Names of a few letters stay names.
    const short = await world.past("done", "--name", other.slice(0, 2));
    expect((await world.json<Listed>("status", other.slice(0, 2))).id).toBe(short);
  });

  test("by name means the newest live launch; a note alone makes no row", async () => {
    await using world = new TestHome();
    const launches = world.folder(".agentctl", "launches");
    const note = (session: string, name: string, at: string) => {
      const id = crypto.randomUUID();
      const value = {
        schema: 1,
        id,
        agent: "demo",
        home: world.home,
        session,
        name,
        group: "g",
        labels: { a: "b" },
        at,
      };
      writeFileSync(join(launches, `${id}.json`), JSON.stringify(value));
      return id;
    };
    const stopped = world.record(done);
    const agent = world.start(["prompt:x", "work:60"]);
    await world.until(agent.id, "working");
    note(agent.id, "painter", "2026-01-01T00:00:00Z");
    const launch = note(stopped, "painter", "2026-01-02T00:00:00Z");
    note(crypto.randomUUID(), "ghost", "2026-01-03T00:00:00Z");
    expect((await world.json<Listed>("status", "painter")).id).toBe(agent.id);
    expect((await world.json<Listed>("status", `launch:${launch}`)).id).toBe(stopped);
    expect((await world.run(["status", "ghost"])).code).toBe(3);
    expect((await world.list("--group", "g", "--label", "a=b")).sessions).toHaveLength(2);
    expect((await world.list("--label", "a=c")).sessions).toEqual([]);
    const next = world.start(["prompt:afresh", "work:60"]);
    await world.until(next.id, "working");
    const left = world.record([...done, { type: "continued", by: next.id }]);
    const moved = note(left, "gardener", "2026-01-04T00:00:00Z");
    for (const reference of ["gardener", `launch:${moved}`, "@last"])
      expect((await world.json<Listed>("status", reference)).id).toBe(next.id);
    writeFileSync(join(launches, `${crypto.randomUUID()}.json`), "{ broken");
    const { complete, problems } = await world.list();
    expect([complete, problems.map(({ code }) => code)]).toEqual([true, ["note-unreadable"]]);
    rmSync(join(world.root, ".agentctl"), { recursive: true });
    expect((await world.run(["status", "painter"])).code).toBe(3);
    expect((await world.json<Listed>("status", agent.id)).status).toBe("working");
  });
});

describe("why", () => {
  test("names the process, the announcement and the record of a live session", async () => {
    await using world = new TestHome();
    const agent = world.start(["prompt:x", "work:60"]);
    await world.until(agent.id, "working");
    const { evidence, wouldChange } = await world.json<{
      evidence: { fact: string; source: string; rule: string }[];
      wouldChange: string[];
    }>("why", agent.id);
    expect(evidence.map(({ fact, source, rule }) => [fact, source, rule])).toEqual([
      ["process", `/proc/${agent.pid}/stat`, "R1"],
      ["link", join(world.home, "live", `${agent.pid}.json`), "R9"],
      ["turn", join(world.home, "sessions", `${agent.id}.jsonl`), "R3"],
    ]);
    expect(wouldChange[0]).toContain("stopped");
  });

  test("says that the announcement of a killed session is stale and no process has it", async () => {
    await using world = new TestHome();
    const agent = world.start(["prompt:x", "work:60"]);
    await world.until(agent.id, "working");
    await agent.end("SIGKILL");
    const { out } = await world.run(["why", agent.id]);
    expect(out).toContain("is cut-off");
    expect(out).toContain(`stale: pid ${agent.pid} is gone`);
    expect(out).toContain("processes were read; no demo process is running");
    expect(out).toContain("open: no end recorded");
    expect(existsSync(join(world.home, "live", `${agent.pid}.json`))).toBe(true);
  });
});

describe("output", () => {
  test("status --json is the row of list --tokens, with evidence", async () => {
    await using world = new TestHome();
    const id = world.record(done);
    const [row] = (await world.list("--tokens")).sessions;
    const { evidence, wouldChange, ...status } = await world.json<
      Listed & { evidence: unknown[]; wouldChange: string[] }
    >("status", id);
    expect(row).toBeDefined();
    expect(status).toEqual(row ?? status);
    expect(evidence.length).toBeGreaterThan(0);
    expect(wouldChange.length).toBeGreaterThan(0);
  });

  test("why --json is the same as status --json", async () => {
    await using world = new TestHome();
    const id = world.record(done);
    const answers = await Promise.all(
      ["status", "why"].map((command) => world.json<Listed & { evidence: { fact: string }[] }>(command, id)),
    );
    // What was seen of the processes may differ from look to look.
    const [status, why] = answers.map(({ evidence, ...row }) => ({ ...row, facts: evidence.map(({ fact }) => fact) }));
    expect(status?.status).toBe("completed");
    expect(why).toEqual(status);
  });

  test("a row has every field of the contract", async () => {
    await using world = new TestHome();
    world.record(done);
    const [row] = (await world.list()).sessions;
    const promised =
      "id ref agent home state activity outcome status reason since waiting background link process processes served tty tmux cwd branch model title prompt agentVersion permission startedAt updatedAt endedAt parent continuedBy denied tokens costUsd costSource launch";
    for (const field of promised.split(" ")) expect(row).toHaveProperty(field);
  });

  test("fits a narrow terminal, and has no color in a pipe", async () => {
    await using world = new TestHome();
    world.record([{ type: "prompt", text: "wörld 世界 ".repeat(40) }]);
    for (const columns of [30, 40, 60, 100]) {
      const { out } = await world.run(["list", "-a"], { env: { COLUMNS: String(columns) } });
      for (const line of out.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
      expect(out).toMatch(/REF +/);
      expect(out).not.toContain("\x1b");
    }
  });

  test("a closed pipe ends the command without an error", async () => {
    await using world = new TestHome();
    for (let count = 0; count < 300; count += 1) world.record([{ type: "prompt", text: "x".repeat(500) }]);
    const pipeline = `"$1" list -a --json | head -c 10 >/dev/null; "$1" list -a | head -1`;
    const child = Bun.spawn(["/bin/sh", "-c", pipeline, "sh", binary], {
      env: world.env,
      stdout: "pipe",
      stderr: "pipe",
    });
    expect(await child.stderr.text()).toBe("");
    expect(await child.stdout.text()).toStartWith("REF");
  });

  test("a removed current directory is an error with a message", async () => {
    await using world = new TestHome();
    const script = `cd "$2" && rmdir "$2" && "$1" list`;
    const args = ["/bin/sh", "-c", script, "sh", binary, world.folder("gone")];
    const child = Bun.spawn(args, { env: world.env, stdout: "pipe", stderr: "pipe" });
    expect(await child.stderr.text()).toContain("working directory was deleted");
    expect(await child.exited).toBe(1);
  });
});

test("doctor lists installed agents with their versions, tmux and git; adapters NAME shows one agent in full", async () => {
  await using world = new TestHome();
  world.record(done);
  const doctor = await world.run(["doctor"]);
  expect(doctor.code).toBe(0);
  expect(doctor.out).toContain("1 session in ~/demo-home");
  expect(doctor.out).toMatch(/^ok {2}git: \d+\.\d+.* in \//m);
  const programs = world.folder("programs", "lib", "codex", "bin");
  writeFileSync(join(programs, "codex"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(programs, "tmux"), "#!/bin/sh\necho tmux 3.4a\n", { mode: 0o755 });
  writeFileSync(join(programs, "..", "package.json"), JSON.stringify({ name: "codex", version: "0.155.0" }));
  const env = { PATH: `${programs}:/bin:/usr/bin` };
  const installed = (await world.run(["doctor"], { env })).out;
  expect(installed).toContain("ok  codex: 0.155.0 in ~/programs/lib/codex/bin/codex\n");
  expect(installed).toContain("ok  tmux: 3.4a in ~/programs/lib/codex/bin/tmux\n");
  const one = await world.run(["adapters", "codex"], { env });
  expect(one.out).toMatch(/^codex: .*\n {2}program .*\n {2}version {6}0\.155\.0 \(tested with [\s\S]*\n {2}edit /);
  expect((await world.run(["adapters"], { env })).out).toMatch(/^codex +0\.155\.0 +~\/programs/m);
  expect((await world.run(["adapters", "claude", "--json"])).out).toStartWith('{"agent":"claude-code"');
  expect((await world.run(["adapters", "nobody"])).code).toBe(3);
  const without = await world.run(["doctor"], { env: { PATH: world.folder("empty") } });
  expect([without.code, without.out]).toEqual([
    0,
    expect.stringMatching(/^ok {2}git: not in PATH\n {4}without it .*diff/m),
  ]);
  const adapters = await world.json<{ agent: string; homes: { path: string; exists: boolean }[] }[]>("adapters");
  expect(adapters.find(({ agent }) => agent === "demo")?.homes).toContainEqual({ path: world.home, exists: true });
});

test("the demo shows each status correctly and leaves nothing behind", async () => {
  await using world = new TestHome();
  const started = Date.now();
  const { code, out, err } = await world.run(["demo"], { env: { TMPDIR: world.folder("tmp") } });
  expect([code, err]).toEqual([0, ""]);
  expect(Date.now() - started).toBeLessThan(15_000);
  for (const sign of ["painter", "waiting", "May I push my fixes", "cut-off", "is gone", "Every status is the same"])
    expect(out).toContain(sign);
  expect([...new Bun.Glob("**/*").scanSync({ cwd: world.root, dot: true, onlyFiles: false })]).toEqual(["tmp"]);
  expect((await world.list()).sessions).toEqual([]);
});
