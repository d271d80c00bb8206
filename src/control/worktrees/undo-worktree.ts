// Removes the worktree of a failed launch, unless there is work in it.
import { Failure } from "../../core/failure.ts";
import type { KeepReason } from "../../core/keep-reason.ts";
import { deadlineIn, pause } from "../../lib/deadline.ts";
import { CannotTell } from "../git/git.ts";
import { withLaunchLock } from "../launch-lock.ts";
import type { MadeWorktree } from "./add-worktree.ts";
import { reasonsToKeep } from "./reasons-to-keep.ts";
import { isKept, kept, type RemovalRules, removeWorktree } from "./remove-worktree.ts";
import { processesNow, type WorktreeFacts, worktreeFacts } from "./worktree-facts.ts";

/** The stage at which a launch failed: new files of a setup are removed, files of an agent are kept. */
export type LaunchStage = "setup" | "agent";

/** null: the worktree and its new branch are removed. Otherwise the reasons why they are kept. */
export async function undoWorktree(made: MadeWorktree, stage: LaunchStage): Promise<readonly KeepReason[] | null> {
  try {
    return await withLaunchLock(made.repository.env, () => undo(made, stage));
  } catch (error) {
    // The caller reports why the launch failed; this must not replace that error.
    if (error instanceof CannotTell) return [{ code: "unknown", ...error.why }];
    if (error instanceof Failure) return isKept(error) ? error.facts.reasons : [{ code: "failed", failure: error }];
    throw error;
  }
}

async function undo(made: MadeWorktree, stage: LaunchStage): Promise<readonly KeepReason[] | null> {
  const { base, branch, isNewBranch, path, repository } = made;
  const facts = await factsWhenAlone(made);
  if (facts === null) return [{ code: "unknown-to-git" }];
  const rules: RemovalRules = {
    how: "keep-all-work",
    // At its base commit it has no commits of its own, and new files of a setup are not work.
    accepts: ({ code }, { commit, contents }) => {
      if (code === "commits") return commit === base;
      if (code !== "uncommitted" || stage === "agent" || !contents.known) return false;
      return contents.dirty.every((file) => contents.untracked.includes(file));
    },
    known: [base],
    branchOf: () => (isNewBranch ? branch : null),
  };
  const reasons = reasonsToKeep(facts).filter((reason) => !rules.accepts(reason, facts));
  const moved: KeepReason[] =
    facts.commit === base && facts.branch === branch ? [] : [{ code: "own-commits", commit: facts.commit }];
  const others = reasons.filter(({ code }) => code !== "commits" || moved.length === 0);
  if (others.length + moved.length > 0) throw kept(path, [...moved, ...others]);
  await removeWorktree(facts, repository, rules);
  return null;
}

const patienceMs = 1_000;
const roundMs = 20;

/** Waits a moment for processes that were just stopped. null: git does not know the worktree. */
async function factsWhenAlone({ path, repository }: MadeWorktree): Promise<WorktreeFacts | null> {
  const deadline = deadlineIn(patienceMs);
  for (;;) {
    const [facts] = await worktreeFacts(repository, async () => processesNow(new Set()), path);
    if (facts === undefined) return null;
    if (facts.standing.length === 0 || deadline.isOver()) return facts;
    await pause(roundMs);
  }
}
