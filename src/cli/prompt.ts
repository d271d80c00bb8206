// The prompt of a launch, a run or a send: words, -p, a file, or stdin. Text, whole, and not empty.
import { closeSync, fstatSync, openSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import { AgentctlError } from "../core/problem.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import { readToEnd } from "../sys/stdin.ts";
import { isTerminal } from "../sys/stdout.ts";
import { type Arguments, type FlagSpec, usage } from "./arguments.ts";

export const promptFlags: readonly FlagSpec[] = [
  { flag: "--prompt", short: "-p", value: "TEXT", help: "the prompt; may begin with a dash" },
  { flag: "--file", short: "-F", value: "FILE", help: "the prompt from a file" },
];

const mostBytes = 16 * 1024 * 1024;

/** `words`: what is left of the words once everything else was taken from them. */
export function readPrompt(args: Arguments, words: readonly string[], command: string): string {
  const [word, extra] = words;
  const meant = branchMeant(args, words);
  if (extra !== undefined) throw usage(`one prompt, please: put it in quotes (what is "${extra}"?)`, command, meant);
  const sources = [word, args.one("--prompt"), args.one("--file")].filter((source) => source != null);
  if (sources.length > 1) throw usage("the prompt was given twice", command, meant);
  if (sources.length === 0) throw noPrompt(command);
  const file = args.one("--file");
  const bytes = file !== null && file !== "-" ? readFile(file) : word === "-" || file === "-" ? readStdin() : null;
  const text = bytes === null ? (word ?? args.one("--prompt") ?? "") : decode(bytes);
  if (text.includes("\0")) throw usage("the prompt holds a NUL character, which no agent takes", command);
  if (text.trim() === "") throw usage("the prompt is empty", command);
  return text;
}

/** One of these words stands where the branch of --worktree would, if that were given without =. */
export function branchMeant(args: Arguments, words: readonly string[]): string | null {
  const word = args.behind("--worktree");
  return word !== null && words.includes(word) && !/\s/.test(word) ? `--worktree=${word}` : null;
}

export const noPrompt = (command: string): AgentctlError =>
  usage(`${command} needs a prompt: TEXT, -p TEXT, -F FILE, or - for standard input`, command);

/** Agents that take it as an argument: everybody can read it there, and the system limits its length. */
export function checkPromptFits(prompt: string, adapter: Adapter): void {
  const bytes = Buffer.byteLength(prompt);
  if (adapter.invocation.promptBy === "stdin" || bytes < longestArgument) return;
  const message = `the prompt is ${bytes} bytes long; ${adapter.title} takes it as an argument, which may have ${longestArgument}`;
  throw new AgentctlError("usage", message, { hint: "put the text into a file and let the prompt name it" });
}

/** MAX_ARG_STRLEN of Linux. */
const longestArgument = 128 * 1024;

function readFile(path: string): Buffer {
  try {
    const fd = openSync(path, "r");
    try {
      if (fstatSync(fd).isDirectory()) throw Object.assign(new Error(), { code: "EISDIR" });
      return readAll(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(source: string, error: unknown): unknown {
  if (error instanceof AgentctlError) return error;
  const why = errorCode(error) === "ENOENT" ? "no such file" : failureText(error);
  return new AgentctlError("usage", `cannot read the prompt from ${source}: ${why}`, { cause: error });
}

function readStdin(): Buffer {
  if (isTerminal(0))
    throw new AgentctlError("usage", "standard input is a terminal", { hint: "echo TEXT | agentctl launch … -" });
  try {
    return readAll(0);
  } catch (error) {
    throw unreadable("standard input", error);
  }
}

function readAll(fd: number): Buffer {
  const bytes = readToEnd(fd, mostBytes);
  if (bytes === null) throw new AgentctlError("usage", `the prompt is longer than ${mostBytes} bytes`);
  return bytes;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new AgentctlError("usage", "the prompt is no text: not UTF-8", { cause: error });
  }
}
