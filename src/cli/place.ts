// A place is a git worktree's root, else the directory itself. Never a path prefix.
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { isGone } from "../observe/failure.ts";

export function placeOf(directory: string): string {
  const real = realPath(directory);
  for (let folder = real; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return real;
  }
}

function realPath(directory: string): string {
  try {
    return realpathSync(directory);
  } catch (error) {
    if (isGone(error)) return directory;
    throw error;
  }
}
