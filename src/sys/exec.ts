// This process becomes another program, in the same terminal. Descriptors of ours are closed by it, locks with them.
import { dlopen, FFIType } from "bun:ffi";

const SIGPIPE = 13;
const SIGXFSZ = 25;

/** Does not return. Bun ignores two signals; what is ignored stays ignored in the next program, so that is undone. */
export function becomeProgram(program: string, args: readonly string[], env: Readonly<Record<string, string>>): never {
  restoreSignals();
  if (process.execve === undefined) throw new Error("this runtime has no execve");
  return process.execve(program, [program, ...args], { ...env });
}

function restoreSignals(): void {
  try {
    const { symbols } = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
      signal: { args: [FFIType.i32, FFIType.u64], returns: FFIType.u64 },
    });
    for (const number of [SIGPIPE, SIGXFSZ]) symbols.signal(number, 0);
  } catch (error) {
    // musl names its libc differently; the program then starts with SIGPIPE ignored, as Node programs do.
    if (!(error instanceof Error)) throw error;
  }
}
