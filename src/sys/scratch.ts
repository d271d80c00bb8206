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
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { tryLock } from "./file-lock.ts";
import { isOnlyOurs } from "./trusted-folders.ts";

export interface Scratch {
  folder: string;
  remove(): void;
}

/** Under a random name, with nothing of a fixed name around it: in a folder of everybody's another user could have taken that. */
export function openScratch(): Scratch {
  const base = temporaryFolder();
  const prefix = `agentctl-${process.getuid?.() ?? 0}-`;
  // mkdtemp adds six letters or digits.
  const isOurs = (name: string): boolean =>
    name.startsWith(prefix) && /^[A-Za-z0-9]{6}$/.test(name.slice(prefix.length));
  for (const name of readdirSync(base)) if (isOurs(name)) removeIfLeft(join(base, name));
  return scratchIn(base, prefix);
}

/** Where no other user can put something else in the place of our folder. */
function temporaryFolder(): string {
  const found = [tmpdir(), "/tmp", "/var/tmp"].find(
    (folder) =>
      isAbsolute(folder) &&
      statSync(folder, { throwIfNoEntry: false })?.isDirectory() &&
      isOnlyOurs(realpathSync(folder)),
  );
  if (found !== undefined) return found;
  const message = `no temporary folder is safe: other users may replace what is in ${tmpdir()}`;
  throw Object.assign(new Error(message), { code: "EPERM" });
}

/** A folder of a person's may be called like ours. Only one with this file in it is ours. */
const marker = ".agentctl-scratch";

function scratchIn(base: string, name: string): Scratch {
  for (;;) {
    const folder = mkdtempSync(join(base, name));
    const lock = take(folder);
    // Whoever tidies up may have come between the two.
    if (lock !== null) {
      closeSync(openSync(join(folder, marker), "wx", 0o600));
      return {
        folder,
        remove: () => {
          rmSync(folder, { recursive: true, force: true });
          closeSync(lock);
        },
      };
    }
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
    const isPrivate = stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & 0o777) === 0o700;
    const lock = isPrivate ? take(folder) : null;
    if (lock === null) return;
    if (lstatSync(join(folder, marker), { throwIfNoEntry: false })?.isFile() === true)
      rmSync(folder, { recursive: true, force: true });
    closeSync(lock);
  } catch (error) {
    // It stays then; the next one tries again.
    if (!(error instanceof Error)) throw error;
  }
}
