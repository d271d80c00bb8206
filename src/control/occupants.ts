// Which sessions, launches and manual locks occupy a place. Occupancy is derived at every launch and never stored.
import type { Occupant } from "../core/failure.ts";
import { isLive } from "../core/process.ts";
import { isBusy, type Session } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import type { ResolvedCaller } from "./guard.ts";
import { holderIn } from "./holder.ts";
import { type ManualLock, readLocks } from "./manual-locks.ts";
import type { Snapshot } from "./snapshot.ts";

export interface FoundOccupant {
  occupant: Occupant;
  /** true: no other session may start there. false: a launch there only gets a notice. */
  refuses: boolean;
  /** Just starting, or without a session yet: it may change or exit in a moment. */
  isPassing: boolean;
  pids: number[];
}

/** Everything that is active in a place, except the sessions that the caller runs in. */
export function occupantsOf(
  directory: string,
  sessions: readonly Session[],
  snapshot: Snapshot,
  caller: ResolvedCaller,
  env: Environment,
): FoundOccupant[] {
  const place = placeOf(directory);
  const here = sessions.filter(
    (session) =>
      session.status.state !== "stopped" &&
      placeOf(session.cwd) === place &&
      !caller.within.includes(session) &&
      !session.processes.some(({ identity }) => caller.pids.has(identity.pid)),
  );
  const locks = readLocks(env, snapshot.list.at).locks.filter((lock) => lock.place === place);
  const starting = startingHolders(snapshot).filter((row) => placeOf(row.cwd) === place);
  return [
    ...locks.map((lock) => ({ occupant: lockOccupant(lock), refuses: true, isPassing: false, pids: [] })),
    ...here.map((session) => ({
      occupant: sessionOccupant(session),
      refuses: isBusy(session),
      isPassing: isNameless(session),
      pids: session.processes.map(({ identity }) => identity.pid),
    })),
    ...starting.map(({ pid }) => {
      const occupant = { kind: "launch" as const, pid };
      return { occupant, refuses: true, isPassing: true, pids: [pid] };
    }),
  ];
}

export const lockOccupant = ({ by, reason, until }: ManualLock): Occupant => ({
  kind: "lock",
  by,
  until: new Date(until).toISOString(),
  reason,
});

const isNameless = ({ id, status }: Session): boolean =>
  id === null && status.state === "running" && status.activity === "unclear";

export const sessionOccupant = ({ agent, id, status, since, processes: [process] }: Session): Occupant => ({
  kind: "session",
  agent,
  id,
  status: status.state === "running" ? status.activity : status.state,
  since: since === null || Math.abs(since) > 8.64e15 ? null : new Date(since).toISOString(),
  pid: process?.identity.pid ?? null,
  tty: process?.tty || null,
});

/**
 * Holders whose agent has no session yet, or no longer: the launcher may be dead, or a wrapper script may be slow to start
 * the agent.
 */
export function startingHolders({ list, table }: Snapshot) {
  const begun = new Set(list.sessions.flatMap(({ processes }) => processes.map((row) => row.session)));
  return table.rows.flatMap((row) => {
    const { argv, cwd } = row.detail ?? { argv: null, cwd: null };
    const holder = argv === null ? null : holderIn(argv);
    const isStarting = holder !== null && row.session === row.identity.pid && isLive(row) && !begun.has(row.session);
    return isStarting ? [{ pid: row.identity.pid, cwd, ...holder }] : [];
  });
}
