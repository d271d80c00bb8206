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
  // Files.
  | { code: "another-id-inside" | "changed-while-read" | "compressed" | "keeps-changing" | "no-owner-recorded" }
  | { code: "not-a-lock" | "not-a-note" | "not-an-object" | "record-unknown-shape" | "unknown-shape" }
  | { code: "store-slow" | "store-too-large" | "writable-by-others" }
  | { code: "of-other-user"; uid: number }
  | { code: "reader-failed"; text: string }
  | { code: "unnamed-record"; detail: ProblemDetail }
  // Processes.
  | { code: "environment-hidden" | "hidden-process" | "no-uids" | "not-shown-by-lsof" | "other-users-process" }
  | { code: "part-unread"; part: ProcessPart; detail: ProblemDetail }
  | { code: "unknown-platform"; platform: string }
  // Servers.
  | { code: "answer-unknown-shape" | "no-answer-in-time" | "not-asked" | "password-needed" }
  | { code: "server-busy" | "server-suspended" }
  | { code: "answer-not-json" | "server-refused"; text: string }
  | { code: "answer-http-status"; status: number }
  | { code: "no-answer"; request: string }
  // Settings.
  | { code: "setting-invalid"; setting: string; expected: SettingShape }
  | { code: "setting-not-absolute"; setting: string; path: string }
  | { code: "setting-of-unknown-agent"; setting: string; agent: string }
  | { code: "setting-unknown"; setting: string };

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
