// Removes a worktree so that work that appears between the look and the removal is not lost. Git's lock files stop commits;
// the folder is moved aside, where nobody writes by its old name; there everything is judged once more; and only files that
// this last look has seen are deleted. Git's own data go after the folder, and the branch last.
import { basename } from "node:path";
import { AgentctlError } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import type { Environment } from "../observe/homes.ts";
import { git, gitText } from "./git.ts";
import { CannotTell } from "./git-fact.ts";
import { asideName, holdWorktree, isThere } from "./hold-worktree.ts";
import { deleteBranch, keepUnder, unnamedCommits } from "./lasting-refs.ts";
import { isFinal, type Reason, reasonsToKeep } from "./reasons-to-keep.ts";
import type { Repository } from "./repository.ts";
import { commitsNamedIn } from "./worktree-admin.ts";
import {
  branchGoesWith,
  isOurBranch,
  processesNow,
  someOf,
  type WorktreeFacts,
  worktreeFacts,
} from "./worktree-facts.ts";
import { deleteSeen, differencesBetween, type FolderLook, lookAtFolder, openFolders } from "./worktree-folder.ts";

export interface RemovalWish {
  /** "discard": what is only in the worktree may go. */
  how: "keep-all-work" | "discard";
  /** Reasons that do not count this time. */
  accepts(reason: Reason, facts: WorktreeFacts): boolean;
  /** Commits that were there before the worktree, and are not its work. */
  known: readonly string[];
  /** The branch that goes with it; null: none. */
  branchOf(facts: WorktreeFacts): string | null;
}

export const carefully: RemovalWish = {
  how: "keep-all-work",
  accepts: () => false,
  known: [],
  branchOf: (facts) => (branchGoesWith(facts) ? facts.branch : null),
};

export const discarding: RemovalWish = {
  how: "discard",
  accepts: (reason) => !isFinal(reason),
  known: [],
  branchOf: ({ branch }) => (isOurBranch(branch) ? branch : null),
};

export interface Removed {
  /** The branch that went with it; null: none. */
  branch: string | null;
  /** The ref that has the commits which only its reflog had; null: there were none. */
  keptAs: string | null;
  /** The newest commits that no ref has any more. */
  unreferenced: string[];
}

/** Why a removal was called off. */
export class Stays extends AgentctlError {
  readonly reasons: readonly string[];
  constructor(path: string, reasons: readonly string[]) {
    super("refused", [`${oneLine(path)} stays:`, ...reasons.map((why) => `  ${oneLine(why)}`)].join("\n"));
    this.reasons = reasons;
  }
}

export async function removeWorktree(
  judged: WorktreeFacts,
  repository: Repository,
  wish: RemovalWish,
  env: Environment,
): Promise<Removed> {
  const { path, admin } = judged;
  if (admin === null) throw new Stays(path, [`git's data about it are inconsistent (git worktree repair ${path})`]);
  const aside = freeNameFor(path);
  const held = holdWorktree(admin, { from: path, aside });
  try {
    const gone = await removeFolder(judged, aside, repository, wish, env);
    return await removeBranch(judged, gone, repository, wish, env);
  } catch (error) {
    held.release();
    if (error instanceof CannotTell) throw new Stays(path, [`what is in it cannot be told: ${error.message}`]);
    throw error;
  }
}

function freeNameFor(path: string): string {
  for (let number = 1; ; number += 1) if (!isThere(asideName(path, number))) return asideName(path, number);
}

/** What the removal of the folder leaves to be done. */
interface Gone {
  branch: string | null;
  /** Commits that only git's folder for the worktree, or that branch, had. */
  loose: string[];
  keptAs: string | null;
}

async function removeFolder(
  judged: WorktreeFacts,
  aside: string,
  repository: Repository,
  wish: RemovalWish,
  env: Environment,
): Promise<Gone> {
  const place = judged.presence.kind === "there" ? await moveAside(judged, aside, repository, wish, env) : judged.path;
  let gone: Gone;
  try {
    const look = judged.presence.kind === "there" ? lookAtFolder(place) : null;
    gone = await judgeAgain(judged, place, repository, wish, env);
    if (look !== null) deleteUnchanged(judged.path, place, look);
  } catch (error) {
    await putBack(place, judged.path, error, repository, env);
    throw error;
  }
  // Its folder is not there any more, so that git only forgets it. If somebody has made it again, git refuses.
  await gitText(repository.main, ["worktree", "remove", "--", place], env);
  return gone;
}

