// Answers of git that decide whether work may be removed. An answer with a warning does not count: git may have skipped a folder.
import type { Uncertainty } from "../../core/keep-reason.ts";
import { failureText } from "../../observe/failure.ts";
import type { Environment } from "../../observe/homes.ts";
import { commandIn, git } from "./git.ts";

/** Git or the file system cannot tell, so nothing may be removed. */
export class CannotTell extends Error {
  constructor(readonly why: Uncertainty) {
    super(Object.values(why).join(" "));
  }
}

export const unreadable = (path: string, error: unknown): CannotTell =>
  new CannotTell({ problem: "unreadable", path, detail: failureText(error) });

/**
 * Replacements and grafts change which commits seem to contain which. Garbage collection ignores them, so they must not count
 * here either.
 */
const asGarbageCollectionSees = {
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_GRAFT_FILE: "/dev/null/no-grafts",
  GIT_NO_LAZY_FETCH: "1",
};

export async function gitFact(
  directory: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { ok, out, err } = await git(directory, args, env, { ...asGarbageCollectionSees, ...more });
  if (!ok || err !== "") throw new CannotTell({ problem: "git-failed", command: commandIn(args).command, detail: err });
  return out;
}
