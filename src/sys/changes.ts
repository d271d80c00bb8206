// Waiting for the end of processes and for changes of files at once: pidfds and inotify under one poll(2).
// Watch first, then look, then wait: what happens in between is told. Where the kernel does not tell, the caller looks often.
import { closeSync, existsSync, readSync } from "node:fs";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { callLinux, type LinuxLibc } from "./libc.ts";
import { openProcess, type ProcessHandle } from "./pidfd.ts";

/** What the kernel tells without being asked again: the end of a process, a change of a file or in a folder. */
export interface Changes {
  /** false: it is gone already; a zombie is gone. */
  process(pid: number): boolean;
  /**
   * A file or a folder (entries made, removed, renamed, written). A path that is not there: false. Idempotent; cheap to call
   * again; if the path was replaced by another file since, it watches the new one.
   */
  path(path: string): boolean;
  /**
   * Waits until one of them changed, at most so long; one wait at a time. Several quick changes are one. Processes that ended
   * stop being watched. If something cannot be watched: "changed" after 200 ms at the latest. Closed meanwhile: "quiet".
   */
  next(mostMs: number): Promise<"changed" | "quiet">;
  close(): void;
}

/** poll(2) holds the whole thread: timers and promises wait so long at most. A signal that we handle interrupts it. */
const SLICE_MS = 100;
const BLIND_MS = 200;

export function openChanges(): Changes {
  const files = openInotify();
  const processes = new Map<number, { fd: number; close(): void }>();
  /** Something is not watched: no such call, no descriptor or watch left (EMFILE, ENOSPC), no permission. */
  let blind = false;
  let closed = false;

  function look(mostMs: number): boolean {
    const fds = [...processes.values()].map(({ fd }) => fd);
    const ready = new Set(poll(files === null ? fds : [...fds, files.fd], mostMs));
    let changed = files !== null && ready.has(files.fd) && files.drain();
    for (const [pid, { fd, close }] of processes) {
      if (!ready.has(fd)) continue;
      processes.delete(pid);
      close();
      changed = true;
    }
    return changed;
  }

  return {
    process(pid) {
      const known = processes.get(pid);
      // One that ended stays until `next` has told it.
      if (known !== undefined) return poll([known.fd], 0).length === 0;
      const handle = openUnlessFull(pid);
      if (handle === null) return false;
      if (handle === "full" || handle.fd === null) {
        blind = true;
        return true;
      }
      const { fd, close } = handle;
      const alive = poll([fd], 0).length === 0;
      if (alive) processes.set(pid, { fd, close });
      else close();
      return alive;
    },
    path(path) {
      const answer = files?.watch(path) ?? (existsSync(path) ? "refused" : "absent");
      if (answer === "refused") blind = true;
      return answer !== "absent";
    },
    async next(mostMs) {
      const started = performance.now();
      const leftMs = () => Math.max(0, started + Math.min(mostMs, blind ? BLIND_MS : mostMs) - performance.now());
      do {
        await (isBlindHere() ? sleep(Math.min(BLIND_MS, leftMs())) : turn());
        if (closed) return "quiet";
        if (!isBlindHere() && look(Math.min(SLICE_MS, Math.ceil(leftMs())))) return "changed";
      } while (leftMs() > 0);
      return blind ? "changed" : "quiet";
    },
    close() {
      if (closed) return;
      closed = true;
      for (const { close } of processes.values()) close();
      if (files !== null) closeSync(files.fd);
    },
  };
}

function openUnlessFull(pid: number): ProcessHandle | "full" | null {
  try {
    return openProcess(pid);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE"))
      return "full";
    throw error;
  }
}

/** null: no inotify here, or no instance left (128 per user by default). */
function openInotify(): { fd: number; watch(path: string): "watched" | "absent" | "refused"; drain(): boolean } | null {
  const { result: fd } = call((libc) => libc.inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (fd < 0) return null;
  const watches = new Map<string, number>();
  return {
    fd,
    watch(path) {
      const name = Buffer.alloc(8192);
      name.write(path, 0, name.length - 1);
      const { result: watch, code } = call((libc) => libc.inotify_add_watch(fd, name, WANTED));
      const before = watches.get(path);
      if (watch < 0) watches.delete(path);
      else watches.set(path, watch);
      // Two paths may lead to one file. Fails if the kernel dropped the watch together with its file; that is as good.
      const isUsed = watches.values().some((used) => used === before);
      if (before !== undefined && !isUsed) call((libc) => libc.inotify_rm_watch(fd, before));
      if (watch >= 0) return "watched";
      return code === "ENOENT" || code === "ENOTDIR" ? "absent" : "refused";
    },
    drain() {
      let news = false;
      const buffer = Buffer.alloc(64 * 1024);
      while (poll([fd], 0).length > 0) {
        const length = readSync(fd, buffer);
        // struct inotify_event: int wd; u32 mask, cookie, len; char name[len]. That a watch was dropped is no news.
        for (let at = 0; at < length; at += 16 + buffer.readUInt32LE(at + 12))
          if ((buffer.readUInt32LE(at + 4) & IN_IGNORED) === 0) news = true;
      }
      return news;
    },
  };
}

/** Those that are ready (or closed under us). Ends early, with none, if a signal comes. */
function poll(fds: readonly number[], mostMs: number): number[] {
  // struct pollfd: int fd; short events, revents. Larger than needed: small buffers may move while ffi looks at them.
  const table = new Int32Array(Math.max(1024, fds.length * 2));
  for (const [at, fd] of fds.entries()) table.set([fd, POLLIN], at * 2);
  const { result, code } = call((libc) => libc.poll(table, fds.length, mostMs));
  if (result < 0 && code !== "EINTR") throw Object.assign(new Error(`poll: ${code}`), { code });
  return result <= 0 ? [] : fds.filter((_fd, at) => (table[at * 2 + 1] ?? 0) >>> 16 !== 0);
}

const POLLIN = 1;
const IN_CLOEXEC = 0o2000000;
const IN_NONBLOCK = 0o4000;
const IN_IGNORED = 0x8000;
/** MODIFY, ATTRIB, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF; an overflow comes anyway. */
const WANTED = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800;

/** ENOSYS: macOS has no inotify. */
const call = (what: (libc: LinuxLibc) => number) => callLinux(what) ?? { result: -1, code: "ENOSYS" };

const isBlindHere = (): boolean => callLinux(() => 0) === null;
