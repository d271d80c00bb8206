// What every command is: a summary, its flags, examples, and what it does. Its --help is made from the same table.
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import type { Environment } from "../observe/homes.ts";
import { type Arguments, closest, type FlagSpec, parseArguments, usage } from "./arguments.ts";

export interface Context {
  env: Environment;
  cwd: string;
  /** Bytes only where another program's own lines must come out as they are. */
  out(text: string | Buffer): void;
  err(text: string): void;
}

export interface Command {
  usage: string;
  summary: string;
  /** More to say, in whole lines. */
  notes?: string;
  /** "none": a word is a mistake; absent: the command looks at its words itself. */
  words?: "none";
  /** What stands behind `--` is handed on as it is. */
  behindDashes?: "handed on";
  flags: readonly FlagSpec[];
  examples: readonly [command: string, meaning: string][];
  /** Returns the exit code. */
  run(args: Arguments, context: Context): Promise<number>;
}

const helpFlag: FlagSpec = { flag: "--help", short: "-h", help: "show this" };

export async function runCommand(
  command: Command,
  name: string,
  args: readonly string[],
  context: Context,
): Promise<number> {
  const parsed = parseArguments(args, [...command.flags, helpFlag], name, command.behindDashes);
  if (parsed.has("--help")) {
    context.out(helpOf(command));
    return 0;
  }
  if (command.words === "none" && parsed.words.length > 0)
    throw usage(`${name === "" ? "agentctl" : name} takes no words: ${parsed.words[0]}`, name);
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

export function unknownCommand(name: string, known: readonly string[]): AgentctlError {
  if (name.startsWith("-"))
    return new AgentctlError("usage", `unknown option ${oneLine(name)}`, { hint: "agentctl --help" });
  const near = closest(name, known);
  const hint = near === null ? "agentctl --help" : `did you mean ${near}? agentctl --help`;
  return new AgentctlError("usage", `unknown command ${oneLine(name)}`, { hint });
}
