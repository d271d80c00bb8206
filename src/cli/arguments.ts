// Parses the flags and words of a command line, and checks them against the command's own table.
import { UsageError } from "../core/failure.ts";

export interface FlagSpec {
  /** "--since" */
  flag: string;
  short?: string;
  /** The name of its value in the help; absent: a switch. */
  value?: string;
  /** The value may be left out, and is given as --flag=VALUE only. */
  optional?: boolean;
  repeated?: boolean;
  help: string;
}

export interface Arguments {
  words: string[];
  /** The words after `--`, for commands that hand them on; for other commands these are ordinary words. */
  rest: string[];
  has(flag: string): boolean;
  one(flag: string): string | null;
  all(flag: string): string[];
  /** The word after a flag that takes its value only with `=`: it may have been meant as the value. */
  behind(flag: string): string | null;
}

export function parseArguments(
  args: readonly string[],
  specs: readonly FlagSpec[],
  command: string,
  afterDashes: "words" | "handed on" = "words",
): Arguments {
  const words: string[] = [];
  const rest: string[] = [];
  const values = new Map<string, string[]>();
  const behind = new Map<string, string>();
  const queue = [...args];
  for (let argument = queue.shift(); argument !== undefined; argument = queue.shift()) {
    if (argument === "--") {
      (afterDashes === "words" ? words : rest).push(...queue);
      break;
    }
    if (!argument.startsWith("-") || argument === "-") {
      words.push(argument);
      continue;
    }
    const [name = "", attached] = splitOnce(argument);
    const spec = specs.find((candidate) => candidate.flag === name || candidate.short === name);
    if (spec === undefined) throw usage(`unknown option ${name}`, command, nearest(name, specs));
    const given = values.get(spec.flag) ?? [];
    if (spec.optional === true) {
      given.push(attached ?? "");
      const [next] = queue;
      if (attached === undefined && next !== undefined && !next.startsWith("-")) behind.set(spec.flag, next);
    } else if (spec.value === undefined) {
      if (attached !== undefined) throw usage(`${spec.flag} takes no value`, command);
      given.push("");
    } else {
      const value = attached ?? queue.shift();
      if (value === undefined) throw usage(`${spec.flag} needs a value: ${spec.flag} ${spec.value}`, command);
      if (given.length > 0 && spec.repeated !== true) throw usage(`${spec.flag} was given twice`, command);
      given.push(value);
    }
    values.set(spec.flag, given);
  }
  return {
    words,
    rest,
    has: (flag) => values.has(flag),
    one: (flag) => values.get(flag)?.[0] ?? null,
    all: (flag) => values.get(flag) ?? [],
    behind: (flag) => behind.get(flag) ?? null,
  };
}

/** A copy with other words and with these flags replaced; an empty list removes the flag. */
export function argumentsWith(
  args: Arguments,
  flags: Readonly<Record<string, readonly string[]>>,
  words: readonly string[],
): Arguments {
  const own = (flag: string): readonly string[] | undefined => (Object.hasOwn(flags, flag) ? flags[flag] : undefined);
  return {
    words: [...words],
    rest: args.rest,
    has: (flag) => (own(flag) === undefined ? args.has(flag) : own(flag)?.length !== 0),
    one: (flag) => (own(flag) === undefined ? args.one(flag) : (own(flag)?.[0] ?? null)),
    all: (flag) => [...(own(flag) ?? args.all(flag))],
    behind: args.behind,
  };
}

/** Splits `--flag=value`. Short flags cannot have a value with `=`. */
function splitOnce(argument: string): [string, string?] {
  const equals = argument.indexOf("=");
  return equals === -1 || !argument.startsWith("--")
    ? [argument]
    : [argument.slice(0, equals), argument.slice(equals + 1)];
}

export const unexpected = (word: string, command: string): UsageError => usage(`unexpected argument: ${word}`, command);

export function usage(message: string, command: string, suggestion: string | null = null): UsageError {
  const more = `agentctl ${command} --help`.replace("  ", " ");
  return new UsageError(message, {
    hint: suggestion === null ? more : `did you mean ${suggestion}? ${more}`,
  });
}

/** The reference of a command that takes one session and no other words. */
export function referenceIn([reference, extra]: readonly string[], command: string): string {
  if (reference === undefined) throw usage(`${command} needs a session`, command);
  if (extra !== undefined) throw usage(`${command} takes one session; unexpected argument: ${extra}`, command);
  return reference;
}

const longestName = 200;

/** `what`: the flag or the word that gave the name. */
export function checkName(name: string, what: string, command: string): void {
  if (name.length > longestName) throw usage(`${what} may have at most ${longestName} characters`, command);
  if (!/^[\p{L}\p{N} ._/-]*$/u.test(name)) throw usage(`${what} takes letters, digits, spaces and . _ / -`, command);
  if (!/^[\p{L}\p{N}]/u.test(name)) throw usage(`${what} must begin with a letter or a digit`, command);
}

const nearest = (name: string, specs: readonly FlagSpec[]): string | null =>
  closest(
    name,
    specs.map((spec) => spec.flag),
  );

/** The known word that differs by at most two typing slips, which must be less than half of either word. */
export function closest(word: string, known: readonly string[]): string | null {
  const [best] = known
    .map((candidate) => ({ candidate, slips: countSlips(word, candidate) }))
    .filter(({ candidate, slips }) => slips <= 2 && slips * 2 < Math.min(word.length, candidate.length))
    .sort((a, b) => a.slips - b.slips);
  return best?.candidate ?? null;
}

/** Edit distance; two neighbours that changed places are one slip. */
function countSlips(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j += 1) {
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : replaced;
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped));
    }
  }
  return at(a.length, b.length);
}

const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `10m`, `2h`, `7d` in milliseconds. */
export function parseDuration(text: string, command: string): number {
  const [, number, unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw usage(`not a duration: ${text} (like 90s, 10m, 2h, 7d)`, command);
  return Number(number) * (units[unit] ?? 0);
}

export const labelsOf = (args: Arguments, command: string): [key: string, value: string][] =>
  args.all("--label").map((label) => {
    const [, key, value] = /^([^=\s]+)=([\s\S]*)$/.exec(label) ?? [];
    if (key === undefined || value === undefined) throw usage(`--label takes KEY=VALUE, not ${label}`, command);
    return [key, value];
  });