/** Git itself moves it, so that git knows at any time where it is. */
async function moveAside(
  { path }: WorktreeFacts,
  aside: string,
  { main }: Repository,
  { how }: RemovalWish,
  env: Environment,
): Promise<string> {
  const { ok, err } = await git(main, ["worktree", "move", "--", path, aside], env);
  if (ok) return aside;
  // One with submodules, say, cannot be moved. What is to be discarded needs less care.
  if (how === "discard" && !isThere(aside)) return path;
  throw new Stays(path, [`it cannot be moved out of the way: ${err || "git worktree move failed"}`]);
}

async function putBack(
  place: string,
  path: string,
  reason: unknown,
  { main }: Repository,
  env: Environment,
): Promise<void> {
  if (place === path) return;
  const { ok, err } = await git(main, ["worktree", "move", "--", place, path], env);
  if (ok) return;
  const why = reason instanceof Error ? reason.message : String(reason);
  throw new AgentctlError("failed", `${path} was not removed (${why}), and is now ${place}: ${err}`, { cause: reason });
}

async function judgeAgain(
  judged: WorktreeFacts,
  place: string,
  repository: Repository,
  wish: RemovalWish,
  env: Environment,
): Promise<Gone> {
  const callers = judged.standing.filter(({ role }) => role === "caller").map(({ pid }) => pid);
  const [facts] = await worktreeFacts(repository, async () => processesNow(new Set(callers)), env, place);
  if (facts === undefined) throw new Stays(judged.path, ["git does not know it any more"]);
  const reasons = reasonsToKeep(facts).filter((reason) => !wish.accepts(reason, facts));
  const changes = changesSince(judged, facts, wish);
  if (reasons.length + changes.length > 0) throw new Stays(judged.path, [...reasons.map(({ why }) => why), ...changes]);
  const branch = wish.branchOf(facts);
  const loose = await looseCommits(facts, branch, repository, wish, env);
  const isKept = wish.how === "keep-all-work" && loose.length > 0;
  return { branch, loose, keptAs: isKept ? await keepUnder(basename(judged.path), loose, repository, env) : null };
}

/** A wish to discard is about what was there when it was said. */
function changesSince(judged: WorktreeFacts, facts: WorktreeFacts, { how }: RemovalWish): string[] {
  const { commit, branch, standing } = facts;
  const newcomers = standing.filter(({ pid }) => judged.standing.every((each) => each.pid !== pid));
  return [
    ...(commit === judged.commit && branch === judged.branch
      ? []
      : [`it moved on meanwhile: ${branch ?? "a detached HEAD"} is at ${commit?.slice(0, 12)}`]),
    // Without that wish everybody in it is a reason already.
    ...(how === "discard" ? newcomers.map(({ name, pid }) => `${name} (pid ${pid}) came into it meanwhile`) : []),
  ];
}

async function looseCommits(
  { admin, branch, commit }: WorktreeFacts,
  goingBranch: string | null,
  repository: Repository,
  { how, known }: RemovalWish,
  env: Environment,
): Promise<string[]> {
  if (admin === null) return [];
  const without = goingBranch === null ? [] : [goingBranch];
  try {
    return await unnamedCommits(await commitsNamedIn(admin, branch, env), { without, known }, repository, env);
  } catch (error) {
    // Damaged data do not save a worktree from being discarded; what is known of its commits is still told.
    if (error instanceof CannotTell && how === "discard") return commit === null ? [] : [commit];
    throw error;
  }
}

function deleteUnchanged(path: string, place: string, look: FolderLook): void {
  const later = lookAtFolder(place);
  const changed = [...differencesBetween(look, later), ...later.unread];
  if (changed.length > 0) throw new Stays(path, [`it changed while it was looked at: ${someOf(changed)}`]);
  openFolders(place, look);
  deleteSeen(place, look);
}

async function removeBranch(
  { commit }: WorktreeFacts,
  { branch, loose, keptAs }: Gone,
  repository: Repository,
  { how, known }: RemovalWish,
  env: Environment,
): Promise<Removed> {
  const mayLose = how === "discard" || known.includes(commit ?? "");
  const commits = mayLose ? "may-lose-their-name" : "must-stay-named";
  const isGone = branch !== null && commit !== null && (await deleteBranch(branch, commit, commits, repository, env));
  const isNamed = keptAs !== null || loose.length === 0;
  const unreferenced = isNamed ? [] : await unnamedCommits(loose, { without: [], known }, repository, env);
  return { branch: isGone ? branch : null, keptAs, unreferenced };
}
