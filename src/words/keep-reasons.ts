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
import { counted, type Sentences, sentenceFor } from "./reasons.ts";

export const keepReasonText = (reason: KeepReason): string => sentenceFor(sentences, reason);

const mostPaths = 3;

const sentences: Sentences<KeepReason> = {
  main: () => "it is the main worktree",
  locked: () => "git has it locked (git worktree unlock)",
  session: ({ agent, id, state }) =>
    `${agent} ${id ?? "(no session yet)"} ${state === "unknown" ? "may be running" : `is ${state}`} in it`,
  "more-sessions": ({ count }) => `${count} more ${count === 1 ? "session is" : "sessions are"} live in it`,
  standing: ({ name, pid, role, file }) => {
    const process = `${name} (pid ${pid})`;
    if (role === "self") return "this command runs in it";
    if (role === "caller") return `${process}, which called this command, runs in it`;
    return file === null ? `${process} runs in it` : `${process} has a file of it open: ${file}`;
  },
  "more-standing": ({ count }) => `${count} more ${count === 1 ? "process runs" : "processes run"} in it`,
  inside: ({ obstacle, paths }) => obstacles[obstacle][0](paths),
  "out-of-reach": (absence) => absences[absence.absence][0](absence),
  unfinished: ({ work, name, hasStash }) =>
    `${unfinished[work]}${name === null ? "" : `: ${name}`}${hasStash ? ", and has stashed changes away" : ""}`,
  unknown: (why) => `cannot tell what is in it: ${uncertaintyText(why)}`,
  uncommitted: ({ paths }) => `${counted(paths.length, "uncommitted file")}: ${someOf(paths, mostPaths)}`,
  hidden: ({ paths }) =>
    `${counted(paths.length, "file")} changed where git does not look (skip-worktree, assume-unchanged, old timestamp): ${someOf(paths, mostPaths)}`,
  unseen: ({ paths }) => `git does not check ${counted(paths.length, "file")}: ${someOf(paths, mostPaths)}`,
  modules: () => "its submodules are checked out: each is a separate repository",
  // `ahead` may be 0 although no ref has the commit: the HEAD of the main worktree may be detached, and is then not a ref.
  commits: ({ ahead, commit }) =>
    ahead === null || ahead === 0
      ? `no branch, tag or remote branch has its commit ${shortCommit(commit)}`
      : `${counted(ahead, "commit")} neither merged nor pushed`,
  inconsistent: ({ path }) => inconsistentText(path),
  "not-moved": ({ detail }) => `it cannot be moved out of the way: ${detail || "git worktree move failed"}`,
  "unknown-to-git": () => "git no longer knows it",
  "moved-on": ({ branch, commit }) =>
    `it changed meanwhile: ${branch ?? "a detached HEAD"} is at ${shortCommit(commit)}`,
  "own-commits": ({ commit }) => `it has new commits: ${shortCommit(commit)}`,
  newcomer: ({ name, pid }) => `${name} (pid ${pid}) started to use it during the check`,
  changed: ({ paths }) => `it changed during the check: ${someOf(paths, mostPaths)}`,
  "may-still-begin": () => "a session may still begin there",
  failed: ({ failure }) => failureMessage(failure),
};

const shortCommit = (commit: string | null): string => commit?.slice(0, 12) ?? "no commit";

const inconsistentText = (path = ""): string => `git's data about it are inconsistent (git worktree repair ${path})`;

const repairIt = "repair it, then try again";
const inside = (what: string, remedy: string): Told<readonly string[]> => [
  (paths) => `another ${what} inside: ${someOf(paths, mostPaths)}`,
  remedy,
];

/** The sentence, and the remedy if there is one. */
type Told<T> = readonly [text: (of: T) => string, remedy?: string];

const obstacles: Readonly<Record<Obstacle["obstacle"], Told<readonly string[]>>> = {
  inconsistent: [([path]) => inconsistentText(path), repairIt],
  "symbolic-link": [() => "its path is a symbolic link", "agentctl removes no worktree through a symbolic link"],
  "other-git": [
    () => "the .git in its folder belongs to another repository",
    "agentctl removes no folder of another repository",
  ],
  "no-git": [([path]) => `its folder has no .git any more (git worktree repair ${path})`, repairIt],
  worktree: inside("worktree is", "move the inner worktree to another place, then try again"),
  repository: inside("repository is", "move the inner repository to another place, then try again"),
  mount: inside("file system is mounted", "unmount it, then try again"),
};

const missing = "its folder is missing, and a disk may not be mounted";
const makeReadable = "make the folder readable, then try again";
const mountDisk = "mount the disk, then try again; if the folder was deleted: git worktree prune";

const absences: Readonly<Record<Absence["absence"], Told<Absence>>> = {
  unreadable: [({ detail }) => `its folder cannot be read: ${detail}`, makeReadable],
  "seen-by-git": [() => "agentctl cannot find its folder, but git can (its name may not be UTF-8)"],
  unmounted: [() => missing, mountDisk],
  "parent-empty": [({ path }) => `${missing}: ${path} is empty`, mountDisk],
  "parent-missing": [({ path }) => `${missing}: there is no ${path}`, mountDisk],
  "parent-unreadable": [({ path, detail }) => `the folder above it cannot be read: ${path}: ${detail}`, makeReadable],
  // Not git worktree prune: git would forget a worktree that still exists.
  moved: [
    ({ path }) => `its folder was moved to ${path} (git worktree repair ${path})`,
    "run git worktree repair, then try again",
  ],
};

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

const discardable: readonly KeepReasonCode[] = ["unknown", "uncommitted", "hidden", "unseen", "unfinished", "commits"];

/** The remedy for the first reason that has one. */
export const keepRemedy = (reasons: readonly KeepReason[]): string | null =>
  reasons.map(remedyFor).find((remedy) => remedy !== undefined) ??
  (reasons.some(({ code }) => discardable.includes(code)) ? "--discard removes it anyway" : null);

function remedyFor(reason: KeepReason): string | undefined {
  if (reason.code === "inside") return obstacles[reason.obstacle][1];
  return reason.code === "out-of-reach" ? absences[reason.absence][1] : remedies[reason.code];
}

export const keepReasonsText = (reasons: readonly KeepReason[]): string =>
  reasons.map((reason) => oneLine(keepReasonText(reason))).join("; ");
