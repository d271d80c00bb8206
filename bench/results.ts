// The measured values, and their ratios. Ratios compare minima, because other work on the host can only add time.
import type { Measured, Traced } from "./measure.ts";

export interface Row {
  runs: Measured[];
  traced: Traced | null;
}

export class Results {
  readonly #rows = new Map<string, Row>();
  /** Cases with wrong answers, and what was wrong. */
  readonly wrong = new Map<string, string[]>();

  row(name: string, command: string): Row {
    const key = `${name}\0${command}`;
    const row = this.#rows.get(key) ?? { runs: [], traced: null };
    this.#rows.set(key, row);
    return row;
  }

  /** null: not measured. */
  min = (name: string, command: string): number | null => this.#of(name, command, (ms) => Math.min(...ms));
  median = (name: string, command: string): number | null => this.#of(name, command, medianOf);

  peakMb(name: string, command: string): number | null {
    const { runs } = this.row(name, command);
    return runs.length === 0 ? null : Math.max(...runs.map(({ peakMb }) => peakMb));
  }

  ratio(name: string, command: string, other: string, otherName = name): number | null {
    const [a, b] = [this.min(name, command), this.min(otherName, other)];
    return a === null || b === null ? null : a / b;
  }

  #of(name: string, command: string, value: (ms: number[]) => number): number | null {
    const { runs } = this.row(name, command);
    return runs.length === 0 ? null : value(runs.map(({ ms }) => ms));
  }
}

function medianOf(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const [low = 0, high = 0] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return (low + high) / 2;
}
