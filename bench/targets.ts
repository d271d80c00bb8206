// The performance targets: limits of ratios, and milliseconds only where a person notices them.
import type { Results } from "./results.ts";

export interface Target {
  statement: string;
  about: [name: string, command: string];
  limit: number;
  unit: "×" | "MB" | "ms";
  bound: "at most" | "at least";
  value(results: Results): number | null;
}

const ratio = (
  statement: string,
  limit: number,
  name: string,
  command: string,
  other: string,
  otherName = name,
): Target => ({
  statement,
  about: [name, command],
  limit,
  unit: "×",
  bound: "at most",
  value: (results) => results.ratio(name, command, other, otherName),
});

const sizes = ["2000", "10000"];

/** The ways to read a file that token totals are compared with, the fastest first. */
const readers = [
  ["C read", "C, 256 KB into one buffer"],
  ["Bun read 1 MB", "Bun, 1 MB into one buffer"],
  ["Bun read whole", "Bun, the whole file at once"],
] as const;

export const targets: readonly Target[] = [
  ...["mixed", "claude-code", "codex", "opencode"].flatMap((agents) =>
    sizes.map((size) => ratio(`\`list\` to C, ${agents}-${size}`, 2, `${agents}-${size}`, "list", "C list")),
  ),
  ratio("`list` to C, crowd (2,000 processes, 200 live)", 2, "crowd", "list", "C list"),
  ratio("`list` of 10,000 to `list` of 200", 1.5, "mixed-10000", "list", "list", "mixed-200"),
  ...["status LIVE", "why LIVE", "status DEAD"].flatMap((command) =>
    sizes.map((size) => ratio(`\`${command}\` to \`list\`, mixed-${size}`, 1.2, `mixed-${size}`, command, "list")),
  ),
  ratio("`list -a` without cache to C, mixed-2000", 3, "mixed-2000", "list -a cold", "C list -a"),
  ratio("`list -a` with cache to C, mixed-2000", 1.6, "mixed-2000", "list -a warm", "C list -a"),
  ratio("`--version` to an empty binary", 1.5, "mixed-10", "--version", "empty"),
  ratio("`--help` to an empty binary", 1.5, "mixed-10", "--help", "empty"),
  ratio("`statusline` to `list`, mixed-2000", 1.1, "mixed-2000", "statusline", "list"),
  {
    statement: "peak memory of `list` at 10,000",
    about: ["mixed-10000", "list"],
    limit: 60,
    unit: "MB",
    bound: "at most",
    value: (results) => results.peakMb("mixed-10000", "list"),
  },
  ...readers.map(
    ([reader, words]): Target => ({
      statement: `speed of token totals to that of reading, ${words}`,
      about: ["tokens", "status LARGE cold"],
      limit: 0.45,
      unit: "×",
      bound: "at least",
      value: (results) => results.ratio("tokens", reader, "status LARGE cold"),
    }),
  ),
  {
    statement: "read for token totals after 10 KB were added, beyond what `list` reads",
    about: ["tokens", "status LARGE warm"],
    limit: 1,
    unit: "MB",
    bound: "at most",
    value(results) {
      const [warm, list] = [results.row("tokens", "status LARGE warm").traced, results.row("tokens", "list").traced];
      return warm === null || list === null ? null : Math.max(0, warm.bytes - list.bytes) / 1e6;
    },
  },
  {
    statement: "`launch` adds to the agent's own start (medians)",
    about: ["launch", "launch demo"],
    limit: 50,
    unit: "ms",
    bound: "at most",
    value(results) {
      const [launch, agent] = [results.median("launch", "launch demo"), results.median("launch", "demo agent")];
      return launch === null || agent === null ? null : launch - agent;
    },
  },
];

export const passes = ({ bound, limit }: Target, value: number): boolean =>
  bound === "at most" ? value <= limit : value >= limit;
