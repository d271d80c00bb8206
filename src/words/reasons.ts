// The sentence for every reason, doubt and conflict. A code without a sentence does not compile.
import type { Waiting } from "../core/evidence.ts";
import type { Contradiction, SpareReason, StaleReason, StatusReason, WindowKind } from "../core/reason.ts";
import { detailText } from "./problems.ts";

/** The member of a union that has this code, perhaps among others. */
export type Coded<T extends { code: string }, Code> = T extends unknown ? (Code extends T["code"] ? T : never) : never;

/** One sentence for every code of a union. */
export type Sentences<T extends { code: string }> = { [Code in T["code"]]: (of: Coded<T, Code>) => string };

export const reasonText = (reason: StatusReason): string => sentenceFor(reasons, reason);
/** A reason that only repeats the status word is not shown beside it. */
export const shownReason = (reason: StatusReason | null): string | null =>
  reason === null || reason.code === "starting" ? null : reasonText(reason);

export const staleText = (reason: StaleReason): string => sentenceFor(staleReasons, reason);
export const conflictText = (conflict: Contradiction): string => sentenceFor(conflicts, conflict);
export const spareText = (reason: SpareReason): string => sentenceFor(spareReasons, reason);

export function sentenceFor<T extends { code: string }>(sentences: Sentences<T>, of: T): string {
  // The table has a function for each member of the union; the compiler cannot pair the two.
  const sentence = sentences[of.code as T["code"]] as (of: T) => string;
  return sentence(of);
}

const waitingFor: Record<Waiting["kind"], string> = {
  permission: "asks for permission",
  question: "asks a question",
  plan: "asks to approve a plan",
  trust: "asks whether to trust this directory",
  login: "needs a login",
  limit: "has reached a usage limit",
  other: "needs an answer",
};

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

const reasons: Sentences<StatusReason> = {
  // How far the last turn got.
  "after-tools-unknown": () => "its tools have finished; what comes next is not recorded yet",
  "being-cancelled": () => "it is being cancelled",
  "broken-lines": () => "its record has broken lines in the last turn",
  "calls-partly-cancelled": () => "some of its tool calls were cancelled",
  "history-rewritten": () => "its history was rewritten in the middle of a turn",
  "hub-does-not-tell": () => "runs in Cline's hub, which does not record whether it is still at work",
  "last-message-unreadable": () => "its last message cannot be read",
  "last-line-incomplete": () => "the last line of its record is incomplete",
  "may-be-cancelled": () => "no answer yet: it is working, or was cancelled",
  "may-call-tool": () => "its answer may have called a tool",
  "may-continue": () => "its answer was cut off at a limit; it may continue by itself",
  "may-retry": () => "its last request failed; it may retry by itself",
  "message-by-extension": () => "an extension added a message; whether a turn follows is not recorded",
  "no-answer-yet": () => "no answer yet",
  "no-end-time": () => "its last run has ended, but its record does not say when",
  "no-prompt-found": () => "no prompt found in its record",
  "no-turn-mark": () => "its record does not say where a turn begins or ends",
  "not-read": () => "its record was not read",
  "parent-entry-missing": () => "its newest entry follows one that is missing",
  "tool-call-pending": () => "a tool call is pending: it is running, or waits for permission",
  "turn-too-long": () => "its last turn is longer than the part of the record that was read",
  "unknown-ending": ({ text }) => `its last answer ended in an unknown way: "${text}"`,
  "unknown-message": ({ kind }) => `its record has a message of an unknown kind${kind === "" ? "" : `: "${kind}"`}`,
  "unknown-status": ({ text }) => `its record has an unknown status: "${text}"`,
  "went-back": () => "its newest entry goes back to an earlier one",

  // Running.
  "agent-says": ({ text }) => `the agent says: ${text}`,
  "announcement-unreadable": () => "running; its announcement cannot be read",
  background: ({ shells, subagents }) =>
    [shells > 0 ? counted(shells, "background shell") : "", subagents > 0 ? counted(subagents, "subagent") : ""]
      .filter((part) => part !== "")
      .join(", "),
  "background-job": ({ job }) => `background job ${job}`,
  "background-shell": () => "background shell",
  "last-turn-failed": () => "its last turn failed",
  "may-have": ({ ids }) => `running; its session may be ${ids.join(" or ")}`,
  "no-prompt-yet": () => "no prompt recorded yet",
  "nothing-recorded": () => "nothing recorded yet",
  "nothing-recorded-since-start": () => "nothing recorded since its process started",
  reopened: () => "the last turn was cut off; reopened since",
  "session-unknown": () => "running; its session is not known yet",
  starting: () => "starting",
  suspended: () => "suspended",
  waiting: ({ kind }) => waitingFor[kind],

  // Stopped.
  "died-in-turn": () => "died in the middle of a turn",
  "died-waiting": () => "died while waiting for an answer",
  "never-prompted": () => "no prompt recorded",
  "never-recorded": () => "it recorded nothing",

  // Unknown: it is not proven that no process has it.
  "announcement-from-elsewhere-unreadable": () => "an announcement that may be from another host cannot be read",
  "announcement-of-live-process-unreadable": ({ pid }) =>
    `may still be open in ${pid === null ? "a live process" : `pid ${pid}`}, whose announcement cannot be read`,
  "announcement-of-other-user-unreadable": () => "an announcement by another user cannot be read",
  "announced-by-other-host": ({ pid, host }) => `announced by pid ${pid} on another host (machine id ${host})`,
  "announced-by-other-namespace": ({ pid, namespace }) =>
    `announced by pid ${pid} in another pid namespace (${namespace})`,
  "began-another-session": ({ pid, next }) =>
    `pid ${pid} opened it and then ${next}; whether another process has reopened it is not recorded`,
  "file-of-other-user": ({ pid, fileUid, processUid }) => {
    const file = fileUid === null ? "an announcement with no visible owner" : `an announcement by uid ${fileUid}`;
    return `${file} names pid ${pid}, which belongs to ${processUid === null ? "no single user" : `uid ${processUid}`}`;
  },
  "holder-unreadable": () => "its record does not say which process has it",
  "hidden-from-user": ({ uid }) =>
    `its record belongs to uid ${uid}, whose processes are hidden on this system (hidepid)`,
  "may-be-on-other-host": ({ pid }) => `announced by pid ${pid}, which may run on another host (network file system)`,
  "may-have-moved-on": ({ pid, id }) => `pid ${pid} was started with ${id} and may have switched to another session`,
  "network-store": () => "may be open on another host: its data directory is on a network file system",
  "open-in-silent-process": ({ pid }) => `may still be open in pid ${pid}`,
  "out-of-sight": () => "the files or processes that would show it cannot be read",
  "outer-namespace": () => "may be open outside of this container: its data directory is shared with the host",
  "outside-sandbox": ({ pid }) => `announced by a sandboxed process, but pid ${pid} runs outside of the sandbox`,
  "pid-hidden": ({ pid }) => `announced by pid ${pid}, which is hidden on this system (hidepid)`,
  "pid-may-be-recycled": ({ pid }) =>
    `pid ${pid} started just after the announcement was written: it may be another process`,
  "pid-unreadable": ({ pid }) => `announced by pid ${pid}, which cannot be inspected`,
  "process-unreadable": ({ pid, name, detail }) =>
    `may be open in pid ${pid} (${name}), which cannot be inspected: ${detailText(detail)}`,
  "processes-incomplete": ({ detail }) => `the process table was read only in part: ${detailText(detail)}`,
  "processes-unreadable": ({ detail }) => `the process table cannot be read: ${detailText(detail)}`,
  "record-of-other-user": ({ pid, uid }) => `pid ${pid} was started with it, but its record belongs to uid ${uid}`,
  "record-unreadable": ({ detail }) => `its record cannot be read: ${detailText(detail)}`,
  "server-silent": ({ address }) => `its server does not answer (${address})`,
  "store-incomplete": ({ detail }) => `its data directory was read only in part: ${detailText(detail)}`,
};

