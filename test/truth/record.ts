// The record of a demo session as its format page describes it: the lines to write, and what a file says when read.
// Written from that page alone; shares nothing with the product's parser.
import { readFileSync, statSync } from "node:fs";
import { errorCode } from "./proc.ts";

export const outcomes = ["completed", "failed", "interrupted"] as const;

export function recordLine(type: string, fields: Record<string, unknown>): string {
  return `${JSON.stringify({ type, at: new Date().toISOString(), ...fields })}\n`;
}

/** What is known from the lines: `null` in `outcome` means that no turn was closed last. */
export interface Turn {
  turn: "none" | "open" | "closed";
  question: string | null;
  outcome: string | null;
}

export type RecordReading =
  | { kind: "absent" }
  | { kind: "unreadable" }
  | { kind: "empty" }
  | { kind: "garbage" }
  /** The first line is not finished, and nothing follows. */
  | { kind: "torn-header" }
  /** Some lines are good, but the first is not the session's own. */
  | { kind: "headless"; says: Turn }
  | {
      kind: "record";
      cwd: string;
      lastAtMs: number;
      says: Turn;
      /** Torn at the end, or broken after the last turn mark: the turn cannot be known. */
      unclear: boolean;
      /** A broken line anywhere. */
      damaged: boolean;
      /** The last line is whole JSON without its newline: reading it is as right as not trusting it. */
      ifLastLineCounts: Turn | null;
    };

export function readRecord(path: string): RecordReading {
  try {
    // A FIFO would hang readFileSync: look at the kind first.
    if (!statSync(path).isFile()) return { kind: "unreadable" };
    return parseRecord(readFileSync(path));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { kind: "absent" };
    if (["ELOOP", "ENOTDIR", "EACCES", "EISDIR"].includes(errorCode(error))) return { kind: "unreadable" };
    throw error;
  }
}

function parseRecord(bytes: Uint8Array): RecordReading {
  if (bytes.length === 0) return { kind: "empty" };
  const pieces = new TextDecoder().decode(bytes).split("\n");
  const tail = pieces.pop() ?? "";
  const lines = pieces.map(parseLine);
  const good = lines.filter((line) => line !== null);
  if (good.length === 0) {
    return tail.startsWith("{") && pieces.length === 0 ? { kind: "torn-header" } : { kind: "garbage" };
  }
  const header = lines[0];
  const says = turnOf(lines);
  if (header?.["type"] !== "session") return { kind: "headless", says };
  const last = parseLine(tail);
  return {
    kind: "record",
    cwd: String(header["cwd"]),
    lastAtMs: Math.max(...good.map((line) => Date.parse(String(line["at"])))),
    says,
    unclear: tail !== "" || brokenAfterLastMark(lines),
    damaged: tail !== "" || lines.includes(null),
    ifLastLineCounts: last === null ? null : turnOf([...lines, last]),
  };
}

type Line = Record<string, unknown>;

function parseLine(text: string): Line | null {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
    const line: Line = { ...value };
    return typeof line["type"] === "string" && typeof line["at"] === "string" ? line : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function turnOf(lines: (Line | null)[]): Turn {
  const says: Turn = { turn: "none", question: null, outcome: null };
  for (const line of lines) {
    if (line?.["type"] === "prompt") Object.assign(says, { turn: "open", question: null, outcome: null });
    if (line?.["type"] === "end") Object.assign(says, { turn: "closed", question: null, outcome: line["outcome"] });
    if (line?.["type"] === "question") says.question = String(line["text"]);
    if (line?.["type"] === "answer") says.question = null;
  }
  return says;
}

function brokenAfterLastMark(lines: (Line | null)[]): boolean {
  const lastMark = lines.findLastIndex((line) => line?.["type"] === "prompt" || line?.["type"] === "end");
  return lines.slice(lastMark + 1).includes(null);
}
