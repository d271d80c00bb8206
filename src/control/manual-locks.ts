// Manual locks: a person forbids new sessions in a place until a given time. No other locks are stored.
import { unlinkSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf, textIn, timeIn } from "../agents/fields.ts";
import type { Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { isGone, tryOr } from "../lib/errors.ts";
import type { Environment } from "../observe/homes.ts";
import { readOwnJson } from "../observe/own-files.ts";
import { agentctlHome, checkOwn, readOwnFiles } from "./notes.ts";

export interface ManualLock {
  place: string;
  by: string;
  reason: string | null;
  at: number;
  until: number;
}

const schema = 1;
const lockBytes = 64 * 1024;

function pathOf(env: Environment, place: string): string {
  // Loaded only when needed: that takes milliseconds.
  const digest = process.getBuiltinModule("node:crypto").createHash("sha256").update(place).digest("hex");
  return join(agentctlHome(env), "locks", `${digest.slice(0, 32)}.json`);
}

/** The locks that are valid now, sorted by place. */
export function readLocks(env: Environment, now: number): { locks: ManualLock[]; problems: Problem[] } {
  const { values, problems } = readAllLocks(env);
  const valid = values.filter(({ until }) => until > now);
  return { locks: valid.sort((a, b) => (a.place < b.place ? -1 : 1)), problems };
}

const lockFiles = { folder: "locks", name: /^([0-9a-f]{32})\.json$/ };

function readAllLocks(env: Environment) {
  const read = (path: string): ManualLock | null => {
    const lock = readLock(path);
    return lock !== null && pathOf(env, lock.place) === path ? lock : null;
  };
  return readOwnFiles(env, lockFiles, read, { code: "not-a-lock" });
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

/** Broken files stay: `readLocks` reports them. */
export function removeExpiredLocks(env: Environment, now: number): void {
  for (const { place, until } of readAllLocks(env).values)
    if (until <= now) tryOr(undefined, () => unlinkSync(pathOf(env, place)));
}
