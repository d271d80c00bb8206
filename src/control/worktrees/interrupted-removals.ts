// Undoes removals of worktrees that were killed: moves the rest of the worktree back to its path.
import { renameSync } from "node:fs";
import { git } from "../git/git.ts";
import { commonFolder, type Repository } from "../git/repository.ts";
import { adminFolders, adminNamedBy, realLocation } from "./admin-folder.ts";
import { forgetRemoval, interruptedRemoval, isThere, type Removal } from "./hold-worktree.ts";

/** Returns the paths of the worktrees that were moved back. */
export async function undoInterruptedRemovals(repository: Repository): Promise<string[]> {
  const restored: string[] = [];
  for (const admin of adminFolders(commonFolder(repository)).values()) {
    const removal = interruptedRemoval(admin);
    if (removal === null) continue;
    if (await putBack(removal, admin, repository)) restored.push(removal.from);
    forgetRemoval(admin);
  }
  return restored;
}

async function putBack({ from, aside }: Removal, admin: string, { main, env }: Repository) {
  if (from === "" || isThere(from) || adminNamedBy(aside) !== admin) return false;
  // A symbolic link in the path could lead anywhere.
  if (realLocation(aside) !== aside) return false;
  if ((await git(main, ["worktree", "move", "--", aside, from], env)).ok) return true;
  // Git was killed before it recorded the move, and still has the old path.
  renameSync(aside, from);
  return true;
}
