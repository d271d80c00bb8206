// Kernel locks on files: takes flock(2) locks, and tests for the fcntl(2) record locks that SQLite uses.
import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { errorWith, tryOr } from "../lib/errors.ts";
import { callLibc, callLinux } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;

/**
 * Takes the lock on an open file without waiting. false: another holder has it. The kernel releases it with the last copy of
 * this descriptor: a child that inherited it holds the same lock. Opening the file again, even here, makes another holder.
 */
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

/**
 * `struct flock` of 64-bit Linux begins with its type; zeros in the other fields mean the whole file and any process. The array is
 * larger than that, because Bun may move small arrays during an ffi call.
 */
const flockWords = 2048;

/**
 * Does any process, including this one, hold a record lock on any part of this file? null: unknown. /proc/locks has the same
 * information, but reading it takes 5 to 15 ms, and it omits locks of other pid namespaces.
 */
export function hasRecordLock(path: string): boolean | null {
  const fd = process.platform === "linux" ? lastingDescriptor(path) : null;
  if (fd === null) return null;
  const question = new Uint16Array(flockWords);
  question[0] = F_WRLCK;
  const called = callLinux((libc) => libc.fcntl(fd, F_OFD_GETLK, question));
  return called === null || called.result !== 0 ? null : question[0] !== F_UNLCK;
}

const descriptors = new Map<string, number>();

/**
 * A descriptor that stays open while the path names the same file: closing any descriptor of a file would release all record locks
 * that this process (SQLite in it) has on that file. null: the file does not exist or cannot be opened.
 */
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
