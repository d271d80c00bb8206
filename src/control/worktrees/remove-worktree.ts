// Removes a worktree without losing work that appears meanwhile. Git's lock files prevent commits; the folder is moved aside,
// so that nothing is written under its old path; everything is checked again there; and only files that this last check has
// seen are deleted. Git's own data are removed after the folder, and the branch last.
import { renameSync } from "node:fs";
import { basename } from "node:path";
import { Failure } from "../../core/failure.ts";
import type { KeepReason } from "../../core/keep-reason.ts";
import { asFailure } from "../../observe/failure.ts";
import { CannotTell, git, gitText } from "../git/git.ts";
import { isThere } from "../git/git-view.ts";
import { deleteBranch, keepUnder, unnamedCommits } from "../git/lasting-refs.ts";
import { commonFolder, type Repository } from "../git/repository.ts";
import { adminFolders, adminNamedBy, commitsNamedIn, realLocation } from "./admin-folder.ts";
import { deleteSeen, differencesBetween, type FolderLook, lookAtFolder, openFolders } from "./folder-contents.ts";
import { asideName, holdWorktree, interruptedRemoval, releaseWorktree } from "./hold-worktree.ts";
import { isFinal, reasonsToKeep } from "./reasons-to-keep.ts";
import { branchGoesWith, isOurBranch, processesNow, type WorktreeFacts, worktreeFacts } from "./worktree-facts.ts";

export interface RemovalRules {
  /** "discard": work that exists only in the worktree may be lost. */
  how: "keep-all-work" | "discard";
  /** Reasons that do not count for this removal. */
  accepts(reason: KeepReason, facts: WorktreeFacts): boolean;
  /** Commits that existed before the worktree, and are not its work. */
  known: readonly string[];
  /** The branch to remove with it; null: none. */
  branchOf(facts: WorktreeFacts): string | null;
}

export const keepingWork: RemovalRules = {
  how: "keep-all-work",
  accepts: () => false,
  known: [],
  branchOf: (facts) => (branchGoesWith(facts) ? facts.branch : null),
};

export const discardingWork: RemovalRules = {
  how: "discard",
  accepts: (reason) => !isFinal(reason),
  known: [],
  branchOf: ({ branch }) => (isOurBranch(branch) ? branch : null),
};

export interface Removed {
  branch: string | null;
  /** A new ref for commits that only its reflog had; null: there were none. */
  keptAs: string | null;
  unreferenced: string[];
}

export const kept = (path: string, reasons: readonly KeepReason[]): Failure<"worktree-kept"> =>
  new Failure("worktree-kept", { path, reasons });

export const isKept = (error: Failure): error is Failure<"worktree-kept"> => error.code === "worktree-kept";

export async function removeWorktree(
  judged: WorktreeFacts,
  repository: Repository,
  rules: RemovalRules,
): Promise<Removed> {
  const { path, admin } = judged;
  if (admin === null) throw kept(path, [{ code: "inconsistent", path }]);
  const aside = freeNameFor(path);
  const removal = { ...rules, judged, repository };
  holdWorktree(admin, { from: path, aside });
  try {
    return await removeBranch(await removeFolder(removal, aside), removal);
  } catch (error) {
    releaseWorktree(admin);
    if (error instanceof CannotTell) throw kept(path, [{ code: "unknown", ...error.why }]);
    throw error;
  }
}

function freeNameFor(path: string): string {
  for (let number = 1; ; number += 1) if (!isThere(asideName(path, number))) return asideName(path, number);
}

interface Removal extends RemovalRules {
  /** The worktree as it was when the removal was decided. */
  judged: WorktreeFacts;
  repository: Repository;
}

/** The steps that are left after the removal of the folder. */
interface Gone {
  branch: string | null;
  /** Commits that only the admin folder or that branch had. */
  loose: string[];
  keptAs: string | null;
}

async function removeFolder(removal: Removal, aside: string): Promise<Gone> {
  const { judged, repository } = removal;
  const isThere = judged.presence.kind === "there";
  const place = isThere ? await moveAside(removal, aside) : judged.path;
  let gone: Gone;
  try {
    const look = isThere ? lookAtFolder(place) : null;
    gone = await judgeAgain(removal, place);
    if (look !== null) deleteUnchanged(judged.path, place, look);
  } catch (error) {
    await putBack(place, judged.path, error, repository);
    throw error;
  }
  // The folder is gone, so git only removes its own data. If the folder was created again meanwhile, git refuses.
  await gitText(repository.main, ["worktree", "remove", "--", place], repository.env);
  return gone;
}

