// A schedule: random steps among those that are possible now, and their text form for a replay.
import { formats } from "./formats.ts";
import { Dice } from "./random.ts";
import type { SimulatedHost } from "./simulated-host.ts";
import { actingSteps } from "./steps-acting.ts";
import { databaseSteps } from "./steps-database.ts";
import { disguiseSteps } from "./steps-disguise.ts";
import { faultSteps } from "./steps-faults.ts";
import { gatewaySteps } from "./steps-gateway.ts";
import { processSteps } from "./steps-process.ts";
import { recordSteps } from "./steps-record.ts";
import { storeSteps } from "./steps-store.ts";

export interface Action {
  weight: number;
  /** The numbers of the sessions that the step can act on now; `[0]` means the host itself. */
  targets(host: SimulatedHost): number[];
  run(host: SimulatedHost, target: number, dice: Dice): Promise<void>;
}

export interface Step {
  name: string;
  target: number;
  /** All further choices of the step come from this. */
  seed: number;
}

const castSize = 3;

/** The chosen agents: only a few, so that their sessions meet. A replay without this step uses all. */
const cast: Action = {
  weight: 0,
  targets: (host) => (host.sessions.size === 0 ? [0] : []),
  async run(host, _target, dice) {
    const rest = [...formats];
    host.cast = Array.from({ length: castSize }, () => rest.splice(dice.below(rest.length), 1)).flat();
  },
};

const actions = new Map<string, Action>(
  Object.entries({
    cast,
    ...processSteps,
    ...databaseSteps,
    ...recordSteps,
    ...storeSteps,
    ...faultSteps,
    ...disguiseSteps,
    ...actingSteps,
    ...gatewaySteps,
  }),
);

export function chooseStep(host: SimulatedHost, dice: Dice): Step {
  if (host.cast === formats) return { name: "cast", target: 0, seed: dice.below(1_000_000) };
  const possible = [...actions].map(([name, action]) => ({
    name,
    weight: action.weight,
    targets: action.targets(host),
  }));
  // Without a session there is little to check.
  const sensible = host.sessions.size > 0 ? possible : possible.filter(({ name }) => name === "start");
  const open = sensible.filter(({ targets }) => targets.length > 0);
  let rest = dice.next() * open.reduce((sum, { weight }) => sum + weight, 0);
  const found = open.find(({ weight }) => {
    rest -= weight;
    return rest < 0;
  });
  const { name, targets } = found ?? dice.pick(open);
  return { name, target: dice.pick(targets), seed: dice.below(1_000_000) };
}

/** False if the step is impossible now, for example because earlier steps were dropped. */
export async function runStep(host: SimulatedHost, step: Step): Promise<boolean> {
  const action = actions.get(step.name);
  if (action === undefined) throw new Error(`no step is called "${step.name}"`);
  const fits = action.targets(host).includes(step.target) || isDroppedStart(host, step);
  if (fits) await action.run(host, step.target, new Dice(step.seed));
  return fits;
}

export function printSteps(steps: Step[]): string {
  return steps.map(({ name, target, seed }) => `${name}:${target}:${seed}`).join(" ");
}

export function parseSteps(text: string): Step[] {
  return text.split(/\s+/).filter(Boolean).map(parseStep);
}

function parseStep(text: string): Step {
  const [, name, target, seed] = /^([a-z-]+):(\d+):(\d+)$/.exec(text) ?? [];
  if (name === undefined || !actions.has(name)) throw new Error(`"${text}" is not a step: name:session:seed`);
  return { name, target: Number(target), seed: Number(seed) };
}

// Sessions keep their numbers in a shortened list, so a start may come with a number that is not the next.
function isDroppedStart(host: SimulatedHost, step: Step): boolean {
  return step.name === "start" && !host.sessions.has(step.target);
}
