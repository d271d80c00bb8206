// How records of JSON lines are read: from their end for the last turn, then from their start for the first prompt. An agent only
// provides the steps that differ.
import { emptyRecord, type NativeRecord, noFacts, type Turn } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { TurnReason } from "../core/reason.ts";
import type { Line, RecordFile } from "./adapter.ts";

interface RecordRules<T> {
  agent: string;
  parse(value: unknown): T | null;
  isKnown(row: T): boolean;
  /** The number of first lines that are searched for the first prompt; absent: they are not read. */
  headLines?: number;
  /** The steps share variables, and write into the record. */
  open(record: NativeRecord, file: RecordFile): RecordSteps<T>;
}

/** In the order in which they are called. */
interface RecordSteps<T> {
  /** The beginning or the end of the last turn was found: older lines are only read for facts such as the model. */
  isTurnFound(): boolean;
  hasAllFacts(): boolean;
  mayMatter?(line: Buffer): boolean;
  /** For each line from the end, until every fact is known. */
  fact?(row: T): void;
  /** For each line of the last turn, newest first. */
  add(row: T): void;
  /** The state of the last turn; null: the line that shows it was not read. */
  turn(): Turn | null;
  /** Why a record that was read to its start does not show its turn; absent or null: it has none. */
  missing?(): TurnReason | null;
  /** For each of the first lines, until the first prompt is known. */
  first?(row: T, index: number): void;
  /** Completes the record; not null: it is not a record of this session. */
  finish?(): UnknownShape | null;
}

export type UnknownShape = "record-unknown-shape" | "another-id-inside" | "compressed";

/** The number of lines before the last turn that are searched for facts. */
const mostFactLines = 200;

export function recordParser<T>(rules: RecordRules<T>): (file: RecordFile) => Reading<NativeRecord> {
  return (file) => {
    const record = openRecord(file);
    const steps = rules.open(record, file);
    const { lines, isEmpty } = readEnd(file, record, rules, steps);
    if (isForeign(file, lines, isEmpty)) return unknownRecord(rules.agent, file);
    const why = steps.missing?.() ?? null;
    const noTurn: Turn = why === null ? { state: "none" } : { state: "unclear", why };
    record.turn = readableTurn(file, record, isEmpty, steps.turn()) ?? noTurn;
    const { headLines } = rules;
    for (const { row, index } of headLines === undefined ? [] : firstRows(file.forward(), headLines, rules.parse)) {
      if (row !== null) steps.first?.(row, index);
      if (record.facts.prompt !== null) break;
    }
    const refused = steps.finish?.() ?? null;
    return refused === null ? read(record) : unknownRecord(rules.agent, file, refused);
  };
}

/** A record to write into. */
export const openRecord = (file: RecordFile): NativeRecord => ({ ...emptyRecord(file), facts: { ...noFacts } });

/** Reads all lines of the last turn, then older ones until every fact is known. Returns the number of lines that were understood. */
function readEnd<T>(
  file: RecordFile,
  record: NativeRecord,
  { parse, isKnown }: RecordRules<T>,
  steps: RecordSteps<T>,
): { lines: number; isEmpty: boolean } {
  const seen = { lines: 0, isEmpty: true };
  let factLines = 0;
  for (const line of file.backward(steps.mayMatter)) {
    seen.isEmpty = false;
    const isOlder = steps.isTurnFound();
    if (isOlder) factLines += 1;
    if (isOlder && (factLines > mostFactLines || steps.hasAllFacts())) break;
    const row = line.ok ? parse(line.value) : null;
    if (row !== null) steps.fact?.(row);
    if (isOlder) continue;
    if (row === null) {
      record.skippedLines += 1;
      continue;
    }
    seen.lines += 1;
    if (!isKnown(row)) record.unknownLines += 1;
    steps.add(row);
  }
  return seen;
}

/** The first lines of a record, with their position. A line that `parse` does not understand becomes null. */
export function* firstRows<T>(
  lines: Iterable<Line>,
  maxLines: number,
  parse: (value: unknown) => T | null,
): Generator<{ row: T | null; index: number }> {
  let index = 0;
  for (const line of lines) {
    yield { row: line.ok ? parse(line.value) : null, index };
    index += 1;
    if (index >= maxLines) return;
  }
}

/** The file contains no line of this agent, nor the start of a first line that is still being written. */
export const isForeign = (file: RecordFile, lines: number, isEmpty: boolean): boolean =>
  lines === 0 && !(isEmpty && file.startsLikeJson);

/** The turn that was found (null: none), unless damage may hide a newer one. `isEmpty`: the file has no complete line. */
export function readableTurn(
  file: RecordFile,
  { skippedLines }: NativeRecord,
  isEmpty: boolean,
  found: Turn | null,
): Turn | null {
  if (file.torn && !isEmpty) return { state: "unclear", why: { code: "last-line-incomplete" } };
  if (skippedLines > 0) return { state: "unclear", why: { code: "broken-lines" } };
  if (found === null && file.size > file.tailBytes) return { state: "unclear", why: { code: "turn-too-long" } };
  return found;
}

export const unknownRecord = (
  agent: string,
  { path }: RecordFile,
  code: UnknownShape = "record-unknown-shape",
): Reading<never> => unread({ code: "record-unrecognized", agent, source: path, detail: { code } });
