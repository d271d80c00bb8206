// agentctl lock: a person locks a directory; directories in use by sessions are listed, too.
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LaunchTestHome } from "./test-home-launch.ts";

const locksOf = async (world: LaunchTestHome): Promise<Record<string, unknown>[]> =>
  JSON.parse((await world.agentctl("lock", "list", "--json")).out) as Record<string, unknown>[];

const user = (await Bun.$`id -un`.text()).trim();

test("a locked directory refuses launches and names owner, end and reason; --share starts anyway; rm unlocks", async () => {
  await using world = new LaunchTestHome();
  const added = await world.agentctl("lock", "add", "--by", "anna", "--reason", "release in progress");
  expect(added).toMatchObject({ code: 0, err: "" });
  expect(added.out).toMatch(/is locked for 4h, until 2\d{3}-/);
  const [lock] = await locksOf(world);
  expect(lock).toMatchObject({ kind: "manual", place: world.work, by: "anna", reason: "release in progress" });
  const refused = await world.agentctl("launch", "demo", "x", "--permission", "edit");
  expect(refused).toMatchObject({ code: 5, out: "" });
  expect(refused.err).toContain(`locked by anna until ${lock?.["until"]}: release in progress`);
  const remedies = "use --worktree for a separate checkout, or --share to start anyway\n";
  expect(refused.err).toContain(`\n  agentctl lock list shows the lock, agentctl lock rm removes it; ${remedies}`);
  expect(world.launchedAgents()).toEqual([]);
  expect((await world.agentctl("launch", "demo", "x", "--permission", "edit", "--share")).code).toBe(0);
  expect(await world.agentctl("lock", "rm")).toMatchObject({ code: 0 });
  expect(await world.agentctl("lock", "rm")).toMatchObject({ code: 3 });
  expect((await world.agentctl("launch", "demo", "x", "--permission", "edit")).code).toBe(0);
});

/** As if their time had passed. */
function endAllLocks(world: LaunchTestHome): void {
  const folder = join(world.env["AGENTCTL_HOME"] ?? "", "locks");
  for (const name of readdirSync(folder)) {
    const lock = JSON.parse(readFileSync(join(folder, name), "utf8"));
    writeFileSync(join(folder, name), JSON.stringify({ ...lock, until: new Date(Date.now() - 1).toISOString() }));
  }
}

test("a directory has one lock under all its names; an expired lock has no effect and is removed", async () => {
  await using world = new LaunchTestHome();
  mkdirSync(join(world.work, ".git"));
  mkdirSync(join(world.work, "inner"));
  symlinkSync(join(world.work, "inner"), join(world.work, "link"));
  expect((await world.agentctl("lock", "add", "link", "--ttl", "1h")).code).toBe(0);
  const again = await world.agentctl("lock", "add", ".");
  expect(again).toMatchObject({ code: 5, out: "" });
  expect(again.err).toContain(`${world.work} is locked by ${user} until `);
  endAllLocks(world);
  expect(await locksOf(world)).toEqual([]);
  expect((await world.agentctl("lock", "add", "inner", "--json")).code).toBe(0);
  expect(readdirSync(join(world.env["AGENTCTL_HOME"] ?? "", "locks"))).toHaveLength(1);
});

test("list shows owner and remaining time, even without USER; a missing directory cannot be locked", async () => {
  await using world = new LaunchTestHome();
  for (const [ttl, left] of [
    ["4h", "4h"],
    ["90m", "2h"],
    ["60m", "1h"],
  ] as const) {
    expect((await world.agentctl("lock", "add", "--ttl", ttl)).code).toBe(0);
    expect((await world.agentctl("lock", "list")).out).toMatch(new RegExp(` manual +${user} +${left} left\n`));
    await world.agentctl("lock", "rm");
  }
  writeFileSync(join(world.work, "file"), "");
  for (const wrong of ["typo", "file", "file/below"]) {
    const { code, err } = await world.agentctl("lock", "add", wrong);
    expect([code, err]).toEqual([2, expect.stringContaining(`no directory ${wrong}`)]);
  }
  expect(await locksOf(world)).toEqual([]);
});

test("of twenty simultaneous locks one succeeds", async () => {
  await using world = new LaunchTestHome();
  const all = await Promise.all(Array.from({ length: 20 }, () => world.agentctl("lock", "add")));
  expect(all.map(({ code }) => code).sort()).toEqual([0, ...Array.from({ length: 19 }, () => 5)]);
});

test("list also shows directories of working sessions; stopped and idle sessions use none", async () => {
  await using world = new LaunchTestHome();
  const id = await world.launched("work:600");
  expect(await locksOf(world)).toMatchObject([{ kind: "derived", place: world.work, by: `demo ${id}`, until: null }]);
  expect((await world.agentctl("lock", "list")).out).toContain("session");
  await world.agentctl("stop", id);
  expect(await locksOf(world)).toEqual([]);
  expect((await world.agentctl("lock")).out).toBe("no directory is in use\n");
});

test("rm says that the lock is gone and which sessions still work there", async () => {
  await using world = new LaunchTestHome();
  const place = "~/work";
  await world.agentctl("lock", "add");
  expect(await world.agentctl("lock", "rm")).toEqual({ code: 0, out: `${place} is unlocked\n`, err: "" });
  const id = await world.launched("work:600");
  const { pid } = await world.oneAgent();
  await world.agentctl("lock", "add");
  const busy = await world.agentctl("lock", "rm");
  expect(busy.out).toMatch(
    new RegExp(
      `^${place} is unlocked, but not free: demo ${id.slice(0, 8)} is (starting|working) there \\(pid ${pid}\\)\n$`,
    ),
  );
  await world.agentctl("lock", "add");
  const { out } = await world.agentctl("lock", "rm", "--json");
  expect(JSON.parse(out)).toEqual({
    place: world.work,
    locked: false,
    sessions: [{ agent: "demo", id, status: "working", pid }],
  });
  await world.agentctl("stop", id);
  const idle = world.start(["prompt:x", "end", "idle"], { cwd: world.work });
  await world.until(idle.id, "idle");
  await world.agentctl("lock", "add");
  expect((await world.agentctl("lock", "rm")).out).toStartWith(
    `${place} is unlocked; demo ${idle.id.slice(0, 8)} is idle there (pid `,
  );
});

test("a broken lock file is reported and locks nothing", async () => {
  await using world = new LaunchTestHome();
  mkdirSync(join(world.env["AGENTCTL_HOME"] ?? "", "locks"), { recursive: true });
  writeFileSync(join(world.env["AGENTCTL_HOME"] ?? "", "locks", `${"0".repeat(32)}.json`), "{");
  const { code, err } = await world.agentctl("lock", "list");
  expect(code).toBe(0);
  expect(err).toContain(`${"0".repeat(32)}.json`);
  expect((await world.agentctl("launch", "demo", "x", "--permission", "edit")).code).toBe(0);
});

test.each([
  [["lock", "add", ".", "more"]],
  [["lock", "take"]],
  [["lock", "add", "--ttl", "0s"]],
  [["lock", "add", "--ttl", "soon"]],
  [["lock", "add", "--by", " "]],
  [["lock", "list", "x"]],
])("%j is a usage error", async (args) => {
  await using world = new LaunchTestHome();
  expect(await world.agentctl(...args)).toMatchObject({ code: 2, out: "" });
});
