// Waits until the sessions are as wanted. The kernel says when to look again (a process ended, a record changed); a slow
// sweep looks anyway, for what nobody announces.
import { dirname, join } from "node:path";
import { adapterNamed } from "../adapters/registry.ts";
import type { Session } from "../core/session.ts";
import { type Deadline, deadlineIn, pause } from "../lib/deadline.ts";
import { type Changes, openChanges } from "../sys/changes.ts";

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
  for (const { agent, home, record, processes } of sessions) {
    for (const { identity } of processes) if (changes.process(identity.pid)) seen.push(String(identity.pid));
    const adapter = adapterNamed(agent);
    const claims = adapter?.claims == null ? [] : [join(home, adapter.claims.folder)];
    const records =
      record === null
        ? (adapter?.records.map(({ folder }) => join(home, literal(folder))) ?? [])
        : [record.source, dirname(record.source)];
    for (const path of [...claims, ...records]) seen.push(watchNearest(path, changes));
  }
  return seen.sort().join("\n");
}

/** What is not there yet is made in the nearest folder above that is. */
function watchNearest(path: string, changes: Changes): string {
  return changes.path(path) || path === "/" ? path : watchNearest(dirname(path), changes);
}

/** "projects/*" → "projects" */
const literal = (folder: string): string => folder.split("/*")[0] ?? folder;
