// Reads the standard output and the standard error of a launched agent.

import { errorCode, failureText, isGone, tryOr } from "../lib/errors.ts";
import { readChunk } from "../lib/jsonl.ts";
import { plainText } from "../lib/width.ts";
import { withOwnFile } from "../observe/own-files.ts";

const partBytes = 256 * 1024;
const shownLines = 12;
const fromStart = (): number => 0;
const fromEnd = (size: number): number => Math.max(0, size - partBytes);

/** Empty if there is no such file. */
export const headOf = (path: string): Buffer => part(path, fromStart);

/** The last lines, cleaned for a terminal. */
export const lastLines = (path: string): string =>
  toPeople(path, fromEnd).trimEnd().split("\n").slice(-shownLines).join("\n").trim();

/** The last lines, and the first line if it is not among them: some programs print the error first and then their whole help. */
export function firstAndLastLines(path: string): string {
  const last = lastLines(path);
  const lines = toPeople(path, fromStart).trim().split("\n");
  return lines.length <= shownLines ? last : `${lines[0]}\n…\n${last}`;
}

export function linesAtEnd(path: string): Buffer[] {
  const bytes = part(path, fromEnd);
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

const part = (path: string, from: (size: number) => number): Buffer =>
  tryOr(
    Buffer.alloc(0),
    () => withOwnFile(path, ({ bytes, size }) => readChunk(bytes, from(size), Math.min(size, partBytes))),
    isGone,
  );

/** Reads a whole file in chunks. Does nothing if there is no such file. */
export function eachChunk(path: string, use: (chunk: Buffer) => void): void {
  const readAll = () =>
    withOwnFile(path, ({ bytes, size }) => {
      for (let at = 0; at < size; at += partBytes) use(readChunk(bytes, at, Math.min(partBytes, size - at)));
    });
  tryOr(undefined, readAll, isGone);
}
