// Makes the tables of the results.
import type { Case } from "./cases.ts";
import { commands } from "./commands.ts";
import type { Results } from "./results.ts";
import { passes, type Target, targets } from "./targets.ts";

export function measuredTable(results: Results, cases: readonly Case[]): string {
  const head = [
    "case",
    "command",
    "min ms",
    "median ms",
    "× C",
    "× Bun",
    "× ps -ef",
    "× empty",
    "peak MB",
    "opened",
    "MB read",
  ];
  const rows = cases.flatMap(({ name, commands: names }) =>
    names.filter((command) => results.min(name, command) !== null).map((command) => rowOf(results, name, command)),
  );
  const wrong = [...results.wrong].map(
    ([name, texts]) => `- ${name}: no numbers, because the answer is wrong: ${texts[0]}`,
  );
  return [table(head, rows), ...(wrong.length === 0 ? [] : ["", ...wrong])].join("\n");
}

function rowOf(results: Results, name: string, command: string): string[] {
  const reference = commands[command]?.reference ?? null;
  const isOurs = reference !== null || command.startsWith("--") || command === "launch demo";
  const { traced } = results.row(name, command);
  const to = (other: string | null): string =>
    other === null || !isOurs ? "" : fixed(results.ratio(name, command, other), 2);
  return [
    ...[name, command, fixed(results.min(name, command), 1), fixed(results.median(name, command), 1)],
    ...[to(reference), to(bareOf(reference)), to("ps -ef"), to("empty"), fixed(results.peakMb(name, command), 0)],
    ...(traced === null ? ["", ""] : [String(traced.opened), fixed(traced.bytes / 1e6, 2)]),
  ];
}

/** The program that does the same work in Bun, if there is one. */
const bareOf = (reference: string | null): string | null => {
  const bare = reference?.replace(/^C /, "Bun ") ?? "";
  return bare in commands ? bare : null;
};

export function targetTable(results: Results, cases: readonly Case[]): string {
  const rows = targets.map((target) => {
    const { bound, limit, unit } = target;
    const value = target.value(results);
    const shown = value === null ? "" : `${fixed(value, unit === "×" ? 2 : 1)} ${unit}`;
    return [target.statement, `${bound} ${limit} ${unit}`, shown, verdict(target, value, results, cases)];
  });
  return table(["target", "limit", "measured", ""], rows);
}

function verdict(target: Target, value: number | null, results: Results, cases: readonly Case[]): string {
  if (value !== null) return passes(target, value) ? "pass" : "**fail**";
  const [about, command] = target.about;
  const wasAsked = cases.some(({ name, commands: names }) => name === about && names.includes(command));
  return wasAsked && results.wrong.has(about) ? "**wrong answer**" : "not measured";
}

export const failures = (results: Results): number =>
  results.wrong.size +
  targets.filter((target) => {
    const value = target.value(results);
    return value !== null && !passes(target, value);
  }).length;

const fixed = (value: number | null, digits: number): string => (value === null ? "" : value.toFixed(digits));

/** Markdown that can also be read as it is. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const width = (column: number) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0));
  const widths = head.map((_title, column) => width(column));
  const line = (cells: readonly string[]) =>
    `| ${widths.map((size, column) => (cells[column] ?? "").padEnd(size)).join(" | ")} |`;
  return [line(head), `|${widths.map((size) => "-".repeat(size + 2)).join("|")}|`, ...rows.map(line)].join("\n");
}
