// The worktrees of a repository: lists them, and removes those whose work is safe elsewhere.
import { basename, resolve } from "node:path";
import { type Repository, repositoryAt } from "../control/git/repository.ts";
import { refuseInside, resolveCaller } from "../control/guard.ts";
import { withLaunchLock } from "../control/launch-lock.ts";
import { reasonsToKeep } from "../control/worktrees/reasons-to-keep.ts";
import {
  discardingWork,
  isKept,
  keepingWork,
  kept,
  type RemovalRules,
  type Removed,
  removeWorktree,
  undoInterruptedRemovals,
} from "../control/worktrees/remove-worktree.ts";
import {
  type Inhabitants,
  judgeInOrder,
  type WorktreeFacts,
  worktreeFacts,
} from "../control/worktrees/worktree-facts.ts";
import type { Confirmed } from "../core/confirmation.ts";
import { Failure } from "../core/failure.ts";
import { exitCodes } from "../core/problem.ts";
import { failureMessage } from "../words/failures.ts";
import { keepReasonText } from "../words/keep-reasons.ts";
import type { Call } from "./call.ts";
import { checkConfirmed } from "./confirmation.ts";
import { lookAroundAtRows, lookAtRows } from "./look.ts";

/** What happened to a worktree, or could happen to it. */
export interface WorktreeFate {
  facts: WorktreeFacts;
  /** The reasons to keep it; none: it can be removed. */
  keep: string[];
  /** null: it was not removed. */
  removed: Removed | null;
}

export async function listWorktrees(call: Call): Promise<WorktreeFacts[]> {
  const repository = await repositoryAt(call.cwd, call.env);
  const findSessions = async (): Promise<Inhabitants> => {
    const { rows, problems } = await lookAtRows(call);
    call.onProblems(problems);
    return { sessions: rows.map(({ session }) => session), processes: [], callerPids: new Set() };
  };
  return await worktreeFacts(repository, findSessions);
}

/** Removes all, or none if one of them must be kept. `onRemoved` gets each one at once: a later removal may still fail. */
export async function removeWorktrees(
  { names, discard }: { names: readonly string[]; discard: boolean },
  call: Call,
  onRemoved: (fate: WorktreeFate) => void,
): Promise<void> {
  if (discard) await refuseInside("worktree remove --discard", call.caller, call.env);
  const rules = discard ? discardingWork : keepingWork;
  await withLaunchLock(call.env, async () => {
    const repository = await repositoryAt(call.cwd, call.env);
    await undoInterrupted(repository, call);
    const worktrees = await lookForRemoval(repository, call);
    const chosen = [...new Set(names.map((name) => worktreeNamed(name, worktrees, call)))];
    for (const each of chosen) {
      const reasons = reasonsToKeep(each).filter((reason) => !rules.accepts(reason, each));
      if (reasons.length > 0) throw kept(each.path, reasons);
    }
    for (const each of chosen) onRemoved(await removeOne(each, repository, rules));
  });
}

/** The worktrees that agentctl made, and which of them can be removed. A dry run changes nothing. */
export async function planPrune({ dryRun }: { dryRun: boolean }, call: Call): Promise<WorktreeFate[]> {
  const repository = await repositoryAt(call.cwd, call.env);
  if (!dryRun) await withLaunchLock(call.env, () => undoInterrupted(repository, call));
  return await judgeOurs(repository, call);
}

/** Removes those of the planned worktrees that still can be removed. `onDone` gets each one at once, also if it was refused. */
export async function pruneWorktrees(
  { paths, confirmed }: { paths: readonly string[]; confirmed: Confirmed },
  call: Call,
  onDone: (fate: WorktreeFate) => void,
): Promise<{ fates: WorktreeFate[]; exitCode: number }> {
  const key = ["remove-worktrees", ...paths].join(" ");
  checkConfirmed([{ code: "remove-worktrees", key, count: paths.length }], confirmed);
  return await withLaunchLock(call.env, async () => {
    const repository = await repositoryAt(call.cwd, call.env);
    const fates: WorktreeFate[] = [];
    let exitCode = 0;
    for (const planned of await judgeOurs(repository, call)) {
      const isChosen = paths.includes(planned.facts.path) && planned.keep.length === 0;
      const fate = isChosen ? await tryToRemove(planned, repository) : planned;
      fates.push(fate);
      if (isChosen) onDone(fate);
      if (isChosen && fate.removed === null) exitCode = exitCodes.failed;
    }
    return { fates, exitCode };
  });
}

