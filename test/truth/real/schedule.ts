// A schedule over real agents: steps chosen by dice among those that make sense now, a check after each, a second run of
// what lied.
import { Dice, seedOf } from "../random.ts";
import { addTally, emptyTally, type Lie, type Tally } from "../tally.ts";
import { checkScene } from "./check-answer.ts";
import { originOf, Scene } from "./simulated-host.ts";
import type { Action } from "./step.ts";
import { agentctlSteps } from "./steps-agentctl.ts";
import { endSteps } from "./steps-end.ts";
import { startSteps } from "./steps-start.ts";
import { turnSteps } from "./steps-turn.ts";

export interface Step {
  name: string;
  target: number;
  /** All further choices of the step come from this. */
  seed: number;
}

/** The kind of home, and what is done in it; `steps: null` lets the dice choose. */
export interface Plan {
  schedule: number;
  worldSeed: number;
  stepSeed: number;
  count: number;
  steps: Step[] | null;
}

export interface Run {
  tally: Tally;
  steps: Step[];
  lies: Lie[];
  evidence: string;
  /** Why it could not be brought to its end: an agent gave no sign. */
  stuck: string | null;
}

export const actions = new Map<string, Action>(
  Object.entries({ ...startSteps, ...turnSteps, ...endSteps, ...agentctlSteps }),
);

export function planOf(seed: number, schedule: number, count: number): Plan {
  const both = seedOf(seed, schedule);
  return { schedule, worldSeed: both % 1_000_000, stepSeed: both, count, steps: null };
}

export async function runPlan(bin: string, plan: Plan, tell: (text: string) => void): Promise<Run> {
  const run: Run = { tally: emptyTally(), steps: [], lies: [], evidence: "", stuck: null };
  const scene = await Scene.open(bin, new Dice(plan.worldSeed));
  tell(
    `schedule ${plan.schedule}: claude ${scene.claude}, codex ${scene.daemon ? "daemon" : "alone"}, ${scene.approval}`,
  );
  const dice = new Dice(plan.stepSeed);
  const given = plan.steps?.values();
  try {
    for (let left = plan.steps?.length ?? plan.count; left > 0 && scene.lies.length === 0; left--) {
      scene.refresh();
      const step = given === undefined ? chooseStep(scene, dice) : given.next().value;
      const action = actions.get(step?.name ?? "");
      // In a shortened list some steps make no sense any more.
      if (step === undefined || action === undefined || !fits(scene, action, step)) continue;
      run.steps.push(step);
      const began = performance.now();
      const stepDice = new Dice(step.seed);
      await action.run(scene, step.target, stepDice);
      if (scene.lies.length === 0) await checkScene(scene, stepDice);
      tell(`  ${printStep(step).padEnd(28)} ${Math.round(performance.now() - began)} ms`);
    }
  } catch (error) {
    run.stuck = describe(error);
  } finally {
    await scene.world[Symbol.asyncDispose]();
  }
  addTally(run.tally, scene.tally);
  run.tally.steps = run.steps.length;
  run.lies = scene.lies;
  run.evidence = scene.evidence;
  return run;
}

function fits(scene: Scene, action: Action, step: Step): boolean {
  const targets = action.targets(scene);
  const isNew = targets.includes(scene.nextNumber()) && !scene.sessions.has(step.target);
  return targets.includes(step.target) || isNew;
}

function chooseStep(scene: Scene, dice: Dice): Step {
  const open = [...actions]
    .map(([name, action]) => ({ name, weight: action.weight, targets: action.targets(scene) }))
    .filter(({ targets }) => targets.length > 0);
  let rest = dice.next() * open.reduce((sum, { weight }) => sum + weight, 0);
  const found = open.find(({ weight }) => {
    rest -= weight;
    return rest < 0;
  });
  const { name, targets } = found ?? dice.pick(open);
  return { name, target: dice.pick(targets), seed: dice.below(1_000_000) };
}

/** Only what was done to the sessions that a lie names; what made them from others comes along. */
export function onlyFor(steps: Step[], lies: Lie[]): Step[] {
  const named = new Set(lies.flatMap(({ text }) => /session (\d+) /.exec(text)?.[1] ?? []).map(Number));
  for (const number of named) if (originOf(number) > 0) named.add(originOf(number));
  return steps.filter(({ target }) => named.has(target));
}

const printStep = ({ name, target, seed }: Step): string => `${name}:${target}:${seed}`;

/** The first word names the home: its Claude, its Codex. */
export const printPlan = (worldSeed: number, steps: Step[]): string =>
  [`world:0:${worldSeed}`, ...steps.map(printStep)].join(" ");

export function parsePlan(text: string): Plan {
  const all = text.split(/\s+/).filter(Boolean).map(parseStep);
  const worldSeed = all.find(({ name }) => name === "world")?.seed ?? 0;
  const steps = all.filter(({ name }) => name !== "world");
  return { schedule: 0, worldSeed, stepSeed: 0, count: steps.length, steps };
}

function parseStep(text: string): Step {
  const [, name, target, seed] = /^([a-z-]+):(\d+):(\d+)$/.exec(text) ?? [];
  if (name === undefined || (name !== "world" && !actions.has(name)))
    throw new Error(`"${text}" is not a step: name:session:seed`);
  return { name, target: Number(target), seed: Number(seed) };
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${describe(error.cause)}`;
}