/** Git moves it, so that git's data always have its path. */
async function moveAside({ judged: { path }, repository, how }: Removal, aside: string): Promise<string> {
  const { ok, err } = await git(repository.main, ["worktree", "move", "--", path, aside], repository.env);
  if (ok) return aside;
  // Git cannot move every worktree: not one with submodules. For a discard that is no obstacle.
  if (how === "discard" && !isThere(aside)) return path;
  throw kept(path, [{ code: "not-moved", detail: err }]);
}

async function putBack(place: string, path: string, reason: unknown, { main, env }: Repository): Promise<void> {
  if (place === path) return;
  const { ok, err } = await git(main, ["worktree", "move", "--", place, path], env);
  if (ok) return;
  throw new Failure("worktree-misplaced", { path, place, detail: err, failure: asFailure(reason) }, { cause: reason });
}

async function judgeAgain(removal: Removal, place: string): Promise<Gone> {
  const { judged, repository } = removal;
  const callers = judged.standing.filter(({ role }) => role === "caller").map(({ pid }) => pid);
  const [facts] = await worktreeFacts(repository, async () => processesNow(new Set(callers)), place);
  if (facts === undefined) throw kept(judged.path, [{ code: "unknown-to-git" }]);
  const reasons = reasonsToKeep(facts).filter((reason) => !removal.accepts(reason, facts));
  const changes = changesSince(facts, removal);
  if (reasons.length + changes.length > 0) throw kept(judged.path, [...reasons, ...changes]);
  const branch = removal.branchOf(facts);
  const loose = await looseCommits(facts, branch, removal);
  const isKept = removal.how === "keep-all-work" && loose.length > 0;
  return { branch, loose, keptAs: isKept ? await keepUnder(basename(judged.path), loose, repository) : null };
}

/** A person who discards means the contents at the time of the request. */
function changesSince({ commit, branch, standing }: WorktreeFacts, { judged, how }: Removal): KeepReason[] {
  const newcomers = standing.filter(({ pid }) => judged.standing.every((each) => each.pid !== pid));
  return [
    ...(commit === judged.commit && branch === judged.branch ? [] : [{ code: "moved-on" as const, branch, commit }]),
    // Without a discard every process in it is already a reason.
    ...(how === "discard" ? newcomers.map(({ name, pid }) => ({ code: "newcomer" as const, name, pid })) : []),
  ];
}

async function looseCommits(
  { admin, branch, commit }: WorktreeFacts,
  goingBranch: string | null,
  { repository, how, known }: Removal,
): Promise<string[]> {
  if (admin === null) return [];
  const without = goingBranch === null ? [] : [goingBranch];
  try {
    return await unnamedCommits(await commitsNamedIn(admin, branch, repository.env), { without, known }, repository);
  } catch (error) {
    // A worktree with damaged data can still be discarded; the commits that are known are reported.
    if (error instanceof CannotTell && how === "discard") return commit === null ? [] : [commit];
    throw error;
  }
}

function deleteUnchanged(path: string, place: string, look: FolderLook): void {
  const later = lookAtFolder(place);
  const changed = differencesBetween(look, later);
  if (changed.length > 0) throw kept(path, [{ code: "changed", paths: changed }]);
  const [unread] = later.unread;
  if (unread !== undefined) throw kept(path, [{ code: "unknown", problem: "unreadable", ...unread }]);
  openFolders(place, look);
  deleteSeen(place, look);
}

async function removeBranch({ branch, loose, keptAs }: Gone, removal: Removal): Promise<Removed> {
  const { repository, how, known } = removal;
  const { commit } = removal.judged;
  const mayLose = how === "discard" || known.includes(commit ?? "");
  const commits = mayLose ? "may-lose-their-name" : "must-stay-named";
  const isGone = branch !== null && commit !== null && (await deleteBranch(branch, commit, commits, repository));
  const isNamed = keptAs !== null || loose.length === 0;
  const unreferenced = isNamed ? [] : await unnamedCommits(loose, { without: [], known }, repository);
  return { branch: isGone ? branch : null, keptAs, unreferenced };
}

/** Moves worktrees back whose removal was killed. Returns their paths. */
export async function undoInterruptedRemovals(repository: Repository): Promise<string[]> {
  const restored: string[] = [];
  for (const admin of adminFolders(commonFolder(repository)).values()) {
    const removal = interruptedRemoval(admin);
    if (removal === null) continue;
    const { from, aside } = removal;
    // A symbolic link in the path could lead anywhere.
    const isOurs = from !== "" && !isThere(from) && adminNamedBy(aside) === admin && realLocation(aside) === aside;
    if (isOurs) {
      const { ok } = await git(repository.main, ["worktree", "move", "--", aside, from], repository.env);
      // Git was killed before it recorded the move, and still has the old path.
      if (!ok) renameSync(aside, from);
      restored.push(from);
    }
    releaseWorktree(admin);
  }
  return restored;
}
