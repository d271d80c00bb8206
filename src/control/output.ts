// What a launched agent wrote to its standard output and its standard error.
import { readChunk } from "../lib/jsonl.ts";
import { plainText } from "../lib/width.ts";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { withOwnFile } from "../observe/own-files.ts";

const partBytes = 256 * 1024;
const shownLines = 12;

/** Empty where there is no such file. */
export const headOf = (path: string): Buffer => part(path, () => 0);

/** The last lines of a file, for people. */
export function lastLines(path: string): string {
  return toPeople(path, (size) => Math.max(0, size - partBytes))
    .trimEnd()
    .split("\n")
    .slice(-shownLines)
    .join("\n")
    .trim();
}

/** Its first line, too, where that is not among them: some say why they end, and then everything that they could do. */
export function firstAndLastLines(path: string): string {
  const last = lastLines(path);
  const lines = toPeople(path, () => 0)
    .trim()
    .split("\n");
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

function toPeople(path: string, from: (size: number) => number): string {
  try {
    return plainText(part(path, from).toString("utf8"));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return `(${path} cannot be read: ${failureText(error)})`;
  }
}

function part(path: string, from: (size: number) => number): Buffer {
  try {
    return withOwnFile(path, ({ bytes, size }) => readChunk(bytes, from(size), Math.min(size, partBytes)));
  } catch (error) {
    if (isGone(error)) return Buffer.alloc(0);
    throw error;
  }
}

/** A whole file, piece by piece; nothing where there is none. */
export function eachChunk(path: string, use: (chunk: Buffer) => void): void {
  try {
    withOwnFile(path, ({ bytes, size }) => {
      for (let at = 0; at < size; at += partBytes) use(readChunk(bytes, at, Math.min(partBytes, size - at)));
    });
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}
