// Reading fails as a value, acting fails as an error. Both become text only at the edges (cli/perform.ts).

export type ProblemCode =
  | "processes-unreadable"
  | "process-unreadable"
  | "store-unreadable"
  | "store-slow"
  | "record-unreadable"
  | "record-unrecognised"
  | "claim-unreadable"
  | "host-silent"
  | "note-unreadable"
  | "cache-unused"
  | "config-unreadable";

export interface Problem {
  code: ProblemCode;
  /** The agent whose rows suffer from it; null where it concerns all of them. */
  agent: string | null;
  source: string;
  message: string;
}

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
  "agent-missing": 7,
  "cannot-tell": 8,
  "agent-failed": 10,
  "needs-a-person": 11,
  interrupted: 130,
} as const;

export type ErrorCode = keyof typeof exitCodes;

/** A command that cannot do what it was asked. The hint says what to do next. */
export class AgentctlError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | null;
  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AgentctlError";
    this.code = code;
    this.hint = options.hint ?? null;
  }
}
