// Keeps git from changing a worktree during its removal: agentctl creates git's own lock files and writes the removal into
// them. If the removal is killed, the next command finds it there and puts the worktree back.
import { closeSync, lstatSync, openSync, rmSync, writeSync } from "node:fs";
import { isAbsolute, join, normalize } from "node:path";
import { Failure } from "../../core/failure.ts";
import { type ProcessIdentity, parseIdentity } from "../../core/process.ts";
import { errorCode, failureText, tryOr } from "../../lib/errors.ts";
import { readText } from "../../observe/files.ts";
import { readIfLive, readProcess } from "../../observe/processes.ts";

/** The path of the worktree, and the path that it is moved to before it is removed. */
interface RemovalPaths {
  from: string;
  aside: string;
}

const lockHeader = "agentctl is removing this worktree";
const lockNames = ["index.lock", "HEAD.lock"];

/** While both locks exist, no git command can commit, stage or switch branches in the worktree. */
export function holdWorktree(admin: string, removal: RemovalPaths): void {
  const text = `${lockHeader}\n${JSON.stringify({ ...removal, by: readProcess(process.pid)?.identity ?? null })}\n`;
  const taken: string[] = [];
  try {
    for (const path of lockNames.map((name) => join(admin, name))) {
      const fd = openSync(path, "wx", 0o600);
      taken.push(path);
      writeSync(fd, text);
      closeSync(fd);
    }
  } catch (error) {
    for (const path of taken) rmSync(path, { force: true });
    if (errorCode(error) === "EEXIST") throw new Failure("git-busy", { folder: admin });
    throw new Failure("git-lock-failed", { folder: admin, detail: failureText(error) }, { cause: error });
  }
}

/** Removes the locks. */
export function releaseWorktree(admin: string): void {
  for (const path of lockNames.map((name) => join(admin, name))) if (isOurLock(path)) rmSync(path, { force: true });
}

export const isOurLock = (path: string): boolean => textOf(path).startsWith(lockHeader);

/** A removal that was interrupted; null: there is none, or it is still running. */
export function interruptedRemoval(admin: string): RemovalPaths | null {
  for (const name of lockNames) {
    const text = textOf(join(admin, name));
    if (!text.startsWith(lockHeader)) continue;
    const { by, ...removal } = parseLock(text.slice(lockHeader.length));
    return by !== null && readIfLive(by) !== null ? null : removal;
  }
  return null;
}

function parseLock(text: string): RemovalPaths & { by: ProcessIdentity | null } {
  try {
    const { from, aside, by } = JSON.parse(text) as Record<string, unknown>;
    const isWhole = typeof from === "string" && typeof aside === "string" && isAsideOf(aside, from);
    return { ...(isWhole ? { from, aside } : unknownPaths), by: parseIdentity(by) };
  } catch (error) {
    // It was killed while it wrote the lock file, so nothing has been moved yet.
    if (error instanceof SyntaxError) return { ...unknownPaths, by: null };
    throw error;
  }
}

/** The path that a worktree is moved to before it is removed: in the same folder, with an ending that only removals use. */
export const asideName = (path: string, number: number): string =>
  `${path}${asideEnding}${number === 1 ? "" : `-${number}`}`;

const asideEnding = ".agentctl-removing";

/**
 * The lock file is inside the repository, so its creator may have forged it. A forged one can only rename a folder with our
 * ending to the same name without it.
 */
const isAsideOf = (aside: string, from: string): boolean => {
  const ending = aside.startsWith(`${from}${asideEnding}`) ? aside.slice(from.length + asideEnding.length) : null;
  return isAbsolute(from) && normalize(from) === from && ending !== null && /^(-\d+)?$/.test(ending);
};

const unknownPaths: RemovalPaths = { from: "", aside: "" };

const textOf = (path: string): string => tryOr("", () => (lstatSync(path).isFile() ? readText(path) : ""));
