// Reads lines of a file or a buffer from either end, in chunks, so that a caller who needs three lines does not read the whole file.
import { readSync } from "node:fs";

/** Most callers need a few lines; each further chunk is twice as large. */
const firstChunkBytes = 16 * 1024;
const chunkBytes = 128 * 1024;

/** Longer lines are skipped: reading them takes too long. */
const longestLine = 8 * 1024 * 1024;

const newline = 10;

/** An open file, or its content. */
export type Bytes = number | Buffer;

export type Read = (fd: number, into: Buffer, offset: number, length: number, position: number) => number;

/** "passing": the caller is done with a line before it asks for the next one, so all lines may share one buffer. */
type Use = "kept" | "passing";

/** Reused, because touching new memory costs more than reading into it. null while a reader uses it. */
let spare: Buffer | null = null;

function* withMemory(use: Use, lines: (memory: Buffer | null) => Generator<Buffer | null>): Generator<Buffer | null> {
  if (use === "kept") {
    yield* lines(null);
    return;
  }
  const memory = spare ?? Buffer.allocUnsafeSlow(chunkBytes);
  spare = null;
  try {
    yield* lines(memory);
  } finally {
    spare = memory;
  }
}

/** Complete lines, oldest first; `from` must be the start of a line. null stands for a line that is too long. */
export const linesForward = (bytes: Bytes, size: number, from = 0, use: Use = "kept"): Generator<Buffer | null> =>
  withMemory(use, (memory) => forward(bytes, size, from, memory));

function* forward(bytes: Bytes, size: number, from: number, memory: Buffer | null): Generator<Buffer | null> {
  let carried: Buffer[] = [];
  let carriedBytes = 0;
  let step = firstChunkBytes;
  for (let position = from; position < size; step = Math.min(2 * step, chunkBytes)) {
    const chunk = readChunk(bytes, position, Math.min(step, size - position), readSync, memory);
    if (chunk.length === 0) return;
    position += chunk.length;
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      const tooLong = carriedBytes + end - start > longestLine;
      const rest = chunk.subarray(start, end);
      yield tooLong ? null : carried.length === 0 ? rest : Buffer.concat([...carried, rest]);
      carried = [];
      carriedBytes = 0;
      start = end + 1;
    }
    carriedBytes += chunk.length - start;
    if (carriedBytes <= longestLine) carried.push(lasting(chunk.subarray(start), memory));
    else carried = [];
  }
}

const lasting = (part: Buffer, memory: Buffer | null): Buffer => (memory === null ? part : Buffer.from(part));

/** Complete lines, newest first, from the last `most` bytes. null stands for a line that is too long. */
export const linesBackward = (bytes: Bytes, size: number, most: number, use: Use = "kept"): Generator<Buffer | null> =>
  withMemory(use, (memory) => backward(bytes, size, most, memory));

function* backward(bytes: Bytes, size: number, most: number, memory: Buffer | null): Generator<Buffer | null> {
  let later: Buffer[] = [];
  let laterBytes = 0;
  // The bytes after the last newline are a line that is still being written: skip them.
  let insideLine = false;
  const stop = Math.max(0, size - most);
  let step = firstChunkBytes;
  for (let position = size; position > stop; step = Math.min(2 * step, chunkBytes)) {
    const from = Math.max(stop, position - step);
    const chunk = readChunk(bytes, from, position - from, readSync, memory);
    if (chunk.length < position - from) return;
    position = from;
    let end = chunk.length;
    for (let at = chunk.lastIndexOf(newline); at !== -1; at = end > 0 ? chunk.lastIndexOf(newline, end - 1) : -1) {
      if (insideLine) yield lineOf(chunk.subarray(at + 1, end), later, laterBytes);
      insideLine = true;
      later = [];
      laterBytes = 0;
      end = at;
    }
    laterBytes += end;
    if (insideLine && laterBytes <= longestLine) later.unshift(lasting(chunk.subarray(0, end), memory));
    else later = [];
  }
  if (stop === 0 && insideLine && laterBytes > 0) yield lineOf(Buffer.alloc(0), later, laterBytes);
}

/** The block size for searching, where nearly all lines are skipped. */
const blockBytes = 256 * 1024;

/** A text to search for, or a key with its value, like `"done":true`. Blanks around the colon do not matter. */
export interface Needle {
  before: Buffer;
  /** Begins with a rare letter: searching for it takes half the time. */
  rare: Buffer;
  value: Buffer | null;
}

