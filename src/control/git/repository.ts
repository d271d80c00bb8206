// The git repository that a directory is in.
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Failure } from "../../core/failure.ts";
import type { Environment } from "../../observe/homes.ts";
import { git } from "./git.ts";

export interface Repository {
  /** The main worktree, or the repository itself if it is bare. */
  main: string;
  /** The worktree that the directory is in, or the repository itself if it is bare. */
  root: string;
  isBare: boolean;
  /** The environment of the caller, with which git runs. */
  env: Environment;
}

/** The folder with the objects and refs that all worktrees share. */
export const commonFolder = ({ main, isBare }: Repository): string => (isBare ? main : join(main, ".git"));

/**
 * The repository of a submodule is inside the `.git` of its superproject, or in the admin folder of a worktree. A folder beside
 * it would be removed with them. null: not inside another repository.
 */
export function repositoryAround(repository: Repository): string | null {
  for (let folder = dirname(commonFolder(repository)); dirname(folder) !== folder; folder = dirname(folder)) {
    const has = (name: string): boolean => existsSync(join(folder, name));
    if (basename(folder) === ".git" || (has("HEAD") && (has("commondir") || (has("objects") && has("refs")))))
      return folder;
  }
  return null;
}

export async function repositoryAt(cwd: string, env: Environment): Promise<Repository> {
  // One question per call: a path may contain a newline.
  const { ok, out, err, isIncomplete } = await git(
    cwd,
    ["rev-parse", "--path-format=absolute", "--git-common-dir"],
    env,
  );
  if (!ok) {
    if (/dubious ownership/.test(err)) throw new Failure("foreign-repository", { cwd, detail: err });
    if (isIncomplete) throw new Failure("repository-unknown", { cwd, detail: err });
    throw new Failure("not-a-repository", { cwd, detail: err });
  }
  const common = out.replace(/\n$/, "");
  const main = basename(common) === ".git" ? dirname(common) : common;
  const top = await git(cwd, ["rev-parse", "--show-toplevel"], env);
  // Not in a worktree: a bare repository, or inside `.git`.
  return { main, root: top.ok ? top.out.replace(/\n$/, "") : main, isBare: main === common, env };
}