const staleReasons: Sentences<StaleReason> = {
  "earlier-boot": ({ pid }) => `pid ${pid} is from before the last reboot`,
  "pid-gone": ({ pid }) => `pid ${pid} is gone`,
  "pid-is-other-program": ({ pid, name }) => `pid ${pid} is now another program (${name})`,
  "pid-recycled": ({ pid, start, announced }) =>
    `pid ${pid} is now another process: it has start ${start}, the announcement has ${announced}`,
  "started-after-announcement": ({ pid }) =>
    `pid ${pid} is now another process: it started after the announcement was written`,
};

const conflicts: Sentences<Contradiction> = {
  "announcement-older-than-process": ({ pid }) => `the announcement is older than pid ${pid}, which it names`,
  "same-id-elsewhere": ({ source }) => `another record has the same id: ${source}`,
  "several-processes": ({ pids }) => `${pids.length} live processes have this session: ${pids.join(", ")}`,
};

const windows: Record<WindowKind, string> = {
  terminal: "a terminal emulator",
  browser: "a browser",
  editor: "an editor",
  other: "a program with a window",
};

const spareReasons: Sentences<SpareReason> = {
  "below-spared-process": ({ why }) => `child of a process that was left running: ${spareText(why)}`,
  daemon: () => "a daemon that has left the session's process tree",
  "did-not-exit": ({ state }) => `it did not exit (state ${state})`,
  "has-session": ({ id }) => `it has the session ${id}`,
  "has-terminal": ({ tty }) => `it has its own terminal: ${tty}`,
  "live-agent": ({ agent }) => `it is a live ${agent} process`,
  multiplexer: () => "a terminal multiplexer that may be in use",
  "of-launch": ({ launch }) => `it belongs to the launch ${launch}`,
  "of-session": ({ id }) => `a tool of the live session ${id}`,
  "serves-other-sessions": () => "it serves other sessions, too",
  "shared-service": () => "a shared service that others may use",
  "signal-not-permitted": ({ pid }) => `not permitted to signal pid ${pid}`,
  "terminal-depends-on-it": ({ pid }) => `the terminal of pid ${pid} depends on it`,
  window: ({ kind }) => `${windows[kind]} that may be in use`,
};
