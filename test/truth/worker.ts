// Inside the namespace: runs schedules one after the other, checks after every step, and shortens failed schedules.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expectNow } from "./allowed-answers.ts";
import { ask, fingerprint } from "./ask-agentctl.ts";
import { compareList, comparePlain, compareStatus } from "./compare.ts";
import { compareInProcess } from "./compare-in-process.ts";
import { formats } from "./formats.ts";
import { checkLaws } from "./invariants.ts";
import { endProcesses, settle } from "./launched-processes.ts";
import { Dice, seedOf } from "./random.ts";
import { useBinary } from "./run-agentctl.ts";
import { noteProgress } from "./run-worker.ts";
import { chooseStep, printSteps, runStep, type Step } from "./schedule.ts";
import { SimulatedHost } from "./simulated-host.ts";
import { takeFindings } from "./step-findings.ts";
import { addTally, emptyTally, type Lie, type Tally } from "./tally.ts";

export interface Failure {
  schedule: number;
  lies: Lie[];
  steps: string;
  /** Whether the same steps gave a lie again; "untried" after enough failures. */
  again: "yes" | "no" | "untried";
}

export interface Result {
  tally: Tally;
  failures: Failure[];
}

/** The position of a worker, in case it dies. */
export interface Progress {
  schedule: number;
  /** Including the current step. */
  steps: string;
}

export interface Order {
  base: string;
  bin: string;
  seed: number;
  steps: number;
  schedules: number[];
  replay: Step[] | null;
  /** The agents of every schedule; null: each schedule chooses its own. */
  cast: string[] | null;
}

const mostReruns = 20;
const mostShortened = 5;

export async function work(order: Order): Promise<Result> {
  useBinary(order.bin);
  const result: Result = { tally: emptyTally(), failures: [] };
  for (const schedule of order.schedules) {
    const run = await runSchedule(order, schedule, plan(order, schedule));
    addTally(result.tally, run.tally);
    if (run.lies.length === 0) continue;
    const { lies, steps, again } = await shorten(order, schedule, run, result.failures.length);
    result.failures.push({ schedule, lies, steps: printSteps(steps), again });
  }
  return result;
}

interface Run {
  tally: Tally;
  /** The executed steps, up to the first lie. */
  steps: Step[];
  lies: Lie[];
}

type NextStep = (host: SimulatedHost) => Step | null;

function plan(order: Order, schedule: number): NextStep {
  if (order.replay !== null) return replaying(order.replay);
  const dice = new Dice(seedOf(order.seed, schedule));
  // The first step only chooses the agents.
  let left = order.steps + 1;
  return (host) => (left-- > 0 ? chooseStep(host, dice) : null);
}

function replaying(steps: Step[]): NextStep {
  const rest = [...steps];
  return () => rest.shift() ?? null;
}

async function runSchedule(order: Order, schedule: number, next: NextStep): Promise<Run> {
  const run: Run = { tally: emptyTally(), steps: [], lies: [] };
  const root = join(order.base, `run-${process.pid}`);
  mkdirSync(root, { recursive: true });
  const host = new SimulatedHost(root);
  if (order.cast !== null) host.cast = formats.filter(({ agent }) => order.cast?.includes(agent));
  try {
    for (let step = next(host); step !== null && run.lies.length === 0; step = next(host)) {
      const progress: Progress = { schedule, steps: printSteps([...run.steps, step]) };
      noteProgress(order.base, JSON.stringify(progress));
      if (!(await runStep(host, step))) continue;
      run.steps.push(step);
      if (step.name === "cast") continue;
      run.tally.steps++;
      run.lies = await checkWorld(order.bin, host, step.seed, run.tally);
    }
  } catch (error) {
    throw new Error(`the harness failed after: ${printSteps(run.steps)}`, { cause: error });
  } finally {
    await endProcesses(host);
    await host.end();
  }
  run.tally["pid reuses"] = host.pidReuses;
  run.tally["pid reuses skipped"] = host.pidReusesSkipped;
  return run;
}

async function checkWorld(bin: string, host: SimulatedHost, seed: number, tally: Tally): Promise<Lie[]> {
  const dice = new Dice(seed);
  await settle(host);
  await host.rest();
  const before = fingerprint(host.agentHome);
  const listed = await ask(bin, host, "list", "-a", "--since", "9999d", "--json");
  const { lies, answer } = compareList(listed, expectNow(host), tally);
  if (answer !== null) {
    lies.push(...(await compareInProcess(bin, host, answer, tally)));
    lies.push(...comparePlain(await ask(bin, host, "list", "--json"), answer, tally));
    const ids = [...host.sessions.values()].map(({ id }) => id);
    const id = ids.length === 0 || dice.chance(0.1) ? dice.uuid() : dice.pick(ids);
    lies.push(...compareStatus(await ask(bin, host, "status", id, "--json"), id, answer, tally));
  }
  if (fingerprint(host.agentHome) !== before) {
    lies.push({ kind: "broken promise", text: "asking changed the agent's own folder" });
    tally["broken promise"]++;
  }
  if (lies.length === 0) await checkLaws(host, listed, seed);
  lies.push(...takeFindings(host, tally));
  return lies;
}

/** Drops steps, the later ones first, while a lie of the same kind remains. */
async function shorten(
  order: Order,
  schedule: number,
  failed: Run,
  failuresBefore: number,
): Promise<Run & Pick<Failure, "again">> {
  if (failuresBefore >= mostShortened) return { ...failed, again: "untried" };
  const kinds = new Set(failed.lies.map(({ kind }) => kind));
  const liesAgain = async (steps: Step[]): Promise<Run | null> => {
    const run = await runSchedule(order, schedule, replaying(steps));
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
