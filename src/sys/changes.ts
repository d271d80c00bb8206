// Waiting for the end of processes and for changes of files at once: pidfds and inotify under one poll(2).
// Watch first, then look, then wait: what happens in between is told. Where the kernel does not tell, the caller looks often.
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { noWriting, openInotify } from "./inotify.ts";
import { callLinux } from "./libc.ts";
import { openProcess, type ProcessHandle } from "./pidfd.ts";
import { poll, runtimeFds } from "./poll.ts";
import { openWatchers } from "./watchers.ts";

/** What the kernel tells without being asked again: the end of a process, a change of a file or in a folder. */
export interface Changes {
  /** false: it is gone already; a zombie is gone. */
  process(pid: number): boolean;
  /**
   * A file or a folder: entries made, removed, renamed, and written to, if somebody wants to know it of that name. A path
   * that is not there: false. Idempotent; cheap to call again; if the path was replaced by another file since, it watches
   * the new one.
   */
  path(path: string, wantsWritten?: (name: string) => boolean): boolean;
  /**
   * Waits until one of them changed, at most so long; one wait at a time. Several quick changes are one. Processes that ended
   * stop being watched. If something cannot be watched: "changed" after 200 ms at the latest. Closed meanwhile: "quiet".
   */
  next(mostMs: number): Promise<"changed" | "quiet">;
  close(): void;
}

/**
 * poll(2) holds the whole thread. The runtime's own events (signals, children, sockets) end it; a timer of somebody else
 * does not. So a wait sleeps as long again as it has slept: whoever has set a timer gets it at most twice as late.
 */
const FIRST_SLICE_MS = 100;
const BLIND_MS = 200;
/** Where the runtime has something to do all the time, its turns come by the slice. */
const MOST_TURNS = 50;

/** The descriptors of everybody who waits: whoever holds the thread wakes up for the others, too. */
const waiting = new Set<() => number[]>();

export function openChanges(): Changes {
  const files = openInotify();
  const watchers = hasPoll() ? null : openWatchers();
  const processes = new Map<number, { fd: number; close(): void }>();
  /** Something is not watched: no such call, no descriptor or watch left (EMFILE, ENOSPC), no permission. */
  let blind = false;
  let closed = false;

  const fds = (): number[] => [...processes.values().map(({ fd }) => fd), ...(files === null ? [] : [files.fd])];

  function take(ready: ReadonlySet<number>): boolean {
    let changed = files !== null && ready.has(files.fd) && files.drain();
    for (const [pid, { fd, close }] of processes) {
      if (!ready.has(fd)) continue;
      processes.delete(pid);
      close();
      changed = true;
    }
    return changed;
  }

  async function wait(mostMs: number): Promise<"changed" | "quiet"> {
    const started = performance.now();
    const leftMs = () => Math.max(0, started + Math.min(mostMs, blind ? BLIND_MS : mostMs) - performance.now());
    let quietSince = started;
    let turns = 0;
    do {
      if (watchers === null) await turn();
      else if ((await watchers.rung(leftMs())) && !closed) return "changed";
      if (closed) return "quiet";
      if (watchers !== null) continue;
      const runtime = turns < MOST_TURNS ? runtimeFds() : [];
      const begun = performance.now();
      const slice = runtime.length === 0 ? FIRST_SLICE_MS : Math.max(FIRST_SLICE_MS, begun - quietSince);
      const restMs = Math.ceil(Math.min(slice, leftMs()));
      const ready = new Set(poll([...waiting.values().flatMap((each) => each()), ...runtime], restMs));
      if (take(ready)) return "changed";
      if (runtime.some((fd) => ready.has(fd))) turns += 1;
      else if (turns < MOST_TURNS) turns = 0;
      // Also by a signal, of which nothing but an early end is told.
      if (performance.now() < begun + restMs - 1) quietSince = performance.now();
    } while (leftMs() > 0);
    return blind ? "changed" : "quiet";
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
    path(path, wantsWritten) {
      const answer =
        (files ?? watchers)?.watch(path, wantsWritten ?? always) ?? (existsSync(path) ? "refused" : "absent");
      if (answer === "refused") blind = true;
      return answer !== "absent";
    },
    async next(mostMs) {
      waiting.add(fds);
      try {
        return await wait(mostMs);
      } finally {
        waiting.delete(fds);
      }
    },
    close() {
      if (closed) return;
      closed = true;
      waiting.delete(fds);
      for (const { close } of processes.values()) close();
      files?.close();
      watchers?.close();
    },
  };
}

/** What is not there yet is made in the nearest folder above that is. The answer is what is watched. */
export function watchNearest(path: string, changes: Changes, wantsWritten?: (name: string) => boolean): string {
  return changes.path(path, wantsWritten) || path === "/" ? path : watchNearest(dirname(path), changes, noWriting);
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

/** Whatever the runtime has to do. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const always = (): boolean => true;

/** false: not Linux. There processes cannot be waited for, either: whoever watches one looks often. */
const hasPoll = (): boolean => callLinux(() => 0) !== null;
