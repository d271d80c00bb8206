// A person's wish that nobody begins in a place for a while. The only locks that are ever stored; each ends by itself.
import { readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { fieldsOf, textIn, timeIn } from "../adapters/fields.ts";
import type { Problem } from "../core/problem.ts";
import { writeFileAtomically } from "../lib/atomic-file.ts";
import { failureText, isGone } from "../observe/failure.ts";
import { readWhole } from "../observe/files.ts";
import type { Environment } from "../observe/homes.ts";
import { withOwnFile } from "../observe/own-files.ts";
import { agentctlHome, checkOwn, distrustOfOwn } from "./notes.ts";

export interface ManualLock {
  /** A place, by its real path. */
  place: string;
  by: string;
  reason: string | null;
  at: number;
  until: number;
}

const schema = 1;
const lockBytes = 64 * 1024;

const folderOf = (env: Environment): string => join(agentctlHome(env), "locks");

/** Loading node:crypto takes milliseconds, and most commands never come here. */
const digestOf = (text: string): string =>
  process.getBuiltinModule("node:crypto").createHash("sha256").update(text).digest("hex");

/** One file per place. */
const pathOf = (env: Environment, place: string): string => join(folderOf(env), `${digestOf(place).slice(0, 32)}.json`);

/** Those that hold now, by place. A broken or foreign file is said and passed over. */
export function readLocks(env: Environment, now: number): { locks: ManualLock[]; problems: Problem[] } {
  const locks: ManualLock[] = [];
  const problems: Problem[] = [];
  const broken = (source: string, message: string) =>
    problems.push({ code: "note-unreadable", agent: null, source, message });
  const distrust = distrustOfOwn(env, "locks");
  if (distrust !== null) broken(agentctlHome(env), distrust);
  for (const name of distrust === null ? namesIn(folderOf(env), broken) : []) {
    const path = join(folderOf(env), name);
    try {
      const lock = readLock(path);
      if (lock === null || pathOf(env, lock.place) !== path) broken(path, "not a lock");
      else if (lock.until > now) locks.push(lock);
    } catch (error) {
      if (!isGone(error)) broken(path, failureText(error));
    }
  }
  return { locks: locks.sort((a, b) => (a.place < b.place ? -1 : 1)), problems };
}

function namesIn(folder: string, broken: (source: string, message: string) => void): string[] {
  try {
    return readdirSync(folder).filter((name) => /^[0-9a-f]{32}\.json$/.test(name));
  } catch (error) {
    if (!isGone(error)) broken(folder, failureText(error));
    return [];
  }
}

function readLock(path: string): ManualLock | null {
  const fields = fieldsOf(withOwnFile(path, (file) => JSON.parse(readWhole(file, lockBytes).toString("utf8"))));
  if (fields === null || fields["schema"] !== schema) return null;
  const [place, by, at, until] = [
    textIn(fields, "place"),
    textIn(fields, "by"),
    timeIn(fields, "at"),
    timeIn(fields, "until"),
  ];
  if (place === null || by === null || at === null || until === null) return null;
  return { place, by, reason: textIn(fields, "reason"), at, until };
}

/** Replaces whatever the place had; whoever calls has looked, and lets nobody else act meanwhile. */
export function writeLock(env: Environment, lock: ManualLock): void {
  const text = { schema, ...lock, at: new Date(lock.at).toISOString(), until: new Date(lock.until).toISOString() };
  checkOwn(env, "locks");
  writeFileAtomically(pathOf(env, lock.place), `${JSON.stringify(text)}\n`);
}

/** Was there one? */
export function removeLock(env: Environment, place: string): boolean {
  checkOwn(env, "locks");
  try {
    unlinkSync(pathOf(env, place));
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** What is over is of no use to anybody. */
export function forgetOverLocks(env: Environment, now: number): void {
  if (distrustOfOwn(env, "locks") !== null) return;
  for (const name of namesIn(folderOf(env), () => {})) {
    const path = join(folderOf(env), name);
    try {
      const lock = readLock(path);
      if (lock !== null && lock.until <= now) unlinkSync(path);
    } catch (error) {
      // Whoever lists the locks says what is wrong with it.
      if (!(error instanceof Error)) throw error;
    }
  }
}
