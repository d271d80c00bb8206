// What a record says when it is read back, whole or damaged. Each format knows its own lines; shares nothing with the product.
import { readFileSync, statSync } from "node:fs";
import type { Fields, Reader } from "./format.ts";
import { demoFormat } from "./format-demo.ts";
import { errorCode } from "./proc.ts";

export const outcomes = ["completed", "failed", "interrupted"] as const;

/** Of a demo session. */
export function recordLine(type: string, fields: Fields): string {
  return `${JSON.stringify({ type, at: new Date().toISOString(), ...fields })}\n`;
}

export interface Line extends Fields {
  type: string;
  atMs: number;
  cwd: string | null;
}

/** What is known from the lines. */
export interface Turn {
  /** "unclear": whole lines that do not say. */
  turn: "none" | "open" | "closed" | "unclear";
  /** Waits for a person, and says so in the record. */
  question: string | null;
  /** A tool call without its result: what it is about. */
  pending: string | null;
  /** The record does not show whether that call waits for a person, or whether a closed turn continues. */
  doubt: boolean;
  /** null: no turn was closed last. */
  outcome: string | null;
  /** It failed for want of something that only a person can give. */
  needs: string | null;
  /** When it was opened, or closed. */
  markedAtMs: number | null;
}

export const noTurn: Turn = {
  turn: "none",
  question: null,
  pending: null,
  doubt: false,
  outcome: null,
  needs: null,
  markedAtMs: null,
};

export const openedAt = (markedAtMs: number): Turn => ({ ...noTurn, turn: "open", markedAtMs });

export function closed(outcome: string | null, needs: string | null, markedAtMs: number): Turn {
  return { ...noTurn, turn: "closed", outcome, needs, markedAtMs };
}

export type RecordReading =
  | { kind: "absent" }
  | { kind: "unreadable" }
  | { kind: "empty" }
  /** `lines`: at least one is complete. */
  | { kind: "garbage" }
  /** The first line is not finished, and nothing follows. */
  | { kind: "torn-header" }
  /** Some lines are good, but the first is not the session's own. */
  | { kind: "headless"; says: Turn }
  | {
      kind: "record";
      first: Line;
      cwd: string | null;
      lastAtMs: number;
      says: Turn;
      /** Torn at the end, or broken after the last turn mark: the turn cannot be known. */
      unclear: boolean;
      damaged: boolean;
      /** When the file was last written to; null: it is none. */
      writtenMs: number | null;
      /** The last line is whole JSON without its newline: reading it is as right as not trusting it. */
      ifLastLineCounts: Turn | null;
    };

export function readRecord(path: string, reader: Reader = demoFormat.reader): RecordReading {
  try {
    // A FIFO would hang readFileSync: look at the kind first.
    const state = statSync(path);
    if (!state.isFile()) return { kind: "unreadable" };
    return parseRecord(readFileSync(path), reader, state.mtimeMs);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { kind: "absent" };
    if (["ELOOP", "ENOTDIR", "EACCES", "EISDIR"].includes(errorCode(error))) return { kind: "unreadable" };
    throw error;
  }
}

/** What a database gave instead of a file: nothing is torn there, but a row may be broken. */
export function readLines(values: readonly Fields[], reader: Reader): RecordReading {
  return parseRecord(Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join("")), reader, null);
}

function parseRecord(bytes: Uint8Array, reader: Reader, writtenMs: number | null): RecordReading {
  if (bytes.length === 0) return { kind: "empty" };
  const pieces = new TextDecoder().decode(bytes).split("\n");
  const tail = pieces.pop() ?? "";
  const lines = pieces.map((text) => parseLine(text, reader));
  const good = lines.filter((line) => line !== null);
  if (good.length === 0) {
    const lines = pieces.length > 0;
    return tail.startsWith("{") && !lines ? { kind: "torn-header" } : { kind: "garbage" };
  }
  const [header = null] = lines;
  const says = reader.turnOf(good);
  if (header === null || !reader.isHeader(header)) return { kind: "headless", says };
  const last = parseLine(tail, reader);
  const messages = good.filter((line) => reader.isMessage?.(line) ?? true);
  return {
    kind: "record",
    first: header,
    cwd: good.find(({ cwd }) => cwd !== null)?.cwd ?? null,
    lastAtMs: Math.max(...(messages.length > 0 ? messages : good).map(({ atMs }) => atMs).filter(Number.isFinite)),
    says,
    unclear: tail !== "" || brokenAfterLastMark(lines, reader),
    damaged: tail !== "" || lines.includes(null),
    writtenMs,
    ifLastLineCounts: last === null ? null : reader.turnOf([...good, last]),
  };
}

function parseLine(text: string, reader: Reader): Line | null {
  const value = parseObject(text);
  return value === null ? null : reader.accept(value);
}

export function parseObject(text: string): Fields | null {
  try {
    const value: unknown = JSON.parse(text);
    return fieldsOf(value);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** A row of a database, as lines of a record have it. */
export function acceptRow(value: Fields): Line | null {
  const { type, at, cwd } = value;
  if (typeof type !== "string" || typeof at !== "number") return null;
  return { ...value, type, atMs: at, cwd: typeof cwd === "string" ? cwd : null };
}

export function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
}

function brokenAfterLastMark(lines: readonly (Line | null)[], reader: Reader): boolean {
  const lastMark = lines.findLastIndex((line) => line !== null && reader.isMark(line));
  return lines.slice(lastMark + 1).includes(null);
}
