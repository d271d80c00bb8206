// agentctl du and prune: show and remove agentctl's own files, except for those of live sessions.
import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LaunchTestHome } from "./test-home-launch.ts";

const launches = (world: LaunchTestHome): string[] => readdirSync(join(world.env["AGENTCTL_HOME"] ?? "", "launches"));
const ofKind = async (world: LaunchTestHome, what: string) =>
  (JSON.parse((await world.agentctl("du", "--json")).out) as Record<string, unknown>[]).find(
    (each) => each["what"] === what,
  );

test("du shows notes, logs, worktrees and cache; prune asks, and keeps files of live sessions", async () => {
  await using world = new LaunchTestHome();
  const live = await world.launched("work:600");
  const over = await world.agentctl("launch", "demo", "say:x", "--permission", "edit", "--share", "--name", "done");
  await world.agentctl("wait", over.out.trim(), "--until", "stopped");
  mkdirSync(join(world.root, ".cache", "agentctl"), { recursive: true });
  writeFileSync(join(world.root, ".cache", "agentctl", "x"), "y".repeat(5000));
  expect(await ofKind(world, "notes")).toMatchObject({ count: 2, inUse: 1 });
  expect(await ofKind(world, "cache")).toMatchObject({ count: 1, bytes: expect.any(Number) });
  const asked = await world.agentctl("prune");
  expect(asked).toMatchObject({ code: 5, out: "" });
  expect(asked.err).toContain("1 launch is in use and stays");
  expect(asked.err).toContain("(done) can be deleted");
  const dry = await world.agentctl("prune", "--dry-run");
  expect(dry).toMatchObject({ code: 0, err: "" });
  expect(dry.out).toMatch(
    /^1 launch is in use and stays\nlaunch \S+ \(done\) can be deleted: .*\nthe cache can be deleted: .*\n$/,
  );
  expect(launches(world).filter((name) => name.endsWith(".json"))).toHaveLength(2);
  const states = async () => (await world.list()).sessions.map(({ id, status }) => [id, status]);
  const before = await states();
  expect(await world.agentctl("prune", "-y")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^deleted /),
  });
  expect(launches(world)).toEqual([expect.stringMatching(/\.json$/)]);
  expect(existsSync(join(world.root, ".cache", "agentctl"))).toBe(false);
  expect(await states()).toEqual(before);
  expect(await world.row(live)).toMatchObject({ status: "working", launch: { id: expect.any(String) } });
  expect((await world.agentctl("prune", "-y")).out).toBe("nothing to delete\n");
});

test("the next launch removes files of sessions that ended thirty days ago, and none of live sessions", async () => {
  await using world = new LaunchTestHome();
  const live = await world.launched("work:600");
  const over = await world.agentctl("launch", "demo", "say:x", "--permission", "edit", "--share");
  await world.agentctl("wait", over.out.trim(), "--until", "stopped");
  const home = world.env["AGENTCTL_HOME"] ?? "";
  const old = new Date(Date.now() - 31 * 24 * 3_600_000);
  for (const folder of ["launches", "logs"])
    for (const name of readdirSync(join(home, folder))) utimesSync(join(home, folder, name), old, old);
  // What a crash left behind goes as well.
  const stray = join(home, "logs", "00000000-dead-4bee-8bad-c0ffee000000.out");
  writeFileSync(stray, "");
  utimesSync(stray, old, old);
  await world.agentctl("launch", "demo", "say:y", "--permission", "edit", "--share");
  expect(existsSync(stray)).toBe(false);
  expect(launches(world).filter((name) => name.endsWith(".json"))).toHaveLength(2);
  expect(await world.row(live)).toMatchObject({ launch: { id: expect.any(String) } });
  expect(await world.row(over.out.trim())).toMatchObject({ launch: null });
});

test("a missing home is not an error", async () => {
  await using world = new LaunchTestHome();
  const id = await world.launched("work:600");
  rmSync(world.env["AGENTCTL_HOME"] ?? "", { recursive: true });
  expect(await world.row(id)).toMatchObject({ status: "working", launch: null });
  expect((await world.agentctl("du")).code).toBe(0);
  expect((await world.agentctl("prune", "-y")).out).toBe("nothing to delete\n");
});

test("an unreadable home is not called empty: exit 8", async () => {
  await using world = new LaunchTestHome();
  const home = world.env["AGENTCTL_HOME"] ?? "";
  symlinkSync(home, home);
  const du = await world.agentctl("du");
  expect([du.code, du.err]).toEqual([8, expect.stringContaining("launches: a loop of symbolic links")]);
  expect(du.out).toMatch(/^notes +\? +\? /m);
  expect(await ofKind(world, "logs")).toMatchObject({ count: null, inUse: null, bytes: null });
  expect(await ofKind(world, "worktrees")).toMatchObject({ where: "?", count: null });
  for (const words of [["-y"], ["--dry-run"]]) {
    const { code, out, err } = await world.agentctl("prune", ...words);
    expect([code, out, err]).toEqual([8, "", expect.stringContaining("a loop of symbolic links")]);
  }
});
