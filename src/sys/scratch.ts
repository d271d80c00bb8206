// Folders for copies that one command needs for a moment. The kernel's lock on each goes with its process, however that
// ends; the next command that needs one removes those that nobody holds any more.
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tryLock } from "./file-lock.ts";

export interface Scratch {
  folder: string;
  remove(): void;
}

/** Under a random name, with nothing of a fixed name around it: in a folder of everybody's another user could have taken that. */
export function openScratch(): Scratch {
  const base = temporaryFolder();
  const prefix = `agentctl-${process.getuid?.() ?? 0}-`;
  for (const name of readdirSync(base)) if (name.startsWith(prefix)) removeIfLeft(join(base, name));
  return scratchIn(base, prefix);
}

/** In a folder that others may write to, and that is not sticky, they could put something else in the place of ours. */
function temporaryFolder(): string {
  const found = [tmpdir(), "/tmp", "/var/tmp"].find((folder) => {
    const stat = statSync(folder, { throwIfNoEntry: false });
    return stat?.isDirectory() === true && ((stat.mode & 0o022) === 0 || (stat.mode & 0o1000) !== 0);
  });
  if (found !== undefined) return found;
  const message = `no temporary folder is safe: other users may replace what is in ${tmpdir()}`;
  throw Object.assign(new Error(message), { code: "EPERM" });
}

function scratchIn(base: string, name: string): Scratch {
  for (;;) {
    const folder = mkdtempSync(join(base, name));
    const lock = take(folder);
    // Whoever tidies up may have come between the two.
    if (lock !== null)
      return {
        folder,
        remove: () => {
          rmSync(folder, { recursive: true, force: true });
          closeSync(lock);
        },
      };
  }
}

/** The descriptor that holds it; null: it is somebody else's, or gone. */
function take(folder: string): number | null {
  let fd: number | null = null;
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    if (tryLock(fd) && lstatSync(folder, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino) return fd;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  if (fd !== null) closeSync(fd);
  return null;
}

function removeIfLeft(folder: string): void {
  try {
    const stat = lstatSync(folder);
    const lock = stat.isDirectory() && stat.uid === process.getuid?.() ? take(folder) : null;
    if (lock === null) return;
    rmSync(folder, { recursive: true, force: true });
    closeSync(lock);
  } catch (error) {
    // It stays then; the next one tries again.
    if (!(error instanceof Error)) throw error;
  }
}
