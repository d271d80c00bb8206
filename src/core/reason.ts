// Why a status is what it is, as codes with parameters. The sentence for each code is in src/words/reasons.ts.
import type { Waiting } from "./evidence.ts";
import type { ProblemDetail } from "./problem.ts";

/** The truth rules that doubts and proofs name; docs/truth.md has them all. */
export type TruthRule = "R1" | "R2" | "R3" | "R9" | "R10" | "R13";

/** Why a record does not tell how far its last turn got, or why an open turn may be waiting for a person. */
export type TurnReason =
  | { code: "after-tools-unknown" }
  | { code: "being-cancelled" }
  | { code: "broken-lines" }
  | { code: "calls-partly-cancelled" }
  | { code: "history-rewritten" }
  | { code: "hub-does-not-tell" }
  | { code: "last-message-unreadable" }
  | { code: "last-line-incomplete" }
  | { code: "may-be-cancelled" }
  | { code: "may-call-tool" }
  | { code: "may-continue" }
  | { code: "may-retry" }
  | { code: "message-by-extension" }
  | { code: "no-answer-yet" }
  | { code: "no-end-time" }
  | { code: "no-prompt-found" }
  | { code: "no-turn-mark" }
  | { code: "not-read" }
  | { code: "parent-entry-missing" }
  | { code: "tool-call-pending" }
  | { code: "turn-too-long" }
  | { code: "unknown-ending"; text: string }
  | { code: "unknown-message"; kind: string }
  | { code: "unknown-status"; text: string }
  | { code: "went-back" };

/** The activity of a running session, or of a live process without a known session. */
export type RunningReason =
  | { code: "agent-says"; text: string }
  | { code: "announcement-unreadable" }
  | { code: "background"; shells: number; subagents: number }
  | { code: "background-job"; job: string }
  | { code: "background-shell" }
  | { code: "last-turn-failed" }
  | { code: "may-have"; ids: string[] }
  | { code: "no-prompt-yet" }
  | { code: "nothing-recorded" }
  | { code: "nothing-recorded-since-start" }
  | { code: "record-unreadable"; detail: ProblemDetail }
  | { code: "reopened" }
  | { code: "session-unknown" }
  | { code: "starting" }
  | { code: "store-incomplete"; detail: ProblemDetail }
  | { code: "suspended" }
  | { code: "waiting"; kind: Waiting["kind"] };

export type StoppedReason =
  | { code: "died-in-turn" }
  | { code: "died-waiting" }
  | { code: "never-prompted" }
  | { code: "never-recorded" };

/** Why it is not proven that no process has a session. */
export type OwnerDoubt =
  | { code: "announcement-from-elsewhere-unreadable" }
  | { code: "announcement-of-live-process-unreadable"; pid: number | null }
  | { code: "announcement-of-other-user-unreadable" }
  | { code: "announced-by-other-host"; pid: number; host: string }
  | { code: "announced-by-other-namespace"; pid: number; namespace: string }
  | { code: "began-another-session"; pid: number; next: string }
  /** A file of one user does not count for a process of another user. uid null: it cannot be read, or is not a single uid. */
  | { code: "file-of-other-user"; pid: number; fileUid: number | null; processUid: number | null }
  | { code: "holder-unreadable" }
  | { code: "hidden-from-user"; uid: number }
  | { code: "may-be-on-other-host"; pid: number }
  | { code: "may-have-moved-on"; pid: number; id: string }
  | { code: "network-store" }
  | { code: "open-in-silent-process"; pid: number }
  | { code: "out-of-sight" }
  | { code: "outer-namespace" }
  | { code: "outside-sandbox"; pid: number }
  | { code: "pid-hidden"; pid: number }
  | { code: "pid-may-be-recycled"; pid: number }
  | { code: "pid-unreadable"; pid: number }
  | { code: "process-unreadable"; pid: number; name: string; detail: ProblemDetail }
  | { code: "processes-incomplete"; detail: ProblemDetail }
  | { code: "processes-unreadable"; detail: ProblemDetail }
  | { code: "record-of-other-user"; pid: number; uid: number | null }
  | { code: "record-unreadable"; detail: ProblemDetail }
  | { code: "server-silent"; address: string }
  | { code: "store-incomplete"; detail: ProblemDetail };

/** Why a process that announced a session does not have it any more. */
export type StaleReason =
  | { code: "earlier-boot"; pid: number }
  | { code: "pid-gone"; pid: number }
  | { code: "pid-is-other-program"; pid: number; name: string }
  | { code: "pid-recycled"; pid: number; start: string; announced: string }
  | { code: "started-after-announcement"; pid: number };

/** Things about one session that do not fit together. */
export type Contradiction =
  | { code: "announcement-older-than-process"; pid: number }
  | { code: "same-id-elsewhere"; source: string }
  | { code: "several-processes"; pids: number[] };

/** Why a process that is related to a session is not ended with it, or is still there. */
export type SpareReason =
  | { code: "below-spared-process"; why: SpareReason }
  | { code: "daemon" }
  | { code: "did-not-exit"; state: string }
  | { code: "has-session"; id: string }
  | { code: "has-terminal"; tty: string }
  | { code: "live-agent"; agent: string }
  | { code: "multiplexer" }
  | { code: "of-launch"; launch: string }
  | { code: "of-session"; id: string }
  | { code: "serves-other-sessions" }
  | { code: "shared-service" }
  | { code: "signal-not-permitted"; pid: number }
  | { code: "terminal-depends-on-it"; pid: number }
  | { code: "window"; kind: WindowKind };

export type WindowKind = "terminal" | "browser" | "editor" | "other";

export type StatusReason = TurnReason | RunningReason | StoppedReason | OwnerDoubt;
