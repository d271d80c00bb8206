// The counts of a run, and the table that it prints at its end.

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
  "list≠in-process",
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
  "opened unseen (allowed)",
  "steps",
  "pid reuses",
  "pid reuses skipped",
  "faults skipped",
] as const;

const agentCounts = ["sessions seen", "unknown", "unclear", "lies"] as const;

type AgentKey = `${string}: ${(typeof agentCounts)[number]}`;

export type Tally = Record<LieKind | (typeof otherCounts)[number], number> & { [key: AgentKey]: number };

export function emptyTally(): Tally {
  const pairs = [...otherCounts, ...lieKinds].map((name): [string, number] => [name, 0]);
  return Object.fromEntries(pairs) as Tally;
}

/** Also counts that this page does not know: another harness may have its own. */
export function addTally(sum: Tally, part: Partial<Tally>): void {
  const total: Record<string, number> = sum;
  for (const [name, count] of Object.entries(part)) total[name] = (total[name] ?? 0) + (count ?? 0);
}

export function countFor(tally: Tally, agent: string, what: (typeof agentCounts)[number]): void {
  tally[`${agent}: ${what}`] = (tally[`${agent}: ${what}`] ?? 0) + 1;
}

export function printTally(tally: Tally): string {
  const names = [...otherCounts.slice(0, 2), ...lieKinds, ...otherCounts.slice(2)];
  // A check may also be of a promise, or of one answer against another: shares are of sessions.
  const seen = sessionsSeen(tally);
  const rows = names.map((name) => {
    const share = name === "honest unknown" || name === "honest unclear" ? ` ${percent(tally[name], seen)}` : "";
    return `${name.padEnd(28)} ${String(tally[name]).padStart(8)}${share}`;
  });
  return [...rows, ...agentRows(tally)].join("\n");
}

function agentRows(tally: Tally): string[] {
  const agents = [...new Set(Object.keys(tally).flatMap((key) => /^(.+): sessions seen$/.exec(key)?.[1] ?? []))].sort();
  const head = `${"per agent".padEnd(28)} ${agentCounts.map((name) => name.padStart(16)).join("")}`;
  const rows = agents.map((agent) => {
    const count = (what: (typeof agentCounts)[number]) => tally[`${agent}: ${what}`] ?? 0;
    const seen = count("sessions seen");
    const shares = [count("unknown"), count("unclear")].map((part) => `${part} ${percent(part, seen)}`.padStart(16));
    return `  ${agent.padEnd(26)} ${String(seen).padStart(16)}${shares.join("")}${String(count("lies")).padStart(16)}`;
  });
  return rows.length === 0 ? [] : [head, ...rows];
}

function sessionsSeen(tally: Tally): number {
  const counts = Object.entries(tally).flatMap(([key, count]) => (key.endsWith(": sessions seen") ? [count] : []));
  return counts.length === 0 ? tally.checks : counts.reduce((sum, count) => sum + count, 0);
}

function percent(part: number, whole: number): string {
  return `(${((100 * part) / Math.max(1, whole)).toFixed(1)} %)`;
}

export function liesIn(tally: Tally): number {
  return lieKinds.reduce((sum, kind) => sum + tally[kind], 0);
}
