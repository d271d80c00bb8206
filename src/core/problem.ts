// Reading fails as a value, acting fails as an error (core/failure.ts). Both become text only at the edges.

export type ProblemCode =
  | "processes-unreadable"
  | "process-unreadable"
  | "store-unreadable"
  | "store-slow"
  | "record-unreadable"
  | "record-unrecognized"
  | "announcement-unreadable"
  | "server-silent"
  | "note-unreadable"
  | "cache-unused"
  | "config-unreadable";

export interface Problem {
  code: ProblemCode;
  /** The affected agent; null: all agents. */
  agent: string | null;
  source: string;
  detail: ProblemDetail;
}

/** What went wrong. The sentence for each code is in src/words/problems.ts. */
export type ProblemDetail =
  /** `errno` is empty where the error is not the system's; `text` is the error's own text. */
  | { code: "system-error"; errno: string; text: string }
  | { code: "answer-not-json"; text: string }
  | { code: "answer-unknown-shape" }
  | { code: "answer-http-status"; status: number }
  | { code: "another-id-inside" }
  | { code: "changed-while-read" }
  | { code: "compressed" }
  | { code: "environment-hidden" }
  | { code: "hidden-process" }
  | { code: "keeps-changing" }
  | { code: "no-answer"; request: string }
  | { code: "no-answer-in-time" }
  | { code: "no-owner-recorded" }
  | { code: "no-uids" }
  | { code: "not-a-lock" }
  | { code: "not-a-note" }
  | { code: "not-an-object" }
  | { code: "not-asked" }
  | { code: "not-shown-by-lsof" }
  | { code: "of-other-user"; uid: number }
  | { code: "other-users-process" }
  | { code: "part-unread"; part: ProcessPart; detail: ProblemDetail }
  | { code: "password-needed" }
  | { code: "reader-failed"; text: string }
  | { code: "record-unknown-shape" }
  | { code: "server-busy" }
  | { code: "server-refused"; text: string }
  | { code: "server-suspended" }
  | { code: "setting-invalid"; setting: string; expected: SettingShape }
  | { code: "setting-not-absolute"; setting: string; path: string }
  | { code: "setting-of-unknown-agent"; setting: string; agent: string }
  | { code: "setting-unknown"; setting: string }
  | { code: "store-slow" }
  | { code: "store-too-large" }
  | { code: "unknown-platform"; platform: string }
  | { code: "unknown-shape" }
  | { code: "unnamed-record"; detail: ProblemDetail }
  | { code: "writable-by-others" };

export type ProcessPart = "arguments" | "environment" | "open-files" | "program" | "working-directory";
export type SettingShape =
  | "absolute-folder"
  | "agent-defaults"
  | "defaults"
  | "folders"
  | "homes"
  | "inside-agents"
  | "permission"
  | "text";

/** "Empty" is not "unread": every reading says which of the two it was. */
export type Reading<T> = { ok: true; value: T } | { ok: false; problem: Problem };

export const read = <T>(value: T): Reading<T> => ({ ok: true, value });
export const unread = (problem: Problem): Reading<never> => ({ ok: false, problem });

/** The one table of exit codes; the contract promises these numbers to scripts. */
export const exitCodes = {
  failed: 1,
  usage: 2,
  "not-found": 3,
  ambiguous: 4,
  refused: 5,
  "timed-out": 6,
  "not-runnable": 7,
  "cannot-tell": 8,
  "agent-failed": 10,
  "needs-a-person": 11,
  interrupted: 130,
} as const;

export type ExitName = keyof typeof exitCodes;
