// The kernel's lock on an open file, flock(2): it cannot outlive those who hold the file open.
import { dlopen, read as peek } from "bun:ffi";
import { getSystemErrorName } from "node:util";

/**
 * Takes the kernel's lock on an open file without waiting; false: somebody else has it. It goes with the last descriptor:
 * a child that inherited the file holds the same lock; a second open of the file, even by us, is somebody else.
 */
export function tryLock(fd: number): boolean {
  library ??= load();
  for (;;) {
    // Asked for before the call: nothing of the runtime's own may come between the call and its errno.
    const errno = library.errnoAt();
    if (library.flock(fd, LOCK_EX | LOCK_NB) === 0) return true;
    const code = errno === null ? "errno unknown" : getSystemErrorName(-peek.i32(errno));
    // EWOULDBLOCK is the same number.
    if (code === "EAGAIN") return false;
    if (code !== "EINTR") throw Object.assign(new Error(`flock of descriptor ${fd}: ${code}`), { code });
  }
}

const LOCK_EX = 2;
const LOCK_NB = 4;

interface Library {
  flock: (fd: number, operation: number) => number;
  errnoAt: () => ReturnType<typeof openLinux>["__errno_location"] extends () => infer Pointer ? Pointer : never;
}

let library: Library | null = null;

const flock = { args: ["i32", "i32"], returns: "i32" } as const;
const errnoAt = { args: [], returns: "ptr" } as const;
const openLinux = (name: string) => dlopen(name, { flock, __errno_location: errnoAt }).symbols;
const openDarwin = () => dlopen("libSystem.B.dylib", { flock, __error: errnoAt }).symbols;

/** There is no second best to a lock: a system where we do not find it is an error. */
function load(): Library {
  if (process.platform === "darwin") {
    const { flock, __error } = openDarwin();
    return { flock, errnoAt: __error };
  }
  const failures: Error[] = [];
  // glibc, then musl.
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      const { flock, __errno_location } = openLinux(name);
      return { flock, errnoAt: __errno_location };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      failures.push(error);
    }
  }
  throw new AggregateError(failures, "found no flock(2) on this system");
}
