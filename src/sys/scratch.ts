// Folders for copies that one command needs for a moment. The kernel's lock on each goes with its process, however that
// ends; the next command that needs one removes those that nobody holds any more.
import { closeSync, lstatSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { tryLock } from "./file-lock.ts";

export interface Scratch {
  folder: string;
  remove(): void;
}

export function openScratch(): Scratch {
  const base = ownFolder();
  // Another user has taken our name in a folder of everybody's: then without a folder of our own, and without tidying up.
  if (base === null) return scratchIn(tmpdir(), "agentctl-");
  for (const name of readdirSync(base)) if (name.startsWith(prefix)) removeIfLeft(join(base, name));
  return scratchIn(base, prefix);
}

const prefix = "copy-";

/** null: the name is somebody else's. */
function ownFolder(): string | null {
  const { uid } = userInfo();
  const folder = join(tmpdir(), `agentctl-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  return stat.isDirectory() && stat.uid === uid && (stat.mode & 0o022) === 0 ? folder : null;
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
    fd = openSync(folder, "r");
    if (tryLock(fd) && lstatSync(folder, { throwIfNoEntry: false }) !== undefined) return fd;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  if (fd !== null) closeSync(fd);
  return null;
}

function removeIfLeft(folder: string): void {
  try {
    const lock = take(folder);
    if (lock === null) return;
    rmSync(folder, { recursive: true, force: true });
    closeSync(lock);
  } catch (error) {
    // It stays then; the next one tries again.
    if (!(error instanceof Error)) throw error;
  }
}
