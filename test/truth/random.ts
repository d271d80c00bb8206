// Dice: all random choices of the harness, so that a seed repeats a run.

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** mulberry32: 32 bits of state, good enough to choose faults with. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    const chosen = choices[this.below(choices.length)];
    if (chosen === undefined) throw new Error("nothing to pick from");
    return chosen;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.below(256));
  }

  uuid(): string {
    const hex = Array.from(this.bytes(16), (byte) => byte.toString(16).padStart(2, "0")).join("");
    const variant = this.pick(["8", "9", "a", "b"]);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
}

/** One seed out of two, so that schedule 17 of seed 3 is the same whatever else ran. */
export function seedOf(seed: number, part: number): number {
  return Math.floor(new Dice((seed * 0x9e3779b1 + part * 0x85ebca6b) >>> 0).next() * 4294967296);
}
