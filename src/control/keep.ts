// What is kept of launches, for how long, and what of it may go. Pure thinking about files that were looked at once.
import { lstatSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { isUuid } from "../adapters/fields.ts";
import { isLive } from "../core/process.ts";
import { temporaryEnd } from "../lib/atomic-file.ts";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { cacheFolder, type Environment } from "../observe/homes.ts";
import { distrustOf } from "../observe/own-files.ts";
import { isExitHookOpen } from "./due-hooks.ts";
import { heldIn } from "./holder.ts";
import { agentctlHome, distrustOfOwn, forgetLaunch, type ReadNote, readNotes } from "./notes.ts";
import type { Surroundings } from "./surroundings.ts";

/** Everything that carries the number of one launch: its note, its exit status, its output. */
export interface Kept {
  id: string;
  note: ReadNote | null;
  bytes: number;
  /** When it ended; of one whose end nobody saw, when it was last written to. */
  endedAt: number;
  /** A live process carries its tag, its session is not known to be stopped, or its hook has not been run. */
  inUse: boolean;
}

const keptMs = 30 * 24 * 3_600_000;
const keptBytes = 2 * 1024 ** 3;

export function keptLaunches(env: Environment, around: Surroundings): Kept[] {
  const live = liveLaunches(around);
  return keptUnderNumbers(env, readNotes(env).notes).map((kept) => {
    const { id, note } = kept;
    return { ...kept, inUse: live.has(id) || (note !== null && (isOpen(note, around) || isExitHookOpen(note))) };
  });
}

function keptUnderNumbers(env: Environment, notes: readonly ReadNote[]): Omit<Kept, "inUse">[] {
  const noted = new Map(notes.map((note) => [note.id, note]));
  return [...launchFilesOf(env)].map(([id, files]) => ({
    id,
    note: noted.get(id) ?? null,
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    endedAt: Math.max(...files.map(({ writtenAt }) => writtenAt)),
  }));
}

/** By the files alone: who is still in use is not known yet. */
export const mayHaveExpired = (env: Environment, now: number): boolean =>
  expired(
    keptUnderNumbers(env, []).map((kept) => ({ ...kept, inUse: false })),
    now,
  ).length > 0;

/** By the tags of live processes, and by holders whose agent is just beginning. */
function liveLaunches({ table }: Surroundings): Set<string> {
  return new Set(
    table.rows.filter(isLive).flatMap(({ detail }) => {
      const held = detail?.argv == null ? null : heldIn(detail.argv);
      return [detail?.env?.["AGENTCTL_TAG"], held?.launch].filter((id) => id !== undefined);
    }),
  );
}

const isOpen = (note: ReadNote, { list }: Surroundings): boolean =>
  list.sessions.some(
    ({ agent, home, id, status }) =>
      agent === note.agent && home === note.home && id === note.session && status.state !== "stopped",
  );

/** The rule: thirty days after the end; two gigabytes in all, oldest first, those that failed last. What is in use stays. */
export function expired(kept: readonly Kept[], now: number): Kept[] {
  const over = kept.filter(({ inUse }) => !inUse);
  const old = over.filter(({ endedAt }) => endedAt < now - keptMs);
  let left = kept.reduce((sum, { bytes }) => sum + bytes, 0) - old.reduce((sum, { bytes }) => sum + bytes, 0);
  const rest = over
    .filter((each) => !old.includes(each))
    .sort((a, b) => Number(hasFailed(a)) - Number(hasFailed(b)) || a.endedAt - b.endedAt);
  const tooMuch = rest.filter(({ bytes }) => {
    const isNeeded = left > keptBytes;
    if (isNeeded) left -= bytes;
    return isNeeded;
  });
  return [...old, ...tooMuch];
}

const hasFailed = ({ note }: Kept): boolean => note?.exit != null && note.exit.status !== 0;

/** After every start: nobody has to think of it. */
export function forgetExpired(env: Environment, around: Surroundings, now: number): void {
  for (const { id } of expired(keptLaunches(env, around), now)) forgetKept(env, id);
}

/** Also what a crash has left under its number. */
export function forgetKept(env: Environment, id: string): void {
  forgetLaunch(env, id);
  for (const folder of ["launches", "logs"])
    for (const name of namesIn(join(agentctlHome(env), folder)))
      if (name.startsWith(`${id}.`)) forgetFile(join(agentctlHome(env), folder, name), Number.POSITIVE_INFINITY);
}

/** Every writer of ours is done with its temporary file after milliseconds, and an agent with its prompt and variables at its start. */
const temporaryMs = 3_600_000;

/** What a writer or a start that was killed left behind. */
export function forgetTemporaries(env: Environment, now: number): void {
  const own = ["launches", "logs", "locks", "support"].map((name) => ({
    folder: join(agentctlHome(env), name),
    distrust: distrustOfOwn(env, name),
  }));
  const caches = [cacheFolder(env), join(cacheFolder(env), "totals")].map((folder) => ({
    folder,
    distrust: distrustOf(cacheFolder(env)) ?? distrustOf(folder),
  }));
  for (const { folder, distrust } of [...own, ...caches])
    for (const name of distrust === null ? namesIn(folder).filter(isTemporary) : [])
      forgetFile(join(folder, name), now - temporaryMs);
}

const isTemporary = (name: string): boolean =>
  name.endsWith(temporaryEnd) || /^[0-9a-f-]{36}\.(?:prompt|env|import)$/.test(name);

function forgetFile(path: string, before: number): void {
  try {
    const stat = lstatSync(path);
    if (!stat.isDirectory() && stat.mtimeMs < before) unlinkSync(path);
  } catch (error) {
    // Another command may have removed it.
    if (errorCode(error) === "") throw error;
  }
}

/** Folders that are there and cannot be listed: nobody can tell what is kept in them. */
export const unreadKept = (env: Environment): { source: string; message: string }[] =>
  ["launches", "logs"].flatMap((folder) => {
    const source = join(agentctlHome(env), folder);
    const message = distrustOfOwn(env, folder);
    if (message !== null) return [{ source, message }];
    try {
      readdirSync(source);
      return [];
    } catch (error) {
      if (errorCode(error) === "") throw error;
      return isGone(error) ? [] : [{ source, message: failureText(error) }];
    }
  });

interface KeptFile {
  path: string;
  bytes: number;
  writtenAt: number;
}

function launchFilesOf(env: Environment): Map<string, KeptFile[]> {
  const found = new Map<string, KeptFile[]>();
  for (const folder of ["launches", "logs"].filter((name) => distrustOfOwn(env, name) === null))
    for (const name of namesIn(join(agentctlHome(env), folder))) {
      const id = name.slice(0, 36);
      const file = isUuid(id) ? statOf(join(agentctlHome(env), folder, name)) : null;
      if (file !== null) found.set(id, [...(found.get(id) ?? []), file]);
    }
  return found;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isGone(error) || errorCode(error) !== "") return [];
    throw error;
  }
}

function statOf(path: string): KeptFile | null {
  try {
    const { blocks, mtimeMs } = statSync(path);
    return { path, bytes: blocks * 512, writtenAt: mtimeMs };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}
