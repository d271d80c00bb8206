// Reads standard input and other descriptors to their end, and one line that a person types.
import { readSync } from "node:fs";
import { errorCode } from "../lib/errors.ts";

/** null: longer than `maxBytes`. */
export function readToEnd(fd: number, maxBytes: number): Buffer | null {
  const chunks: Buffer[] = [];
  for (let total = 0; ; ) {
    const chunk = Buffer.allocUnsafe(64 * 1024);
    const got = readSome(fd, chunk);
    if (got === 0) return Buffer.concat(chunks);
    total += got;
    if (total > maxBytes) return null;
    chunks.push(chunk.subarray(0, got));
  }
}

/** One line from a terminal, without its newline. "" if the terminal is closed. */
export function readLine(): string {
  const bytes: number[] = [];
  const one = Buffer.alloc(1);
  while (readSome(0, one) === 1 && one[0] !== 10) bytes.push(one[0] ?? 0);
  return Buffer.from(bytes).toString("utf8");
}

function readSome(fd: number, chunk: Buffer): number {
  for (;;) {
    try {
      return readSync(fd, chunk, 0, chunk.length, null);
    } catch (error) {
      const code = errorCode(error);
      if (code === "EOF") return 0;
      if (code !== "EAGAIN") throw error;
      // Another program left the descriptor in non-blocking mode, and there is no input yet.
      Bun.sleepSync(2);
    }
  }
}
