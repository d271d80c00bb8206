// Temporary folders that one command needs. Each is protected by a kernel lock, which ends with the process; the next command
// that needs a temporary folder removes those whose lock is free.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { errorCode, errorWith, isError, tryOr } from "../lib/errors.ts";
import { tryLock } from "./file-lock.ts";
import { isOnlyOurs } from "./trusted-folders.ts";

export interface Scratch {
  folder: string;
  remove(): void;
}

/** Has a random name directly in the temporary folder: another user could have created a parent folder with a fixed name. */
export function openScratch(): Scratch {
  const base = temporaryFolder();
  const prefix = `agentctl-${process.getuid?.() ?? 0}-`;
  // mkdtemp adds six letters or digits.
  const isOurs = (name: string): boolean =>
    name.startsWith(prefix) && /^[A-Za-z0-9]{6}$/.test(name.slice(prefix.length));
  // If a folder cannot be removed, the next command tries again.
  for (const name of readdirSync(base))
    if (isOurs(name)) tryOr(undefined, () => removeIfLeft(join(base, name)), isError);
  return scratchIn(base, prefix);
}

/** A folder in which no other user can replace our folder. */
function temporaryFolder(): string {
  const found = [tmpdir(), "/tmp", "/var/tmp"].find(
    (folder) =>
      isAbsolute(folder) &&
      statSync(folder, { throwIfNoEntry: false })?.isDirectory() &&
      isOnlyOurs(realpathSync(folder)),
  );
  if (found !== undefined) return found;
  throw errorWith("EPERM", `no safe temporary folder: other users can replace files in ${tmpdir()}`);
}

/** A person's folder may have a name like ours. A folder is ours only if it contains this file. */
const marker = ".agentctl-scratch";

function scratchIn(base: string, name: string): Scratch {
  for (;;) {
    const folder = mkdtempSync(join(base, name));
    const lock = take(folder);
    // Another command has just removed the new folder.
    if (lock === null) continue;
    closeSync(openSync(join(folder, marker), "wx", 0o600));
    const remove = (): void => {
      rmSync(folder, { recursive: true, force: true });
      closeSync(lock);
    };
    return { folder, remove };
  }
}

/** Returns the descriptor that holds the lock. null: another process holds it, or the folder does not exist. */
function take(folder: string): number | null {
  let fd: number | null = null;
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    if (tryLock(fd) && lstatSync(folder, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino) return fd;
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
  if (fd !== null) closeSync(fd);
  return null;
}

function removeIfLeft(folder: string): void {
  const stat = lstatSync(folder);
  const isPrivate = stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & 0o777) === 0o700;
  const lock = isPrivate ? take(folder) : null;
  if (lock === null) return;
  if (lstatSync(join(folder, marker), { throwIfNoEntry: false })?.isFile() === true)
    rmSync(folder, { recursive: true, force: true });
  closeSync(lock);
}
