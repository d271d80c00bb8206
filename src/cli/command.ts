// The type of a command. One table of flags makes its --help and checks its arguments.
import { UsageError } from "../core/failure.ts";
import { oneLine } from "../lib/width.ts";
import type { LookContext } from "../service/look.ts";
import { type Arguments, closest, type FlagSpec, parseArguments, unexpected } from "./arguments.ts";

export interface Context {
  env: LookContext["env"];
  cwd: string;
  /** Bytes only for lines of another program that must stay unchanged. */
  out(text: string | Buffer): void;
  err(text: string): void;
}

export interface Command {
  usage: string;
  summary: string;
  /** Whole lines between usage and options. */
  notes?: string;
  /** "none": any word is an error; absent: the command checks its words itself. */
  words?: "none";
  /** "handed on": agentctl passes the words after `--` to the agent. */
  afterDashes?: "handed on";
  flags: readonly FlagSpec[];
  examples: readonly [command: string, meaning: string][];
  /** Returns the exit code. */
  run(args: Arguments, context: Context): Promise<number>;
}

const helpFlag: FlagSpec = { flag: "--help", short: "-h", help: "this help" };

export async function runCommand(
  command: Command,
  name: string,
  args: readonly string[],
  context: Context,
): Promise<number> {
  const parsed = parseArguments(args, [...command.flags, helpFlag], name, command.afterDashes);
  if (parsed.has("--help")) {
    context.out(helpOf(command));
    return 0;
  }
  if (command.words === "none" && parsed.words.length > 0) throw unexpected(parsed.words[0] ?? "", name);
  return await command.run(parsed, context);
}

function helpOf(command: Command): string {
  const flags = [...command.flags, helpFlag].map((spec) => [flagText(spec), spec.help] as const);
  const sections = [
    `${command.summary}\n\nUsage: ${command.usage}`,
    command.notes,
    `Options:\n${columns(flags)}`,
    `Examples:\n${columns(command.examples)}`,
  ];
  return `${sections.filter((section) => section !== undefined).join("\n\n")}\n`;
}

const flagText = ({ flag, short, value, optional, repeated }: FlagSpec): string => {
  const behind = value === undefined ? "" : optional === true ? `[=${value}]` : ` ${value}`;
  return `${short === undefined ? "" : `${short}, `}${flag}${behind}${repeated === true ? " …" : ""}`;
};

function columns(rows: readonly (readonly [string, string])[]): string {
  const left = Math.max(...rows.map(([text]) => text.length));
  return rows.map(([text, meaning]) => `  ${text.padEnd(left)}  ${meaning}`).join("\n");
}

const removalHint = "agentctl prune deletes files of finished launches; agentctl worktree remove removes a worktree";

export function unknownCommand(name: string, suggestible: readonly string[]): UsageError {
  const what = name.startsWith("-") ? "option" : "command";
  const near = what === "command" ? closest(name, suggestible) : null;
  const help = near === null ? "agentctl --help" : `did you mean ${near}? agentctl --help`;
  const hint = name === "rm" ? removalHint : help;
  return new UsageError(`unknown ${what} ${oneLine(name)}`, { hint });
}
