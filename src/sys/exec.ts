// Replaces this process by another program in the same terminal. This closes all our descriptors and releases our locks.
import { callLibc } from "./libc.ts";

const SIGPIPE = 13;
const SIGXFSZ = 25;

/** Bun ignores two signals, and a program inherits ignored signals: reset them first. Throws the system's error on failure. */
export function becomeProgram(program: string, args: readonly string[], env: Readonly<Record<string, string>>): never {
  // SIG_DFL is 0. Without a C library the program starts with SIGPIPE ignored, as Node programs do.
  for (const number of [SIGPIPE, SIGXFSZ]) callLibc((libc) => Number(libc.signal(number, 0)));
  if (process.execve === undefined) throw new Error("this runtime has no execve");
  return process.execve(program, [program, ...args], { ...env });
}
