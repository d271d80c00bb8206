// The kernel's locks on files: flock(2) of our own, which cannot outlive those who hold the file open; and whether anybody has one of
// the other kind, as SQLite does.

import { closeSync, constants, fstatSync, openSync, statSync } from "node:fs";
import { callLibc, callLinux } from "./libc.ts";

const LOCK_EX = 2;
const LOCK_NB = 4;

/**
 * Takes the kernel's lock on an open file without waiting; false: somebody else has it. It goes with the last descriptor:
 * a child that inherited the file holds the same lock; a second open of the file, even by us, is somebody else.
 */
export function tryLock(fd: number): boolean {
  for (;;) {
    const called = callLibc((libc) => libc.flock(fd, LOCK_EX | LOCK_NB));
    // There is no second best to a lock.
    if (called === null) throw new Error("found no flock(2) on this system");
    if (called.result === 0) return true;
    const { code } = called;
    // EWOULDBLOCK is the same number.
    if (code === "EAGAIN") return false;
    if (code !== "EINTR") throw Object.assign(new Error(`flock of descriptor ${fd}: ${code}`), { code });
  }
}

const F_OFD_GETLK = 36;
const F_WRLCK = 1;
const F_UNLCK = 2;

/**
 * `struct flock` of 64-bit Linux has its type first; from where, how far and by whom are zero for the whole file and anybody. Longer
 * than that: the runtime moves small arrays about.
 */
const flockWords = 2048;

/**
 * Does anybody, we included, hold a record lock (fcntl) on any part of this file? null: it cannot be told. /proc/locks would tell, too,
 * but the kernel takes 5 to 15 ms to show it, and shows no lock of another pid namespace.
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
 * Open for as long as the path means the same file: closing any descriptor of a file drops all record locks that this process has on
 * it. null: there is no such file, or it cannot be opened.
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
  try {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    descriptors.set(path, fd);
    return fd;
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
