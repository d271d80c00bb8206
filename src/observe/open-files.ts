// Who has files of a folder open.
import { readdirSync, readlinkSync } from "node:fs";
import { errorCode } from "./failure.ts";

/** The first file below the folder that a process has open; null: none that we can see. Linux alone says. */
export function openBelow(folder: string, pid: number): string | null {
  for (const fd of listOr(`/proc/${pid}/fd`)) {
    const target = linkOr(`/proc/${pid}/fd/${fd}`);
    const isBelow = target === folder || target?.startsWith(`${folder}/`) === true;
    if (isBelow && !target.endsWith(" (deleted)")) return target;
  }
  return null;
}

function listOr(path: string): string[] {
  try {
    return readdirSync(path);
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return [];
  }
}

function linkOr(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}
