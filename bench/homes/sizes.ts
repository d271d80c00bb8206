// The sizes and ages of records. Sizes are those of real homes: one in ten below 64 KB, half below 180 KB, one in ten above
// 550 KB, one in 500 between 20 and 50 MB.
import type { Dice } from "../../test/truth/random.ts";

const kb = 1024;
const mb = 1024 * kb;
export const medianBytes = 182 * kb;
const spread = 0.857;

/** Divides the size by `shrunk`. The minimum is what an agent writes before its first answer. */
export function recordBytes(dice: Dice, shrunk: number): number {
  if (dice.chance(0.002)) return (20 + dice.below(30)) * (mb / shrunk);
  return Math.max(12 * kb, (medianBytes * Math.exp(spread * normal(dice))) / shrunk);
}

function normal(dice: Dice): number {
  return Math.sqrt(-2 * Math.log(1 - dice.next())) * Math.cos(2 * Math.PI * dice.next());
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** One in ten is from the last week. None is between six and eight days old, so that a home stays valid for a day. */
export const isRecent = (index: number): boolean => index % 10 === 0;

export function ageMs(dice: Dice, index: number): number {
  return isRecent(index) ? hourMs + dice.next() * (6 * dayMs - hourMs) : 8 * dayMs + dice.next() * 52 * dayMs;
}
