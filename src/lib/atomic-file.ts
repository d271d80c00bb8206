// A file that is there whole or not at all, readable by its owner only.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** "soon": after a power cut it may be there in part; for what can be told from that, and made again. */
export function writeFileAtomically(path: string, text: string, durable: "now" | "soon" = "now"): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, text, durable);
}

/**
 * The same in a folder that is there. The text is written to a new file beside it: a link at this path is replaced, not followed,
 * and a link at the other one, whose name nobody can know before, is an error.
 */
export function replaceFile(path: string, text: string, durable: "now" | "soon" = "now"): void {
  const temporary = `${path}.${process.pid}.${crypto.randomUUID().slice(0, 8)}${temporaryEnd}`;
  const fd = openSync(temporary, "wx", 0o600);
  try {
    try {
      writeWhole(fd, text);
      if (durable === "now") fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/** By it files are known whose writer was killed before they were whole. */
export const temporaryEnd = ".tmp";

/** On a disk that is nearly full a write takes a part, and only the next one fails. */
export function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text, "utf8");
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
}
