// The git repository that a directory is in.
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import type { Environment } from "../observe/homes.ts";
import { git } from "./git.ts";

export interface Repository {
  /** The main worktree, or the repository itself where it is bare. */
  main: string;
  /** The worktree that we are in; of a bare repository itself. */
  root: string;
  isBare: boolean;
}

/** The folder with the objects and refs that all worktrees share. */
export const commonFolder = ({ main, isBare }: Repository): string => (isBare ? main : join(main, ".git"));

/**
 * A submodule's repository is in the `.git` of the one that it belongs to, and a submodule's of a worktree in what git keeps for
 * that worktree alone. What is put beside it goes with them. null: it is in no other one.
 */
export function repositoryAround(repository: Repository): string | null {
  for (let folder = dirname(commonFolder(repository)); dirname(folder) !== folder; folder = dirname(folder)) {
    const has = (name: string): boolean => existsSync(join(folder, name));
    if (basename(folder) === ".git" || (has("HEAD") && (has("commondir") || (has("objects") && has("refs")))))
      return folder;
  }
  return null;
}

/** An error that says what is there instead, where it is no repository. */
export async function repositoryAt(cwd: string, env: Environment): Promise<Repository> {
  // One question at a time: a path may hold a newline.
  const { ok, out, err } = await git(cwd, ["rev-parse", "--path-format=absolute", "--git-common-dir"], env);
  if (!ok) {
    if (/dubious ownership/.test(err))
      throw new AgentctlError("refused", `${cwd} is in a git repository of somebody else's\n${err}`);
    if (/^no answer within|^more than .* of output/m.test(err))
      throw new AgentctlError("cannot-tell", `cannot tell whether ${cwd} is in a git repository: git gave ${err}`);
    throw new AgentctlError("usage", `${cwd} is in no git repository\n${err}`, { hint: "git init" });
  }
  const common = out.replace(/\n$/, "");
  const main = basename(common) === ".git" ? dirname(common) : common;
  const top = await git(cwd, ["rev-parse", "--show-toplevel"], env);
  // Without a worktree around us: a bare repository, or the inside of `.git`.
  return top.ok
    ? { main, root: top.out.replace(/\n$/, ""), isBare: main === common }
    : { main, root: main, isBare: main === common };
}
