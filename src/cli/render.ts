// Tables, colours and durations for people.

import type { Problem } from "../core/problem.ts";
import { cut, oneLine, pad, width } from "../lib/width.ts";
import { type Control, isTerminal, sealed, terminalSize } from "../sys/stdout.ts";
import { problemText } from "../words/problems.ts";
import type { Context } from "./command.ts";

export interface Terminal {
  columns: number;
  colour: boolean;
}

const plainColumns = 120;

/** Without a terminal lines are longer than 80 columns: programs that read a pipe need the text. */
export function terminalOf({ env }: Context): Terminal {
  const columns = terminalSize()?.columns ?? null;
  const asked = Number(env["COLUMNS"]);
  const wide = Number.isInteger(asked) && asked > 0 ? asked : plainColumns;
  return { columns: columns ?? wide, colour: isTerminal(1) && !env["NO_COLOR"] && env["TERM"] !== "dumb" };
}

export type Colour = Exclude<Control, "plain" | "home" | `${string}-${string}`>;

export const paint = (text: string, colour: Colour | null, { colour: on }: Terminal): string =>
  on && colour !== null ? `${sealed(colour)}${text}${sealed("plain")}` : text;

const statusColours: Record<string, Colour> = {
  waiting: "yellow",
  working: "green",
  idle: "blue",
  starting: "cyan",
  unclear: "cyan",
  unknown: "red",
  failed: "red",
  "cut-off": "red",
  interrupted: "red",
};

export const statusColour = (word: string): Colour => statusColours[word] ?? "dim";

export interface Column {
  title: string;
  /** The last column takes what is left; the others are as wide as their widest cell, up to this. */
  most?: number;
  /** On a narrow terminal the columns with the highest number go first; without one it stays. */
  dropped?: number;
  /** Paths lose their middle: the last folder says most. */
  shortened?: "middle";
}

export interface Cell {
  text: string;
  colour?: Colour;
}

/** The width that the last column needs to be worth reading. */
const leastForLast = (available: number): number => Math.min(24, Math.floor(available / 5));

/** Shortens a text in its middle: the end of a path says most. */
export function cutMiddle(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  const head = cut(text, Math.ceil(columns / 3));
  let tail = "";
  for (const character of [...text].toReversed()) {
    if (width(head) + width(character + tail) > columns) break;
    tail = character + tail;
  }
  return head + tail;
}

export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[], terminal: Terminal): string {
  const texts = rows.map((row) => row.map((cell) => ({ ...cell, text: oneLine(cell.text) })));
  const widths = columns.map(({ title, most }, index) => {
    const widest = Math.max(width(title), ...texts.map((row) => width(row[index]?.text ?? "")));
    return Math.min(widest, most ?? widest);
  });
  const kept = keptColumns(columns, widths, terminal.columns);
  const used = kept.slice(0, -1).reduce((sum, index) => sum + (widths[index] ?? 0) + 2, 0);
  const last = Math.max(0, terminal.columns - used);
  const line = (cells: readonly Cell[]): string =>
    kept
      .map((index, position) => {
        const cell = cells[index] ?? { text: "" };
        const isLast = position === kept.length - 1;
        const shorten = columns[index]?.shortened === "middle" ? cutMiddle : cut;
        const text = shorten(cell.text, isLast ? last : (widths[index] ?? 0));
        return paint(isLast ? text : pad(text, widths[index] ?? 0), cell.colour ?? null, terminal);
      })
      .join("  ")
      .trimEnd();
  const head = line(columns.map(({ title }) => ({ text: title, colour: "dim" })));
  return `${[head, ...texts.map(line)].join("\n")}\n`;
}

function keptColumns(columns: readonly Column[], widths: readonly number[], available: number): number[] {
  const kept = columns.map((_, index) => index);
  const used = () => kept.slice(0, -1).reduce((sum, index) => sum + (widths[index] ?? 0) + 2, 0);
  while (available - used() < leastForLast(available)) {
    const candidates = kept.filter((index) => columns[index]?.dropped !== undefined);
    const [first] = candidates.toSorted((a, b) => (columns[b]?.dropped ?? 0) - (columns[a]?.dropped ?? 0));
    if (first === undefined) break;
    kept.splice(kept.indexOf(first), 1);
  }
  return kept;
}

/** "42s", "14m", "3h", "5d": one unit, rounded down. */
export function shortDuration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

/** "2026-11-18 13:45:10+01:00": local time with its offset. null: not a time of any calendar. */
export function localTime(at: number | null): string | null {
  if (at === null || !(Math.abs(at) <= 8.64e15)) return null;
  const date = new Date(at);
  const offset = -date.getTimezoneOffset();
  const two = (part: number): string => String(Math.trunc(Math.abs(part))).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${day} ${clock}${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`;
}

/** "$1.24"; "~$1.24" where it is an estimate. */
export function costText({
  costUsd,
  costSource,
}: {
  costUsd: number | null;
  costSource: string | null;
}): string | null {
  if (costUsd === null) return null;
  const digits = costUsd > 0 && costUsd < 0.01 ? 4 : 2;
  return `${costSource === "agent" ? "" : "~"}$${costUsd.toFixed(digits)}`;
}

export const deniedText = (count: number): string =>
  count === 1 ? "1 tool call was denied" : `${count} tool calls were denied`;

/** "950", "12.3k", "4.5M". */
export function shortCount(count: number): string {
  if (count < 1_000) return String(count);
  return count < 999_950 ? `${(count / 1e3).toFixed(1)}k` : `${(count / 1e6).toFixed(1)}M`;
}

const byteUnits = ["B", "KB", "MB", "GB", "TB"];

export function shortBytes(bytes: number): string {
  const step = Math.min(byteUnits.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1024)));
  const value = bytes / 1024 ** step;
  return `${step === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} ${byteUnits[step]}`;
}

export function homeRelative(path: string, { env }: Context): string {
  const home = env["HOME"];
  if (!home || home === "/") return path;
  return path === home ? "~" : path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** Shortens every path below the home directory inside a sentence. */
export const withTilde = (text: string, { env }: Context): string =>
  env["HOME"] && env["HOME"] !== "/" ? text.replaceAll(`${env["HOME"]}/`, "~/") : text;

/** For counting a record: one that cannot be read is reported on stderr. */
export const countingFor = ({ env, err }: Context) => ({
  env,
  onUnreadable: (message: string) => err(`agentctl: ${oneLine(message)}\n`),
});

/** Problems go to stderr, so that stdout stays the answer. */
export function problemLines(problems: readonly Pick<Problem, "source" | "detail">[]): string {
  const shown = problems
    .slice(0, 5)
    .map((problem) => `agentctl: ${oneLine(problem.source)}: ${oneLine(problemText(problem))}\n`);
  const more = problems.length > 5 ? `agentctl: … and ${problems.length - 5} more; agentctl doctor shows them\n` : "";
  return shown.join("") + more;
}
