// The launch lock lets only one launch, send or resume of this user at a time look and start. It is a kernel lock, so
// it ends with the process that has it. Its files are in folders of this user alone: in /tmp another user could create the
// folder first and lock everyone out.
import { closeSync, constants, fstatSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure, type FolderProblem } from "../core/failure.ts";
import { deadlineIn, unlessAborted } from "../lib/deadline.ts";
import { errorCode, failureText, tryOr } from "../lib/errors.ts";
import { failureOf } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { openChangeWatch } from "../sys/change-watch.ts";
import { tryLock } from "../sys/file-lock.ts";
import { agentctlHome } from "./notes.ts";

const lockPatienceMs = 30_000;

export async function withLaunchLock<T>(
  env: Environment,
  act: () => Promise<T>,
  signal: AbortSignal = new AbortController().signal,
): Promise<T> {
  const taken: number[] = [];
  try {
    for (const path of lockFiles(env)) taken.push(await takeLock(path, signal));
    return await act();
  } finally {
    for (const fd of taken) closeSync(fd);
  }
}

/** The kernel reports when the lock file is closed, except on some network disks: for those, try again. */
const lockSweepMs = 250;

async function takeLock(path: string, signal: AbortSignal): Promise<number> {
  const deadline = deadlineIn(lockPatienceMs);
  let fd = openLockFile(path);
  if (hasLock(path, fd)) return fd;
  const changes = openChangeWatch();
  try {
    for (;;) {
      changes.path(path);
      if (!isSameFile(path, fd)) {
        const fresh = openLockFile(path);
        closeSync(fd);
        fd = fresh;
      }
      if (hasLock(path, fd)) return fd;
      if (deadline.isOver()) throw new Failure("launch-lock-busy", { seconds: lockPatienceMs / 1000, path });
      await unlessAborted(signal, changes.next(lockSweepMs));
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  } finally {
    changes.close();
  }
}

/** If the file was removed and created again, the next process locks another file: then this lock is worthless. */
const hasLock = (path: string, fd: number): boolean => tryLock(fd) && isSameFile(path, fd);

const isSameFile = (path: string, fd: number): boolean => tryOr(false, () => statSync(path).ino === fstatSync(fd).ino);

/**
 * A command locks all of these files, in this order. Two commands exclude each other if they have one file in common: also if
 * only one of them has XDG_RUNTIME_DIR, or if they have different values of AGENTCTL_HOME. The paths are real and sorted, so
 * that two commands never wait for each other and no command waits for itself.
 */
function lockFiles(env: Environment): string[] {
  const uid = process.getuid?.() ?? 0;
  const runtime = [env["XDG_RUNTIME_DIR"] ?? "", `/run/user/${uid}`]
    .filter((folder) => folder.startsWith("/") && problemWith(folder, uid) === null)
    .map((folder) => ownFolder(join(folder, "agentctl"), uid, "XDG_RUNTIME_DIR"));
  const folders = [...runtime, ...homeFolder(env, uid, runtime.length > 0 ? "if possible" : "needed")];
  return [...new Set(folders)].sort().map((folder) => join(folder, "launch.lock"));
}

/** If there is another lock file, a full or read-only disk must not prevent a launch. */
function homeFolder(env: Environment, uid: number, need: "needed" | "if possible"): string[] {
  try {
    const home = agentctlHome(env);
    const owner = statSync(home, { throwIfNoEntry: false })?.uid ?? uid;
    if (owner !== uid) throw untrusted(home, { code: "other-owner", uid: owner }, "AGENTCTL_HOME");
    const folder = ownFolder(join(home, "run"), uid, "AGENTCTL_HOME");
    closeSync(openLockFile(join(folder, "launch.lock")));
    return [folder];
  } catch (error) {
    if (need === "needed" || !(error instanceof Failure)) throw error;
    return [];
  }
}

/** Creates the folder if it is missing. Returns its real path. */
function ownFolder(folder: string, uid: number, variable: string): string {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    // mkdir fails with EEXIST for a symbolic link and for a file, which problemWith refuses.
    if (errorCode(error) !== "EEXIST")
      throw new Failure(
        "write-failed",
        { path: dirname(folder), detail: failureOf(error), variable },
        { cause: error },
      );
  }
  const problem = problemWith(folder, uid);
  if (problem !== null) throw untrusted(folder, problem, variable);
  return realpathSync(folder);
}

const untrusted = (folder: string, problem: FolderProblem, variable: string): Failure =>
  new Failure("untrusted-folder", { folder, problem, variable });

/** Why other users could interfere in a folder; null: they cannot. */
function problemWith(folder: string, uid: number): FolderProblem | null {
  try {
    const stat = statSync(folder);
    if (!stat.isDirectory()) return { code: "not-a-folder" };
    if (stat.uid !== uid) return { code: "other-owner", uid: stat.uid };
    return (stat.mode & 0o022) === 0 ? null : { code: "writable-by-others" };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return { code: "unusable", detail: failureText(error) };
  }
}

function openLockFile(path: string): number {
  try {
    return openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw new Failure("lock-file-unusable", { path, detail: failureText(error) }, { cause: error });
  }
}
