// Flags and words of a command line, checked against what the command says it takes.
import { AgentctlError } from "../core/problem.ts";

export interface FlagSpec {
  /** "--since" */
  flag: string;
  short?: string;
  /** What stands behind it, for the help; absent: a switch. */
  value?: string;
  /** Only as --flag=VALUE; without one it is a switch. */
  optional?: boolean;
  repeated?: boolean;
  help: string;
}

export interface Arguments {
  words: string[];
  /** What stands behind `--`, for commands that hand it on; elsewhere these are words. */
  rest: string[];
  has(flag: string): boolean;
  one(flag: string): string | null;
  all(flag: string): string[];
  /** The word that stands behind a flag which takes its value with = alone: perhaps it was meant as that. */
  behind(flag: string): string | null;
}

export function parseArguments(
  args: readonly string[],
  specs: readonly FlagSpec[],
  command: string,
  behindDashes: "words" | "handed on" = "words",
): Arguments {
  const words: string[] = [];
  const rest: string[] = [];
  const values = new Map<string, string[]>();
  const behind = new Map<string, string>();
  const queue = [...args];
  for (let argument = queue.shift(); argument !== undefined; argument = queue.shift()) {
    if (argument === "--") {
      (behindDashes === "words" ? words : rest).push(...queue);
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

/** The same with other words, and with these flags as given here; none: as if it had not been given. */
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

/** `--flag=value`; short flags never carry one. */
function splitOnce(argument: string): [string, string?] {
  const equals = argument.indexOf("=");
  return equals === -1 || !argument.startsWith("--")
    ? [argument]
    : [argument.slice(0, equals), argument.slice(equals + 1)];
}

export function usage(message: string, command: string, suggestion: string | null = null): AgentctlError {
  const more = `agentctl ${command} --help`.replace("  ", " ");
  return new AgentctlError("usage", message, {
    hint: suggestion === null ? more : `did you mean ${suggestion}? ${more}`,
  });
}

const nearest = (name: string, specs: readonly FlagSpec[]): string | null =>
  closest(
    name,
    specs.map((spec) => spec.flag),
  );

/** The known word within two typing slips, if there is one. */
export function closest(word: string, known: readonly string[]): string | null {
  const ranked = known
    .map((candidate) => ({ candidate, slips: distance(word, candidate) }))
    .sort((a, b) => a.slips - b.slips);
  const [best] = ranked;
  return best !== undefined && best.slips <= 2 ? best.candidate : null;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitution));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

const units: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `10m`, `2h`, `7d` in milliseconds. */
export function parseDuration(text: string, command: string): number {
  const [, number, unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
  if (number === undefined || unit === undefined)
    throw usage(`not a duration: ${text} (like 90s, 10m, 2h, 7d)`, command);
  return Number(number) * (units[unit] ?? 0);
}
