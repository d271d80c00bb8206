// Why a worktree is kept. words/keep-reasons.ts makes the sentence.
import type { FailureData } from "./failure.ts";

export type KeepReason =
  // Facts about the worktree when it is judged.
  | { code: "main" }
  | { code: "locked" }
  | { code: "session"; agent: string; id: string | null; state: string }
  | { code: "more-sessions"; count: number }
  | ({ code: "inside" } & Obstacle)
  | { code: "standing"; pid: number; name: string; role: "self" | "caller" | "other"; file: string | null }
  | { code: "more-standing"; count: number }
  | ({ code: "out-of-reach" } & Absence)
  | ({ code: "unknown" } & Uncertainty)
  | { code: "uncommitted"; paths: readonly string[] }
  | { code: "hidden"; paths: readonly string[] }
  | { code: "unseen"; paths: readonly string[] }
  | ({ code: "unfinished" } & UnfinishedWork)
  | { code: "modules" }
  | { code: "commits"; ahead: number | null; commit: string | null }
  // What stopped a removal that had begun.
  | { code: "inconsistent"; path: string }
  | { code: "not-moved"; detail: string }
  | { code: "unknown-to-git" }
  | { code: "moved-on"; branch: string | null; commit: string | null }
  | { code: "own-commits"; commit: string | null }
  | { code: "newcomer"; pid: number; name: string }
  | { code: "changed"; paths: readonly string[] }
  | { code: "may-still-begin" }
  | { code: "failed"; failure: FailureData };

export type KeepReasonCode = KeepReason["code"];

/** Something that is not part of the worktree, or makes its folder another thing than git says. */
export interface Obstacle {
  obstacle: "inconsistent" | "symbolic-link" | "other-git" | "no-git" | "worktree" | "repository" | "mount";
  paths: readonly string[];
}

/** Why the folder cannot be seen at its path. `path`: the folder above it, or its new place. */
export interface Absence {
  absence:
    | "unreadable"
    | "seen-by-git"
    | "unmounted"
    | "parent-empty"
    | "parent-missing"
    | "parent-unreadable"
    | "moved";
  path: string;
  /** The text of a system error; else null. */
  detail: string | null;
}

/** Why git or the file system cannot tell what would be lost. `detail`: the text of git or of the system. */
export type Uncertainty =
  | { problem: "git-failed" | "unexpected-answer"; command: string; detail: string }
  /** An empty path means the folder of the worktree itself. */
  | { problem: "unreadable"; path: string; detail: string }
  | { problem: "processes-unreadable"; detail: string }
  | { problem: "name-not-utf8" | "other-folder"; path: string };

/** What git has not finished, or keeps only here. `name`: a path or a ref, where there is one. */
export interface UnfinishedWork {
  work:
    | "rebase"
    | "rebase-or-am"
    | "merge"
    | "merge-stash"
    | "cherry-pick"
    | "revert"
    | "sequence"
    | "bisect"
    | "notes-merge"
    | "git-lock"
    | "unknown-file"
    | "own-ref";
  hasStash: boolean;
  name: string | null;
}
