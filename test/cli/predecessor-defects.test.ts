// Defects of the predecessor, one test per case; the D numbers are those of the list of measured defects.
import { expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { binary, TestHome } from "./test-home.ts";

const done = [
  { type: "prompt", text: "do it" },
  { type: "end", outcome: "completed" },
];
const stateOf = (pid: number): string => {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
};

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await what())) {
    if (Date.now() > end) throw new Error("the sign did not come");
    await Bun.sleep(2);
  }
}

test("D8, D9, D22: agents started by hand are listed once, under their own id", async () => {
  await using world = new TestHome();
  const agents = [1, 2, 3].map(() => world.start(["prompt:x", "work:60"]));
  for (const agent of agents) await world.until(agent.id, "working");
  const { sessions } = await world.list();
  expect(sessions.map(({ id }) => id).sort()).toEqual(agents.map(({ id }) => id).sort());
});

test("D7, D15: several sessions in one directory have one process each", async () => {
  await using world = new TestHome();
  const cwd = world.folder("shared");
  const finished = world.record(done);
  const [first, second] = [
    world.start(["prompt:x", "work:60"], { cwd }),
    world.start(["prompt:y", "end", "idle"], { cwd }),
  ];
  await world.until(first.id, "working");
  await world.until(second.id, "idle");
  const rows = new Map((await world.list()).sessions.map((row) => [row.id, row]));
  expect(rows.get(first.id)?.process?.pid).toBe(first.pid);
  expect(rows.get(second.id)?.process?.pid).toBe(second.pid);
  expect(rows.get(finished)).toMatchObject({ state: "stopped", outcome: "completed", process: null });
});

test("D10: a finished session is not running", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:quick", "say:done", "end"]);
  await world.until(agent.id, "completed");
});

test("D11: a killed session is cut off at once, not half a minute later", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:x", "work:60"]);
  await world.until(agent.id, "working");
  await agent.end("SIGKILL");
  expect((await world.list()).sessions).toMatchObject([
    { id: agent.id, state: "stopped", outcome: "cut-off", process: null },
  ]);
});

test("D17: a zombie is dead", async () => {
  await using world = new TestHome();
  const id = crypto.randomUUID();
  const script = `"$1" demo-agent --session-id "$2" prompt:x work:60 & echo $!; exec sleep 60`;
  const parent = Bun.spawn(["/bin/sh", "-c", script, "sh", binary, id], { env: world.env, stdout: "pipe" });
  try {
    const pid = Number(new TextDecoder().decode((await parent.stdout.getReader().read()).value));
    await world.until(id, "working");
    process.kill(pid, "SIGKILL");
    await until(() => stateOf(pid) === "Z");
    expect((await world.list()).sessions).toMatchObject([{ id, state: "stopped", outcome: "cut-off" }]);
  } finally {
    parent.kill("SIGKILL");
    await parent.exited;
  }
});

test("D5, D16: a recycled pid does not own the session, whether another program or another agent has it", async () => {
  await using world = new TestHome();
  const agent = world.start(["prompt:x", "work:60"]);
  await world.until(agent.id, "working");
  await agent.end("SIGKILL");
  await Bun.sleep(50); // two clock ticks at least: within one, identities are equal (rule 12)
  const stranger = await spawnAt(agent.pid, ["sleep", "60"], world);
  try {
    expect((await world.list()).sessions).toMatchObject([{ id: agent.id, state: "stopped", outcome: "cut-off" }]);
  } finally {
    stranger.kill("SIGKILL");
    await stranger.exited;
  }
  await Bun.sleep(50);
  const id = crypto.randomUUID();
  const other = await spawnAt(agent.pid, [binary, "demo-agent", "--session-id", id, "prompt:y", "work:60"], world);
  try {
    await world.until(id, "working");
    const rows = new Map((await world.list()).sessions.map((row) => [row.id, row]));
    expect(rows.get(id)?.process?.pid).toBe(agent.pid);
    expect(rows.get(agent.id)).toMatchObject({ state: "stopped", outcome: "cut-off" });
  } finally {
    other.kill("SIGKILL");
    await other.exited;
  }
});

/** The kernel gives the next pid after `ns_last_pid`; threads take pids too, so it may need several tries. */
async function spawnAt(pid: number, command: string[], world: TestHome): Promise<Bun.Subprocess> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    writeFileSync("/proc/sys/kernel/ns_last_pid", String(pid - 1));
    const child = Bun.spawn(command, { env: world.env, stdio: ["ignore", "ignore", "ignore"], cwd: world.root });
    if (child.pid === pid) return child;
    child.kill("SIGKILL");
    await child.exited;
  }
  throw new Error(`pid ${pid} could not be had again`);
}

test("D19, D20, D21: a bad file affects its own row; a store that is not a folder is a problem; garbage is not a session", async () => {
  await using world = new TestHome();
  const good = world.record(done);
  const folder = join(world.home, "sessions");
  writeFileSync(join(folder, "not-a-session.jsonl"), "{}\n");
  writeFileSync(
    join(folder, "22222222-2222-4222-8222-222222222222.jsonl"),
    crypto.getRandomValues(new Uint8Array(60_000)),
  );
  const { sessions } = await world.list();
  expect(sessions.map(({ id, state }) => [id, state]).sort()).toEqual(
    [
      [good, "stopped"],
      ["22222222-2222-4222-8222-222222222222", "unknown"],
    ].sort(),
  );
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "");
  expect((await world.list()).complete).toBe(false);
});

test("D25: an agent is recognized by path, by link, and with any arguments", async () => {
  await using world = new TestHome();
  const link = join(world.root, "demo-agent");
  Bun.spawnSync(["ln", "-s", binary, link]);
  const child = Bun.spawn([link, "prompt:no arguments that name a session", "work:60"], {
    env: world.env,
    stdin: "ignore",
    cwd: world.root,
  });
  try {
    await until(async () =>
      (await world.list()).sessions.some((row) => row.status === "working" && row.process?.pid === child.pid),
    );
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
});

test("if the folder of announcements is unreadable, no session is called stopped", async () => {
  await using world = new TestHome();
  const id = world.record(done);
  writeFileSync(join(world.home, "live"), "not a folder");
  expect((await world.list()).sessions).toMatchObject([{ id, state: "unknown" }]);
});
