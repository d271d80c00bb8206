// poll(2), and the descriptor by which the runtime's own events can be waited for beside ours.
import { readdirSync, readlinkSync } from "node:fs";
import { callLinux } from "./libc.ts";

/** Those that are ready (or closed under us). Ends early, with none, if a signal comes. */
export function poll(fds: readonly number[], mostMs: number): number[] {
  // struct pollfd: int fd; short events, revents. Larger than needed: small buffers may move while ffi looks at them.
  const table = new Int32Array(Math.max(1024, fds.length * 2));
  for (const [at, fd] of fds.entries()) table.set([fd, POLLIN], at * 2);
  const { result, code } = callLinux((libc) => libc.poll(table, fds.length, mostMs)) ?? { result: -1, code: "ENOSYS" };
  if (result < 0 && code !== "EINTR") throw Object.assign(new Error(`poll: ${code}`), { code });
  return result <= 0 ? [] : fds.filter((_fd, at) => (table[at * 2 + 1] ?? 0) >>> 16 !== 0);
}

const POLLIN = 1;

let found: readonly number[] | null = null;

/** The epoll instance of the runtime's loop: readable when the loop has something to do. Empty: not to be found. */
export function runtimeFds(): readonly number[] {
  found ??= openFds().filter((fd) => linkOf(fd) === "anon_inode:[eventpoll]");
  return found;
}

function openFds(): number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return [];
  }
}

function linkOf(fd: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch (error) {
    // The one that read the folder.
    if (!(error instanceof Error)) throw error;
    return "";
  }
}
