// How much room a folder takes on disk.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "./failure.ts";

/** Of everything below it that can be seen; a file with several names counts once. */
export function bytesBelow(path: string, seen = new Set<string>()): number {
  try {
    const stat = lstatSync(path);
    const identity = `${stat.dev}:${stat.ino}`;
    if (stat.nlink > 1 && !stat.isDirectory() && seen.has(identity)) return 0;
    seen.add(identity);
    const own = stat.blocks * 512;
    if (!stat.isDirectory()) return own;
    return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name), seen), own);
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return 0;
  }
}
