// A place is a git worktree's root, else the directory itself. Never a path prefix.
import { lstatSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorCode } from "./failure.ts";
import { mayHang, mountTable } from "./mounts.ts";

/** null: no directory at all (a record may say anything). One that cannot be seen is its own place, under the name it has. */
export function placeOf(directory: string | null, mounts = mountTable()): string | null {
  if (directory === null || !directory.startsWith("/")) return null;
  const real = realPath(directory, mounts);
  if (real === null) return directory;
  return worktreeAround(real) ?? real;
}

/**
 * The root of the git worktree that a directory is in; null: it is in none. A `.git` counts only if it belongs to us, to root or to
 * the owner of the directory: in /tmp anybody can put one above the directories of all others.
 */
export function worktreeAround(directory: string): string | null {
  const trusted = new Set([process.getuid?.(), 0, ownerOf(directory)]);
  for (let folder = directory; ; folder = dirname(folder)) {
    const owner = ownerOf(join(folder, ".git"));
    if (owner !== null && trusted.has(owner)) return folder;
    if (dirname(folder) === folder) return null;
  }
}

/** null: it does not exist, or cannot be seen. */
function ownerOf(path: string): number | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.uid ?? null;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

function realPath(directory: string, mounts: string): string | null {
  if (mayHang(directory, mounts)) return null;
  try {
    return realpathSync(directory);
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}
