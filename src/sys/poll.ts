// poll(2), and the descriptor that wakes it for the runtime's own events.
import { readdirSync, readlinkSync } from "node:fs";
import { errorWith, tryOr } from "../lib/errors.ts";
import { callLinux } from "./libc.ts";

/** Returns the descriptors that are ready or were closed. A signal ends it early with an empty list. */
export function poll(fds: readonly number[], maxMs: number): number[] {
  // struct pollfd: int fd; short events, revents. Larger than needed: Bun may move small buffers during an ffi call.
  const table = new Int32Array(Math.max(1024, fds.length * 2));
  for (const [at, fd] of fds.entries()) table.set([fd, POLLIN], at * 2);
  const { result, code } = callLinux((libc) => libc.poll(table, fds.length, maxMs)) ?? { result: -1, code: "ENOSYS" };
  if (result < 0 && code !== "EINTR") throw errorWith(code, `poll: ${code}`);
  return result <= 0 ? [] : fds.filter((_fd, at) => (table[at * 2 + 1] ?? 0) >>> 16 !== 0);
}

const POLLIN = 1;

let found: readonly number[] | null = null;

/** The epoll instance of the runtime's event loop is readable when the loop has something to do. Empty: not found. */
export function runtimeFds(): readonly number[] {
  const folder = "/proc/self/fd";
  found ??= tryOr([], () => readdirSync(folder))
    // The descriptor that read the folder is closed already, and has no link.
    .filter((fd) => tryOr("", () => readlinkSync(`${folder}/${fd}`)) === "anon_inode:[eventpoll]")
    .map(Number);
  return found;
}
