// Lines of a file or of bytes in memory, oldest or newest first, read in chunks so that a caller who needs three lines reads three lines.
import { readSync } from "node:fs";

/** Most callers need a few lines; each further chunk is twice as large. */
const firstChunkBytes = 16 * 1024;
const chunkBytes = 128 * 1024;

/** A longer line is passed over: it costs more to read than any fact in it is worth. */
const longestLine = 8 * 1024 * 1024;

const newline = 10;

/** An open file, or its content. */
export type Bytes = number | Buffer;

export type Read = (fd: number, into: Buffer, offset: number, length: number, position: number) => number;

/** Are lines kept by those who read them, or is each over when the next one comes? Then the same memory serves for all. */
type Use = "kept" | "passing";

/** Memory that was never touched costs more than reading into it. Nobody's while somebody reads. */
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

/** Complete lines from the start, or from where a line begins; null stands for one that is too long. What follows the last newline is not a line yet. */
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

/** Complete lines from the end, up to `most` bytes back; null stands for one that is too long. */
export const linesBackward = (bytes: Bytes, size: number, most: number, use: Use = "kept"): Generator<Buffer | null> =>
  withMemory(use, (memory) => backward(bytes, size, most, memory));

function* backward(bytes: Bytes, size: number, most: number, memory: Buffer | null): Generator<Buffer | null> {
  let later: Buffer[] = [];
  let laterBytes = 0;
  // Before the first newline from the end stands a line that is still being written: not a line.
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

/** What is read at once where nearly all of it is passed over. */
const blockBytes = 256 * 1024;

/**
 * A text to look for, or a key with its value, like `"done":true`: then blanks around the colon do not matter. Bytes are searched
 * for the part from a rare letter on, which takes half the time; what stands around it is compared.
 */
export interface Needle {
  before: Buffer;
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

/** A line, as a part of a block that is good only until the next one. */
type UseLine = (block: Buffer, from: number, to: number) => void;

/**
 * Hands on the complete lines with one of these texts in them, oldest first. Lines that are too long are passed over. Answers how
 * far it came: not to `size` where the file has become shorter.
 */
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

/** Nobody looks for the other lines' ends: finding a text is faster by far. */
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

/** By hand: to compare so few bytes takes less time than to ask the runtime for it. */
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

/** Where the last complete line between two positions ends; `from` if there is none. */
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
