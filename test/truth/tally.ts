// Counts of a run, and the table at its end.

export const lieKinds = [
  "false-running",
  "false-stopped",
  "false-working",
  "false-idle",
  "false-waiting",
  "ghosts",
  "duplicates",
  "missing",
  "wrong owner",
  "wrong outcome",
  "list≠status",
  "needless unknown or unclear",
  "broken promise",
] as const;

export type LieKind = (typeof lieKinds)[number];

export interface Lie {
  kind: LieKind;
  text: string;
}

const otherCounts = [
  "checks",
  "passed",
  "honest unknown",
  "honest unclear",
  "wrong weak guess (allowed)",
  "steps",
  "pid reuses",
  "pid reuses skipped",
] as const;

export type Tally = Record<LieKind | (typeof otherCounts)[number], number>;

export function emptyTally(): Tally {
  const pairs = [...otherCounts, ...lieKinds].map((name): [string, number] => [name, 0]);
  return Object.fromEntries(pairs) as Tally;
}

export function addTally(sum: Tally, part: Tally): void {
  for (const name of [...otherCounts, ...lieKinds]) sum[name] += part[name];
}

export function printTally(tally: Tally): string {
  const names = [...otherCounts.slice(0, 2), ...lieKinds, ...otherCounts.slice(2)];
  return names.map((name) => `${name.padEnd(28)} ${String(tally[name]).padStart(8)}`).join("\n");
}
