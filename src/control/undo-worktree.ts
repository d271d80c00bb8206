// Takes back the worktree of a launch that failed, as long as nobody has worked in it.
import { AgentctlError } from "../core/problem.ts";
import { deadlineIn, pause } from "../lib/deadline.ts";
import type { Environment } from "../observe/homes.ts";
import { CannotTell } from "./git-fact.ts";
import { oneAtATime } from "./places.ts";
import { type Reason, reasonsToKeep } from "./reasons-to-keep.ts";
import { type RemovalWish, removeWorktree, Stays } from "./remove-worktree.ts";
import { processesNow, type WorktreeFacts, worktreeFacts } from "./worktree-facts.ts";
import type { MadeWorktree } from "./worktrees.ts";

/** Who was in it: a setup may leave new files, which go with it; an agent's files stay. */
export type WasIn = "setup" | "agent";

/** null: it is gone, and the branch that was made for it. Else the reasons why it stays. */
export async function undoWorktree(made: MadeWorktree, wasIn: WasIn, env: Environment): Promise<string[] | null> {
  try {
    return await oneAtATime(env, () => undo(made, wasIn, env));
  } catch (error) {
    // The launch has failed for another reason, which must be told.
    if (error instanceof Stays) return [...error.reasons];
    if (error instanceof AgentctlError || error instanceof CannotTell) return [error.message];
    throw error;
  }
}

async function undo(made: MadeWorktree, wasIn: WasIn, env: Environment): Promise<string[] | null> {
  const { base, branch, isNewBranch, path, repository } = made;
  const facts = await factsWhenAlone(made, env);
  if (facts === null) return ["git does not know it any more"];
  const wish: RemovalWish = {
    how: "keep-all-work",
    accepts: (reason, now) => isNoWork(reason, now, made, wasIn),
    known: [base],
    branchOf: () => (isNewBranch ? branch : null),
  };
  const reasons = reasonsToKeep(facts).filter((reason) => !wish.accepts(reason, facts));
  const moved = facts.commit === base && facts.branch === branch ? [] : [`it has commits of its own: ${facts.commit}`];
  const others = reasons.filter(({ code }) => code !== "commits" || moved.length === 0);
  if (others.length + moved.length > 0) throw new Stays(path, [...moved, ...others.map(({ why }) => why)]);
  await removeWorktree(facts, repository, wish, env);
  return null;
}

/** At its base it has no commits of its own, whoever else has them; and new files of a setup are nobody's work. */
function isNoWork(
  { code }: Reason,
  { commit, contents }: WorktreeFacts,
  { base }: MadeWorktree,
  wasIn: WasIn,
): boolean {
  if (code === "commits") return commit === base;
  if (code !== "uncommitted" || wasIn === "agent" || !contents.known) return false;
  return contents.dirty.every((path) => contents.untracked.includes(path));
}

const patienceMs = 1_000;
const roundMs = 20;

/** Processes of ours that have just been ended take a moment to be gone. null: git does not know the worktree. */
async function factsWhenAlone({ path, repository }: MadeWorktree, env: Environment): Promise<WorktreeFacts | null> {
  const deadline = deadlineIn(patienceMs);
  for (;;) {
    const [facts] = await worktreeFacts(repository, async () => processesNow(new Set()), env, path);
    if (facts === undefined) return null;
    if (facts.standing.length === 0 || deadline.isOver()) return facts;
    await pause(roundMs);
  }
}
