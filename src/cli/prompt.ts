// The prompt of a launch, a run or a send: words, -p, a file, or stdin. Reads it whole and checks that it is text.
import { closeSync, fstatSync, openSync } from "node:fs";
import { Failure, UsageError } from "../core/failure.ts";
import { errorCode, failureText } from "../lib/errors.ts";
import { readToEnd } from "../sys/stdin.ts";
import { isTerminal } from "../sys/stdout.ts";
import { type Arguments, type FlagSpec, usage } from "./arguments.ts";

export const promptFlags: readonly FlagSpec[] = [
  { flag: "--prompt", short: "-p", value: "TEXT", help: "the prompt; may begin with a dash" },
  { flag: "--file", short: "-F", value: "FILE", help: "the prompt from a file" },
];

const maxBytes = 16 * 1024 * 1024;

/** `words`: the words that are not an agent or a reference. */
export function readPrompt(args: Arguments, words: readonly string[], command: string): string {
  const [word, extra] = words;
  const meant = branchMeant(args, words);
  if (extra !== undefined) throw usage(`put the prompt in quotes; unexpected argument: ${extra}`, command, meant);
  const sources = [word, args.one("--prompt"), args.one("--file")].filter((source) => source != null);
  if (sources.length > 1) throw usage("the prompt was given twice", command, meant);
  if (sources.length === 0) throw noPrompt(command);
  const file = args.one("--file");
  const bytes = file !== null && file !== "-" ? readFile(file) : word === "-" || file === "-" ? readStdin() : null;
  const text = bytes === null ? (word ?? args.one("--prompt") ?? "") : decode(bytes);
  if (text.includes("\0")) throw usage("the prompt contains a NUL character, which no agent accepts", command);
  if (text.trim() === "") throw usage("the prompt is empty", command);
  return text;
}

/** A word right after --worktree may be meant as its branch, which needs =. */
export function branchMeant(args: Arguments, words: readonly string[]): string | null {
  const word = args.behind("--worktree");
  return word !== null && words.includes(word) && !/\s/.test(word) ? `--worktree=${word}` : null;
}

export const noPrompt = (command: string): UsageError =>
  usage(`${command} needs a prompt: TEXT, -p TEXT, -F FILE, or - for standard input`, command);

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
  if (error instanceof Failure) return error;
  const why = errorCode(error) === "ENOENT" ? "no such file" : failureText(error);
  return new UsageError(`cannot read the prompt from ${source}: ${why}`, { cause: error });
}

function readStdin(): Buffer {
  if (isTerminal(0)) throw new UsageError("standard input is a terminal", { hint: "echo TEXT | agentctl launch … -" });
  try {
    return readAll(0);
  } catch (error) {
    throw unreadable("standard input", error);
  }
}

function readAll(fd: number): Buffer {
  const bytes = readToEnd(fd, maxBytes);
  if (bytes === null) throw new UsageError(`the prompt is longer than ${maxBytes} bytes`);
  return bytes;
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw new UsageError("the prompt is not text: not UTF-8", { cause: error });
  }
}
