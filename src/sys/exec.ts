// This process becomes another program, in the same terminal. Descriptors of ours are closed by it, locks with them.
import { callLibc } from "./libc.ts";

const SIGPIPE = 13;
const SIGXFSZ = 25;

/** Does not return; throws the system's error where it cannot. Bun ignores two signals; ignored they would stay, so that is undone. */
export function becomeProgram(program: string, args: readonly string[], env: Readonly<Record<string, string>>): never {
  // SIG_DFL is 0. Where there is no such call the program starts with SIGPIPE ignored, as Node programs do.
  for (const number of [SIGPIPE, SIGXFSZ]) callLibc((libc) => Number(libc.signal(number, 0)));
  if (process.execve === undefined) throw new Error("this runtime has no execve");
  return process.execve(program, [program, ...args], { ...env });
}
