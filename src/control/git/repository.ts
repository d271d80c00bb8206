// The git repository that a directory is in.
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

export async function repositoryAt(cwd: string, env: Environment): Promise<Repository> {
  // One question per call: a path may contain a newline.
  const asked = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
  const { ok, out, err, isIncomplete } = await git(cwd, asked, env);
  if (!ok) {
    const reason = isIncomplete ? "repository-unknown" : "not-a-repository";
    throw new Failure(/dubious ownership/.test(err) ? "foreign-repository" : reason, { cwd, detail: err });
  }
  const common = out.replace(/\n$/, "");
  const main = basename(common) === ".git" ? dirname(common) : common;
  const top = await git(cwd, ["rev-parse", "--show-toplevel"], env);
  // Not in a worktree: a bare repository, or inside `.git`.
  return { main, root: top.ok ? top.out.replace(/\n$/, "") : main, isBare: main === common, env };
}
