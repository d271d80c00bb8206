// A person's locks, beside the places that sessions are at work in.
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ActingWorld } from "./acting.ts";

const locksOf = async (world: ActingWorld): Promise<Record<string, unknown>[]> =>
  JSON.parse((await world.agentctl("lock", "list", "--json")).out) as Record<string, unknown>[];

const user = (await Bun.$`id -un`.text()).trim();

test("a locked place refuses launches, with who, until when and why; --share begins all the same; rm gives it back", async () => {
  await using world = new ActingWorld();
  const added = await world.agentctl("lock", "add", "--by", "anna", "--reason", "release in progress");
  expect(added).toMatchObject({ code: 0, err: "" });
  expect(added.out).toMatch(/is locked for 4h, until 2\d{3}-/);
  const [lock] = await locksOf(world);
  expect(lock).toMatchObject({ kind: "manual", place: world.work, by: "anna", reason: "release in progress" });
  const refused = await world.agentctl("launch", "demo", "x", "--permission", "edit");
  expect(refused).toMatchObject({ code: 5, out: "" });
  expect(refused.err).toContain(`locked by anna until ${lock?.["until"]}: release in progress`);
  const ways = "--worktree gives it a place of its own; --share begins all the same\n";
  expect(refused.err).toContain(`\n  agentctl lock list shows the lock, agentctl lock rm ends it; ${ways}`);
  expect(world.launchedAgents()).toEqual([]);
  expect((await world.agentctl("launch", "demo", "x", "--permission", "edit", "--share")).code).toBe(0);
  expect(await world.agentctl("lock", "rm")).toMatchObject({ code: 0 });
  expect(await world.agentctl("lock", "rm")).toMatchObject({ code: 3 });
  expect((await world.agentctl("launch", "demo", "x", "--permission", "edit")).code).toBe(0);
});

test("one lock per place, whatever it is called; it ends with its time, and nothing is left to clean", async () => {
  await using world = new ActingWorld();
  mkdirSync(join(world.work, ".git"));
  mkdirSync(join(world.work, "inner"));
  symlinkSync(join(world.work, "inner"), join(world.work, "link"));
  expect((await world.agentctl("lock", "add", "link", "--ttl", "2s")).code).toBe(0);
  const again = await world.agentctl("lock", "add", ".");
  expect(again).toMatchObject({ code: 5, out: "" });
  expect(again.err).toContain(`${world.work} is locked by ${user} until `);
  await Bun.sleep(2_100);
  expect(await locksOf(world)).toEqual([]);
  expect((await world.agentctl("lock", "add", "inner", "--json")).code).toBe(0);
  expect(readdirSync(join(world.env["AGENTCTL_HOME"] ?? "", "locks"))).toHaveLength(1);
});

test("list says whose it is and how long it has left, where nobody set USER, too; who is not there is not locked", async () => {
  await using world = new ActingWorld();
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

test("of twenty at once one gets the place", async () => {
  await using world = new ActingWorld();
  const all = await Promise.all(Array.from({ length: 20 }, () => world.agentctl("lock", "add")));
  expect(all.map(({ code }) => code).sort()).toEqual([0, ...Array.from({ length: 19 }, () => 5)]);
});

test("list shows the places of sessions at work as well, marked; stopped and idle ones take none", async () => {
  await using world = new ActingWorld();
  const id = await world.launched("work:600");
  expect(await locksOf(world)).toMatchObject([{ kind: "derived", place: world.work, by: `demo ${id}`, until: null }]);
  expect((await world.agentctl("lock", "list")).out).toContain("session");
  await world.agentctl("stop", id);
  expect(await locksOf(world)).toEqual([]);
  expect((await world.agentctl("lock")).out).toBe("no place is taken\n");
});

test("rm says what is true: unlocked, and which sessions are there", async () => {
  await using world = new ActingWorld();
  const place = "~/work";
  await world.agentctl("lock", "add");
  expect(await world.agentctl("lock", "rm")).toEqual({ code: 0, out: `${place} is unlocked\n`, err: "" });
  const id = await world.launched("work:600");
  const { pid } = await world.oneAgent();
  await world.agentctl("lock", "add");
  const busy = await world.agentctl("lock", "rm");
  expect(busy.out).toStartWith(`${place} is unlocked, but not free: demo ${id} is working there since `);
  expect(busy.out).toContain(`(pid ${pid} on `);
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
    `${place} is unlocked; demo ${idle.id} is idle there since `,
  );
});

test("a broken lock file is said, and keeps nobody out", async () => {
  await using world = new ActingWorld();
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
])("%j is a mistake", async (args) => {
  await using world = new ActingWorld();
  expect(await world.agentctl(...args)).toMatchObject({ code: 2, out: "" });
});
