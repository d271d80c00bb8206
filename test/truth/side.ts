// What a step itself has seen: lies, and counts. The worker takes them over after the step.
import { addTally, emptyTally, type Lie, type LieKind, type Tally } from "./tally.ts";
import type { World } from "./world.ts";

interface Side {
  tally: Tally;
  lies: Lie[];
}

const sides = new WeakMap<World, Side>();

export function sideOf(world: World): Side {
  const side = sides.get(world) ?? { tally: emptyTally(), lies: [] };
  sides.set(world, side);
  return side;
}

export function takeSide(world: World, into: Tally): Lie[] {
  const { tally, lies } = sideOf(world);
  sides.delete(world);
  addTally(into, tally);
  return lies;
}

/** One promise kept, or broken in these words; null: kept. */
export function judge(world: World, broken: string | null, kind: LieKind = "broken promise"): void {
  const { tally, lies } = sideOf(world);
  tally.checks++;
  if (broken === null) {
    tally.passed++;
    return;
  }
  tally[kind]++;
  lies.push({ kind, text: broken });
}
