// The type of a step, and the sessions that it can act on.
import type { Dice } from "../random.ts";
import type { Life, Phase, Scene, Session } from "./simulated-host.ts";

export interface Action {
  weight: number;
  /** The numbers of the sessions that it may be done to now; the next number for a new one; `[0]` for the home. */
  targets(scene: Scene): number[];
  run(scene: Scene, target: number, dice: Dice): Promise<void>;
}

export type Living = Session & { life: Life };

/** Claude takes about 300 MB each. */
const mostLiving = 4;

export const roomFor = (scene: Scene): number[] => (scene.living().length < mostLiving ? [scene.nextNumber()] : []);

/** Those that can be continued: without a prompt there is nothing to go on with. */
export const dead = (scene: Scene): number[] =>
  [...scene.sessions.values()]
    .filter((each) => each.life === null && each.recorded && !each.mixed && !each.outcomes.includes(null))
    .map(({ number }) => number);

/** Those with a process that is not suspended and of which this holds. */
export const living = (scene: Scene, holds: (session: Living) => boolean): number[] =>
  scene
    .living()
    .filter((session) => !session.life.suspended && holds(session))
    .map(({ number }) => number);

export const inPhase =
  (...phases: Phase[]) =>
  ({ life }: Living): boolean =>
    phases.includes(life.phase);

export function alive(scene: Scene, number: number): Living {
  const session = scene.get(number);
  const { life } = session;
  if (life === null) throw new Error(`session ${number} has no process`);
  return session as Living;
}
