// Follows a record: yields each complete line soon after it is written. The kernel reports when the file changes.
import { basename, dirname } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { isGone, tryOr } from "../lib/errors.ts";
import { linesForward } from "../lib/jsonl.ts";
import { openChangeWatch, watchNearest } from "../sys/change-watch.ts";
import { type ConversationEntry, entryOf, isSameFile, type Mark, markIn, startMark } from "./conversation.ts";
import { closedAfter, closeFile, type OpenFile } from "./files.ts";
import { mayHang, mountTable } from "./mounts.ts";
import { type FoundRecord, openRecord } from "./records.ts";

/** Rewritten: the record was truncated or replaced, and its lines come again from the start. Gone: the file may come back. */
export type Followed = ConversationEntry | { kind: "rewritten" } | { kind: "gone" };

/** For records without notices of the kernel: those on shared disks, and those that an adapter assembles from several files. */
const soonMs = 1_000;
/** For the rare change without a notice: a write through a memory map, a new mount. */
const sweepMs = 10_000;

/** Never ends; the caller ends it with return(). */
export async function* follow(adapter: Adapter, record: FoundRecord, from: Mark): AsyncGenerator<Followed> {
  const { path } = record;
  const changes = openChangeWatch();
  const { assembled } = record.set;
  const maxMs = assembled?.sessions === null || mayHang(path, mountTable()) ? soonMs : sweepMs;
  const shown = assembled === undefined ? null : linesUntil(record, from);
  let mark = from;
  let isThere = true;
  try {
    for (;;) {
      // Watching before reading misses no change. The folder is watched, too: the file may be replaced, and a database is written
      // through files with similar names.
      watchNearest(path, changes);
      watchNearest(dirname(path), changes, (name) => name.startsWith(basename(path)));
      const open = openIfThere(record);
      if (open === null && isThere) yield { kind: "gone" };
      isThere = open !== null;
      if (open !== null) {
        try {
          if (!isSameFile(open, mark)) {
            mark = startMark;
            if (assembled === undefined) yield { kind: "rewritten" };
          }
          const next = markIn(open, mark.offset);
          for (const line of linesForward(open.bytes, next.offset, mark.offset))
            if (line?.length !== 0 && isNew(line, shown)) yield entryOf(adapter, line);
          mark = next;
        } finally {
          closeFile(open);
        }
      }
      await changes.next(maxMs);
    }
  } finally {
    changes.close();
  }
}

/** In an assembled record a new line may appear anywhere, so all shown lines are remembered. null: new lines come at the end. */
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
  return new Set(linesForward(open.bytes, Math.min(offset, open.size)).map((line) => line?.toString("utf8") ?? ""));
}

interface MoreEntries {
  entries: ConversationEntry[];
  mark: Mark;
}

/** Reads the complete lines after the mark, and returns the new mark. Reads a replaced record from its start. */
export function readMore(adapter: Adapter, record: FoundRecord, from: Mark): MoreEntries {
  const open = openIfThere(record);
  if (open === null) return { entries: [], mark: from };
  return closedAfter(open, () => {
    const { offset } = isSameFile(open, from) ? from : startMark;
    const mark = markIn(open, offset);
    const lines = linesForward(open.bytes, mark.offset, offset).filter((line) => line?.length !== 0);
    return { entries: [...lines.map((line) => entryOf(adapter, line))], mark };
  });
}

const openIfThere = (record: FoundRecord): OpenFile | null => tryOr(null, () => openRecord(record), isGone);
