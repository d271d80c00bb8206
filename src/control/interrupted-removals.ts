// Worktrees whose removal was killed in the middle are put back: what is left of them is in its old place again.
import { renameSync } from "node:fs";
import type { Environment } from "../observe/homes.ts";
import { git } from "./git.ts";
import { forgetRemoval, interruptedRemoval, isThere, type Removal } from "./hold-worktree.ts";
import { commonFolder, type Repository } from "./repository.ts";
import { adminFolders, adminNamedBy, realLocation } from "./worktree-admin.ts";

/** Answers with the paths of those that it has put back. */
export async function undoInterruptedRemovals(repository: Repository, env: Environment): Promise<string[]> {
  const restored: string[] = [];
  for (const admin of adminFolders(commonFolder(repository)).values()) {
    const removal = interruptedRemoval(admin);
    if (removal === null) continue;
    if (await putBack(removal, admin, repository, env)) restored.push(removal.from);
    forgetRemoval(admin);
  }
  return restored;
}

async function putBack({ from, aside }: Removal, admin: string, { main }: Repository, env: Environment) {
  if (from === "" || isThere(from) || adminNamedBy(aside) !== admin) return false;
  // A link on the way would lead to a place that the paths do not show.
  if (realLocation(aside) !== aside) return false;
  if ((await git(main, ["worktree", "move", "--", aside, from], env)).ok) return true;
  // Git was killed, too, before it could note where it had moved the folder: it still believes in the old place.
  renameSync(aside, from);
  return true;
}
