// A session's record as a conversation: from the end as far back as someone wants to read, or whole from its start. A fork
// that has no copy of its history continues in the record it came from.
import { closeSync } from "node:fs";
import type { Adapter, LineFacts } from "../adapters/adapter.ts";
import { endOfLines, linesBackward, linesForward, readChunk } from "../lib/jsonl.ts";
import { type FoundFile, findFiles, type OpenFile, openFile, withFile } from "./files.ts";
import { parseJson, recordFile, tailLimit } from "./stores.ts";

/** Where a conversation is written. `file.subject` is the session's id. */
export interface RecordPlace {
  adapter: Adapter;
  home: string;
  file: FoundFile;
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
  file: FoundFile;
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
export function findRecord(adapter: Adapter, home: string, id: string): FoundFile | null {
  const found = adapter.records.map((set) => findFiles(home, set));
  const file = found.flatMap(({ files }) => files).find(({ subject }) => subject === id);
  const [failure] = found.flatMap(({ failures }) => failures);
  if (file === undefined && failure !== undefined)
    throw Object.assign(new Error(`${failure.path}: ${failure.message}`), { code: "EIO" });
  return file ?? null;
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
function readOrigin(adapter: Adapter, file: FoundFile): { mark: Mark; origin: { id: string; at: number } | null } {
  return withFile(file.path, (open) => {
    const mark = markIn(open, 0);
    const id = adapter.historyOf(recordFile(file, open));
    if (id === null) return { mark, origin: null };
    const record = adapter.parseRecord(recordFile(file, open));
    const at = record.ok ? record.value.createdAt : null;
    return { mark, origin: { id, at: at ?? Number.POSITIVE_INFINITY } };
  });
}

/** Newest first, chapter after chapter; reads no further than it is asked. */
export function* entriesBackward(adapter: Adapter, chapters: readonly Chapter[]): Generator<Entry> {
  for (const chapter of chapters) {
    let after = Number.isFinite(chapter.until);
    for (const entry of linesOf(chapter, (fd, end) => linesBackward(fd, end, tailLimit), adapter)) {
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
  lines: (fd: number, end: number) => Iterable<Buffer | null>,
  adapter: Adapter,
): Generator<Entry> {
  const { fd } = openFile(file.path);
  try {
    for (const line of lines(fd, mark.offset)) if (line?.length !== 0) yield entryOf(adapter, line);
  } finally {
    closeSync(fd);
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
export function markIn({ fd, size }: OpenFile, from: number): Mark {
  const offset = endOfLines(fd, from, size);
  const length = Math.min(offset, markBytes);
  return { offset, before: readChunk(fd, offset - length, length) };
}

/** Does the file still say what it said where we stopped? Not after it was cut or written anew. */
export const isSameFile = ({ fd, size }: OpenFile, { offset, before }: Mark): boolean =>
  size >= offset && readChunk(fd, offset - before.length, before.length).equals(before);
