// Cases in which list must answer unknown, because the facts do not prove more.
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, type Listed, TestHome } from "./test-home.ts";

const done = [
  { type: "prompt", text: "do it" },
  { type: "end", outcome: "completed" },
];

/** The silent agent writes its record; only then is there something to be wrong about. */
const working = async (world: TestHome): Promise<Listed> => {
  const end = Date.now() + 10_000;
  for (;;) {
    const row = (await world.list()).sessions.find(({ status }) => status === "working" || status === "unknown");
    if (row !== undefined) return row;
    if (Date.now() > end) throw new Error("the agent did not start");
  }
};

describe("a live agent that names no session", () => {
  const silent = ["--no-announce", "prompt:x", "work:60"];
  const spawn = (world: TestHome, cwd: string, before: string[] = []): Bun.Subprocess =>
    Bun.spawn([...before, binary, "demo-agent", ...silent], { env: world.env, cwd, stdin: "ignore" });

  test.each(["moved", "removed"])("is not called stopped when its directory was %s", async (what) => {
    await using world = new TestHome();
    const directory = world.folder("d");
    const agent = spawn(world, directory);
    try {
      await working(world);
      if (what === "moved") renameSync(directory, join(world.root, "elsewhere"));
      else rmdirSync(directory);
      const recorded = (await world.list()).sessions.find(({ id }) => id !== null);
      expect(recorded?.state).toBe(what === "moved" ? "unknown" : "running");
    } finally {
      agent.kill("SIGKILL");
      await agent.exited;
    }
  });

  test("is not called stopped in another mount namespace", async () => {
    await using world = new TestHome();
    const agent = spawn(world, world.folder("d"), ["unshare", "--mount"]);
    try {
      const row = await working(world);
      expect([row.id === null, row.state]).toEqual([false, "unknown"]);
    } finally {
      agent.kill("SIGKILL");
      await agent.exited;
    }
  });

  test("of another user is running if its arguments name the session, and unknown otherwise", async () => {
    await using world = new TestHome();
    for (const folder of [world.root, world.folder("d"), world.folder("demo-home")]) chmodSync(folder, 0o777);
    const id = crypto.randomUUID();
    const other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    const named = Bun.spawn([...other, binary, "demo-agent", "--session-id", id, ...silent], {
      env: world.env,
      cwd: world.folder("d"),
      stdin: "ignore",
    });
    const nameless = spawn(world, world.folder("d"), other);
    try {
      await world.until(id, "working");
      const end = Date.now() + 10_000;
      for (let states = ""; states !== "running unknown"; ) {
        if (Date.now() > end) throw new Error(`the states are ${states}`);
        states = (await world.list()).sessions
          .filter((row) => row.id !== null)
          .map(({ state }) => state)
          .sort()
          .join(" ");
      }
    } finally {
      for (const agent of [named, nameless]) agent.kill("SIGKILL");
      await Promise.all([named.exited, nameless.exited]);
    }
  });
});

describe("a record with a nonsense directory", () => {
  test.each([["/etc/passwd/x"], [`/${"x/".repeat(3000)}`], ["a\u0000b"], ["."], [""], ["/a\u0000b"]])(
    "%p hides only the directory",
    async (cwd) => {
      await using world = new TestHome();
      const id = world.record(done);
      const text = [{ type: "session", version: 1, id, cwd, at: new Date().toISOString() }, ...done];
      writeFileSync(
        join(world.home, "sessions", `${id}.jsonl`),
        text.map((line) => `${JSON.stringify(line)}\n`).join(""),
      );
      expect((await world.run(["list", "-a", "--cwd", world.root])).code).toBe(0);
      expect((await world.run(["status", "."])).code).toBe(3);
      expect((await world.run(["status", id])).code).toBe(0);
    },
  );
});

test.skipIf(!existsSync("/dev/fuse") || process.getuid?.() !== 0)(
  "a home on a file system that hangs delays list by two seconds and makes only its own rows unknown",
  async () => {
    await using world = new TestHome();
    const id = world.record(done);
    const mount = world.folder("mount");
    const config = join(world.folder(".config", "agentctl"), "config.json");
    writeFileSync(config, JSON.stringify({ homes: { demo: [join(mount, "home")] } }));
    const script = `exec 9<>/dev/fuse
      mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hang "$2" || exit 99
      timeout -s KILL 20 "$1" list -a --json; timeout -s KILL 20 "$1" adapters >/dev/null; echo $?`;
    const child = Bun.spawn(["unshare", "--mount", "sh", "-c", script, "sh", binary, mount], {
      env: world.env,
      stdout: "pipe",
      stderr: "pipe",
    });
    const [list = "", adapters] = (await child.stdout.text()).split("\n");
    const { complete, sessions, problems } = JSON.parse(list);
    expect([complete, problems.map(({ code }: { code: string }) => code), adapters]).toEqual([
      false,
      ["store-slow"],
      "0",
    ]);
    expect(sessions.map((row: Listed) => [row.id, row.state])).toEqual([[id, "stopped"]]);
  },
);

