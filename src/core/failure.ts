// Acting fails with a code and its facts. words/failures.ts makes the sentence, docs/errors.md lists the codes.
import type { Confirmation } from "./confirmation.ts";
import type { KeepReason } from "./keep-reason.ts";
import type { Notice } from "./notice.ts";
import type { ProblemDetail } from "./problem.ts";
import type { OwnerDoubt } from "./reason.ts";

/** The facts of each failure, as `--json` prints them. `detail` is text of another program or of the operating system. */
export interface FailureFacts {
  "agent-exited": { agent: string; status: number | null; output: string };
  "agent-not-found": { name: string; agents: readonly string[] };
  "agent-not-installed": { agent: string; command: string; install: string; variable: string };
  "agent-not-session": { reference: string; agent: string; sessions: readonly { ref: string; status: string }[] };
  "agent-refused": { agent: string; refusal: Refusal };
  "agent-refused-to-start": { agent: string; program: string; problem: StartProblem; output: string };
  "already-continuing": { ref: string; pid: number };
  "answer-not-written": { id: string; detail: string };
  "arguments-too-long": NoFacts;
  "branch-exists": { branch: string };
  "changed-during-removal": { path: string };
  "changes-unknown": { place: string; detail: string };
  "commit-not-found": { commit: string };
  "config-invalid": { path: string; details: readonly [ProblemDetail, ...ProblemDetail[]] };
  "confirmation-required": { confirmations: readonly [Confirmation, ...Confirmation[]] };
  "demo-failed": { problem: "not-started" | "status-changed" };
  "demo-home-failed": { folder: string; detail: string };
  "directory-gone": { ref: string; cwd: string; detail: string | null };
  "directory-unknown": { ref: string };
  "foreign-repository": { cwd: string; detail: string };
  "git-busy": { folder: string };
  "git-failed": { command: string; detail: string };
  "git-lock-failed": { folder: string; detail: string };
  "git-not-installed": NoFacts;
  "group-empty": { group: string };
  "guarded-caller": { rule: GuardRule; subject: string | null };
  "home-unset": { agent: string };
  "hooks-not-supported": { agent: string };
  "inside-repository": { root: string; around: string };
  "inside-target": { ref: string };
  "interface-not-started": { program: string; cwd: string; detail: string };
  interrupted: { result: "nothing-started" | "stopped" | "cleaned-up" | "maybe-sent" };
  "interrupted-after-request": { agent: string };
  "launch-files-unreadable": { source: string; detail: ProblemDetail };
  "launch-lock-busy": { seconds: number; path: string };
  "left-in-server": { id: string; answer: RequestAnswer | null };
  "list-incomplete": NoFacts;
  "live-elsewhere": { ref: string; id: string | null; pid: number | null; tty: string | null; activity: string };
  "lock-file-unusable": { path: string; detail: string };
  "lock-not-found": { place: string; occupants: readonly Occupant[] };
  "looks-like-option": { value: string; option: string | null };
  "name-taken": { name: string; by: NameOwner };
  "no-agent-installed": NoFacts;
  "no-captured-output": { ref: string };
  "no-commits": { root: string };
  "no-disk-space": { folder: string };
  "no-match": NoFacts;
  "no-session-yet": { ref: string };
  "no-such-interface": { agent: string; action: "fork" | "reopen" };
  "not-a-branch-name": { branch: string };
  "not-a-pid": { reference: string };
  "not-a-program": { variable: string; path: string };
  "not-a-repository": { cwd: string; detail: string };
  "not-confirmed": NoFacts;
  "nothing-recorded": { ref: string };
  "nothing-to-attach-to": { ref: string; host: string; pid: number | null; tty: string | null; problem: AttachProblem };
  "only-for-holder": NoFacts;
  "option-without-effect": { ref: string; option: string };
  "outside-tmux": { ref: string; tty: string | null; keys: string };
  "own-stop-failed": { command: string; detail: string };
  "pane-elsewhere": { ref: string; pane: string; command: string; isInTmux: boolean };
  "pane-not-reached": { pane: string };
  "partial-clone": { command: string; detail: string; place: string; commit: string };
  "path-exists": { path: string };
  "permission-void": { agent: string; permission: string; policy: string };
  "place-locked": { place: string; directory: string; lock: Occupant };
  "place-occupied": { cwd: string; occupants: readonly Occupant[] };
  "place-unknown": NoFacts;
  "processes-unreadable": NoFacts;
  "program-not-started": { program: string; cwd: string; detail: string };
  "read-failed": { path: string; detail: string };
  "record-unreadable": { ref: string; detail: ProblemDetail };
  "reference-ambiguous": { reference: string; candidates: readonly ReferenceCandidate[] };
  "reference-unresolved": { reference: string };
  "remove-failed": { path: string; detail: string };
  "repository-unknown": { cwd: string; detail: string };
  "server-gone": { address: string; detail: string | null };
  "server-is-private": { address: string };
  "server-not-running": { agent: string; home: string; start: string | null };
  "server-refused": { address: string; detail: ProblemDetail };
  "server-refused-session": { agent: string; detail: ProblemDetail };
  "server-timed-out": { address: string };
  "server-unreachable": { agent: string; address: string; detail: ProblemDetail | null };
  "session-gone": { id: string };
  "session-not-found": { reference: string };
  "setup-failed": { status: number | null; signal: string | null; output: string };
  "signal-not-permitted": { pid: number };
  "start-time-unknown": NoFacts;
  "start-timed-out": { agent: string; seconds: number; output: string };
  "start-unconfirmed": { agent: string; address: string; seconds: number };
  "status-unknown": { ref: string; why: OwnerDoubt };
  "system-error": { detail: string };
  "terminal-required": { reference: string };
  "too-many-older-files": { count: number };
  "untrusted-folder": { folder: string; problem: FolderProblem; variable: string };
  usage: { message: string; hint: string | null };
  "wait-timed-out": { until: string; timeout: string; sessions: readonly { called: string; status: string | null }[] };
  "worktree-ambiguous": { name: string; paths: readonly string[] };
  "worktree-folder-untrusted": { folder: string; problem: "other-owner" | "writable-by-others" };
  "worktree-folder-unusable": { folder: string; detail: string };
  "worktree-kept": { path: string; reasons: readonly KeepReason[] };
  "worktree-misplaced": { path: string; place: string; detail: string; failure: FailureData };
  "worktree-not-created": { path: string; detail: string };
  "worktree-not-found": { name: string };
  "worktree-taken": { path: string; detail: string };
  "worktrees-out-of-reach": { folder: string; count: number };
  "write-failed": { path: string; detail: ProblemDetail; variable: string | null };
}

export type FailureCode = keyof FailureFacts;

type NoFacts = Readonly<Record<string, never>>;

type AttachProblem =
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
interface ReferenceCandidate {
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
export interface FailureData<C extends FailureCode = FailureCode> {
  readonly code: C;
  readonly facts: FailureFacts[C];
}

/** A command cannot do its task. */
export class Failure<C extends FailureCode = FailureCode> extends Error implements FailureData<C> {
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
