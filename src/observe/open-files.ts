// Finds processes that have files of a folder open. Linux only.
import { readdirSync, readlinkSync } from "node:fs";
import { tryOr } from "../lib/errors.ts";

/** The first file in or below the folder that a process has open. null: none, or the files cannot be read. */
export function openBelow(folder: string, pid: number): string | null {
  for (const fd of tryOr([], () => readdirSync(`/proc/${pid}/fd`))) {
    const target = tryOr(null, () => readlinkSync(`/proc/${pid}/fd/${fd}`));
    const isBelow = target === folder || target?.startsWith(`${folder}/`) === true;
    if (isBelow && !target.endsWith(" (deleted)")) return target;
  }
  return null;
}
