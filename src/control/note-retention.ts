// How long notes and output of launches are kept, which of them may be removed, and the clean-up after a launch has answered.

import { lstatSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { isUuid } from "../agents/fields.ts";
import { Failure } from "../core/failure.ts";
import type { OnNotice } from "../core/notice.ts";
import type { ProblemDetail } from "../core/problem.ts";
import { isLive } from "../core/process.ts";
import { isSameSession } from "../core/session.ts";
import { temporaryEnd } from "../lib/atomic-file.ts";
import { errorCode, isGone, tryOr } from "../lib/errors.ts";
import { asFailure, failureOf } from "../observe/failure.ts";
import { cacheFolder, type Environment } from "../observe/homes.ts";
import { distrustOf } from "../observe/own-files.ts";
import { selectIds } from "../observe/selection.ts";
import { type Caller, resolveCaller } from "./guard.ts";
import { holderIn } from "./holder.ts";
import { isExitHookOpen, startDueHooksOf } from "./hooks/start-runner.ts";
import {
  agentctlHome,
  distrustOfOwn,
  keepNote,
  type ReadNote,
  readHookedNotes,
  readNotes,
  sessionOfNote,
} from "./notes.ts";
import { type Snapshot, takeNarrowSnapshot } from "./snapshot.ts";

/** All files of one launch: its note, its exit status, its output. */
export interface Kept {
  id: string;
  note: ReadNote | null;
  bytes: number;
  endedAt: number;
  /** A live process carries its tag, its session is not known to be stopped, or its hook has not run yet. */
  inUse: boolean;
}

const keptMs = 30 * 24 * 3_600_000;
const keptBytes = 2 * 1024 ** 3;
const keptFolders = ["launches", "logs"];

/**
 * Syncs the notes to disk, runs hooks whose holders were killed, and removes temporary files and expired notes. Looks at sessions
 * only if there may be something to do. A failure is only a notice: the next launch tries again.
 */
export async function cleanUpAfterLaunch(
  launches: readonly string[],
  { caller, env, onNotice }: { caller: Caller; env: Environment; onNotice: OnNotice },
): Promise<void> {
  try {
    for (const id of launches) keepNote(env, id);
    forgetTemporaries(env, Date.now());
    const open = readHookedNotes(env).filter(isExitHookOpen);
    // By the files alone, as if no launch were in use.
    const hasOld = expired(launchesOnDisk(env), Date.now()).length > 0;
    if (open.length === 0 && !hasOld) return;
    // A note is removed only when its session is known to be stopped.
    const noted = hasOld ? readNotes(env).notes : open;
    const snapshot = await takeNarrowSnapshot(env, selectIds(noted.map(({ session }) => session)));
    startDueHooksOf(open, snapshot, resolveCaller(caller, snapshot, env), env, onNotice);
    if (hasOld) for (const { id } of expired(keptLaunches(env, snapshot), Date.now())) forgetKept(env, id);
  } catch (error) {
    if (!(error instanceof Failure) && errorCode(error) === "") throw error;
    onNotice({ code: "clean-up-failed", facts: { failure: asFailure(error) } });
  }
}

export function keptLaunches(env: Environment, snapshot: Snapshot): Kept[] {
  const live = liveLaunches(snapshot);
  const noted = new Map(readNotes(env).notes.map((note) => [note.id, note]));
  return launchesOnDisk(env).map((kept) => {
    const note = noted.get(kept.id) ?? null;
    if (note === null) return { ...kept, inUse: live.has(kept.id) };
    const sessions = snapshot.list.sessions.filter((session) => isSameSession(session, sessionOfNote(note)));
    const isOpen = sessions.some(({ status }) => status.state !== "stopped");
    // A session that agentctl did not launch has no file that is written at its end.
    const stoppedAt = note.byHand === true ? (sessions[0]?.endedAt ?? 0) : 0;
    const inUse = live.has(kept.id) || isOpen || isExitHookOpen(note);
    return { ...kept, note, endedAt: Math.max(kept.endedAt, stoppedAt), inUse };
  });
}

/** The launches that live processes name in their tags, and the launches of holders whose agent is just starting. */
function liveLaunches({ table }: Snapshot): Set<string> {
  return new Set(
    table.rows.filter(isLive).flatMap(({ detail }) => {
      const held = detail?.argv == null ? null : holderIn(detail.argv);
      return [detail?.env?.["AGENTCTL_TAG"], held?.launch].filter((id) => id !== undefined);
    }),
  );
}

/** Launches expire thirty days after their end, or if all take more than two gigabytes: oldest first, failed ones last. */
export function expired(kept: readonly Kept[], now: number): Kept[] {
  const unused = kept.filter(({ inUse }) => !inUse);
  const old = unused.filter(({ endedAt }) => endedAt < now - keptMs);
  let left = kept.reduce((sum, { bytes }) => sum + bytes, 0) - old.reduce((sum, { bytes }) => sum + bytes, 0);
  const rest = unused
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

/** Removes all files of a launch, also those that a crash left behind. */
export function forgetKept(env: Environment, id: string): void {
  for (const folder of keptFolders.map((name) => join(agentctlHome(env), name)))
    for (const name of namesIn(folder))
      if (name.startsWith(`${id}.`)) forgetFile(join(folder, name), Number.POSITIVE_INFINITY);
}

/** agentctl needs its temporary files for milliseconds, and an agent reads its prompt and its variables at its start. */
const temporaryMs = 3_600_000;

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
  // Another command may have removed it.
  const stat = tryOr(null, () => lstatSync(path));
  if (stat !== null && !stat.isDirectory() && stat.mtimeMs < before) tryOr(undefined, () => unlinkSync(path));
}

/** Folders that exist and cannot be listed. */
export const unreadKept = (env: Environment): { source: string; detail: ProblemDetail }[] =>
  keptFolders.flatMap((folder) => {
    const source = join(agentctlHome(env), folder);
    const detail = distrustOfOwn(env, folder);
    if (detail !== null) return [{ source, detail }];
    try {
      readdirSync(source);
      return [];
    } catch (error) {
      if (errorCode(error) === "") throw error;
      return isGone(error) ? [] : [{ source, detail: failureOf(error) }];
    }
  });

function launchesOnDisk(env: Environment): Kept[] {
  const found = new Map<string, Kept>();
  for (const folder of keptFolders.filter((name) => distrustOfOwn(env, name) === null))
    for (const name of namesIn(join(agentctlHome(env), folder))) {
      const id = name.slice(0, 36);
      const file = isUuid(id) ? tryOr(null, () => statSync(join(agentctlHome(env), folder, name))) : null;
      if (file === null) continue;
      const kept = found.get(id) ?? { id, note: null, bytes: 0, endedAt: 0, inUse: false };
      const endedAt = Math.max(kept.endedAt, file.mtimeMs);
      found.set(id, { ...kept, bytes: kept.bytes + file.blocks * 512, endedAt });
    }
  return [...found.values()];
}

const namesIn = (folder: string): string[] => tryOr([], () => readdirSync(folder));
