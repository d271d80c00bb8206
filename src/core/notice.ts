// A notice tells a person something although the command succeeds. words/notices.ts makes the sentence.

import type { Confirmation } from "./confirmation.ts";
import type { FailureData, NameOwner, Occupant } from "./failure.ts";
import type { KeepReason } from "./keep-reason.ts";
import type { OwnSetting, PermissionEffect } from "./permission.ts";
import type { OwnerDoubt, SpareReason } from "./reason.ts";

export interface NoticeFacts {
  "also-active": { occupants: readonly Occupant[] };
  "clean-up-failed": { failure: FailureData };
  "empty-session-left": { command: string; detail: string };
  "exit-hook-not-run": { launch: string; failure: FailureData };
  /** These say what a patch lacks, because showing it would run a program that the repository names. */
  "filter-not-run": { filter: string; count: number };
  "hooks-postponed": { failure: FailureData };
  "inherited-permission": { permission: string; from: "config" | "launch"; effect: PermissionEffect };
  "left-running": { processes: readonly NamedProcess[] };
  "names-not-shown": { paths: readonly string[] };
  "name-dropped": { name: string; by: NameOwner };
  "not-stopped": { failure: FailureData };
  "note-not-saved": { failure: FailureData };
  "own-permission": { agent: string; own: OwnSetting; hasArguments: boolean };
  "removal-undone": { path: string };
  "server-sessions": { confirmation: Confirmation };
  "start-hook-not-run": { failure: FailureData };
  "still-running": { processes: readonly NamedProcess[] };
  "status-unknown": { called: string; why: OwnerDoubt };
  "stop-unconfirmed": { why: OwnerDoubt };
  "submodules-not-shown": { paths: readonly string[] };
  "unknown-left-out": { refs: readonly string[] };
  "worktree-kept": { path: string; branch: string; reasons: readonly KeepReason[] };
  "worktree-removed": { path: string };
  "worktree-setup": { path: string };
  "worktree-without-files": { path: string; root: string; count: number };
  "worktree-without-submodules": { path: string };
}

/** A process, and why it was not ended. */
interface NamedProcess {
  pid: number;
  name: string;
  why: SpareReason;
}

export type NoticeCode = keyof NoticeFacts;

/** One type per code, so that a code decides its facts. */
export type Notice = { [C in NoticeCode]: { code: C; facts: NoticeFacts[C] } }[NoticeCode];

export type OnNotice = (notice: Notice) => void;
