// Acting fails with a code and its facts. failure-kinds.ts and docs/errors.md list the codes, words/failures.ts makes the sentence.
import type { failureKinds } from "./failure-kinds.ts";
import type { Notice } from "./notice.ts";

/** The facts of each failure, as `--json` prints them. */
export type FailureFacts = { readonly [C in FailureCode]: NonNullable<(typeof failureKinds)[C]["facts"]> };

export type FailureCode = keyof typeof failureKinds;

export type AttachProblem =
  | "not-running"
  | "in-server"
  | "no-terminal"
  | "outside-tmux"
  | "pane-not-found"
  | "tmux-not-installed";

/** What a server did with a request: to end a turn (the first two), or to take a message. */
export type RequestAnswer = "interrupted" | "no-turn" | "begun" | "queued";

/** Why an agent would not accept a launch. */
export type Refusal =
  | { code: "bypass-as-root"; variable: string }
  | { code: "continues-in-interface" }
  | { code: "settings-not-json"; variable: string; permission: string }
  | { code: "takes-no-arguments" };

/** Something that is active in a place: a person's lock, a session, or a launch whose agent has no session yet. */
export type Occupant =
  | { kind: "lock"; by: string; until: string; reason: string | null }
  | { kind: "launch"; pid: number }
  | {
      kind: "session";
      agent: string;
      id: string | null;
      status: string;
      since: string | null;
      pid: number | null;
      tty: string | null;
    };

/** A session that a reference could mean, with a reference that means it alone. */
export interface ReferenceCandidate {
  ref: string;
  agent: string;
  id: string | null;
}

/** The session that has a name, or the process of a launch that starts with it. */
export type NameOwner = { agent: string; id: string | null } | { pid: number };

/** Why a folder of agentctl's own cannot be used. */
export type FolderProblem =
  | { code: "not-a-folder" }
  | { code: "other-owner"; uid: number }
  | { code: "writable-by-others" }
  | { code: "unusable"; detail: string };

/** What an agent may not do from inside its session. */
export type GuardRule =
  | "permission-bypass"
  | "own-setting-bypass"
  | "agent-arguments"
  | "hooks"
  | "session-of-others"
  | "launch-of-others"
  | "command";

/** What an agent's last output means when it exits before its session begins. The other fields are parts of the remedy. */
export interface StartProblem {
  code: StartProblemCode;
  /** An environment variable to check or to set; NAME=VALUE if only one value helps. */
  variable?: string;
  /** A command that repairs it, or says more. */
  command?: string;
  /** An argument for the agent that overrides it. */
  argument?: string;
  /** The agent looks for sessions only in the directory where they were held. */
  isByDirectory?: true;
}

export type StartProblemCode =
  | "bypass-as-root"
  | "config-unreadable"
  | "database-locked"
  | "directory-gone"
  | "no-such-session"
  | "not-logged-in"
  | "prompt-too-long"
  | "session-exists"
  | "session-in-use"
  | "unknown-argument"
  | "unknown-model"
  | "untrusted-directory";

/** A failure as plain data: part of the facts of another one, or of a notice. */
export interface FailureData {
  readonly code: FailureCode;
  readonly facts: FailureFacts[FailureCode];
}

/** A command cannot do its task. */
export class Failure<C extends FailureCode = FailureCode> extends Error implements FailureData {
  /** Notices that a reader needs together with this failure. */
  readonly notices: readonly Notice[];
  constructor(
    readonly code: C,
    readonly facts: FailureFacts[C],
    { cause, notices = [] }: { cause?: unknown; notices?: readonly Notice[] } = {},
  ) {
    super(code, cause === undefined ? undefined : { cause });
    this.name = "Failure";
    this.notices = notices;
  }
}

/** Wrong arguments. Arguments differ between front doors, so each front door writes its own sentence. */
export class UsageError extends Failure<"usage"> {
  constructor(message: string, { hint = null, cause }: { hint?: string | null; cause?: unknown } = {}) {
    super("usage", { message, hint }, { cause });
    this.name = "UsageError";
    this.message = message;
  }
}