test("without HOME the home from the user database is used", async () => {
  await using world = new TestHome();
  const child = Bun.spawn([binary, "adapters", "--json"], {
    env: { PATH: "/usr/bin:/bin" },
    stdout: "pipe",
    cwd: world.root,
  });
  const facts: { homes: { path: string }[] }[] = await child.stdout.json();
  for (const { homes } of facts) expect(homes[0]?.path).toStartWith("/");
});

test("an unreadable file is not called absent", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:x", "work:60"]);
  await world.until(agent.id, "working");
  rmSync(join(world.home, "sessions"), { recursive: true });
  writeFileSync(join(world.home, "sessions"), "");
  expect((await world.json<Listed>("status", agent.id)).reasonCode).toBe("store-incomplete");
  rmSync(join(world.home, "live"), { recursive: true });
  writeFileSync(join(world.home, "live"), "");
  const nameless = (await world.list()).sessions.filter(({ link }) => link === null);
  for (const row of nameless) expect(row.reasonCode).toBe("announcement-unreadable");
  const { out, code } = await world.run(["doctor"]);
  expect(code).toBe(8);
  for (const folder of ["sessions", "live"]) expect(out).toContain(`demo-home/${folder}`);
});

test.each([
  ['{"homes":{"demo":"/x"}}', "must be a list of directories"],
  ['{"homes":[]}', "must be an object"],
  ['{"homes":{"demo":["relative"]}}', "not an absolute path"],
  ['{"homes":{"demo":[""]}}', "not an absolute path"],
  ["[]", "not a JSON object"],
])("the configuration %s is refused with a message", async (text, message) => {
  await using world = new TestHome();
  writeFileSync(join(world.folder(".config", "agentctl"), "config.json"), text);
  const { out, err } = await world.run(["list", "--json"]);
  expect(err).toContain(message);
  expect(JSON.parse(out).complete).toBe(false);
});

test("escape sequences in folder names reach neither a terminal nor JSON", async () => {
  await using world = new TestHome();
  const home = join(world.root, "\x1b[31mred\x1b]0;owned\x07");
  const cwd = join(world.root, "line\nbreak\x1b[2J");
  mkdirSync(cwd, { recursive: true });
  for (const id of ["0193b3a1-0000-7000-8000-000000000001", "0193b3a1-0000-7000-8000-000000000002"]) {
    world.record(done, id, home);
    const header = { type: "session", version: 1, id, cwd, at: new Date().toISOString() };
    writeFileSync(join(home, "sessions", `${id}.jsonl`), `${JSON.stringify(header)}\n`);
  }
  const env = { DEMO_AGENT_HOME: home };
  const commands = [
    [],
    ["list", "-a"],
    ["list", "-a", "--json"],
    ["status", "0193b3a1"],
    ["adapters"],
    ["adapters", "--json"],
    ["doctor"],
    ["doctor", "--json"],
  ];
  for (const args of commands) {
    const { out, err } = await world.run(args, { env });
    expect([args, /[\x00-\x08\x0b-\x1f\x7f-\x9f]|\\u001b|\\u0007/.test(out + err)]).toEqual([args, false]);
  }
  expect((await world.run(["status", "0193b3a1"], { env })).err.split("\n")).toHaveLength(6);
});

test("AGENTCTL_HOME that is a file is reported, without harmful advice", async () => {
  await using world = new TestHome();
  const file = join(world.root, "file");
  writeFileSync(file, "");
  const { out } = await world.run(["doctor"], { env: { AGENTCTL_HOME: file } });
  expect(out).toContain("is not a folder");
  expect(out).not.toContain("chmod");
});

test("a full disk is one message with its exit code", async () => {
  await using world = new TestHome();
  const child = Bun.spawn(
    [
      "/bin/sh",
      "-c",
      `"$1" list >/dev/full; echo $?; "$1" --version >/dev/full; echo $?; "$1" status nope 2>/dev/full; echo $?`,
      "sh",
      binary,
    ],
    {
      env: world.env,
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  expect(await child.stdout.text()).toBe("1\n1\n3\n");
  expect(await child.stderr.text()).toMatch(/^(agentctl: the answer could not be written: .*\n){2}$/);
});
