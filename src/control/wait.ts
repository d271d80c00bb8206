// Waits until the sessions are as wanted. The kernel says when to look again (a process ended, a record changed); a slow
// sweep looks anyway, for what nobody announces.
import { dirname, join } from "node:path";
import { adapterNamed } from "../adapters/registry.ts";
import type { Session } from "../core/session.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import { type Changes, openChanges } from "../sys/changes.ts";

export interface Wish<T> {
  look(): Promise<T>;
  isEnough(value: T): boolean;
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
/** A record that is written all the time must not keep us looking all the time. */
const settleMs = 50;

export async function waitFor<T>(wish: Wish<T>): Promise<{ value: T; isEnough: boolean }> {
  const deadline = wish.timeoutMs === null ? null : deadlineIn(wish.timeoutMs);
  const changes = openChanges();
  try {
    let watched = "";
    for (;;) {
      const value = await wish.look();
      if (wish.isEnough(value)) return { value, isEnough: true };
      if (deadline?.isOver() === true) return { value, isEnough: false };
      wish.tell?.(value);
      const sessions = wish.sessions(value);
      const now = watch(sessions, changes);
      // What happened before the watch was set would not be told: look once more.
      if (now !== watched) {
        watched = now;
        continue;
      }
      const sweep = sessions.length === 0 || sessions.some(isHardToTell) ? soonMs : lateMs;
      const told = await changes.next(Math.min(sweep, deadline?.remainingMs() ?? sweep));
      if (told === "changed") await pause(settleMs);
    }
  } finally {
    changes.close();
  }
}

const isHardToTell = ({ status }: Session): boolean =>
  status.state === "unknown" || (status.state === "running" && status.owner.kind === "host");

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
    for (const path of [...claims, ...records]) if (changes.path(path)) seen.push(path);
  }
  return seen.sort().join("\n");
}

/** "projects/*" → "projects" */
const literal = (folder: string): string => folder.split("/*")[0] ?? folder;
