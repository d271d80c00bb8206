// A place is a git worktree's root, else the directory itself. Never a path prefix.
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorCode } from "./failure.ts";
import { mayHang, mountTable } from "./mounts.ts";

/** null: no directory at all (a record may say anything). One that cannot be seen is its own place, under the name it has. */
export function placeOf(directory: string | null, mounts = mountTable()): string | null {
  if (directory === null || !directory.startsWith("/")) return null;
  const real = realPath(directory, mounts);
  if (real === null) return directory;
  for (let folder = real; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return real;
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
