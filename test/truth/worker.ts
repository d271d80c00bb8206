// Inside the namespace: runs schedules one after the other, checks after every step, shortens what fails.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expectNow } from "./allowances.ts";
import { ask, fingerprint } from "./ask.ts";
import { compareList, comparePlain, compareStatus } from "./compare.ts";
import { formats } from "./formats.ts";
import { compareInProcess } from "./in-process.ts";
import { endKin, settle } from "./kin.ts";
import { checkLaws } from "./laws.ts";
import { useBinary } from "./product.ts";
import { Dice, seedOf } from "./random.ts";
import { chooseStep, printSteps, runStep, type Step } from "./schedule.ts";
import { takeSide } from "./side.ts";
import { addTally, emptyTally, type Lie, type Tally } from "./tally.ts";
import { World } from "./world.ts";

export interface Failure {
  schedule: number;
  lies: Lie[];
  steps: string;
  /** Whether the same steps lied again; "untried" after enough failures. */
  again: "yes" | "no" | "untried";
}

export interface Result {
  tally: Tally;
  failures: Failure[];
}

export interface Order {
  base: string;
  bin: string;
  seed: number;
  steps: number;
  schedules: number[];
  replay: Step[] | null;
  /** Agents that play in every schedule; null: each draws its own. */
  cast: string[] | null;
}

const mostReruns = 20;
const mostShortened = 5;

export async function work(order: Order): Promise<Result> {
  useBinary(order.bin);
  const result: Result = { tally: emptyTally(), failures: [] };
  for (const schedule of order.schedules) {
    const run = await runSchedule(order, plan(order, schedule));
    addTally(result.tally, run.tally);
    if (run.lies.length === 0) continue;
    const { lies, steps, again } = await shorten(order, run, result.failures.length);
    result.failures.push({ schedule, lies, steps: printSteps(steps), again });
  }
  return result;
}

interface Run {
  tally: Tally;
  /** Those that were done, up to the first lie. */
  steps: Step[];
  lies: Lie[];
}

type NextStep = (world: World) => Step | null;

function plan(order: Order, schedule: number): NextStep {
  if (order.replay !== null) return replaying(order.replay);
  const dice = new Dice(seedOf(order.seed, schedule));
  // The first one only tells who plays.
  let left = order.steps + 1;
  return (world) => (left-- > 0 ? chooseStep(world, dice) : null);
}

function replaying(steps: Step[]): NextStep {
  const rest = [...steps];
  return () => rest.shift() ?? null;
}

async function runSchedule(order: Order, next: NextStep): Promise<Run> {
  const run: Run = { tally: emptyTally(), steps: [], lies: [] };
  const root = join(order.base, `run-${process.pid}`);
  mkdirSync(root, { recursive: true });
  const world = new World(root);
  if (order.cast !== null) world.cast = formats.filter(({ agent }) => order.cast?.includes(agent));
  try {
    for (let step = next(world); step !== null && run.lies.length === 0; step = next(world)) {
      if (!(await runStep(world, step))) continue;
      run.steps.push(step);
      if (step.name === "cast") continue;
      run.tally.steps++;
      run.lies = await checkWorld(order.bin, world, step.seed, run.tally);
    }
  } catch (error) {
    throw new Error(`the harness failed after: ${printSteps(run.steps)}`, { cause: error });
  } finally {
    await endKin(world);
    await world.end();
  }
  run.tally["pid reuses"] = world.pidReuses;
  run.tally["pid reuses skipped"] = world.pidReusesSkipped;
  return run;
}

async function checkWorld(bin: string, world: World, seed: number, tally: Tally): Promise<Lie[]> {
  const dice = new Dice(seed);
  await settle(world);
  await world.rest();
  const before = fingerprint(world.agentHome);
  const listed = await ask(bin, world, "list", "-a", "--since", "9999d", "--json");
  const { lies, answer } = compareList(listed, expectNow(world), tally);
  if (answer !== null) {
    lies.push(...(await compareInProcess(bin, world, answer, tally)));
    lies.push(...comparePlain(await ask(bin, world, "list", "--json"), answer, tally));
    const ids = [...world.sessions.values()].map(({ id }) => id);
    const id = ids.length === 0 || dice.chance(0.1) ? dice.uuid() : dice.pick(ids);
    lies.push(...compareStatus(await ask(bin, world, "status", id, "--json"), id, answer, tally));
  }
  if (fingerprint(world.agentHome) !== before) {
    lies.push({ kind: "broken promise", text: "asking changed the agent's own folder" });
    tally["broken promise"]++;
  }
  if (lies.length === 0) await checkLaws(world, listed, seed);
  lies.push(...takeSide(world, tally));
  return lies;
}

/** Drops steps, the later ones first, while a lie of the same kind remains. */
async function shorten(order: Order, failed: Run, failuresBefore: number): Promise<Run & Pick<Failure, "again">> {
  if (failuresBefore >= mostShortened) return { ...failed, again: "untried" };
  const kinds = new Set(failed.lies.map(({ kind }) => kind));
  const liesAgain = async (steps: Step[]): Promise<Run | null> => {
    const run = await runSchedule(order, replaying(steps));
    return run.lies.some(({ kind }) => kinds.has(kind)) ? run : null;
  };
  let best = await liesAgain(failed.steps);
  if (best === null) return { ...failed, again: "no" };
  const droppable = best.steps
    .slice(0, -1)
    .reverse()
    .slice(0, mostReruns - 1);
  for (const candidate of droppable) {
    const steps: Step[] = best.steps.filter((step) => step !== candidate);
    if (steps.length < best.steps.length) best = (await liesAgain(steps)) ?? best;
  }
  return { ...best, again: "yes" };
}
