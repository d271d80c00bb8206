// Waits for processes to exit and for files to change at the same time, with pidfds and inotify under one poll(2).
// Register the watch first, then look, then wait: a change in between is not missed.
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { hasCode, tryOr } from "../lib/errors.ts";
import { noWriting, openInotify } from "./inotify.ts";
import { callLinux } from "./libc.ts";
import { openProcess } from "./pidfd.ts";
import { poll, runtimeFds } from "./poll.ts";
import { openWatchers } from "./watchers.ts";

export interface ChangeWatch {
  /** Watches a process for its exit. false: it is dead already; a zombie is dead. */
  process(pid: number): boolean;
  /** Watches a file, or the entries of a folder, and writes to those that `wantsWritten` accepts. false: no such path. */
  path(path: string, wantsWritten?: (name: string) => boolean): boolean;
  /**
   * Waits until something changed, at most `maxMs`; only one wait at a time. Quick changes are reported as one. A process
   * that exited is no longer watched. If the kernel refused a watch, the answer is "changed" after 200 ms at the latest.
   * Closing the watch ends the wait with "quiet".
   */
  next(maxMs: number): Promise<"changed" | "quiet">;
  close(): void;
}

/** Timers do not wake poll(2). So each sleep is at most as long as the wait so far: a timer is at most twice as late. */
const FIRST_SLICE_MS = 100;
const BLIND_MS = 200;
/** A runtime that is busy all the time would wake every poll: after this many turns only the time slice wakes it. */
const MAX_TURNS = 50;

/** The descriptors of all waits in this process: the wait that blocks the thread must wake up for the others. */
const waiting = new Set<() => number[]>();

export function openChangeWatch(): ChangeWatch {
  const files = openInotify();
  const watchers = hasPoll() ? null : openWatchers();
  const processes = new Map<number, { fd: number; close(): void }>();
  /** The kernel refused a watch: no such call, no descriptor or watch left (EMFILE, ENOSPC), no permission. */
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

  async function wait(maxMs: number): Promise<"changed" | "quiet"> {
    const started = performance.now();
    const leftMs = () => Math.max(0, started + Math.min(maxMs, blind ? BLIND_MS : maxMs) - performance.now());
    let quietSince = started;
    let turns = 0;
    do {
      if (watchers === null) await turn();
      else if ((await watchers.rung(leftMs())) && !closed) return "changed";
      if (closed) return "quiet";
      if (watchers !== null) continue;
      const runtime = turns < MAX_TURNS ? runtimeFds() : [];
      const sliceStart = performance.now();
      const slice = runtime.length === 0 ? FIRST_SLICE_MS : Math.max(FIRST_SLICE_MS, sliceStart - quietSince);
      const restMs = Math.ceil(Math.min(slice, leftMs()));
      const ready = new Set(poll([...waiting.values().flatMap((each) => each()), ...runtime], restMs));
      if (take(ready)) return "changed";
      if (runtime.some((fd) => ready.has(fd))) turns += 1;
      else if (turns < MAX_TURNS) turns = 0;
      // poll also ended early if a signal came; it does not say so.
      if (performance.now() < sliceStart + restMs - 1) quietSince = performance.now();
    } while (leftMs() > 0);
    return blind ? "changed" : "quiet";
  }

  return {
    process(pid) {
      const known = processes.get(pid);
      // A process that exited stays registered until `next` has reported it.
      if (known !== undefined) return poll([known.fd], 0).length === 0;
      const handle = tryOr("full", () => openProcess(pid), hasCode("EMFILE", "ENFILE"));
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
    async next(maxMs) {
      waiting.add(fds);
      try {
        return await wait(maxMs);
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

/** Watches the path or, if it does not exist yet, the nearest folder above it. Returns the path that is watched. */
export function watchNearest(path: string, changes: ChangeWatch, wantsWritten?: (name: string) => boolean): string {
  return changes.path(path, wantsWritten) || path === "/" ? path : watchNearest(dirname(path), changes, noWriting);
}

/** Lets the runtime handle its pending events. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const always = (): boolean => true;

/** false: not Linux, where processes cannot be watched either. */
const hasPoll = (): boolean => callLinux(() => 0) !== null;
