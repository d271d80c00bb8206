// Measures how much disk space a folder takes.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { tryOr } from "../lib/errors.ts";

/** Leaves out what cannot be read. A file with several names counts once. */
export const bytesBelow = (path: string, seen = new Set<string>()): number =>
  tryOr(0, () => {
    const stat = lstatSync(path);
    const identity = `${stat.dev}:${stat.ino}`;
    if (stat.nlink > 1 && !stat.isDirectory() && seen.has(identity)) return 0;
    seen.add(identity);
    const own = stat.blocks * 512;
    if (!stat.isDirectory()) return own;
    return readdirSync(path).reduce((sum, name) => sum + bytesBelow(join(path, name), seen), own);
  });
