// The printer: all output of agentctl goes through it. It removes everything that a terminal would obey, except our own colors and
// cursor movements. It avoids the runtime's own stdout object, which takes 13 ms to load.

import { dlopen, FFIType } from "bun:ffi";
import { fstatSync, writeSync } from "node:fs";
import { plainText } from "../lib/width.ts";

/** The reader of our output exited (`| head`). This is not an error, but more output makes no sense. */
export class ReaderGone extends Error {}

/** The answer could not be written, for example because the disk is full. */
export class AnswerLost extends Error {}

const controls = {
  ...{ red: "\x1b[31m", green: "\x1b[32m", yellow: "\x1b[33m", blue: "\x1b[34m", cyan: "\x1b[36m" },
  ...{ dim: "\x1b[2m", bold: "\x1b[1m", plain: "\x1b[0m", home: "\x1b[H", "clear-below": "\x1b[J" },
  // The alternate screen, without a cursor.
  ...{ "enter-screen": "\x1b[?1049h\x1b[?25l", "leave-screen": "\x1b[?25h\x1b[?1049l" },
} as const;
export type Control = keyof typeof controls;

let seal: string | null = null;

/** A control sequence in a text: its name after a random seal that is never printed, so no text from elsewhere has one. */
export function sealed(control: Control): string {
  seal ??= `\x1f${crypto.randomUUID()}:`;
  return `${seal}${control}\x1f`;
}

/** The text as it may be sent to a terminal. */
export function printable(text: string): string {
  if (seal === null || !text.includes(seal)) return plainText(text);
  const [first = "", ...rest] = text.split(seal);
  const parts = rest.map((part) => {
    const end = part.indexOf("\x1f");
    const name = part.slice(0, Math.max(0, end));
    return `${isControl(name) ? controls[name] : ""}${plainText(part.slice(end + 1))}`;
  });
  return plainText(first) + parts.join("");
}

const isControl = (name: string): name is Control => Object.hasOwn(controls, name);

/** Bytes come from another program: a pipe or a file gets them unchanged, a terminal gets clean text. */
export function writeOut(text: string | Buffer): void {
  try {
    writeAll(1, typeof text === "string" ? printable(text) : isTerminal(1) ? readable(text) : text);
  } catch (error) {
    if (error instanceof ReaderGone || !(error instanceof Error)) throw error;
    throw new AnswerLost(`the answer could not be written: ${error.message}`, { cause: error });
  }
}

let decoder: TextDecoder | null = null;

/** Keeps its state between calls: a character may begin in one piece and end in the next. */
function readable(bytes: Buffer): string {
  decoder ??= new TextDecoder();
  return printable(decoder.decode(bytes, { stream: true }));
}

/** Messages are not essential: if they cannot be written (reader gone, disk full), the work continues. */
export function writeErr(text: string): void {
  try {
    writeAll(2, printable(text));
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
      if (code === "EPIPE") throw new ReaderGone("the reader of our output is gone", { cause: error });
      if (code !== "EAGAIN") throw error;
      // The pipe is full and in non-blocking mode: wait for its reader.
      Bun.sleepSync(1);
    }
  }
}

/** A character device other than /dev/null and the like (major number 1). */
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

/** null: not a terminal. */
export function terminalSize(): { rows: number; columns: number } | null {
  if (!isTerminal(1)) return null;
  try {
    const { symbols, close } = dlopen(libc, {
      ioctl: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
    });
    // Larger than the eight bytes of struct winsize: Bun may move small buffers during an ffi call.
    const size = new Uint16Array(2048);
    const result = symbols.ioctl(1, windowSizeRequest, size);
    close();
    const [rows = 0, columns = 0] = size;
    return result === 0 && columns > 0 ? { rows, columns } : null;
  } catch (error) {
    // musl has another name for its C library: callers then assume 80 columns.
    if (error instanceof Error) return null;
    throw error;
  }
}
