// Directories in use: locks that a person adds and removes, and directories of active sessions, which need no lock.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { refuseInside } from "../control/guard.ts";
import { withLaunchLock } from "../control/launch-lock.ts";
import { type ManualLock, readLocks, removeExpiredLocks, removeLock, writeLock } from "../control/manual-locks.ts";
import { hasReleasedSession, notLiveIn } from "../control/notes.ts";
import { lockOccupant, sessionOccupant } from "../control/occupants.ts";
import { Failure, type Occupant, UsageError } from "../core/failure.ts";
import { isBusy, type Session } from "../core/session.ts";
import { errorCode } from "../lib/errors.ts";
import { readWhole, withFile } from "../observe/files.ts";
import { placeOf } from "../observe/place.ts";
import { liveOnly } from "../observe/selection.ts";
import type { Call } from "./call.ts";
import { lookAtRows, type SessionRow } from "./look.ts";
import { statusWord, time } from "./session-json.ts";

export interface LockRequest {
  directory: string;
  /** null: the user of this process. */
  by: string | null;
  reason: string | null;
  ttlMs: number;
}

const longestMs = 366 * 24 * 3_600_000;

export async function addLock({ directory, by, reason, ttlMs }: LockRequest, { env, cwd }: Call): Promise<ManualLock> {
  const refuse = (message: string): never => {
    throw new UsageError(message, { hint: "agentctl lock --help" });
  };
  if (ttlMs <= 0) refuse("the duration of a lock must be greater than 0");
  if (ttlMs > longestMs) refuse("a lock may last for one year at most");
  if (by?.trim() === "") refuse("the owner of a lock needs a name");
  // The slash excludes files.
  if (!existsSync(`${resolve(cwd, directory)}/`)) refuse(`no directory ${directory}`);
  const place = placeNamed(directory, cwd);
  return await withLaunchLock(env, async () => {
    const at = Date.now();
    const other = readLocks(env, at).locks.find((each) => each.place === place);
    if (other !== undefined) throw new Failure("place-locked", { place, directory, lock: lockOccupant(other) });
    const lock = { place, by: by ?? userName(env), reason, at, until: at + ttlMs };
    removeExpiredLocks(env, at);
    writeLock(env, lock);
    return lock;
  });
}

/** In cron and containers USER is not set, and Bun 1.4 then calls every user "unknown". */
function userName(env: Call["env"]): string {
  const uid = String(process.getuid?.());
  return env["USER"] || env["LOGNAME"] || (nameInPasswd(uid) ?? `uid ${uid}`);
}

const passwdBytes = 16 * 1024 * 1024;

function nameInPasswd(uid: string): string | null {
  try {
    const text = withFile("/etc/passwd", (file) => readWhole(file, passwdBytes)).toString("utf8");
    const users = text.split("\n").map((line) => line.split(":"));
    return users.find((fields) => fields[2] === uid)?.[0] ?? null;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

export interface Unlocked {
  place: string;
  /** Sessions that are, or may be, running there. */
  sessions: Session[];
  occupants: Occupant[];
  /** A launch there is still refused, because a session is active. */
  isBusy: boolean;
}

export async function unlock(directory: string, call: Call): Promise<Unlocked> {
  const { env } = call;
  const place = placeNamed(directory, call.cwd);
  await refuseInside("lock rm", call.caller, env);
  const wasLocked = await withLaunchLock(env, async () => {
    const isLocked = readLocks(env, Date.now()).locks.some((each) => each.place === place);
    return removeLock(env, place) && isLocked;
  });
  const { rows } = await lookAtRows(call, liveOnly);
  const sessions = rows
    .map(({ session }) => session)
    .filter(({ status, cwd }) => status.state !== "stopped" && placeOf(cwd) === place);
  const occupants = sessions.map(sessionOccupant);
  if (!wasLocked) throw new Failure("lock-not-found", { place, occupants });
  return { place, sessions, occupants, isBusy: sessions.some(isBusy) };
}

/** A directory that no longer exists is its own place, so that its lock can still be removed. */
function placeNamed(directory: string, cwd: string): string {
  const path = resolve(cwd, directory);
  return placeOf(path) ?? path;
}

export interface DirectoriesInUse {
  at: number;
  locks: ManualLock[];
  /** Active sessions, each with its directory. */
  active: { row: SessionRow; place: string | null }[];
}

export async function listLocks(call: Call): Promise<DirectoriesInUse> {
  const { at, rows, notes, problems } = await lookAtRows(call, liveOnly);
  const { locks, problems: unread } = readLocks(call.env, at);
  call.onProblems([...problems, ...unread]);
  const isOver = notLiveIn(rows.map(({ session }) => session));
  const active = rows
    .filter(
      ({ session }) =>
        session.status.state !== "stopped" && isBusy(session) && !hasReleasedSession(session, notes, isOver),
    )
    .map((row) => ({ row, place: placeOf(row.session.cwd) }));
  return { at, locks, active };
}

export const lockJson = ({ place, by, reason, at, until }: ManualLock) => ({
  kind: "manual",
  place,
  by,
  reason,
  at: time(at),
  until: time(until),
});

export const locksJson = ({ locks, active }: DirectoriesInUse) => [
  ...locks.map(lockJson),
  ...active.map(({ row: { session, ref }, place }) => ({
    kind: "derived",
    place,
    by: `${session.agent} ${session.id ?? ref}`,
    reason: statusWord(session),
    at: time(session.since),
    until: null,
  })),
];

export const unlockedJson = ({ place, sessions }: Unlocked) => ({
  place,
  locked: false,
  sessions: sessions.map((session) => {
    const { agent, id, processes } = session;
    return { agent, id, status: statusWord(session), pid: processes[0]?.identity.pid ?? null };
  }),
});
