// Writes files that are either complete or absent, readable by their owner only.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** "soon" skips fsync: after a power cut the file may be incomplete. Only for files that detect this and can be made again. */
export function writeFileAtomically(path: string, text: string, durable: "now" | "soon" = "now"): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  replaceFile(path, text, durable);
}

/** The same in an existing folder. A symbolic link at the path is replaced, never followed. */
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

/** Marks files whose writer was killed before they were complete. */
export const temporaryEnd = ".tmp";

/** On a nearly full disk a write may succeed in part, and only the next write fails. */
export function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text, "utf8");
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
}
