// A file that is there whole or not at all, readable by its owner only.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

let counter = 0;

/** "soon": after a power cut it may be there in part; for what can be told from that, and made again. */
export function writeFileAtomically(path: string, text: string, durable: "now" | "soon" = "now"): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  counter += 1;
  const temporary = `${path}.${process.pid}.${counter}.tmp`;
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

/** On a disk that is nearly full a write takes a part, and only the next one fails. */
export function writeWhole(fd: number, text: string): void {
  const bytes = Buffer.from(text, "utf8");
  for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
}
