// Answers of git that decide whether work may be removed. An answer with a warning does not count: git may have skipped a folder.
import type { Environment } from "../../observe/homes.ts";
import { git } from "./git.ts";

/** Git cannot tell, so nothing may be removed. */
export class CannotTell extends Error {}

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
  if (!ok || err !== "") throw new CannotTell(err || `git ${args.find((word) => /^[a-z]/.test(word))} failed`);
  return out;
}
