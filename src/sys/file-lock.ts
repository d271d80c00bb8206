// Kernel locks on files: takes flock(2) locks, and tests for the fcntl(2) record locks that SQLite uses.
import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { errorWith, tryOr } from "../lib/errors.ts";
import { callLibc, callLinux } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;

/** false: another holder has the lock. A child inherits it with the descriptor; opening the file again makes another holder. */
export function tryLock(fd: number): boolean {
  for (;;) {
    const called = callLibc((libc) => libc.flock(fd, LOCK_EX | LOCK_NB));
    if (called === null) throw new Error("found no flock(2) on this system");
    if (called.result === 0) return true;
    if (called.code === "EAGAIN") return false;
    if (called.code !== "EINTR") throw errorWith(called.code, `flock of descriptor ${fd}: ${called.code}`);
  }
}

const F_OFD_GETLK = 36;
const F_WRLCK = 1;
const F_UNLCK = 2;

/** `struct flock` begins with its type; zeros mean the whole file. Larger, because Bun may move small arrays in an ffi call. */
const flockWords = 2048;

/** Whether any process has a record lock on this file; null: unknown. /proc/locks is slow, and omits other pid namespaces. */
export function hasRecordLock(path: string): boolean | null {
  const fd = process.platform === "linux" ? lastingDescriptor(path) : null;
  if (fd === null) return null;
  const question = new Uint16Array(flockWords);
  question[0] = F_WRLCK;
  const called = callLinux((libc) => libc.fcntl(fd, F_OFD_GETLK, question));
  return called === null || called.result !== 0 ? null : question[0] !== F_UNLCK;
}

const descriptors = new Map<string, number>();

/** Stays open: closing any descriptor of a file releases all record locks that this process (SQLite in it) has on it. */
function lastingDescriptor(path: string): number | null {
  const facts = statSync(path, { bigint: true, throwIfNoEntry: false });
  const known = descriptors.get(path);
  if (known !== undefined) {
    const own = fstatSync(known, { bigint: true });
    if (own.dev === facts?.dev && own.ino === facts.ino) return known;
    closeSync(known);
    descriptors.delete(path);
  }
  if (facts?.isFile() !== true) return null;
  const fd = tryOr(null, () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY));
  if (fd !== null) descriptors.set(path, fd);
  return fd;
}
