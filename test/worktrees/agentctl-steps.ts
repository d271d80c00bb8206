// Runs one command of agentctl, perhaps with a disturbance, and finds everything that is wrong with the repository afterwards.
import { existsSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Dice } from "../truth/random.ts";
import { clearHook, drawDeed, drawDisturbance, gitCalls, quoted, readJournal } from "./disturbance.ts";
import { type Loss, lossesBetween, lossesOfJournal } from "./find-losses.ts";
import { type Inventory, takeInventory } from "./inventory.ts";
import { type Command, maxMs, processes, runAgentctl, settle } from "./run-agentctl.ts";
import type { Site, TestRepository } from "./test-repository.ts";

export interface ActResult {
  losses: Loss[];
  removals: number;
  isRefusal: boolean;
  isKilled: boolean;
}

export interface Act extends Command {
  /** A worktree that may be lost with its own work. */
  discards: string | null;
  /** The worktrees that it is about; none: all. */
  targets: Site[];
  /** A worktree that the act begins in. */
  makes: Site | null;
  /** It promises to change nothing. */
  isLook: boolean;
  /** About so many, to draw a moment from. */
  gitCalls: number;
}

const refused = 5;

export async function runAct(world: TestRepository, dice: Dice): Promise<ActResult> {
  const act = drawAct(world, dice);
  const disturbance = drawDisturbance(world, act, dice);
  world.tell(`agentctl ${act.words.join(" ")}${disturbance.text === "" ? "" : `   (${disturbance.text})`}`);
  const before = takeInventory(world, act.discards);
  const alive = new Set(processes());
  const kept = world.sites.filter(({ state }) => state === "live" || state === "locked");
  const answer = await runAgentctl(world, { ...act, killAfterMs: disturbance.killAfterMs });
  const leftBehind = await settle(alive);
  // Before the disks are mounted: agentctl speaks of what it can see.
  const lies = answer.isKilled || disturbance.hasCompany ? [] : liesIn(answer.out, world);
  const after = takeInventory(world);
  const journal = readJournal(world);
  if (act.makes !== null && after.worktrees.has(act.makes.path)) world.sites.push(act.makes);
  const broken = [
    ...(answer.isKilled ? [] : leftBehind.map((text) => `a process was left behind: ${text}`)),
    ...kept
      .filter(({ path }) => !after.worktrees.has(path))
      .map(({ path, state }) => `${path} is ${state}, and was removed`),
    ...(act.isLook && !disturbance.hasCompany && !isSame(before, after)
      ? ["a command that only looks has changed something"]
      : []),
    ...lies,
    ...(answer.tookTooLong ? [`the command did not end within ${maxMs} ms`] : []),
    ...(/\n\s+at .+:\d+:\d+/.test(answer.err) ? [`agentctl crashed: ${answer.err.slice(0, 300)}`] : []),
  ];
  return {
    losses: [
      ...world.uncovered(() => [...lossesBetween(before, after), ...lossesOfJournal(journal, after)]),
      ...broken.map((text) => ({ kind: "broken promise", text })),
    ],
    removals: [...before.worktrees.keys()].filter((path) => !after.worktrees.has(path)).length,
    isRefusal: answer.code === refused,
    isKilled: answer.isKilled,
  };
}

function drawAct(world: TestRepository, dice: Dice): Act {
  const sites = world.sites.filter(({ path, state }) => state === "hidden" || existsSync(path));
  const kinds = ["prune", "prune", "prune", "prune", "launch", "launch", "look"];
  const kind = dice.pick(sites.length === 0 ? kinds : [...kinds, "remove", "remove", "remove", "discard"]);
  const open = sites.filter(({ state }) => state === "plain").map(({ path }) => path);
  const act: Act = {
    words: [],
    cwd: open.length > 0 && dice.chance(0.15) ? dice.pick(open) : world.repository,
    env: {},
    killAfterMs: null,
    discards: null,
    targets: [],
    makes: null,
    isLook: kind === "look",
    gitCalls: 1 + world.gitCallsOfLook,
  };
  switch (kind) {
    case "prune":
      act.words = ["worktree", "prune", "-y", "--json"];
      // It looks twice, and then removes.
      act.gitCalls = 3 + 2 * world.gitCallsOfLook;
      break;
    case "look":
      act.words = dice.pick([["worktree", "prune", "--dry-run", "--json"], ["worktree", "list", "--json"], ["list"]]);
      break;
    case "remove": {
      act.targets = [...new Set(Array.from({ length: dice.chance(0.2) ? 2 : 1 }, () => dice.pick(sites)))];
      act.words = ["worktree", "remove", ...act.targets.map((site) => nameOf(site, dice)), "--json"];
      break;
    }
    case "discard": {
      const { path } = dice.pick(sites);
      act.discards = path;
      act.words = ["worktree", "remove", path, "--discard", "--json"];
      break;
    }
    case "launch":
      drawLaunch(act, world, dice);
  }
  return act;
}

