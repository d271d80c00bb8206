// A record as it grows: each complete line soon after it was written. The kernel says when to look; a slow sweep looks
// anyway, for file systems whose changes nobody announces.
import { type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { linesForward } from "../lib/jsonl.ts";
import { type Entry, entryOf, isSameFile, type Mark, markIn, startMark } from "./conversation.ts";
import { errorCode, isGone } from "./failure.ts";
import { closeFile, type OpenFile } from "./files.ts";
import { type FoundRecord, openRecord } from "./records.ts";

/** Rewritten: the record was cut or replaced, its lines come again from the start. Gone: it may come back. */
export type Followed = Entry | { kind: "rewritten" } | { kind: "gone" };

const sweepMs = 1_000;

/** Bun 1.4.4 drops what happens within a millisecond of an event it told: after each one we look once more. */
const settleMs = 20;

/** Never ends by itself; whoever has seen enough returns it. */
export async function* follow(adapter: Adapter, record: FoundRecord, from: Mark): AsyncGenerator<Followed> {
  const bell = new Bell(record.path);
  const isAssembled = record.set.assembled !== undefined;
  const shown = isAssembled ? linesUntil(record, from) : null;
  let mark = from;
  let there = true;
  let rang = false;
  try {
    for (;;) {
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
      rang = await bell.rung(rang ? settleMs : sweepMs);
    }
  } finally {
    bell.close();
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

/** Rings when something happens to a file. Its folder is watched, so that a file put in its place is seen as well. */
class Bell {
  private watcher: FSWatcher | null = null;
  /** The folder that is being watched: one that was removed and made anew is another one. */
  private folder = "";
  private pending = false;
  private wake: (() => void) | null = null;

  constructor(private readonly path: string) {
    this.watchFolder();
  }

  /** At once if it rang since the last time, else when it rings, at the latest after `mostMs`. Did it ring? */
  async rung(mostMs: number): Promise<boolean> {
    if (!this.pending) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, mostMs);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = null;
      this.watchFolder();
    }
    const rang = this.pending;
    this.pending = false;
    return rang;
  }

  close(): void {
    this.watcher?.close();
    this.watcher = null;
  }

  private watchFolder(): void {
    const folder = identityOf(dirname(this.path));
    if (this.watcher !== null && folder === this.folder) return;
    this.close();
    this.folder = folder;
    if (folder === "") return;
    try {
      this.watcher = watch(dirname(this.path), (_event, name) => {
        // A database is written through files that are named like it.
        if (name?.startsWith(basename(this.path)) !== false) this.ring();
      });
      this.watcher.on("error", () => this.close());
    } catch (error) {
      // Too many watches, or a folder that just went away: the sweep must do.
      if (errorCode(error) === "") throw error;
    }
  }

  private ring(): void {
    this.pending = true;
    this.wake?.();
  }
}

/** With its birth: file systems give the number of a removed folder to the next one. */
function identityOf(path: string): string {
  try {
    const { ino, birthtimeMs } = statSync(path);
    return `${ino} ${birthtimeMs}`;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return "";
  }
}
