// Waits until the sessions are as wanted. The kernel says when to look again (a process ended, a record changed); a slow
// sweep looks anyway, for what nobody announces.
import { basename, dirname, join } from "node:path";
import { adapterNamed } from "../adapters/registry.ts";
import type { Session } from "../core/session.ts";
import { type Deadline, deadlineIn, pause } from "../lib/deadline.ts";
import { recordAt } from "../observe/records.ts";
import { type Changes, openChanges, watchNearest } from "../sys/changes.ts";

export interface Wish<T> {
  look(): Promise<T>;
  /** "for now": enough if it stays so for a moment. */
  isEnough(value: T): boolean | "for now";
  /** Those that are waited for, as they are in this look. */
  sessions(value: T): Session[];
  /** null: as long as it takes. Time asleep does not count: the clock stands still with the machine. */
  timeoutMs: number | null;
  /** Told after every look that was not enough. */
  tell?(value: T): void;
}

/** A host changes its mind without a file, an unknown thing may become known: these are asked again soon. */
const soonMs = 1_000;
/** A net for what the kernel does not tell: a record on another machine's disk, a file that we did not think of. */
const lateMs = 10_000;
/** A record that is written all the time must not keep us looking all the time, least of all where a look takes long. */
const settleMs = (lookMs: number): number => Math.min(500, Math.max(50, 3 * lookMs));

export async function waitFor<T>(wish: Wish<T>): Promise<{ value: T; isEnough: boolean }> {
  const deadline = wish.timeoutMs === null ? null : deadlineIn(wish.timeoutMs);
  let changes = openChanges();
  try {
    let watched = "";
    let linger: Deadline | null = null;
    for (;;) {
      const begun = performance.now();
      const value = await wish.look();
      const lookMs = performance.now() - begun;
      const verdict = wish.isEnough(value);
      linger = verdict === "for now" ? (linger ?? deadlineIn(lingerMs)) : null;
      if (verdict === true || linger?.isOver() === true) return { value, isEnough: true };
      if (deadline?.isOver() === true) return { value, isEnough: verdict !== false };
      wish.tell?.(value);
      const sessions = wish.sessions(value);
      // What happened before the watch was set would not be told: look once more. What is of no interest any more is let go.
      if (watch(sessions, changes) !== watched) {
        changes.close();
        changes = openChanges();
        watched = watch(sessions, changes);
        continue;
      }
      const sweep = sessions.length === 0 || sessions.some(isHardToTell) ? soonMs : lateMs;
      const told = await changes.next(
        Math.min(sweep, deadline?.remainingMs() ?? sweep, linger?.remainingMs() ?? sweep),
      );
      if (told === "changed") await pause(settleMs(lookMs));
    }
  } finally {
    changes.close();
  }
}

/** An agent without a terminal ends soon after its turn; who reads more from its input stays. */
const lingerMs = 1_500;

/** Idle since a moment, and probably on its way out. */
export const isLeaving = ({ status, processes, since }: Session): boolean =>
  (since === null || Date.now() - since < lingerMs) &&
  status.state === "running" &&
  status.owner.kind === "process" &&
  status.activity === "idle" &&
  processes.every(({ tty }) => tty === null);

const isHardToTell = ({ status, record }: Session): boolean =>
  status.state === "unknown" || (status.state === "running" && (record === null || status.owner.kind === "host"));

/** Everything whose change may change these sessions; the answer names it. */
function watch(sessions: readonly Session[], changes: Changes): string {
  const seen: string[] = [];
  for (const { processes } of sessions)
    for (const { identity } of processes) if (changes.process(identity.pid)) seen.push(String(identity.pid));
  const folders = Map.groupBy(sessions.flatMap(placesOf), ({ path }) => path);
  for (const [path, places] of folders)
    seen.push(watchNearest(path, changes, (name) => places.some(({ isOwn }) => isOwn(name))));
  return seen.sort().join("\n");
}

interface WatchedPlace {
  path: string;
  /** Whose writing matters, in a folder. What is made there or removed may always be a new owner, or a next record. */
  isOwn(name: string): boolean;
}

function placesOf({ agent, home, record, processes }: Session): WatchedPlace[] {
  const adapter = adapterNamed(agent);
  if (adapter === null) return [];
  const any = (): boolean => true;
  const pids = processes.map(({ identity }) => String(identity.pid));
  const isClaim = (name: string): boolean => pids.some((pid) => name.startsWith(pid));
  const claims =
    adapter.claims === null ? [] : [{ path: join(home, literalFolder(adapter.claims.folder)), isOwn: isClaim }];
  if (record === null)
    return [
      ...claims,
      ...adapter.records.map(({ folder }) => ({ path: join(home, literalFolder(folder)), isOwn: any })),
    ];
  const { source, id } = record;
  const isOneFile = recordAt(adapter, source, id).set.assembled === undefined;
  const isRecord = (name: string): boolean => name.startsWith(basename(source));
  return [...claims, { path: source, isOwn: any }, { path: dirname(source), isOwn: isOneFile ? isRecord : any }];
}

/** "projects/*" → "projects" */
export const literalFolder = (folder: string): string => folder.split("/*")[0] ?? folder;
