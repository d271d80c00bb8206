// Who may begin where. Occupancy is derived, never stored; two that race are decided by one lock of the kernel, which goes
// with its holder.
import { closeSync, fstatSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { AgentctlError } from "../core/problem.ts";
import { isLive } from "../core/process.ts";
import { isBusy, type Session } from "../core/session.ts";
import { deadlineIn } from "../lib/deadline.ts";
import { errorCode } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { placeOf } from "../observe/place.ts";
import { openChanges } from "../sys/changes.ts";
import { tryLock } from "../sys/file-lock.ts";
import type { Caller } from "./guard.ts";
import { heldIn } from "./holder.ts";
import { lockFiles, openLockFile } from "./lock-files.ts";
import { type ManualLock, readLocks } from "./manual-locks.ts";
import type { Surroundings } from "./surroundings.ts";

const lockPatienceMs = 30_000;

/** Runs `act` while no other launch, send or resume of this user is between its look and its start. */
export async function oneAtATime<T>(
  env: Environment,
  act: () => Promise<T>,
  interrupted: Promise<never> = Promise.withResolvers<never>().promise,
): Promise<T> {
  const taken: number[] = [];
  try {
    for (const path of lockFiles(env)) taken.push(await takeLock(path, interrupted));
    return await act();
  } finally {
    for (const fd of taken) closeSync(fd);
  }
}

/** Whoever has the lock lets it go by closing the file, which the kernel tells; this is for disks of which it does not. */
const lockSweepMs = 250;

async function takeLock(path: string, interrupted: Promise<never>): Promise<number> {
  const deadline = deadlineIn(lockPatienceMs);
  let fd = openLockFile(path);
  if (hasLock(path, fd)) return fd;
  const changes = openChanges();
  try {
    for (;;) {
      changes.path(path);
      if (!isStill(path, fd)) {
        const fresh = openLockFile(path);
        closeSync(fd);
        fd = fresh;
      }
      if (hasLock(path, fd)) return fd;
      if (deadline.isOver())
        throw new AgentctlError(
          "timed-out",
          `another agentctl has been starting something for ${lockPatienceMs / 1000} s`,
          { hint: `it holds ${path}` },
        );
      await Promise.race([changes.next(lockSweepMs), interrupted]);
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  } finally {
    changes.close();
  }
}

/** Somebody may have removed the file since: then what we locked is not what the next one will lock. */
const hasLock = (path: string, fd: number): boolean => tryLock(fd) && isStill(path, fd);

function isStill(path: string, fd: number): boolean {
  try {
    return statSync(path).ino === fstatSync(fd).ino;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return false;
  }
}

export interface Occupant {
  /** A person's: no session, which one could wait for. */
  isLock: boolean;
  /** Why nobody else should begin there; null: it is only worth a word. */
  refuses: boolean;
  /** Just beginning, or without a session: in a moment it may be something else, or gone. */
  isPassing: boolean;
  pids: number[];
  text: string;
}

/** Who is in a place. The caller's own session does not count, nor do those that it runs in. */
export function occupantsOf(
  directory: string,
  sessions: readonly Session[],
  around: Surroundings,
  caller: Caller,
  env: Environment,
): Occupant[] {
  const place = placeOf(directory);
  const here = sessions.filter(
    (session) =>
      session.status.state !== "stopped" &&
      placeOf(session.cwd) === place &&
      !caller.within.includes(session) &&
      !session.processes.some(({ identity }) => caller.pids.has(identity.pid)),
  );
  const locks = readLocks(env, around.list.at).locks.filter((lock) => lock.place === place);
  const starting = startingHolders(around).filter((row) => placeOf(row.cwd) === place);
  return [
    ...locks.map((lock) => ({ isLock: true, refuses: true, isPassing: false, pids: [], text: lockedText(lock) })),
    ...here.map((session) => ({
      isLock: false,
      refuses: isBusy(session),
      isPassing: isNameless(session),
      pids: session.processes.map(({ identity }) => identity.pid),
      text: occupantText(session),
    })),
    ...starting.map(({ pid }) => ({
      isLock: false,
      refuses: true,
      isPassing: true,
      pids: [pid],
      text: `a session that is just being launched (pid ${pid})`,
    })),
  ];
}

export const lockedText = ({ by, reason, until }: ManualLock): string =>
  `locked by ${by} until ${new Date(until).toISOString()}${reason === null ? "" : `: ${reason}`}`;

const isNameless = ({ id, status }: Session): boolean =>
  id === null && status.state === "running" && status.activity === "unclear";

export function occupantText({ agent, id, status, since, processes }: Session): string {
  const word = status.state === "running" ? status.activity : status.state;
  const when = since === null || Math.abs(since) > 8.64e15 ? "" : ` since ${new Date(since).toISOString()}`;
  const pid = processes[0]?.identity.pid;
  const where =
    pid === undefined ? "" : ` (pid ${pid} on ${hostname()}${processes[0]?.tty ? `, ${processes[0].tty}` : ""})`;
  return `${agent} ${id ?? "without a session yet"} is ${word} there${when}${where}`;
}

export interface StartingHolder {
  pid: number;
  cwd: string | null;
  launch: string;
  given: string | null;
}

/**
 * Holders whose agent is not a session yet, or not any more: the launcher may be dead, or a wrapper may take its time, and
 * the agent will be there in a moment.
 */
export function startingHolders({ list, table }: Surroundings): StartingHolder[] {
  const begun = new Set(list.sessions.flatMap(({ processes }) => processes.map((row) => row.session)));
  return table.rows.flatMap((row) => {
    const { argv, cwd } = row.detail ?? { argv: null, cwd: null };
    const held = argv === null ? null : heldIn(argv);
    const isStarting = held !== null && row.session === row.identity.pid && isLive(row) && !begun.has(row.session);
    return isStarting ? [{ pid: row.identity.pid, cwd, ...held }] : [];
  });
}
