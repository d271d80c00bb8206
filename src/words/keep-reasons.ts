// Why a worktree is kept, and what a person can do about it.
import type {
  Absence,
  KeepReason,
  KeepReasonCode,
  Obstacle,
  Uncertainty,
  UnfinishedWork,
} from "../core/keep-reason.ts";
import { oneLine, someOf } from "../lib/width.ts";
import { failureMessage } from "./failures.ts";

export function keepReasonText(reason: KeepReason): string {
  switch (reason.code) {
    case "main":
      return "it is the main worktree";
    case "locked":
      return "git has it locked (git worktree unlock)";
    case "session":
      return `${reason.agent} ${reason.id ?? "(no session yet)"} ${reason.state === "unknown" ? "may be running" : `is ${reason.state}`} in it`;
    case "more-sessions":
      return `${reason.count} more ${reason.count === 1 ? "session is" : "sessions are"} live in it`;
    case "standing":
      return standingText(reason);
    case "more-standing":
      return `${reason.count} more ${reason.count === 1 ? "process runs" : "processes run"} in it`;
    case "inside":
      return obstacleText(reason);
    case "out-of-reach":
      return absenceText(reason);
    case "unfinished":
      return `${unfinished[reason.work]}${reason.name === null ? "" : `: ${reason.name}`}${reason.hasStash ? ", and has stashed changes away" : ""}`;
    case "unknown":
      return `cannot tell what is in it: ${uncertaintyText(reason)}`;
    case "uncommitted":
      return `${reason.paths.length} uncommitted ${reason.paths.length === 1 ? "file" : "files"}: ${someOf(reason.paths, mostPaths)}`;
    case "hidden":
      return `${filesText(reason.paths)} changed where git does not look (skip-worktree, assume-unchanged, old timestamp): ${someOf(reason.paths, mostPaths)}`;
    case "unseen":
      return `git does not check ${filesText(reason.paths)}: ${someOf(reason.paths, mostPaths)}`;
    case "modules":
      return "its submodules are checked out: each is a separate repository";
    case "commits":
      return commitsText(reason);
    case "inconsistent":
      return `git's data about it are inconsistent (git worktree repair ${reason.path})`;
    case "not-moved":
      return `it cannot be moved out of the way: ${reason.detail || "git worktree move failed"}`;
    case "unknown-to-git":
      return "git no longer knows it";
    case "moved-on":
      return `it changed meanwhile: ${reason.branch ?? "a detached HEAD"} is at ${shortCommit(reason.commit)}`;
    case "own-commits":
      return `it has new commits: ${shortCommit(reason.commit)}`;
    case "newcomer":
      return `${reason.name} (pid ${reason.pid}) started to use it during the check`;
    case "changed":
      return `it changed during the check: ${someOf(reason.paths, mostPaths)}`;
    case "may-still-begin":
      return "a session may still begin there";
    case "failed":
      return failureMessage(reason.failure);
  }
}

const mostPaths = 3;

const filesText = ({ length }: readonly string[]): string => (length === 1 ? "1 file" : `${length} files`);

const shortCommit = (commit: string | null): string => commit?.slice(0, 12) ?? "no commit";

/** `ahead` may be 0 although no ref has the commit: the HEAD of the main worktree may be detached, and is then not a ref. */
const commitsText = ({ ahead, commit }: KeepReason & { code: "commits" }): string =>
  ahead === null || ahead === 0
    ? `no branch, tag or remote branch has its commit ${shortCommit(commit)}`
    : `${ahead} ${ahead === 1 ? "commit" : "commits"} neither merged nor pushed`;

function standingText({ name, pid, role, file }: KeepReason & { code: "standing" }): string {
  const process = `${name} (pid ${pid})`;
  if (role === "self") return "this command runs in it";
  if (role === "caller") return `${process}, which called this command, runs in it`;
  return file === null ? `${process} runs in it` : `${process} has a file of it open: ${file}`;
}

function obstacleText({ obstacle, paths }: Obstacle): string {
  const repair = `git worktree repair ${paths[0]}`;
  switch (obstacle) {
    case "inconsistent":
      return `git's data about it are inconsistent (${repair})`;
    case "symbolic-link":
      return "its path is a symbolic link";
    case "other-git":
      return "the .git in its folder belongs to another repository";
    case "no-git":
      return `its folder has no .git any more (${repair})`;
    case "mount":
      return `another file system is mounted inside: ${someOf(paths, mostPaths)}`;
    default:
      return `another ${obstacle} is inside: ${someOf(paths, mostPaths)}`;
  }
}

