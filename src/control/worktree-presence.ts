// Is the folder of a worktree there? That it is not where git believes it to be does not prove that it was removed: a disk may
// not be mounted, or somebody may have moved it.
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { errorCode, failureText, isGone } from "../observe/failure.ts";
import { mayHang, mountTable } from "../observe/mounts.ts";
import { adminNamedBy, type WorktreeEntry } from "./worktree-admin.ts";

export type Presence =
  | { kind: "there" }
  /** Removed, as far as the file system can say. */
  | { kind: "gone" }
  /** Not there, and perhaps only out of reach. */
  | { kind: "out-of-reach"; why: string };

/** Folders below these come and go with their disks. */
const comeAndGo = /^\/(?:media|mnt|run\/media|net|Volumes)\//;

export function presenceOf({ path, isPrunable }: WorktreeEntry, admin: string | null): Presence {
  try {
    lstatSync(path);
    return { kind: "there" };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    if (!isGone(error)) return outOfReach(`cannot look at its folder: ${failureText(error)}`);
    // A path that is not UTF-8 comes to us with other bytes than git has for it.
    return isPrunable ? absent(path, admin) : outOfReach("its folder is missing, but git sees it");
  }
}

const outOfReach = (why: string): Presence => ({ kind: "out-of-reach", why });

function absent(path: string, admin: string | null): Presence {
  const parent = dirname(path);
  const missing = "its folder is missing, and a disk may not be mounted";
  if (comeAndGo.test(path) || mayHang(path, mountTable())) return outOfReach(missing);
  try {
    const names = readdirSync(parent);
    const moved = admin === null ? undefined : names.find((name) => adminNamedBy(join(parent, name)) === admin);
    if (moved !== undefined)
      return outOfReach(
        `its folder was moved to ${join(parent, moved)} (git worktree repair ${join(parent, moved)} tells git)`,
      );
    // An unmounted disk leaves the empty folder that it was mounted on.
    return names.length === 0 ? outOfReach(`${missing}: ${parent} is empty`) : { kind: "gone" };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return outOfReach(isGone(error) ? `${missing}: there is no ${parent}` : `${parent}: ${failureText(error)}`);
  }
}
