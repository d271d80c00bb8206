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

/** null: no worktree. A `.git` of another user does not count: in /tmp any user can create one above our directories. */
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
