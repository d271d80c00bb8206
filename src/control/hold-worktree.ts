// Keeps git from changing a worktree while it is being removed: git's own lock files, with a mark of ours in them. A removal
// that was killed leaves its mark, and by it the next command puts the worktree back.
import { closeSync, lstatSync, openSync, rmSync, writeSync } from "node:fs";
import { isAbsolute, join, normalize } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import { type ProcessIdentity, sameProcess } from "../core/process.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import { readText } from "../observe/files.ts";
import { readProcess } from "../observe/processes.ts";

/** Where the worktree belongs, and where it is moved to before it is removed. */
export interface Removal {
  from: string;
  aside: string;
}

const markWord = "agentctl is removing this worktree";
const lockNames = ["index.lock", "HEAD.lock"];

/** With both locks no git command commits, stages or switches branches in that worktree. */
export function holdWorktree(admin: string, removal: Removal): { release(): void } {
  const text = `${markWord}\n${JSON.stringify({ ...removal, by: readProcess(process.pid)?.identity ?? null })}\n`;
  const taken: string[] = [];
  const release = (): void => {
    for (const path of taken) if (isOurMark(path)) rmSync(path, { force: true });
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

const notHeld = (admin: string, error: unknown): AgentctlError =>
  errorCode(error) === "EEXIST"
    ? new AgentctlError("refused", `a git command is at work in it, or was killed: ${admin} has a lock file`, {
        hint: "if no git command is at work there, remove index.lock and HEAD.lock",
      })
    : new AgentctlError("failed", `cannot lock ${admin}: ${failureText(error)}`, { cause: error });

export const isOurMark = (path: string): boolean => textOf(path).startsWith(markWord);

/** A removal that began and did not end; null: there is none, or it still goes on. */
export function interruptedRemoval(admin: string): Removal | null {
  for (const name of lockNames) {
    const text = textOf(join(admin, name));
    if (!text.startsWith(markWord)) continue;
    const { from, aside, by } = parseMark(text.slice(markWord.length));
    return isAtWork(by) ? null : { from, aside };
  }
  return null;
}

function parseMark(text: string): Removal & { by: ProcessIdentity | null } {
  try {
    const { from, aside, by } = JSON.parse(text) as Record<string, unknown>;
    const isWhole = typeof from === "string" && typeof aside === "string" && isAsideOf(aside, from);
    return { ...(isWhole ? { from, aside } : unknownPlaces), by: identityIn(by) };
  } catch (error) {
    // It was killed while it wrote its mark: then nothing has been moved yet.
    if (error instanceof SyntaxError) return { ...unknownPlaces, by: null };
    throw error;
  }
}

/** Where a worktree is moved before it is removed: beside its place, under a name that only a removal gives. */
export const asideName = (path: string, number: number): string =>
  `${path}${asideMark}${number === 1 ? "" : `-${number}`}`;

const asideMark = ".agentctl-removing";

/**
 * The mark lies inside of the repository, and whoever made that may have forged it. A forged one can only give a folder back the
 * name that it has without our ending, in the same folder: it leads nowhere else.
 */
const isAsideOf = (aside: string, from: string): boolean =>
  isAbsolute(from) &&
  normalize(from) === from &&
  new RegExp(`^${asideMark.replace(".", "\\.")}(-\\d+)?$`).test(after(from, aside));

const after = (start: string, text: string): string => (text.startsWith(start) ? text.slice(start.length) : "");

const unknownPlaces: Removal = { from: "", aside: "" };

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
  for (const path of lockNames.map((name) => join(admin, name))) if (isOurMark(path)) rmSync(path, { force: true });
}

export const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

function textOf(path: string): string {
  try {
    return lstatSync(path).isFile() ? readText(path) : "";
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return "";
  }
}
