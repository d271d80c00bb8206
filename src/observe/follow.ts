// A record as it grows: each complete line soon after it was written. The kernel says when to look.
import { basename, dirname } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { linesForward } from "../lib/jsonl.ts";
import { openChanges, watchNearest } from "../sys/changes.ts";
import { type Entry, entryOf, isSameFile, type Mark, markIn, startMark } from "./conversation.ts";
import { isGone } from "./failure.ts";
import { closeFile, type OpenFile } from "./files.ts";
import { mayHang, mountTable } from "./mounts.ts";
import { type FoundRecord, openRecord } from "./records.ts";

/** Rewritten: the record was cut or replaced, its lines come again from the start. Gone: it may come back. */
export type Followed = Entry | { kind: "rewritten" } | { kind: "gone" };

/**
 * Looked at by the clock: what another machine may write to a shared disk, of which this kernel knows nothing, and what is put
 * together from files that only the adapter knows.
 */
const soonMs = 1_000;
/** A net for what no kernel tells: a file that is written through a mapping, a mount that comes between. */
const sweepMs = 10_000;

/** Never ends by itself; whoever has seen enough returns it. */
export async function* follow(adapter: Adapter, record: FoundRecord, from: Mark): AsyncGenerator<Followed> {
  const { path } = record;
  const changes = openChanges();
  const { assembled } = record.set;
  const isAssembled = assembled !== undefined;
  const mostMs = assembled?.sessions === null || mayHang(path, mountTable()) ? soonMs : sweepMs;
  const shown = isAssembled ? linesUntil(record, from) : null;
  let mark = from;
  let there = true;
  try {
    for (;;) {
      // Before the look: what happens after it is told. The folder, too, so that a file put in its place is seen; a database
      // is written through files that are named like it.
      watchNearest(path, changes);
      watchNearest(dirname(path), changes, (name) => name.startsWith(basename(path)));
      const open = openIfThere(record);
      if (open === null && there) yield { kind: "gone" };
      there = open !== null;
      if (open !== null) {
        try {
          if (!isSameFile(open, mark)) {
            mark = startMark;
            if (!isAssembled) yield { kind: "rewritten" };
          }
          const next = markIn(open, mark.offset);
          for (const line of linesForward(open.bytes, next.offset, mark.offset))
            if (line?.length !== 0 && isNew(line, shown)) yield entryOf(adapter, line);
          mark = next;
        } finally {
          closeFile(open);
        }
      }
      await changes.next(mostMs);
    }
  } finally {
    changes.close();
  }
}

/** What is assembled may get a line between two others: each is told once. null: lines only ever come at the end. */
function isNew(line: Buffer | null, shown: Set<string> | null): boolean {
  if (shown === null || line === null) return true;
  const text = line.toString("utf8");
  if (shown.has(text)) return false;
  shown.add(text);
  return true;
}

function linesUntil(record: FoundRecord, { offset }: Mark): Set<string> {
  const open = openIfThere(record);
  if (open === null) return new Set();
  const lines = [...linesForward(open.bytes, Math.min(offset, open.size))];
  return new Set(lines.map((line) => line?.toString("utf8") ?? ""));
}

/** The complete lines that came after the mark, and how far that is now. A record that was replaced is read from its start. */
export function readMore(adapter: Adapter, record: FoundRecord, from: Mark): { entries: Entry[]; mark: Mark } {
  const open = openIfThere(record);
  if (open === null) return { entries: [], mark: from };
  try {
    const mark = isSameFile(open, from) ? from : startMark;
    const next = markIn(open, mark.offset);
    const lines = [...linesForward(open.bytes, next.offset, mark.offset)];
    return { entries: lines.filter((line) => line?.length !== 0).map((line) => entryOf(adapter, line)), mark: next };
  } finally {
    closeFile(open);
  }
}

function openIfThere(record: FoundRecord): OpenFile | null {
  try {
    return openRecord(record);
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}
