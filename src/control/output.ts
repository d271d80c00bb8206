// What a launched agent wrote to its standard output and its standard error.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { plainText } from "../lib/width.ts";
import { isGone } from "../observe/failure.ts";

const partBytes = 256 * 1024;
const shownLines = 12;

/** Empty where there is no such file. */
export const headOf = (path: string): Buffer => part(path, () => 0);

/** The last lines of a file, for people. */
export function lastLines(path: string): string {
  const text = plainText(part(path, (size) => Math.max(0, size - partBytes)).toString("utf8"));
  return text.trimEnd().split("\n").slice(-shownLines).join("\n").trim();
}

/** Its first line, too, where that is not among them: some say why they end, and then everything that they could do. */
export function firstAndLastLines(path: string): string {
  const last = lastLines(path);
  const lines = plainText(headOf(path).toString("utf8")).trim().split("\n");
  return lines.length <= shownLines ? last : `${lines[0]}\n…\n${last}`;
}

/** The last lines of a file as they are. */
export function linesAtEnd(path: string): Buffer[] {
  const bytes = part(path, (size) => Math.max(0, size - partBytes));
  const lines: Buffer[] = [];
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(10, from);
    lines.push(bytes.subarray(from, end === -1 ? bytes.length : end));
    from = end === -1 ? bytes.length : end + 1;
  }
  return lines;
}

function part(path: string, from: (size: number) => number): Buffer {
  try {
    const fd = openSync(path, "r");
    try {
      const { size } = fstatSync(fd);
      const buffer = Buffer.alloc(Math.min(size, partBytes));
      return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, from(size)));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (isGone(error)) return Buffer.alloc(0);
    throw error;
  }
}

/** A whole file, piece by piece; nothing where there is none. */
export function* chunksOf(path: string): Generator<Buffer> {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    if (isGone(error)) return;
    throw error;
  }
  try {
    const buffer = Buffer.alloc(partBytes);
    for (let got = readSync(fd, buffer); got > 0; got = readSync(fd, buffer)) yield buffer.subarray(0, got);
  } finally {
    closeSync(fd);
  }
}
