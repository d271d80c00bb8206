// Signals processes through a pidfd (Linux 5.3), or by pid on systems without pidfds.
import { closeSync } from "node:fs";
import { constants } from "node:os";
import { errorWith, hasCode, tryOr } from "../lib/errors.ts";
import { callLinux } from "./libc.ts";

/** A signal through a pidfd can never reach another process that got the same pid. */
export interface ProcessHandle {
  pid: number;
  /** null: this system has no pidfds. */
  fd: number | null;
  /** false: the process is dead. A zombie accepts every signal until it is reaped, as with kill(2). Throws on EPERM and others. */
  signal(name: NodeJS.Signals): boolean;
  close(): void;
}

/** null: no such process. A zombie has a handle. Throws if no descriptor is left (EMFILE, ENFILE). */
export function openProcess(pid: number): ProcessHandle | null {
  // kill(2) takes 0 and negative numbers for groups, and the kernel truncates larger numbers to 32 bits.
  if (!Number.isInteger(pid) || pid < 1 || pid > 0x7fffffff) throw new RangeError(`${pid} is not a pid`);
  const opened = systemCall(PIDFD_OPEN, pid, 0);
  if (opened === null) return openByPid(pid);
  if (opened.result >= 0) return heldBy(opened.result, pid);
  // ENOENT: this is the id of a thread (Linux 6.18; EINVAL before).
  if (["ESRCH", "ENOENT"].includes(opened.code)) return null;
  // An old kernel, or a sandbox that does not allow the call.
  if (["ENOSYS", "EINVAL", "EPERM"].includes(opened.code)) return openByPid(pid);
  throw failure("pidfd_open", pid, opened.code);
}

function heldBy(fd: number, pid: number): ProcessHandle {
  let closed = false;
  return {
    pid,
    fd,
    signal(name) {
      // Another file may have this descriptor number now.
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
  // EPERM: it exists and belongs to another user.
  if (!tryOr(true, () => kill(pid, 0), hasCode("EPERM"))) return null;
  return { pid, fd: null, signal: (name) => kill(pid, numberOf(name)), close: () => {} };
}

const kill = (pid: number, signal: number): boolean => tryOr(false, () => process.kill(pid, signal), hasCode("ESRCH"));

/** The type allows signals that this system does not have. Signal 0 would do nothing and look like success. */
function numberOf(name: NodeJS.Signals): number {
  const number = constants.signals[name] ?? 0;
  if (number === 0) throw new RangeError(`no signal ${name} on this system`);
  return number;
}

const failure = (call: string, pid: number, code: string): Error =>
  errorWith(code, `${call} of process ${pid}: ${code}`);

// These numbers are the same on all architectures.
const PIDFD_SEND_SIGNAL = 424;
const PIDFD_OPEN = 434;

/** null: not Linux. Both calls take zeros after their second argument. */
const systemCall = (number: number, first: number, second: number) =>
  callLinux((libc) => libc.syscall(number, first, second, 0, 0));
