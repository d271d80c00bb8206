// Random repositories: a main worktree, linked ones in agentctl's folder and elsewhere, and work in every corner of them.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Dice } from "../truth/random.ts";
import { contents, drawFrom } from "./random-work.ts";
import { drawTemplate, GitFailed, type Site, type Templates, type TestRepository } from "./test-repository.ts";
import { troubles } from "./unreadable-worktrees.ts";

export function drawWorld(world: TestRepository, templates: Templates, dice: Dice): void {
  const kind = drawTemplate(dice);
  templates.fill(world, kind, dice.pick(["repo", "repo", "my repo", "re\npo", "-ö'\"$x"]));
  world.tell(`repository: ${kind}`);
  drawSettings(world, dice);
  if (kind !== "bare") drawMain(world, dice);
  const count = 1 + dice.below(4);
  for (let number = 1; number <= count; number += 1) {
    const site = addSite(world, number, dice);
    // Many worktrees have nothing in them: agentctl has something to remove.
    for (let left = dice.pick([0, 0, 1, 1, 2]); left > 0; left -= 1) {
      const [name, put] = drawFrom(contents, dice);
      if (put({ world, site, dice, templates })) world.tell(`  ${name}`);
    }
  }
  for (const site of world.sites) {
    if (site.state !== "plain" || !dice.chance(0.2)) continue;
    const [name, put] = drawFrom(troubles, dice);
    if (put({ world, site, dice, templates })) world.tell(`${site.name}: ${name}`);
  }
  for (const work of world.hiddenWork) work.drop();
}

/** Another piece of work that a person does between two acts. */
export function workOn(world: TestRepository, templates: Templates, dice: Dice): void {
  const open = world.sites.filter(({ path, state }) => state === "plain" && existsSync(join(path, ".git")));
  if (open.length === 0) return;
  const site = dice.pick(open);
  const [name, put] = drawFrom(contents, dice);
  try {
    if (put({ world, site, dice, templates })) world.tell(`${site.name}: ${name}`);
  } catch (error) {
    // A killed git may have left its lock here.
    if (!(error instanceof GitFailed)) throw error;
    world.tell(`${site.name}: ${name}, but git refuses`);
  }
}

function drawSettings(world: TestRepository, dice: Dice): void {
  if (world.kind === "bare" || !dice.chance(0.2)) return;
  const setting = dice.pick([
    ["status.showUntrackedFiles", "no"],
    ["diff.ignoreSubmodules", "all"],
    ["core.untrackedCache", "true"],
    ["core.logAllRefUpdates", "false"],
    ["extensions.worktreeConfig", "true"],
    ["worktree.guessRemote", "true"],
  ]);
  world.git(world.repository, "config", ...setting);
  world.tell(`setting: ${setting.join("=")}`);
}

function drawMain(world: TestRepository, dice: Dice): void {
  const { repository } = world;
  const how = dice.pick(["main", "main", "ahead", "topic", "detached", "detached"]);
  if (how === "topic") world.git(repository, "checkout", "-q", "-b", "main-topic");
  if (how === "detached") world.git(repository, "checkout", "-q", "--detach");
  if (how !== "main")
    world.commit(repository, how === "detached" ? "commit of a detached main worktree" : "commit of main");
  if (how === "ahead" && world.kind !== "alone" && dice.chance(0.5))
    world.git(repository, "push", "-q", "origin", "main");
  if (dice.chance(0.2)) world.write(join(repository, "new-in-main"), "untracked file in the main worktree");
  if (dice.chance(0.2)) {
    world.write(join(repository, "a.txt"), "stash");
    world.git(repository, "stash", "push", "-q");
  }
  world.tell(`main worktree: ${how}`);
}

function addSite(world: TestRepository, number: number, dice: Dice): Site {
  const name = dice.pick([`w${number}`, `w${number}`, `w${number}`, `w ${number}`, `w\n${number}`, `ö'${number}`]);
  const place = dice.pick(["ours", "ours", "ours", "ours", "own disk", "elsewhere", "inside"] as const);
  const parent = {
    ours: world.folder,
    "own disk": join(world.folder, `disk-${number}`),
    elsewhere: join(world.area, "elsewhere"),
    inside: join(world.kind === "bare" ? world.area : world.repository, ".claude/worktrees"),
  }[place];
  const path = join(parent, name);
  mkdirSync(parent, { recursive: true });
  const site: Site = { path, name, branch: null, state: "plain" };
  const word = dice.pick([`w${number}`, `w${number}`, `w${number}`, `ö-'$(x)-${number}`, `deep/er/w${number}`]);
  const branch = dice.pick([`agentctl/${word}`, `agentctl/${word}`, `agentctl/${word}`, `topic/${word}`, null]);
  if (branch === null) world.git(world.repository, "worktree", "add", "-q", "--detach", path);
  else world.git(world.repository, "worktree", "add", "-q", "-b", branch, path);
  site.branch = branch;
  world.sites.push(site);
  world.tell(`${name}: ${place}, ${branch ?? "detached"}`);
  return site;
}
