// Answers of git that may decide whether work is removed. A warning makes an answer worthless: git may have skipped a folder.
import type { Environment } from "../observe/homes.ts";
import { git } from "./git.ts";

/** The reason says why nothing may be removed on the strength of what was read. */
export class CannotTell extends Error {}

/**
 * Replacements and grafts change which commits seem to contain which. Garbage collection does not believe in them, so neither
 * may we.
 */
const asGarbageCollectionSees = {
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_GRAFT_FILE: "/dev/null/no-grafts",
  GIT_NO_LAZY_FETCH: "1",
};

export async function gitFact(
  place: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { ok, out, err } = await git(place, args, env, { ...asGarbageCollectionSees, ...more });
  if (!ok || err !== "") throw new CannotTell(err || `git ${args.find((word) => /^[a-z]/.test(word))} failed`);
  return out;
}
