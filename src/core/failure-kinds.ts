// Every failure: its facts and its exit. Only a command that fails loads this file; the others need only its types.
import type { Confirmation } from "./confirmation.ts";
import type {
  AttachProblem,
  FailureCode,
  FailureData,
  FolderProblem,
  GuardRule,
  NameOwner,
  Occupant,
  ReferenceCandidate,
  Refusal,
  RequestAnswer,
  StartProblem,
} from "./failure.ts";
import type { KeepReason } from "./keep-reason.ts";
import type { ExitName, ProblemDetail } from "./problem.ts";
import type { OwnerDoubt } from "./reason.ts";

type NoFacts = Readonly<Record<string, never>>;

/** `facts` is only a type: each `Failure` has its own. */
const kind = <Facts = NoFacts>(exit: ExitName): { exit: ExitName; facts?: Facts } => ({ exit });

/** `--json` prints the facts. `detail` is text of another program or of the operating system. */
export const failureKinds = {
  "agent-exited": kind<{ agent: string; status: number | null; output: string }>("not-runnable"),
  "agent-not-found": kind<{ name: string; agents: readonly string[] }>("not-found"),
  "agent-not-installed": kind<{ agent: string; command: string; install: string; variable: string }>("not-runnable"),
  "agent-not-session": kind<{ reference: string; agent: string; sessions: readonly { ref: string; status: string }[] }>(
    "not-found",
  ),
  "agent-refused": kind<{ agent: string; refusal: Refusal }>("not-runnable"),
  "agent-refused-to-start": kind<{ agent: string; program: string; problem: StartProblem; output: string }>(
    "not-runnable",
  ),
  "already-continuing": kind<{ ref: string; pid: number }>("refused"),
  "answer-not-written": kind<{ id: string; detail: string }>("failed"),
  "arguments-too-long": kind("failed"),
  "branch-exists": kind<{ branch: string }>("refused"),
  "changed-during-removal": kind<{ path: string }>("refused"),
  "changes-unknown": kind<{ place: string; detail: string }>("refused"),
  "commit-not-found": kind<{ commit: string }>("usage"),
  "config-invalid": kind<{ path: string; details: readonly [ProblemDetail, ...ProblemDetail[]] }>("cannot-tell"),
  "confirmation-required": kind<{ confirmations: readonly [Confirmation, ...Confirmation[]] }>("refused"),
  "demo-failed": kind<{ problem: "not-started" | "status-changed" }>("failed"),
  "demo-home-failed": kind<{ folder: string; detail: string }>("failed"),
  "directory-gone": kind<{ ref: string; cwd: string; detail: string | null }>("refused"),
  "directory-unknown": kind<{ ref: string }>("cannot-tell"),
  "foreign-repository": kind<{ cwd: string; detail: string }>("refused"),
  "git-busy": kind<{ folder: string }>("refused"),
  "git-failed": kind<{ command: string; detail: string }>("failed"),
  "git-lock-failed": kind<{ folder: string; detail: string }>("failed"),
  "git-not-installed": kind("failed"),
  "group-empty": kind<{ group: string }>("not-found"),
  "guarded-caller": kind<{ rule: GuardRule; subject: string | null }>("refused"),
  "home-unset": kind<{ agent: string }>("failed"),
  "hooks-not-supported": kind<{ agent: string }>("refused"),
  "inside-repository": kind<{ root: string; around: string }>("refused"),
  "inside-target": kind<{ ref: string }>("refused"),
  "interface-not-started": kind<{ program: string; cwd: string; detail: string }>("not-runnable"),
  interrupted: kind<{ result: "nothing-started" | "stopped" | "cleaned-up" | "maybe-sent" }>("interrupted"),
  "interrupted-after-request": kind<{ agent: string }>("interrupted"),
  "launch-files-unreadable": kind<{ source: string; detail: ProblemDetail }>("cannot-tell"),
  "launch-lock-busy": kind<{ seconds: number; path: string }>("timed-out"),
  "left-in-server": kind<{ id: string; answer: RequestAnswer | null }>("interrupted"),
  "list-incomplete": kind("cannot-tell"),
  "live-elsewhere": kind<{ ref: string; id: string | null; pid: number | null; tty: string | null; activity: string }>(
    "refused",
  ),
  "lock-file-unusable": kind<{ path: string; detail: string }>("failed"),
  "lock-not-found": kind<{ place: string; occupants: readonly Occupant[] }>("not-found"),
  "looks-like-option": kind<{ value: string; option: string | null }>("usage"),
  "name-taken": kind<{ name: string; by: NameOwner }>("refused"),
  "no-agent-installed": kind("not-runnable"),
  "no-captured-output": kind<{ ref: string }>("not-found"),
  "no-commits": kind<{ root: string }>("refused"),
  "no-disk-space": kind<{ folder: string }>("failed"),
  "no-match": kind("not-found"),
  "no-session-yet": kind<{ ref: string }>("refused"),
  "no-such-interface": kind<{ agent: string; action: "fork" | "reopen" }>("refused"),
  "not-a-branch-name": kind<{ branch: string }>("usage"),
  "not-a-pid": kind<{ reference: string }>("usage"),
  "not-a-program": kind<{ variable: string; path: string }>("not-runnable"),
  "not-a-repository": kind<{ cwd: string; detail: string }>("usage"),
  "not-confirmed": kind("refused"),
  "nothing-recorded": kind<{ ref: string }>("not-found"),
  "nothing-to-attach-to": kind<{
    ref: string;
    host: string;
    pid: number | null;
    tty: string | null;
    problem: AttachProblem;
  }>("refused"),
  "only-for-holder": kind("refused"),
  "option-without-effect": kind<{ ref: string; option: string }>("refused"),
  "outside-tmux": kind<{ ref: string; tty: string | null; keys: string }>("refused"),
  "own-stop-failed": kind<{ command: string; detail: string }>("failed"),
  "pane-elsewhere": kind<{ ref: string; pane: string; command: string; isInTmux: boolean }>("refused"),
  "pane-not-reached": kind<{ pane: string }>("failed"),
  "partial-clone": kind<{ command: string; detail: string; place: string; commit: string }>("failed"),
  "path-exists": kind<{ path: string }>("refused"),
  "permission-void": kind<{ agent: string; permission: string; policy: string }>("not-runnable"),
  "place-locked": kind<{ place: string; directory: string; lock: Occupant }>("refused"),
  "place-occupied": kind<{ cwd: string; occupants: readonly Occupant[] }>("refused"),
  "place-unknown": kind("cannot-tell"),
  "processes-unreadable": kind("cannot-tell"),
  "program-not-started": kind<{ program: string; cwd: string; detail: string }>("failed"),
  "read-failed": kind<{ path: string; detail: string }>("failed"),
  "record-unreadable": kind<{ ref: string; detail: ProblemDetail }>("cannot-tell"),
  "reference-ambiguous": kind<{ reference: string; candidates: readonly ReferenceCandidate[] }>("ambiguous"),
  "reference-unresolved": kind<{ reference: string }>("cannot-tell"),
  "remove-failed": kind<{ path: string; detail: string }>("failed"),
  "repository-unknown": kind<{ cwd: string; detail: string }>("cannot-tell"),
  "server-gone": kind<{ address: string; detail: string | null }>("failed"),
  "server-is-private": kind<{ address: string }>("refused"),
  "server-not-running": kind<{ agent: string; home: string; start: string | null }>("not-runnable"),
  "server-refused": kind<{ address: string; detail: ProblemDetail }>("failed"),
  "server-refused-session": kind<{ agent: string; detail: ProblemDetail }>("not-runnable"),
  "server-timed-out": kind<{ address: string }>("timed-out"),
  "server-unreachable": kind<{ agent: string; address: string; detail: ProblemDetail | null }>("not-runnable"),
  "session-gone": kind<{ id: string }>("agent-failed"),
  "session-not-found": kind<{ reference: string }>("not-found"),
  "setup-failed": kind<{ status: number | null; signal: string | null; output: string }>("failed"),
  "signal-not-permitted": kind<{ pid: number }>("refused"),
  "start-time-unknown": kind("cannot-tell"),
  "start-timed-out": kind<{ agent: string; seconds: number; output: string }>("timed-out"),
  "start-unconfirmed": kind<{ agent: string; address: string; seconds: number }>("timed-out"),
  "status-unknown": kind<{ ref: string; why: OwnerDoubt }>("cannot-tell"),
  "system-error": kind<{ detail: string }>("failed"),
  "terminal-required": kind<{ reference: string }>("refused"),
  "too-many-older-files": kind<{ count: number }>("failed"),
  "untrusted-folder": kind<{ folder: string; problem: FolderProblem; variable: string }>("failed"),
  usage: kind<{ message: string; hint: string | null }>("usage"),
  "wait-timed-out": kind<{
    until: string;
    timeout: string;
    sessions: readonly { called: string; status: string | null }[];
  }>("timed-out"),
  "worktree-ambiguous": kind<{ name: string; paths: readonly string[] }>("ambiguous"),
  "worktree-folder-untrusted": kind<{ folder: string; problem: "other-owner" | "writable-by-others" }>("refused"),
  "worktree-folder-unusable": kind<{ folder: string; detail: string }>("failed"),
  "worktree-kept": kind<{ path: string; reasons: readonly KeepReason[] }>("refused"),
  "worktree-misplaced": kind<{ path: string; place: string; detail: string; failure: FailureData }>("failed"),
  "worktree-not-created": kind<{ path: string; detail: string }>("failed"),
  "worktree-not-found": kind<{ name: string }>("not-found"),
  "worktree-taken": kind<{ path: string; detail: string }>("refused"),
  "worktrees-out-of-reach": kind<{ folder: string; count: number }>("refused"),
  "write-failed": kind<{ path: string; detail: ProblemDetail; variable: string | null }>("failed"),
};

export const exitOf = ({ code }: { code: FailureCode }): ExitName => failureKinds[code].exit;

const retryableCodes: readonly FailureCode[] = ["server-gone", "server-unreachable"];
/** A start that may still begin must not be repeated blindly, and only a person can repair the settings. */
const finalCodes: readonly FailureCode[] = ["config-invalid", "start-unconfirmed"];

/** The next try may succeed although the caller changes nothing. */
export const isRetryable = (failure: { code: FailureCode }): boolean =>
  !finalCodes.includes(failure.code) &&
  (["timed-out", "cannot-tell"].includes(exitOf(failure)) || retryableCodes.includes(failure.code));