async function tryToRemove(planned: WorktreeFate, repository: Repository): Promise<WorktreeFate> {
  try {
    return await removeOne(planned.facts, repository, keepingWork);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { ...planned, keep: isKept(error) ? error.facts.reasons.map(keepReasonText) : [failureMessage(error)] };
  }
}

/** The caller has the launch lock: without it a removal that is still going on would be undone. */
async function undoInterrupted(repository: Repository, { onNotice }: Call): Promise<void> {
  for (const path of await undoInterruptedRemovals(repository)) onNotice({ code: "removal-undone", facts: { path } });
}

/** Reads all sessions and all processes of this user, because none of them may lose its directory. */
async function lookForRemoval(repository: Repository, call: Call): Promise<WorktreeFacts[]> {
  const findInhabitants = async (): Promise<Inhabitants> => {
    const { rows, problems, snapshot } = await lookAroundAtRows(call, "all");
    call.onProblems(problems);
    const { pids } = resolveCaller(call.caller, snapshot, call.env);
    return { sessions: rows.map(({ session }) => session), processes: snapshot.table.rows, callerPids: pids };
  };
  return await worktreeFacts(repository, findInhabitants);
}

/** Judges each worktree as if the worktrees before it were removed. */
async function judgeOurs(repository: Repository, call: Call): Promise<WorktreeFate[]> {
  const ours = (await lookForRemoval(repository, call)).filter(({ isOurs }) => isOurs);
  const ready = ours.filter((each) => reasonsToKeep(each).length === 0);
  const judged = await judgeInOrder(ready, repository);
  return ours.map((each) => {
    const facts = judged.find(({ path }) => path === each.path) ?? each;
    return { facts, keep: reasonsToKeep(facts).map(keepReasonText), removed: null };
  });
}

function worktreeNamed(name: string, worktrees: readonly WorktreeFacts[], { cwd }: Call): WorktreeFacts {
  const path = resolve(cwd, name);
  const found = worktrees.filter((each) => each.path === path || basename(each.path) === name || each.branch === name);
  const [only] = found;
  if (only === undefined) throw new Failure("worktree-not-found", { name });
  if (found.length > 1) throw new Failure("worktree-ambiguous", { name, paths: found.map((each) => each.path) });
  return only;
}

const removeOne = async (facts: WorktreeFacts, repository: Repository, rules: RemovalRules): Promise<WorktreeFate> => ({
  facts,
  keep: [],
  removed: await removeWorktree(facts, repository, rules),
});

export const fateJson = ({ facts: { path, branch, bytes, contents }, keep, removed }: WorktreeFate) => ({
  path,
  branch,
  result: removed !== null ? "removed" : keep.length > 0 ? "stays" : "can-go",
  branchRemoved: removed !== null && removed.branch !== null,
  bytes,
  ignored: contents.known ? contents.ignored : [],
  keep,
  keptAs: removed?.keptAs ?? null,
  unreferenced: removed?.unreferenced ?? [],
});

export const worktreeJson = (each: WorktreeFacts) => ({
  path: each.path,
  branch: each.branch,
  commit: each.commit,
  main: each.isMain,
  gone: each.presence.kind === "gone",
  outOfReach: each.presence.kind === "out-of-reach",
  dirty: each.contents.known ? each.contents.dirty.length : null,
  ahead: each.ahead,
  behind: each.behind,
  merged: each.isMerged,
  pushed: each.isPushed,
  bytes: each.bytes,
  sessions: each.sessions.map(({ agent, id, status }) => ({ agent, id, state: status.state })),
  keep: reasonsToKeep(each).map(keepReasonText),
});
