// The kernel's lock on an open file, flock(2): it cannot outlive those who hold the file open.
import { callLibc } from "./libc.ts";

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
