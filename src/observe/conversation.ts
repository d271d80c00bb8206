// A session's record as a conversation: from the end as far back as someone wants to read, or whole from its start. A fork
// that has no copy of its history continues in the record it came from.
import type { Adapter, LineFacts } from "../adapters/adapter.ts";
import { type Bytes, endOfLines, linesBackward, linesForward, readChunk } from "../lib/jsonl.ts";
import { closeFile, type OpenFile } from "./files.ts";
import { findRecords } from "./names.ts";
import { type FoundRecord, openRecord, parseJson, recordFile, tailLimit } from "./records.ts";

/** Where a conversation is written. `file.subject` is the session's id. */
export interface RecordPlace {
  adapter: Adapter;
  home: string;
  file: FoundRecord;
}

/** One line of a record. Broken: no JSON, or (raw null) too long to be read. Unknown: of a kind that the adapter does not know. */
export type Entry =
  | { kind: "known"; raw: Buffer; facts: LineFacts }
  | { kind: "unknown"; raw: Buffer }
  | { kind: "broken"; raw: Buffer | null };

/** How far a record was read: the end of its last complete line, and what stood before it, to know the place again. */
export interface Mark {
  offset: number;
  before: Buffer;
}

/** One of the records of a conversation. */
export interface Chapter {
  file: FoundRecord;
  /** How far it was written when we looked. */
  mark: Mark;
  /** What it says later belongs to itself alone, not to its fork. */
  until: number;
}

export interface History {
  own: Chapter;
  /** The record that the own one continues, then the one before that, and so on. */
  earlier: Chapter[];
  /** The id of a record that should come before, and is not there. */
  missing: string | null;
}

/** null: nobody has written a record of this session. Throws where a folder could not be listed: then nobody knows. */
export function findRecord(adapter: Adapter, home: string, id: string): FoundRecord | null {
  const { visited, failures } = findRecords(adapter, home);
  const record = visited.find(({ subject }) => subject === id);
  const [failure] = failures.filter(({ begins }) => begins === null || id.startsWith(begins));
  if (record === undefined && failure !== undefined)
    throw Object.assign(new Error(`${failure.path}: ${failure.message}`), { code: "EIO" });
  return record ?? null;
}

export function readHistory({ adapter, home, file }: RecordPlace): History {
  let { mark, origin } = readOrigin(adapter, file);
  const own: Chapter = { file, mark, until: Number.POSITIVE_INFINITY };
  const earlier: Chapter[] = [];
  const seen = new Set([file.subject]);
  // A record that continues itself, over whatever detours, has no beginning: what was found is all there is.
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

/** The record that this one continues, and when it left it. */
function readOrigin(adapter: Adapter, file: FoundRecord): { mark: Mark; origin: { id: string; at: number } | null } {
  const open = openRecord(file);
  try {
    const mark = markIn(open, 0);
    const id = adapter.historyOf(recordFile(file, open));
    if (id === null) return { mark, origin: null };
    const record = adapter.parseRecord(recordFile(file, open));
    const at = record.ok ? record.value.createdAt : null;
    return { mark, origin: { id, at: at ?? Number.POSITIVE_INFINITY } };
  } finally {
    closeFile(open);
  }
}

/** Newest first, chapter after chapter; reads no further than it is asked. */
export function* entriesBackward(adapter: Adapter, chapters: readonly Chapter[]): Generator<Entry> {
  for (const chapter of chapters) {
    let after = Number.isFinite(chapter.until);
    for (const entry of linesOf(chapter, (bytes, end) => linesBackward(bytes, end, tailLimit), adapter)) {
      after &&= !(timeOf(entry) <= chapter.until);
      if (!after) yield entry;
    }
  }
}

/** Oldest first. */
export function* entriesForward(adapter: Adapter, chapters: readonly Chapter[]): Generator<Entry> {
  for (const chapter of chapters.toReversed())
    for (const entry of linesOf(chapter, linesForward, adapter)) {
      if (timeOf(entry) > chapter.until) break;
      yield entry;
    }
}

/** When a line was written, as far as its messages say so; NaN compares as neither before nor after. */
const timeOf = (entry: Entry): number =>
  (entry.kind === "known" ? entry.facts.messages.find(({ at }) => at !== null)?.at : null) ?? Number.NaN;

function* linesOf(
  { file, mark }: Chapter,
  lines: (bytes: Bytes, end: number) => Iterable<Buffer | null>,
  adapter: Adapter,
): Generator<Entry> {
  const open = openRecord(file);
  try {
    for (const line of lines(open.bytes, mark.offset)) if (line?.length !== 0) yield entryOf(adapter, line);
  } finally {
    closeFile(open);
  }
}

export function entryOf(adapter: Adapter, raw: Buffer | null): Entry {
  const line = raw === null ? null : parseJson(raw);
  if (raw === null || !line?.ok) return { kind: "broken", raw };
  const facts = adapter.parseLine(line.value);
  return facts === null ? { kind: "unknown", raw } : { kind: "known", raw, facts };
}

const markBytes = 1024;

export const startMark: Mark = { offset: 0, before: Buffer.alloc(0) };

/** The end of the last complete line from `from` on. */
export function markIn({ bytes, size }: OpenFile, from: number): Mark {
  const offset = endOfLines(bytes, from, size);
  const length = Math.min(offset, markBytes);
  return { offset, before: readChunk(bytes, offset - length, length) };
}

/** Does the file still say what it said where we stopped? Not after it was cut or written anew. */
export const isSameFile = ({ bytes, size }: OpenFile, { offset, before }: Mark): boolean =>
  size >= offset && readChunk(bytes, offset - before.length, before.length).equals(before);
