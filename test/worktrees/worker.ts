// Runs schedules one after the other, inside a pid namespace: makes a random repository, lets agentctl act, compares.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Dice } from "../truth/random.ts";
import { countGitCalls, launchLive, runAct } from "./acts.ts";
import { kill, processes } from "./command.ts";
import { installCounter } from "./disturbance.ts";
import type { Loss } from "./loss.ts";
import { drawWorld, workOn } from "./places.ts";
import { Templates, World } from "./world.ts";

export interface Order {
  base: string;
  binary: string;
  /** One for each schedule. */
  seeds: number[];
  /** Leaves the folders of failed schedules. */
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
  for (const seed of order.seeds) await runSchedule(order, templates, seed, result);
  return result;
}

async function runSchedule(order: Order, templates: Templates, seed: number, result: Result): Promise<void> {
  const { counts, failures } = result;
  const dice = new Dice(seed);
  counts.schedules += 1;
  const world = new World(join(order.base, String(seed)), order.binary);
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
    // A schedule that cannot be played proves nothing: it counts as failed.
    const text = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
    failures.push({ seed, losses: [{ kind: "the harness failed", text }], story: world.story, root: world.root });
  } finally {
    for (const pid of processes()) kill(pid);
    if (!(isFailed && order.keep)) world.end();
  }
}
