// Waits until sessions meet a condition, and for exit statuses. The kernel reports when to look again: a process exited, or a
// record changed. A slow poll finds changes that the kernel does not report.
import { basename, dirname, join } from "node:path";
import { adapterNamed } from "../agents/registry.ts";
import type { Session } from "../core/session.ts";
import { type Deadline, deadlineIn, pause, unlessAborted } from "../lib/deadline.ts";
import type { Environment } from "../observe/homes.ts";
import { recordAt } from "../observe/records.ts";
import { type ChangeWatch, openChangeWatch, watchNearest } from "../sys/change-watch.ts";
import { launchFiles, type ReadNote, readNote } from "./notes.ts";

export interface WaitOptions<T> {
  look(): Promise<T>;
  /** "for now": enough if it stays true for a moment. */
  isEnough(value: T): boolean | "for now";
  sessions(value: T): Session[];
  /** null: no limit. The clock stops while the host is suspended. */
  timeoutMs: number | null;
  tell?(value: T): void;
  signal?: AbortSignal;
}

/** For sessions in servers, which change without a file, and for unknown ones, which may become known. */
const soonMs = 1_000;
/** For changes that the kernel does not report, as on a network disk. */
const lateMs = 10_000;
/** A record that is written constantly must not keep us looking constantly, above all if a look takes long. */
const settleMs = (lookMs: number): number => Math.min(500, Math.max(50, 3 * lookMs));

export async function waitFor<T>(options: WaitOptions<T>): Promise<{ value: T; isEnough: boolean }> {
  const deadline = options.timeoutMs === null ? null : deadlineIn(options.timeoutMs);
  let changes = openChangeWatch();
  try {
    let watched = "";
    let linger: Deadline | null = null;
    for (;;) {
      options.signal?.throwIfAborted();
      const begun = performance.now();
      const value = await options.look();
      const lookMs = performance.now() - begun;
      const verdict = options.isEnough(value);
      linger = verdict === "for now" ? (linger ?? deadlineIn(lingerMs)) : null;
      if (verdict === true || linger?.isOver() === true) return { value, isEnough: true };
      if (deadline?.isOver() === true) return { value, isEnough: verdict !== false };
      options.tell?.(value);
      const sessions = options.sessions(value);
      // Changes before the watch began are not reported: look once more. The new watch drops paths that no longer matter.
      if (watch(sessions, changes) !== watched) {
        changes.close();
        changes = openChangeWatch();
        watched = watch(sessions, changes);
        continue;
      }
      const sweep = sessions.length === 0 || sessions.some(isHardToTell) ? soonMs : lateMs;
      const next = changes.next(Math.min(sweep, deadline?.remainingMs() ?? sweep, linger?.remainingMs() ?? sweep));
      const event = await (options.signal === undefined ? next : unlessAborted(options.signal, next));
      if (event === "changed") await pause(settleMs(lookMs));
    }
  } finally {
    changes.close();
  }
}

/** An agent without a terminal exits soon after its turn, unless it reads more input. */
const lingerMs = 1_500;

/** True if the session has been idle only for a moment, and its process will probably exit. */
export const isLeaving = ({ status, processes, since }: Session): boolean =>
  (since === null || Date.now() - since < lingerMs) &&
  status.state === "running" &&
  status.owner.kind === "process" &&
  status.activity === "idle" &&
  processes.every(({ tty }) => tty === null);

const isHardToTell = ({ status, record }: Session): boolean =>
  status.state === "unknown" || (status.state === "running" && (record === null || status.owner.kind === "server"));

/** Watches processes and files that these sessions depend on. Returns their names, to be compared with the next call. */
function watch(sessions: readonly Session[], changes: ChangeWatch): string {
  const seen: string[] = [];
  for (const { processes } of sessions)
    for (const { identity } of processes) if (changes.process(identity.pid)) seen.push(String(identity.pid));
  const folders = Map.groupBy(sessions.flatMap(pathsOf), ({ path }) => path);
  for (const [path, watched] of folders)
    seen.push(watchNearest(path, changes, (name) => watched.some(({ isOwn }) => isOwn(name))));
  return seen.sort().join("\n");
}

interface WatchedPath {
  path: string;
  /** In a folder: writes to these names matter. New and removed files always matter: a new owner, or the next record. */
  isOwn(name: string): boolean;
}

function pathsOf({ agent, home, record, processes }: Session): WatchedPath[] {
  const adapter = adapterNamed(agent);
  if (adapter === null) return [];
  const any = (): boolean => true;
  const inHome = (folder: string, isOwn: WatchedPath["isOwn"]) => ({ path: join(home, literalFolder(folder)), isOwn });
  const pids = processes.map(({ identity }) => String(identity.pid));
  const isAnnouncement = (name: string): boolean => pids.some((pid) => name.startsWith(pid));
  const announced = adapter.announcements?.folder;
  const announcements = announced === undefined ? [] : [inHome(announced, isAnnouncement)];
  if (record === null) return [...announcements, ...adapter.records.map(({ folder }) => inHome(folder, any))];
  const { source, id } = record;
  const isOneFile = recordAt(adapter, source, id).set.assembled === undefined;
  const isRecord = (name: string): boolean => name.startsWith(basename(source));
  return [...announcements, { path: source, isOwn: any }, { path: dirname(source), isOwn: isOneFile ? isRecord : any }];
}

/** "projects/*" → "projects" */
export const literalFolder = (folder: string): string => folder.split("/*")[0] ?? folder;

/** Returns the notes as soon as their holders have written the exit status of all launches, or after `maxMs`. */
export async function waitForExitStatus(ids: readonly string[], env: Environment, maxMs: number): Promise<ReadNote[]> {
  const deadline = deadlineIn(maxMs);
  const files = ids.map((id) => launchFiles(env, id).exit);
  const changes = openChangeWatch();
  try {
    for (const folder of new Set(files.map(dirname)))
      changes.path(folder, (name) => files.some((path) => basename(path) === name));
    for (;;) {
      const notes = ids.flatMap((id) => readNote(env, id) ?? []);
      if (deadline.isOver() || notes.every(({ exit }) => exit !== null)) return notes;
      await changes.next(deadline.remainingMs());
    }
  } finally {
    changes.close();
  }
}