export function needleOf(text: string): Needle {
  const [, key = text, value = null] = /^(".*"):(.*)$/.exec(text) ?? [];
  const at = Math.max(0, key.search(/[_A-Zjqxz]/));
  return {
    before: Buffer.from(key.slice(0, at)),
    rare: Buffer.from(key.slice(at)),
    value: value === null ? null : Buffer.from(value),
  };
}

/** A line as a range of a block. The block is valid only during the call. */
type UseLine = (block: Buffer, from: number, to: number) => void;

/** Calls `use` for each line with one of these texts. Returns where it ended: before `size` if the file has become shorter. */
export function eachLineWith(
  needles: readonly Needle[],
  [bytes, from, size]: [bytes: Bytes, from: number, size: number],
  use: UseLine,
  read: Read = readSync,
): number {
  if (typeof bytes !== "number") {
    linesIn(bytes.subarray(from, endOfLines(bytes, from, size)), needles, use);
    return size;
  }
  let block = Buffer.allocUnsafe(Math.min(blockBytes, Math.max(1, size - from)));
  let held = 0;
  let isTooLong = false;
  for (let position = from; position < size; ) {
    if (held === block.length) block = Buffer.concat([block], 2 * block.length);
    const got = read(bytes, block, held, Math.min(block.length - held, size - position), position);
    if (got === 0) return position;
    position += got;
    const filled = held + got;
    const end = block.subarray(held, filled).lastIndexOf(newline) + 1 + held;
    if (end === held) {
      isTooLong ||= filled > longestLine;
      held = isTooLong ? 0 : filled;
      continue;
    }
    linesIn(block.subarray(isTooLong ? block.indexOf(newline) + 1 : 0, end), needles, use);
    isTooLong = false;
    block.copy(block, 0, end, filled);
    held = filled - end;
  }
  return size;
}

/** Searches for the texts first and for line ends only around them: that is much faster than splitting into lines. */
function linesIn(block: Buffer, needles: readonly Needle[], use: UseLine): void {
  const next = needles.map((needle) => placeOf(needle, block, 0));
  for (;;) {
    let at = Number.POSITIVE_INFINITY;
    for (const place of next) if (place < at) at = place;
    if (at === Number.POSITIVE_INFINITY) return;
    const start = block.lastIndexOf(newline, at) + 1;
    const end = block.indexOf(newline, at);
    if (end - start <= longestLine) use(block, start, end);
    for (let index = 0; index < next.length; index += 1) {
      const needle = needles[index];
      if (needle !== undefined && (next[index] ?? 0) < end) next[index] = placeOf(needle, block, end);
    }
  }
}

function placeOf({ before, rare, value }: Needle, block: Buffer, from: number): number {
  for (let at = block.indexOf(rare, from + before.length); at !== -1; at = block.indexOf(rare, at + 1))
    if (standsAt(before, block, at - before.length) && (value === null || isValue(value, block, at + rare.length)))
      return at;
  return Number.POSITIVE_INFINITY;
}

/** A loop is faster than Buffer.compare for so few bytes. */
function standsAt(text: Buffer, block: Buffer, at: number): boolean {
  for (let index = 0; index < text.length; index += 1) if (block[at + index] !== text[index]) return false;
  return true;
}

function isValue(value: Buffer, block: Buffer, behindKey: number): boolean {
  const colon = afterBlanks(block, behindKey);
  return block[colon] === 58 && standsAt(value, block, afterBlanks(block, colon + 1));
}

function afterBlanks(block: Buffer, from: number): number {
  let at = from;
  while (block[at] === 32 || block[at] === 9 || block[at] === 13) at += 1;
  return at;
}

/** The end of the last complete line between two positions; `from` if there is none. */
export function endOfLines(bytes: Bytes, from: number, size: number, read: Read = readSync): number {
  for (let position = size; position > from; ) {
    const start = Math.max(from, position - chunkBytes);
    const at = readChunk(bytes, start, position - start, read).lastIndexOf(newline);
    if (at !== -1) return start + at + 1;
    position = start;
  }
  return from;
}

function lineOf(head: Buffer, later: Buffer[], laterBytes: number): Buffer | null {
  if (head.length + laterBytes > longestLine) return null;
  return later.length === 0 ? head : Buffer.concat([head, ...later]);
}

export function readChunk(
  bytes: Bytes,
  position: number,
  length: number,
  read: Read = readSync,
  memory: Buffer | null = null,
): Buffer {
  if (typeof bytes !== "number") return bytes.subarray(position, position + length);
  const chunk = memory ?? Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const got = read(bytes, chunk, filled, length - filled, position + filled);
    if (got === 0) break;
    filled += got;
  }
  return chunk.subarray(0, filled);
}