function absenceText({ absence, path, detail }: Absence): string {
  const missing = "its folder is missing, and a disk may not be mounted";
  switch (absence) {
    case "unreadable":
      return `its folder cannot be read: ${detail}`;
    case "seen-by-git":
      return "agentctl cannot find its folder, but git can (its name may not be UTF-8)";
    case "unmounted":
      return missing;
    case "parent-empty":
      return `${missing}: ${path} is empty`;
    case "parent-missing":
      return `${missing}: there is no ${path}`;
    case "parent-unreadable":
      return `the folder above it cannot be read: ${path}: ${detail}`;
    case "moved":
      return `its folder was moved to ${path} (git worktree repair ${path})`;
  }
}

function uncertaintyText(why: Uncertainty): string {
  switch (why.problem) {
    case "git-failed":
      return why.detail || `git ${why.command} failed`;
    case "unexpected-answer":
      return `git ${why.command} said ${why.detail}`;
    case "unreadable":
      return `${why.path || "its folder"}: ${why.detail}`;
    case "processes-unreadable":
      return `the process table cannot be read (${why.detail})`;
    case "name-not-utf8":
      return `the name of ${why.path} is not UTF-8, and it may be changed where git does not look`;
    case "other-folder":
      return `git takes ${why.path} for its folder (core.worktree)`;
  }
}

const unfinished: Readonly<Record<UnfinishedWork["work"], string>> = {
  rebase: "a rebase is in progress",
  "rebase-or-am": "a rebase or a git am is in progress",
  merge: "a merge is in progress",
  "merge-stash": "a merge has stashed changes away",
  "cherry-pick": "a cherry-pick is in progress",
  revert: "a revert is in progress",
  sequence: "a cherry-pick or a revert of several commits is in progress",
  bisect: "a bisect is in progress",
  "notes-merge": "a merge of notes is in progress",
  "git-lock": "a git command is running in it, or was killed",
  "unknown-file": "git's folder for it has an unknown file",
  "own-ref": "it has its own ref",
};

const remedies: Partial<Record<KeepReasonCode, string>> = {
  main: "agentctl never removes the main worktree",
  session: "agentctl stop stops a session",
  locked: "git worktree unlock PATH, then try again",
  modules: "git worktree remove --force PATH removes it with its submodules",
  standing: "leave it or stop that process first; --discard removes it anyway",
};

const obstacleRemedies: Readonly<Record<Obstacle["obstacle"], string>> = {
  inconsistent: "repair it, then try again",
  "symbolic-link": "agentctl removes no worktree through a symbolic link",
  "other-git": "agentctl removes no folder of another repository",
  "no-git": "repair it, then try again",
  worktree: "move the inner worktree to another place, then try again",
  repository: "move the inner repository to another place, then try again",
  mount: "unmount it, then try again",
};

const makeReadable = "make the folder readable, then try again";
const mountDisk = "mount the disk, then try again; if the folder was deleted: git worktree prune";
/** Not git worktree prune for a folder that was moved: git would forget a worktree that still exists. */
const absenceRemedies: Readonly<Record<Absence["absence"], string | undefined>> = {
  unreadable: makeReadable,
  "parent-unreadable": makeReadable,
  "seen-by-git": undefined,
  moved: "run git worktree repair, then try again",
  unmounted: mountDisk,
  "parent-empty": mountDisk,
  "parent-missing": mountDisk,
};

const discardable: readonly KeepReasonCode[] = ["unknown", "uncommitted", "hidden", "unseen", "unfinished", "commits"];

/** The remedy for the first reason that has one. */
export const keepRemedy = (reasons: readonly KeepReason[]): string | null =>
  reasons.map(remedyFor).find((remedy) => remedy !== undefined) ??
  (reasons.some(({ code }) => discardable.includes(code)) ? "--discard removes it anyway" : null);

function remedyFor(reason: KeepReason): string | undefined {
  if (reason.code === "inside") return obstacleRemedies[reason.obstacle];
  return reason.code === "out-of-reach" ? absenceRemedies[reason.absence] : remedies[reason.code];
}

export const keepReasonsText = (reasons: readonly KeepReason[]): string =>
  reasons.map((reason) => oneLine(keepReasonText(reason))).join("; ");
