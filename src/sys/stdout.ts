// Writing to stdout and stderr, and what kind of terminal is there. process.stdout costs 13 ms to touch; these calls do not.

import { dlopen, FFIType } from "bun:ffi";
import { fstatSync, writeSync } from "node:fs";

/** A reader that went away (`| head`): not an error, but nobody is left to talk to. */
export class ReaderGone extends Error {}

/** An answer that nobody gets: the disk that it goes to is full, say. */
export class AnswerLost extends Error {}

export function writeOut(text: string | Buffer): void {
  try {
    writeAll(1, text);
  } catch (error) {
    if (error instanceof ReaderGone || !(error instanceof Error)) throw error;
    throw new AnswerLost(`the answer could not be written: ${error.message}`, { cause: error });
  }
}

/** Talk: where nobody can hear it (reader or terminal gone, disk full), the work goes on all the same. */
export function writeErr(text: string): void {
  try {
    writeAll(2, text);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    if (!(error instanceof ReaderGone) && code !== "EIO" && code !== "ENOSPC") throw error;
  }
}

function writeAll(fd: number, text: string | Buffer): void {
  const bytes = typeof text === "string" ? Buffer.from(text, "utf8") : text;
  for (let written = 0; written < bytes.length; ) {
    try {
      written += writeSync(fd, bytes, written, bytes.length - written);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : "";
      if (code === "EPIPE") throw new ReaderGone("the reader of our output went away", { cause: error });
      if (code !== "EAGAIN") throw error;
      // A pipe in non-blocking mode that is full: its reader needs a moment.
      Bun.sleepSync(1);
    }
  }
}

/** A character device that is not /dev/null and its kin (major 1). */
export function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isCharacterDevice() && stat.rdev >>> 8 !== 1;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EBADF") return false;
    throw error;
  }
}

const windowSizeRequest = process.platform === "darwin" ? 0x40087468 : 0x5413;
const libc = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";

/** null where there is no terminal. */
export function terminalSize(): { rows: number; columns: number } | null {
  if (!isTerminal(1)) return null;
  try {
    const { symbols, close } = dlopen(libc, {
      ioctl: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
    });
    // Larger than the eight bytes of struct winsize: small buffers may move while ffi looks at them.
    const size = new Uint16Array(2048);
    const result = symbols.ioctl(1, windowSizeRequest, size);
    close();
    const [rows = 0, columns = 0] = size;
    return result === 0 && columns > 0 ? { rows, columns } : null;
  } catch (error) {
    // musl has its libc under another name; a table of 80 columns is a good answer there.
    if (error instanceof Error) return null;
    throw error;
  }
}
