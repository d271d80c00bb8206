// Is the folder of a worktree there? If it is not at its path, it may still exist: a disk may not be mounted, or the folder may
// have been moved.
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Absence } from "../../core/keep-reason.ts";
import { errorCode, failureText, isGone } from "../../lib/errors.ts";
import { mayHang, mountTable } from "../../observe/mounts.ts";
import { adminNamedBy, type WorktreeEntry } from "./admin-folder.ts";

export type Presence =
  | { kind: "there" }
  /** Removed, as far as the file system can tell. */
  | { kind: "gone" }
  /** Not there, but perhaps on a disk that is not mounted. */
  | ({ kind: "out-of-reach" } & Absence);

/** Folders in which disks are mounted when they are plugged in. */
const removableDisks = /^\/(?:media|mnt|run\/media|net|Volumes)\//;

export function presenceOf({ path, isPrunable }: WorktreeEntry, admin: string | null): Presence {
  try {
    lstatSync(path);
    return { kind: "there" };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    if (!isGone(error)) return outOfReach("unreadable", path, failureText(error));
    // A path that is not UTF-8 reaches us with other bytes than git has.
    return isPrunable ? reasonForAbsence(path, admin) : outOfReach("seen-by-git", path);
  }
}

const outOfReach = (absence: Absence["absence"], path: string, detail: string | null = null): Presence => ({
  kind: "out-of-reach",
  ...{ absence, path, detail },
});

function reasonForAbsence(path: string, admin: string | null): Presence {
  const parent = dirname(path);
  if (removableDisks.test(path) || mayHang(path, mountTable())) return outOfReach("unmounted", parent);
  try {
    const names = readdirSync(parent);
    const moved = admin === null ? undefined : names.find((name) => adminNamedBy(join(parent, name)) === admin);
    if (moved !== undefined) return outOfReach("moved", join(parent, moved));
    // An unmounted disk leaves an empty folder at its mount point.
    return names.length === 0 ? outOfReach("parent-empty", parent) : { kind: "gone" };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    if (isGone(error)) return outOfReach("parent-missing", parent);
    return outOfReach("parent-unreadable", parent, failureText(error));
  }
}
