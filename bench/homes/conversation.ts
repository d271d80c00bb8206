// Describes a conversation for the writers of all formats.

import type { Dice } from "../../test/truth/random.ts";

export interface Conversation {
  id: string;
  cwd: string;
  prompt: string;
  /** The approximate size of the record. */
  bytes: number;
  endedAt: number;
  /** The state of the last turn; "asking" and "working" only for live sessions. */
  ending: "completed" | "failed" | "interrupted" | "cut-off" | "asking" | "working";
}

/** The size of the next turn; the last turn takes all that is left. */
export function nextTurn(dice: Dice, left: number): { bytes: number; isLast: boolean } {
  const bytes = smallTurn + dice.below(50_000);
  return left - bytes < smallTurn ? { bytes: left, isLast: true } : { bytes, isLast: false };
}

const smallTurn = 8_000;

/** The size of one tool result: mostly a few lines, sometimes a whole file, at most half of what is left of the turn. */
export function outputBytes(dice: Dice, left: number): number {
  const drawn = dice.chance(0.1) ? 4_000 + dice.below(26_000) : 100 + dice.below(2_500);
  return Math.max(100, Math.min(drawn, left / 2));
}

/** Gives each line a time; the lines of the last turn are close to the end. */
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

  /** Call it at the start of the last turn. */
  hurry(): void {
    this.#at = this.talk.endedAt - lastTurnMs;
  }
}

/** The process of a live session must be older than this. */
export const lastTurnMs = 100;
const averageLine = 2_000;
