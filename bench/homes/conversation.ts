// What every format is told about a conversation that it is to write down.

import type { Dice } from "../../test/truth/random.ts";

export interface Conversation {
  id: string;
  cwd: string;
  prompt: string;
  /** About so large is its record. */
  bytes: number;
  /** When its last line was written. */
  endedAt: number;
  /** How the last turn stands; the last two of a live session. */
  ending: "completed" | "failed" | "interrupted" | "cut-off" | "asking" | "working";
}

/** How large the next turn is, of what is left; the last one takes the rest. */
export function nextTurn(dice: Dice, left: number): { bytes: number; isLast: boolean } {
  const bytes = smallTurn + dice.below(50_000);
  return left - bytes < smallTurn ? { bytes: left, isLast: true } : { bytes, isLast: false };
}

const smallTurn = 8_000;

/** Of one call: mostly a few lines, now and then a whole file; never much more than what is left of its turn. */
export function outputBytes(dice: Dice, left: number): number {
  const drawn = dice.chance(0.1) ? 4_000 + dice.below(26_000) : 100 + dice.below(2_500);
  return Math.max(100, Math.min(drawn, left / 2));
}

/** Times of lines: one after the other, the last turn close to the end. */
export class Clock {
  #at: number;

  constructor(
    readonly talk: Conversation,
    readonly stepMs: number,
  ) {
    this.#at = talk.endedAt - lastTurnMs - (talk.bytes / averageLine) * stepMs;
  }

  next(): string {
    return new Date(this.nextMs()).toISOString();
  }

  nextMs(): number {
    const { endedAt } = this.talk;
    const isLastTurn = this.#at >= endedAt - lastTurnMs;
    this.#at = Math.min(
      endedAt,
      isLastTurn ? this.#at + 1 : Math.min(this.#at + this.stepMs, endedAt - lastTurnMs - 1),
    );
    return Math.round(this.#at);
  }

  /** The last turn begins. */
  hurry(): void {
    this.#at = this.talk.endedAt - lastTurnMs;
  }
}

/** Of a live session its process must be older than this. */
export const lastTurnMs = 100;
const averageLine = 2_000;
