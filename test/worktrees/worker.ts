// Runs schedules one after the other inside a pid namespace: makes a random repository, runs agentctl, and looks for losses.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Dice } from "../truth/random.ts";
import { noteProgress } from "../truth/run-worker.ts";
import { countGitCalls, launchLive, runAct } from "./agentctl-steps.ts";
import { installCounter } from "./disturbance.ts";
import type { Loss } from "./find-losses.ts";
import { drawWorld, workOn } from "./random-repository.ts";
import { kill, processes } from "./run-agentctl.ts";
import { Templates, TestRepository } from "./test-repository.ts";

export interface Order {
  base: string;
  binary: string;
  /** One seed per schedule. */
  seeds: number[];
  /** Keeps the folders of failed schedules. */
  keep: boolean;
}

export interface Failure {
  seed: number;
  losses: Loss[];
  story: string[];
  root: string;
}

export interface Result {
  counts: Counts;
  failures: Failure[];
}

export type Counts = Record<"schedules" | "acts" | "removals" | "refusals" | "kills", number>;

export async function work(order: Order): Promise<Result> {
  mkdirSync(order.base, { recursive: true });
  const templates = new Templates(order.base);
  const result: Result = {
    counts: { schedules: 0, acts: 0, removals: 0, refusals: 0, kills: 0 },
    failures: [],
  };
  for (const seed of order.seeds) {
    noteProgress(order.base, String(seed));
    await runSchedule(order, templates, seed, result);
  }
  return result;
}

async function runSchedule(order: Order, templates: Templates, seed: number, result: Result): Promise<void> {
  const { counts, failures } = result;
  const dice = new Dice(seed);
  counts.schedules += 1;
  const world = new TestRepository(join(order.base, String(seed)), order.binary);
  let isFailed = false;
  try {
    installCounter(world);
    drawWorld(world, templates, dice);
    if (dice.chance(0.1)) await launchLive(world);
    await countGitCalls(world);
    for (let left = 2 + dice.below(3); left > 0 && !isFailed; left -= 1) {
      const { losses, removals, isRefusal, isKilled } = await runAct(world, dice);
      counts.acts += 1;
      counts.removals += removals;
      counts.refusals += isRefusal ? 1 : 0;
      counts.kills += isKilled ? 1 : 0;
      isFailed = losses.length > 0;
      if (isFailed) failures.push({ seed, losses, story: world.story, root: world.root });
      else if (dice.chance(0.5)) workOn(world, templates, dice);
    }
  } catch (error) {
    // A schedule that cannot run proves nothing, so it counts as failed.
    const text = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
    failures.push({ seed, losses: [{ kind: "the harness failed", text }], story: world.story, root: world.root });
  } finally {
    for (const pid of processes()) kill(pid);
    if (!(isFailed && order.keep)) world.end();
  }
}
