// Reads a record as a conversation, backward from its end or forward from its start. If a fork has no copy of its history, the
// conversation includes the record that it was forked from.
import type { Adapter, LineFacts } from "../agents/adapter.ts";
import { type Bytes, endOfLines, linesBackward, linesForward, readChunk } from "../lib/jsonl.ts";
import { DetailError } from "./failure.ts";
import { closedAfter, closeFile, type OpenFile } from "./files.ts";
import { findRecords } from "./record-names.ts";
import { type FoundRecord, openRecord, parseJson, recordFile, tailLimit } from "./records.ts";

/** `file.subject` is the id of the session. */
export interface RecordPlace {
  adapter: Adapter;
  home: string;
  file: FoundRecord;
}

/** One line of a record. Broken: not JSON, or too long (raw is null). Unknown: the adapter does not know this kind of line. */
export type ConversationEntry =
  | { kind: "known"; raw: Buffer; facts: LineFacts }
  | { kind: "unknown"; raw: Buffer }
  | { kind: "broken"; raw: Buffer | null };

/** The end of the last complete line that was read, and the bytes before it, which show whether the file was rewritten. */
export interface Mark {
  offset: number;
  before: Buffer;
}

export interface Chapter {
  file: FoundRecord;
  /** The end of the record when it was read. */
  mark: Mark;
  /** Later lines do not belong to the fork. */
  until: number;
}

export interface History {
  own: Chapter;
  /** The record that the own one continues, then the one before that, and so on. */
  earlier: Chapter[];
  /** The id of an earlier record that does not exist. */
  missing: string | null;
}

/** null: this session has no record. Throws if an unreadable folder may contain it. */
export function findRecord(adapter: Adapter, home: string, id: string): FoundRecord | null {
  const { visited, failures } = findRecords(adapter, home);
  const record = visited.find(({ subject }) => subject === id);
  const [failure] = failures.filter(({ begins }) => begins === null || id.startsWith(begins));
  if (record === undefined && failure !== undefined)
    throw Object.assign(new DetailError(failure.detail), { code: "EIO", path: failure.path });
  return record ?? null;
}

export function readHistory({ adapter, home, file }: RecordPlace): History {
  let { mark, origin } = readOrigin(adapter, file);
  const own: Chapter = { file, mark, until: Number.POSITIVE_INFINITY };
  const earlier: Chapter[] = [];
  const seen = new Set([file.subject]);
  // Stops at a record that is already part of the history.
  for (let until = own.until; origin !== null && !seen.has(origin.id); ) {
    const parent = findRecord(adapter, home, origin.id);
    if (parent === null) return { own, earlier, missing: origin.id };
    seen.add(origin.id);
    until = Math.min(until, origin.at);
    ({ mark, origin } = readOrigin(adapter, parent));
    earlier.push({ file: parent, mark, until });
  }
  return { own, earlier, missing: null };
}

/** The record that this one continues, and the time of the fork. */
function readOrigin(adapter: Adapter, file: FoundRecord): { mark: Mark; origin: { id: string; at: number } | null } {
  return closedAfter(openRecord(file), (open) => {
    const mark = markIn(open, 0);
    const id = adapter.historyOf?.(recordFile(file, open)) ?? null;
    if (id === null) return { mark, origin: null };
    const record = adapter.parseRecord(recordFile(file, open));
    const at = record.ok ? record.value.createdAt : null;
    return { mark, origin: { id, at: at ?? Number.POSITIVE_INFINITY } };
  });
}

/** Newest first. Reads only as far as the caller iterates. */
export function* entriesBackward(adapter: Adapter, chapters: readonly Chapter[]): Generator<ConversationEntry> {
  for (const chapter of chapters) {
    let after = Number.isFinite(chapter.until);
    for (const entry of linesOf(chapter, (bytes, end) => linesBackward(bytes, end, tailLimit), adapter)) {
      after &&= !(timeOf(entry) <= chapter.until);
      if (!after) yield entry;
    }
  }
}

/** Oldest first. */
export function* entriesForward(adapter: Adapter, chapters: readonly Chapter[]): Generator<ConversationEntry> {
  for (const chapter of chapters.toReversed())
    for (const entry of linesOf(chapter, linesForward, adapter)) {
      if (timeOf(entry) > chapter.until) break;
      yield entry;
    }
}

/** The time of the first message with a time. NaN: none; it compares as neither before nor after. */
const timeOf = (entry: ConversationEntry): number =>
  (entry.kind === "known" ? entry.facts.messages.find(({ at }) => at !== null)?.at : null) ?? Number.NaN;

function* linesOf(
  { file, mark }: Chapter,
  lines: (bytes: Bytes, end: number) => Iterable<Buffer | null>,
  adapter: Adapter,
): Generator<ConversationEntry> {
  const open = openRecord(file);
  try {
    for (const line of lines(open.bytes, mark.offset)) if (line?.length !== 0) yield entryOf(adapter, line);
  } finally {
    closeFile(open);
  }
}

export function entryOf(adapter: Adapter, raw: Buffer | null): ConversationEntry {
  const line = raw === null ? null : parseJson(raw);
  if (raw === null || !line?.ok) return { kind: "broken", raw };
  const facts = adapter.parseLine(line.value);
  return facts === null ? { kind: "unknown", raw } : { kind: "known", raw, facts };
}

const markBytes = 1024;

export const startMark: Mark = { offset: 0, before: Buffer.alloc(0) };

export function markIn({ bytes, size }: OpenFile, from: number): Mark {
  const offset = endOfLines(bytes, from, size);
  const length = Math.min(offset, markBytes);
  return { offset, before: readChunk(bytes, offset - length, length) };
}

/** false: the file was truncated or rewritten. */
export const isSameFile = ({ bytes, size }: OpenFile, { offset, before }: Mark): boolean =>
  size >= offset && readChunk(bytes, offset - before.length, before.length).equals(before);
