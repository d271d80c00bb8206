// The worktree harness notices the loss of every kind of work that it creates: here a removal by force loses each of them.
import { afterAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Dice } from "../truth/random.ts";
import { clearHook, drawDeed, readJournal } from "./disturbance.ts";
import { lossesBetween, lossesOfJournal } from "./find-losses.ts";
import { takeInventory } from "./inventory.ts";
import { type Choices, contents } from "./random-work.ts";
import { type Site, Templates, TestRepository } from "./test-repository.ts";
import { troubles } from "./unreadable-worktrees.ts";

const base = mkdtempSync(join(tmpdir(), "agentctl-oracle-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
const templates = new Templates(base);
let count = 0;

/** The work of these is also held outside of the worktree. */
const elsewhere = new Set(["commits, pushed", "commits, merged", "stash", "bisect"]);
/** Removing these loses nothing that counts as work. */
const noWork = new Set(["ignored files", "ignored link to the main worktree", "removed by hand", "locked"]);

interface Played extends Disposable {
  world: TestRepository;
  site: Site;
}

/** A repository with one worktree, and one thing in it. */
function play(choices: Choices, name: string): Played {
  const world = new TestRepository(join(base, String(count++)), "");
  templates.fill(world, name.includes("submodule") ? "modules" : "plain", "repo");
  const site: Site = { path: join(world.folder, "w"), name: "w", branch: "agentctl/w", state: "plain" };
  world.git(world.repository, "worktree", "add", "-q", "-b", "agentctl/w", site.path);
  world.sites.push(site);
  const isDone = choices[name]?.[1]({ world, site, dice: new Dice(1), templates });
  if (isDone !== true) throw new Error(`"${name}" could not be played`);
  for (const work of world.hiddenWork) work.drop();
  return { world, site, [Symbol.dispose]: () => world.end() };
}

/** What a careless program does. */
function removeByForce({ world }: Played): void {
  for (const { path } of world.sites)
    if (existsSync(join(path, ".git"))) rmSync(path, { recursive: true, force: true });
  world.git(world.repository, "worktree", "prune", "--expire=now");
  for (const { branch } of world.sites) world.tryGit(world.repository, ["branch", "-D", String(branch)]);
}

const cases = (choices: Choices): [name: string, choices: Choices][] =>
  Object.keys(choices).map((name) => [name, choices]);

describe("a worktree that is removed by force loses", () => {
  const all = [...cases(contents), ...cases(troubles)].filter(([name]) => !elsewhere.has(name) && !noWork.has(name));
  test.each(all)("%s", (name, choices) => {
    using played = play(choices, name);
    const before = takeInventory(played.world);
    expect(lossesBetween(before, takeInventory(played.world))).toEqual([]);
    removeByForce(played);
    expect(lossesBetween(before, takeInventory(played.world))).not.toEqual([]);
  });
});

describe("a worktree that is removed by force loses no work with", () => {
  test.each([...elsewhere, ...noWork])("%s", (name) => {
    using played = play(name in contents ? contents : troubles, name);
    const before = takeInventory(played.world);
    removeByForce(played);
    const { code } = played.world.tryGit(played.world.repository, ["worktree", "list"]);
    expect([code, lossesBetween(before, takeInventory(played.world))]).toEqual([0, []]);
  });
});

test("the loss of a discarded worktree is no loss, but the loss of a repository inside it is one", () => {
  using played = play(contents, "ignored nested repository");
  const { world, site } = played;
  world.write(join(site.path, "new"), "untracked file");
  const before = takeInventory(world, site.path);
  removeByForce(played);
  const kinds = lossesBetween(before, takeInventory(world)).map(({ kind }) => kind);
  expect(kinds).not.toContain("untracked file");
  expect(kinds).not.toEqual([]);
});

test("a person's change during a command is made and noted, also at odd paths", () => {
  const world = new TestRepository(join(base, String(count++)), "");
  templates.fill(world, "plain", "-ö'\"$x\n");
  clearHook(world);
  const path = join(world.folder, "w'\n$(x)");
  world.git(world.repository, "worktree", "add", "-q", "-b", "agentctl/w", path);
  const deeds = new Set<string>();
  for (let seed = 0; seed < 40; seed += 1) {
    const [deed, script] = drawDeed(world, path, "of a person", new Dice(seed));
    if (deeds.has(deed)) continue;
    deeds.add(deed);
    const { status, stderr } = spawnSync("sh", ["-c", script], { env: world.environment, encoding: "utf8" });
    expect([deed, status, stderr]).toEqual([deed, 0, ""]);
  }
  const journal = readJournal(world);
  expect([deeds.size, journal.commits.length, journal.files.length]).toEqual([5, 3, 2]);
  expect(lossesOfJournal(journal, takeInventory(world))).toEqual([]);
  rmSync(path, { recursive: true });
  expect(lossesOfJournal(journal, takeInventory(world))).not.toEqual([]);
  world.end();
});
