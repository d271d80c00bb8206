// Keeps git from changing a worktree during its removal: agentctl creates git's own lock files and writes the removal into
// them. If the removal is killed, the next command finds it there and puts the worktree back.
import { closeSync, lstatSync, openSync, rmSync, writeSync } from "node:fs";
import { isAbsolute, join, normalize } from "node:path";
import { Failure } from "../../core/failure.ts";
import { type ProcessIdentity, sameProcess } from "../../core/process.ts";
import { errorCode, failureText, tryOr } from "../../lib/errors.ts";
import { readText } from "../../observe/files.ts";
import { readProcess } from "../../observe/processes.ts";

/** The path of the worktree, and the path that it is moved to before it is removed. */
export interface Removal {
  from: string;
  aside: string;
}

const lockHeader = "agentctl is removing this worktree";
const lockNames = ["index.lock", "HEAD.lock"];

/** While both locks exist, no git command can commit, stage or switch branches in the worktree. */
export function holdWorktree(admin: string, removal: Removal): { release(): void } {
  const text = `${lockHeader}\n${JSON.stringify({ ...removal, by: readProcess(process.pid)?.identity ?? null })}\n`;
  const taken: string[] = [];
  const release = (): void => {
    for (const path of taken) if (isOurLock(path)) rmSync(path, { force: true });
  };
  try {
    for (const path of lockNames.map((name) => join(admin, name))) {
      const fd = openSync(path, "wx", 0o600);
      taken.push(path);
      writeSync(fd, text);
      closeSync(fd);
    }
    return { release };
  } catch (error) {
    release();
    throw notHeld(admin, error);
  }
}

const notHeld = (admin: string, error: unknown): Failure =>
  errorCode(error) === "EEXIST"
    ? new Failure("git-busy", { folder: admin })
    : new Failure("git-lock-failed", { folder: admin, detail: failureText(error) }, { cause: error });

export const isOurLock = (path: string): boolean => textOf(path).startsWith(lockHeader);

/** A removal that was interrupted; null: there is none, or it is still running. */
export function interruptedRemoval(admin: string): Removal | null {
  for (const name of lockNames) {
    const text = textOf(join(admin, name));
    if (!text.startsWith(lockHeader)) continue;
    const { from, aside, by } = parseLock(text.slice(lockHeader.length));
    return isAtWork(by) ? null : { from, aside };
  }
  return null;
}

function parseLock(text: string): Removal & { by: ProcessIdentity | null } {
  try {
    const { from, aside, by } = JSON.parse(text) as Record<string, unknown>;
    const isWhole = typeof from === "string" && typeof aside === "string" && isAsideOf(aside, from);
    return { ...(isWhole ? { from, aside } : unknownPaths), by: identityIn(by) };
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
const isAsideOf = (aside: string, from: string): boolean =>
  isAbsolute(from) &&
  normalize(from) === from &&
  new RegExp(`^${asideEnding.replace(".", "\\.")}(-\\d+)?$`).test(after(from, aside));

const after = (start: string, text: string): string => (text.startsWith(start) ? text.slice(start.length) : "");

const unknownPaths: Removal = { from: "", aside: "" };

function identityIn(value: unknown): ProcessIdentity | null {
  if (typeof value !== "object" || value === null) return null;
  const { pid, start, boot } = value as Record<string, unknown>;
  return typeof pid === "number" && typeof start === "string" && typeof boot === "string" ? { pid, start, boot } : null;
}

function isAtWork(by: ProcessIdentity | null): boolean {
  const now = by === null ? null : readProcess(by.pid);
  return by !== null && now !== null && sameProcess(now.identity, by);
}

export function forgetRemoval(admin: string): void {
  for (const path of lockNames.map((name) => join(admin, name))) if (isOurLock(path)) rmSync(path, { force: true });
}

export const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

const textOf = (path: string): string => tryOr("", () => (lstatSync(path).isFile() ? readText(path) : ""));
