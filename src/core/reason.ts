// Why a status is what it is, as codes with parameters. The sentence for each code is in src/words/reasons.ts.
import type { Waiting } from "./evidence.ts";
import type { ProblemDetail } from "./problem.ts";

/** The truth rules that doubts and proofs name; docs/truth.md has them all. */
export type TruthRule = "R1" | "R2" | "R3" | "R9" | "R10" | "R13";

/** Why a record does not tell how far its last turn got, or why an open turn may be waiting for a person. */
export type TurnReason =
  | { code: "after-tools-unknown" | "being-cancelled" | "calls-partly-cancelled" | "may-be-cancelled" }
  | { code: "broken-lines" | "history-rewritten" | "last-line-incomplete" | "last-message-unreadable" | "not-read" }
  | { code: "hub-does-not-tell" | "message-by-extension" | "parent-entry-missing" | "turn-too-long" | "went-back" }
  | { code: "may-call-tool" | "may-continue" | "may-retry" | "tool-call-pending" }
  | { code: "no-answer-yet" | "no-end-time" | "no-prompt-found" | "no-turn-mark" }
  | { code: "unknown-ending" | "unknown-status"; text: string }
  | { code: "unknown-message"; kind: string };

/** The activity of a running session, or of a live process without a known session. */
export type RunningReason =
  | { code: "announcement-unreadable" | "background-shell" | "last-turn-failed" | "reopened" }
  | { code: "no-prompt-yet" | "nothing-recorded" | "nothing-recorded-since-start" }
  | { code: "session-unknown" | "starting" | "suspended" }
  | { code: "agent-says"; text: string }
  | { code: "background"; shells: number; subagents: number }
  | { code: "background-job"; job: string }
  | { code: "may-have"; ids: string[] }
  | { code: "record-unreadable" | "store-incomplete"; detail: ProblemDetail }
  | { code: "waiting"; kind: Waiting["kind"] };

export interface StoppedReason {
  code: "died-in-turn" | "died-waiting" | "never-prompted" | "never-recorded";
}

/** Something that was not read may show the owner of a session. */
export interface UnreadReason {
  code: "processes-incomplete" | "processes-unreadable" | "record-unreadable" | "store-incomplete";
  detail: ProblemDetail;
}

/** Why it is not proven that no process has a session. */
export type OwnerDoubt =
  | UnreadReason
  | { code: "announcement-from-elsewhere-unreadable" | "announcement-of-other-user-unreadable" }
  | { code: "holder-unreadable" | "network-store" | "out-of-sight" | "outer-namespace" }
  | { code: "may-be-on-other-host" | "open-in-silent-process" | "outside-sandbox"; pid: number }
  | { code: "pid-hidden" | "pid-may-be-recycled" | "pid-unreadable"; pid: number }
  | { code: "announcement-of-live-process-unreadable"; pid: number | null }
  | { code: "announced-by-other-host"; pid: number; host: string }
  | { code: "announced-by-other-namespace"; pid: number; namespace: string }
  | { code: "began-another-session"; pid: number; next: string }
  /** A file of one user does not count for a process of another user. uid null: it cannot be read, or is not a single uid. */
  | { code: "file-of-other-user"; pid: number; fileUid: number | null; processUid: number | null }
  | { code: "hidden-from-user"; uid: number }
  | { code: "may-have-moved-on"; pid: number; id: string }
  | { code: "process-unreadable"; pid: number; name: string; detail: ProblemDetail }
  | { code: "record-of-other-user"; pid: number; uid: number | null }
  | { code: "server-silent"; address: string };

/** Why a process that announced a session does not have it any more. */
export type StaleReason =
  | { code: "earlier-boot" | "pid-gone" | "started-after-announcement"; pid: number }
  | { code: "pid-is-other-program"; pid: number; name: string }
  | { code: "pid-recycled"; pid: number; start: string; announced: string };

/** Things about one session that do not fit together. */
export type Contradiction =
  | { code: "announcement-older-than-process"; pid: number }
  | { code: "same-id-elsewhere"; source: string }
  | { code: "several-processes"; pids: number[] };

/** Why a process that is related to a session is not ended with it, or is still there. */
export type SpareReason =
  | { code: "below-spared-process"; why: SpareReason }
  | { code: "daemon" | "multiplexer" | "serves-other-sessions" | "shared-service" }
  | { code: "did-not-exit"; state: string }
  | { code: "has-session" | "of-session"; id: string }
  | { code: "has-terminal"; tty: string }
  | { code: "live-agent"; agent: string }
  | { code: "of-launch"; launch: string }
  | { code: "signal-not-permitted" | "terminal-depends-on-it"; pid: number }
  | { code: "window"; kind: WindowKind };

export type WindowKind = "terminal" | "browser" | "editor" | "other";

export type StatusReason = TurnReason | RunningReason | StoppedReason | OwnerDoubt;