const nameOf = ({ path, branch }: Site, dice: Dice): string => dice.pick([path, basename(path), branch ?? path]);

/** A launch into a new worktree, whose setup or agent works first and then fails. */
function drawLaunch(act: Act, world: TestRepository, dice: Dice): void {
  const name = `l${dice.below(1_000_000)}`;
  const path = join(world.folder, name);
  let branch = `agentctl/${name}`;
  let own = "--worktree";
  if (dice.chance(0.2)) {
    // A branch of a person's, with a commit that nothing else holds.
    branch = `spare-${name}`;
    own = `--worktree=${branch}`;
    const message = world.text("commit of a branch without a worktree").trim();
    const id = world.git(world.repository, "commit-tree", "-p", "main", "-m", message, "main^{tree}");
    world.git(world.repository, "branch", branch, id);
  }
  act.words = ["launch", "demo", "say:x", "--permission", "bypass", own, "--name", name];
  act.makes = { path, name, branch, state: "plain" };
  act.gitCalls = 12;
  const how = dice.pick(["setup", "agent", "agent", "nothing"]);
  if (how === "nothing") return;
  const [deed, script] = drawDeed(world, path, `of ${how === "agent" ? "an" : "a"} ${how} that failed`, dice);
  // The files of a setup belong to the setup and go with it; a commit is work, even if a setup made it.
  const works = how === "agent" || deed.includes("commit");
  const program = `${works ? `(\n${script}\n)\n` : ""}exit 3\n`;
  world.tell(`  its ${how} ${works ? `makes a ${deed}, then fails` : "fails"}`);
  if (how === "setup") {
    const file = join(world.root, "setup");
    writeFileSync(file, program);
    act.words.push("--setup", `sh ${quoted(file)}`);
  } else {
    const file = join(world.root, "agent");
    writeFileSync(file, `#!/bin/sh\n${program}`, { mode: 0o755 });
    act.env["AGENTCTL_DEMO_BIN"] = file;
  }
}

function isSame(before: Inventory, after: Inventory): boolean {
  const shape = ({ worktrees, refs }: Inventory): string =>
    JSON.stringify([
      [...refs].sort(),
      [...worktrees].map(([path, { files, works, isListed }]) => [path, works, isListed, [...files]]).sort(),
    ]);
  return shape(before) === shape(after);
}

interface Fate {
  path: string;
  branch: string | null;
  result: string;
  branchRemoved: boolean;
}

/** What agentctl says is gone is gone; what it says stays is there. */
function liesIn(out: string, world: TestRepository): string[] {
  if (!out.startsWith("[")) return [];
  const fates = JSON.parse(out) as Partial<Fate>[];
  return fates.flatMap(({ path, branch, result, branchRemoved }) => {
    if (path === undefined || result === undefined) return [];
    const isThere = existsSync(path);
    const hasBranch = world.tryGit(world.repository, ["show-ref", "--verify", `refs/heads/${branch}`]).code === 0;
    return [
      ...(result === "removed" && isThere ? [`agentctl says that it removed ${path}, which is there`] : []),
      ...(result !== "removed" && !isListed(path, world)
        ? [`agentctl says that ${path} stays, but git has lost it`]
        : []),
      ...(branchRemoved === true && hasBranch ? [`agentctl says that it removed ${branch}, which is there`] : []),
    ];
  });
}

const isListed = (path: string, world: TestRepository): boolean =>
  world.git(world.repository, "worktree", "list", "--porcelain", "-z").split("\0").includes(`worktree ${path}`);

const undisturbed = { env: {}, killAfterMs: null };

/** Learns how often agentctl calls git for one look. */
export async function countGitCalls(world: TestRepository): Promise<void> {
  clearHook(world);
  await runAgentctl(world, { words: ["worktree", "prune", "--dry-run"], cwd: world.repository, ...undisturbed });
  world.gitCallsOfLook = gitCalls(world);
}

/** A worktree with a demo agent that works in it until the schedule ends. */
export async function launchLive(world: TestRepository): Promise<void> {
  const path = join(world.folder, "live");
  const words = ["launch", "demo", "work:600", "--permission", "bypass", "--worktree", "--name", "live"];
  const { code } = await runAgentctl(world, { words, cwd: world.repository, ...undisturbed });
  // agentctl refuses where the folder for worktrees is on a disk that is not mounted.
  if (code !== 0) return;
  world.sites.push({ path, name: "live", branch: "agentctl/live", state: "live" });
  world.tell("live: a demo agent works in it");
}
