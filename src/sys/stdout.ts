// The printer: everything that agentctl says goes through here and loses what a terminal would obey. Only our own colours and
// cursor movements pass. process.stdout costs 13 ms to touch; these calls do not.

import { dlopen, FFIType } from "bun:ffi";
import { fstatSync, writeSync } from "node:fs";
import { plainText } from "../lib/width.ts";

/** A reader that went away (`| head`): not an error, but nobody is left to talk to. */
export class ReaderGone extends Error {}

/** An answer that nobody gets: the disk that it goes to is full, say. */
export class AnswerLost extends Error {}

/** What a terminal may be told to do. */
const controls = {
  ...{ red: "\x1b[31m", green: "\x1b[32m", yellow: "\x1b[33m", blue: "\x1b[34m", cyan: "\x1b[36m" },
  ...{ dim: "\x1b[2m", bold: "\x1b[1m", plain: "\x1b[0m", home: "\x1b[H", "clear-below": "\x1b[J" },
} as const;
export type Control = keyof typeof controls;

let seal: string | null = null;

/**
 * A control inside of a text. It stands there under a seal that is made anew in every process and never printed, so that no text
 * from elsewhere can hold one: not even a colour.
 */
export function sealed(control: Control): string {
  seal ??= `\x1f${crypto.randomUUID()}:`;
  return `${seal}${control}\x1f`;
}

/** As it may reach a terminal. */
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

/** Bytes are another program's own: a pipe or a file gets them as they are, a terminal as text. */
export function writeOut(text: string | Buffer): void {
  try {
    writeAll(1, typeof text === "string" ? printable(text) : isTerminal(1) ? readable(text) : text);
  } catch (error) {
    if (error instanceof ReaderGone || !(error instanceof Error)) throw error;
    throw new AnswerLost(`the answer could not be written: ${error.message}`, { cause: error });
  }
}

let decoder: TextDecoder | null = null;

/** A character may begin in one piece and end in the next. */
function readable(bytes: Buffer): string {
  decoder ??= new TextDecoder();
  return printable(decoder.decode(bytes, { stream: true }));
}

/** Talk: where nobody can hear it (reader or terminal gone, disk full), the work goes on all the same. */
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
