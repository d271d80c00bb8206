// A process by the kernel's own handle (a pidfd, Linux 5.3), and by its pid where there are no such handles.
import { closeSync } from "node:fs";
import { constants } from "node:os";
import { callLinux } from "./libc.ts";

/** A process held by the kernel's own handle: a signal through it can never reach another process that got the same pid. */
export interface ProcessHandle {
  pid: number;
  /** null: this system has no such handles; signals go by pid. */
  fd: number | null;
  /** false: it is gone. A zombie takes every signal and answers true, as with kill(2), until it is reaped. Throws on EPERM etc. */
  signal(name: NodeJS.Signals): boolean;
  close(): void;
}

/** null: no such process. Of a zombie there is a handle. Throws where no descriptor is left (EMFILE, ENFILE). */
export function openProcess(pid: number): ProcessHandle | null {
  // 0 and below are groups to kill(2), and the kernel would cut off the upper half of anything longer.
  if (!Number.isInteger(pid) || pid < 1 || pid > 0x7fffffff) throw new RangeError(`${pid} is not a pid`);
  const opened = systemCall(PIDFD_OPEN, pid, 0);
  if (opened === null) return openByPid(pid);
  if (opened.result >= 0) return heldBy(opened.result, pid);
  switch (opened.code) {
    // ENOENT: the id of a thread, not of a process (6.18; EINVAL before).
    case "ESRCH":
    case "ENOENT":
      return null;
    // An old kernel, or a sandbox that does not know the call.
    case "ENOSYS":
    case "EINVAL":
    case "EPERM":
      return openByPid(pid);
    default:
      throw failure("pidfd_open", pid, opened.code);
  }
}

function heldBy(fd: number, pid: number): ProcessHandle {
  let closed = false;
  return {
    pid,
    fd,
    signal(name) {
      // The number may belong to another handle by now.
      if (closed) throw new Error(`the handle of process ${pid} is closed`);
      const sent = systemCall(PIDFD_SEND_SIGNAL, fd, numberOf(name));
      if (sent?.result === 0) return true;
      if (sent?.code === "ESRCH") return false;
      throw failure(`pidfd_send_signal ${name}`, pid, sent?.code ?? "ENOSYS");
    },
    close() {
      if (!closed) closeSync(fd);
      closed = true;
    },
  };
}

function openByPid(pid: number): ProcessHandle | null {
  if (!isThere(pid)) return null;
  return { pid, fd: null, signal: (name) => kill(pid, numberOf(name)), close: () => {} };
}

function isThere(pid: number): boolean {
  try {
    return kill(pid, 0);
  } catch (error) {
    // Somebody else's.
    if (error instanceof Error && "code" in error && error.code === "EPERM") return true;
    throw error;
  }
}

function kill(pid: number, signal: number): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
    throw error;
  }
}

/** The types know signals that this system has not; number 0 would look like success. */
function numberOf(name: NodeJS.Signals): number {
  const number = constants.signals[name] ?? 0;
  if (number === 0) throw new RangeError(`no signal ${name} on this system`);
  return number;
}

const failure = (call: string, pid: number, code: string): Error =>
  Object.assign(new Error(`${call} of process ${pid}: ${code}`), { code });

// The same on all architectures.
const PIDFD_SEND_SIGNAL = 424;
const PIDFD_OPEN = 434;

/** null: not Linux. Both calls take zeros after their second argument. */
const systemCall = (number: number, first: number, second: number) =>
  callLinux((libc) => libc.syscall(number, first, second, 0, 0));
