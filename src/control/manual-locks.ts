// Manual locks: a person forbids new sessions in a place until a given time. No other locks are stored.
import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf, textIn, timeIn } from "../agents/fields.ts";
import type { Problem, ProblemDetail } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { failureOf, isError, isGone, tryOr } from "../observe/failure.ts";
import { findFiles } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { readOwnJson } from "../observe/own-files.ts";
import { agentctlHome, checkOwn, distrustOfOwn } from "./notes.ts";

export interface ManualLock {
  place: string;
  by: string;
  reason: string | null;
  at: number;
  until: number;
}

const schema = 1;
const lockBytes = 64 * 1024;
const lockFiles = { folder: "locks", name: /^([0-9a-f]{32})\.json$/ };

function pathOf(env: Environment, place: string): string {
  // Loaded only when needed: that takes milliseconds.
  const digest = process.getBuiltinModule("node:crypto").createHash("sha256").update(place).digest("hex");
  return join(agentctlHome(env), "locks", `${digest.slice(0, 32)}.json`);
}

/** The locks that are valid now, sorted by place. A broken file, or one of another user, becomes a problem and is skipped. */
export function readLocks(env: Environment, now: number): { locks: ManualLock[]; problems: Problem[] } {
  const locks: ManualLock[] = [];
  const problems: Problem[] = [];
  const broken = (source: string, detail: ProblemDetail) =>
    problems.push({ code: "note-unreadable", agent: null, source, detail });
  const distrust = distrustOfOwn(env, "locks");
  if (distrust !== null) {
    broken(agentctlHome(env), distrust);
    return { locks, problems };
  }
  const { files, failures } = findFiles(agentctlHome(env), lockFiles);
  for (const { path, detail } of failures) broken(path, detail);
  for (const { path } of files) {
    try {
      const lock = readLock(path);
      if (lock === null || pathOf(env, lock.place) !== path) broken(path, { code: "not-a-lock" });
      else if (lock.until > now) locks.push(lock);
    } catch (error) {
      if (!isGone(error)) broken(path, failureOf(error));
    }
  }
  return { locks: locks.sort((a, b) => (a.place < b.place ? -1 : 1)), problems };
}

function readLock(path: string): ManualLock | null {
  const fields = fieldsOf(readOwnJson(path, lockBytes));
  if (fields === null || fields["schema"] !== schema) return null;
  const [place, by] = [textIn(fields, "place"), textIn(fields, "by")];
  const [at, until] = [timeIn(fields, "at"), timeIn(fields, "until")];
  if (place === null || by === null || at === null || until === null) return null;
  return { place, by, reason: textIn(fields, "reason"), at, until };
}

/** Replaces an earlier lock of the place. The caller has checked that, and has the launch lock. */
export function writeLock(env: Environment, lock: ManualLock): void {
  const text = { schema, ...lock, at: new Date(lock.at).toISOString(), until: new Date(lock.until).toISOString() };
  checkOwn(env, "locks");
  writeFileAtomically(pathOf(env, lock.place), `${JSON.stringify(text)}\n`);
}

/** Returns false if there was none. */
export function removeLock(env: Environment, place: string): boolean {
  checkOwn(env, "locks");
  return tryOr("none", () => unlinkSync(pathOf(env, place)), isGone) !== "none";
}

export function removeExpiredLocks(env: Environment, now: number): void {
  if (distrustOfOwn(env, "locks") !== null) return;
  for (const { path } of findFiles(agentctlHome(env), lockFiles).files) {
    // `readLocks` reports broken files.
    const lock = tryOr(null, () => readLock(path), isError);
    if (lock !== null && lock.until <= now) tryOr(undefined, () => unlinkSync(path));
  }
}
