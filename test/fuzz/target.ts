// A target: something that reads what others wrote, and how to make input for it.
import type { Dice } from "../truth/random.ts";

export interface Case {
  /** What was damaged, for people. */
  about: string;
  input: Buffer;
  /** What does not hold for this input, in words; may throw, which does not hold either. */
  check(input: Buffer): string[] | Promise<string[]>;
  /** No look may take longer. */
  limitMs: number;
  /** The additional memory that it may take at its peak; null: not measured, because there are too many cases. */
  limitMb: number | null;
}

export interface Target {
  name: string;
  /** So many cases in each round; below one: a case in some of the rounds. */
  weight: number;
  make(dice: Dice): Case;
}

/** The limit of a look at everything. */
export const patienceMs = 2_000;

/** How long we have worked since then: on a busy machine not the time that passed, but the part of it that was ours. */
export function stopwatch(): () => number {
  const started = performance.now();
  const worked = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(worked);
    return Math.min(performance.now() - started, (user + system) / 1000);
  };
}

export const plain = (about: string, input: Buffer, check: Case["check"]): Case => ({
  about,
  input,
  check,
  limitMs: patienceMs,
  limitMb: null,
});
