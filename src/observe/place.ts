// The place of a session: the root of its git worktree or, outside a worktree, its directory.
import { lstatSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { tryOr } from "../lib/errors.ts";
import { mayHang, mountTable } from "./mounts.ts";

/** null: not an absolute path (a record may contain any text). A directory that cannot be read is its own place. */
export function placeOf(directory: string | null, mounts = mountTable()): string | null {
  if (directory === null || !directory.startsWith("/")) return null;
  const real = mayHang(directory, mounts) ? null : tryOr(null, () => realpathSync(directory));
  if (real === null) return directory;
  return worktreeAround(real) ?? real;
}

/**
 * The root of the git worktree around a directory; null: there is none. A `.git` counts only if it belongs to us, to root or to
 * the owner of the directory: in /tmp any user can create one above the directories of other users.
 */
export function worktreeAround(directory: string): string | null {
  const trusted = new Set([process.getuid?.(), 0, ownerOf(directory)]);
  for (let folder = directory; ; folder = dirname(folder)) {
    const owner = ownerOf(join(folder, ".git"));
    if (owner !== null && trusted.has(owner)) return folder;
    if (dirname(folder) === folder) return null;
  }
}

const ownerOf = (path: string): number | null =>
  tryOr(null, () => lstatSync(path, { throwIfNoEntry: false })?.uid ?? null);
