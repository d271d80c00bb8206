// Lies and counts that a step itself found. The worker takes them over after the step.

import type { SimulatedHost } from "./simulated-host.ts";
import { addTally, emptyTally, type Lie, type LieKind, type Tally } from "./tally.ts";

interface StepFindings {
  tally: Tally;
  lies: Lie[];
}

const findings = new WeakMap<SimulatedHost, StepFindings>();

export function findingsOf(host: SimulatedHost): StepFindings {
  const found = findings.get(host) ?? { tally: emptyTally(), lies: [] };
  findings.set(host, found);
  return found;
}

export function takeFindings(host: SimulatedHost, into: Tally): Lie[] {
  const { tally, lies } = findingsOf(host);
  findings.delete(host);
  addTally(into, tally);
  return lies;
}

/** One promise kept, or broken in these words; null: kept. */
export function judge(host: SimulatedHost, broken: string | null, kind: LieKind = "broken promise"): void {
  const { tally, lies } = findingsOf(host);
  tally.checks++;
  if (broken === null) {
    tally.passed++;
    return;
  }
  tally[kind]++;
  lies.push({ kind, text: broken });
}
