// The sentence for every code, as a snapshot: other tests compare codes, so the wording is checked here alone.
import { expect, test } from "bun:test";
import type { ProblemDetail } from "../../../src/core/problem.ts";
import type { Fact, StatusTrigger } from "../../../src/core/proof.ts";
import type { Contradiction, SpareReason, StaleReason, StatusReason } from "../../../src/core/reason.ts";
import { detailText } from "../../../src/words/problems.ts";
import { factText, triggerText } from "../../../src/words/proofs.ts";
import { type Coded, conflictText, reasonText, spareText, staleText } from "../../../src/words/reasons.ts";

/** The parameters of one example for every code. A code without an example does not compile. */
type Examples<T extends { code: string }> = { [Code in T["code"]]: Omit<Coded<T, Code>, "code"> };

/** code → sentence. */
function sentences<T extends { code: string }>(examples: Examples<T>, textOf: (of: T) => unknown): object {
  const all = Object.entries<object>(examples).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(all.map(([code, parameters]) => [code, textOf({ code, ...parameters } as unknown as T)]));
}

const denied: ProblemDetail = { code: "system-error", errno: "EACCES", text: "permission denied" };

const reasons: Examples<StatusReason> = {
  "after-tools-unknown": {},
  "agent-says": { text: "permission prompt" },
  "announced-by-other-host": { pid: 1300, host: "m2" },
  "announced-by-other-namespace": { pid: 1300, namespace: "pid:[2]" },
  "announcement-from-elsewhere-unreadable": {},
  "announcement-of-live-process-unreadable": { pid: 1300 },
  "announcement-of-other-user-unreadable": {},
  "announcement-unreadable": {},
  background: { shells: 2, subagents: 1 },
  "background-job": { job: "b1" },
  "background-shell": {},
  "began-another-session": { pid: 1300, next: "s2" },
  "being-cancelled": {},
  "broken-lines": {},
  "calls-partly-cancelled": {},
  "died-in-turn": {},
  "died-waiting": {},
  "file-of-other-user": { pid: 1300, fileUid: 1001, processUid: 1000 },
  "hidden-from-user": { uid: 1001 },
  "history-rewritten": {},
  "holder-unreadable": {},
  "hub-does-not-tell": {},
  "last-line-incomplete": {},
  "last-message-unreadable": {},
  "last-turn-failed": {},
  "may-be-cancelled": {},
  "may-be-on-other-host": { pid: 1300 },
  "may-call-tool": {},
  "may-continue": {},
  "may-have": { ids: ["s1", "s2"] },
  "may-have-moved-on": { pid: 1300, id: "s1" },
  "may-retry": {},
  "message-by-extension": {},
  "network-store": {},
  "never-prompted": {},
  "never-recorded": {},
  "no-answer-yet": {},
  "no-end-time": {},
  "no-prompt-found": {},
  "no-prompt-yet": {},
  "no-turn-mark": {},
  "not-read": {},
  "nothing-recorded": {},
  "nothing-recorded-since-start": {},
  "open-in-silent-process": { pid: 1300 },
  "out-of-sight": {},
  "outer-namespace": {},
  "outside-sandbox": { pid: 1300 },
  "parent-entry-missing": {},
  "pid-hidden": { pid: 1300 },
  "pid-may-be-recycled": { pid: 1300 },
  "pid-unreadable": { pid: 1300 },
  "process-unreadable": { pid: 1300, name: "claude", detail: denied },
  "processes-incomplete": { detail: denied },
  "processes-unreadable": { detail: denied },
  "record-of-other-user": { pid: 1300, uid: 1001 },
  "record-unreadable": { detail: denied },
  reopened: {},
  "server-silent": { address: "pid 336" },
  "session-unknown": {},
  starting: {},
  "store-incomplete": { detail: denied },
  suspended: {},
  "tool-call-pending": {},
  "turn-too-long": {},
  "unknown-ending": { text: "length" },
  "unknown-message": { kind: "note" },
  "unknown-status": { text: "paused" },
  waiting: { kind: "permission" },
  "went-back": {},
};

const staleReasons: Examples<StaleReason> = {
  "earlier-boot": { pid: 1300 },
  "pid-gone": { pid: 1300 },
  "pid-is-other-program": { pid: 1300, name: "bash" },
  "pid-recycled": { pid: 1300, start: "200", announced: "100" },
  "started-after-announcement": { pid: 1300 },
};

const contradictions: Examples<Contradiction> = {
  "announcement-older-than-process": { pid: 1300 },
  "same-id-elsewhere": { source: "/records/s1" },
  "several-processes": { pids: [1300, 1301] },
};

const spareReasons: Examples<SpareReason> = {
  "below-spared-process": { why: { code: "multiplexer" } },
  daemon: {},
  "did-not-exit": { state: "D" },
  "has-session": { id: "s1" },
  "has-terminal": { tty: "/dev/pts/7" },
  "live-agent": { agent: "codex" },
  multiplexer: {},
  "of-launch": { launch: "L1" },
  "of-session": { id: "s1" },
  "serves-other-sessions": {},
  "shared-service": {},
  "signal-not-permitted": { pid: 1300 },
  "terminal-depends-on-it": { pid: 1300 },
  window: { kind: "browser" },
};

const details: Examples<ProblemDetail> = {
  "another-id-inside": {},
  "answer-http-status": { status: 500 },
  "answer-not-json": { text: "unexpected end" },
  "answer-unknown-shape": {},
  "changed-while-read": {},
  compressed: {},
  "environment-hidden": {},
  "hidden-process": {},
  "keeps-changing": {},
  "no-answer": { request: "initialize" },
  "no-answer-in-time": {},
  "no-owner-recorded": {},
  "no-uids": {},
  "not-a-lock": {},
  "not-a-note": {},
  "not-an-object": {},
  "not-asked": {},
  "not-shown-by-lsof": {},
  "of-other-user": { uid: 1001 },
  "other-users-process": {},
  "part-unread": { part: "open-files", detail: denied },
  "password-needed": {},
  "reader-failed": { text: "out of memory" },
  "record-unknown-shape": {},
  "server-busy": {},
  "server-refused": { text: "no model" },
  "server-suspended": {},
  "setting-invalid": { setting: "worktrees", expected: "absolute-folder" },
  "setting-not-absolute": { setting: "homes.codex", path: "codex" },
  "setting-of-unknown-agent": { setting: "defaults.cluade", agent: "cluade" },
  "setting-unknown": { setting: "defautls" },
  "store-slow": {},
  "store-too-large": {},
  "system-error": { errno: "EACCES", text: "permission denied" },
  "unknown-platform": { platform: "plan9" },
  "unknown-shape": {},
  "unnamed-record": { detail: denied },
  "writable-by-others": {},
};

const facts: Examples<Fact> = {
  "agent-says": { activity: "waiting" },
  "broken-lines": { count: 2 },
  dialog: { waiting: { kind: "trust", text: "Trust this folder?", tool: null, options: [] } },
  link: { link: "announced", start: "100", announced: { pid: 1300, start: "100", boot: "b" } },
  "no-owner": { agent: "codex", processes: 210, pids: [1300, 1301] },
  "no-record": { isHomeKnown: true },
  "not-proven": { why: { code: "network-store" } },
  process: { pid: 1300, name: "claude", state: "S", start: "100", isSuspended: false },
  "record-unreadable": { detail: denied },
  server: { activity: "working" },
  "stale-announcement": { why: { code: "pid-gone", pid: 1300 } },
  "store-incomplete": { detail: denied },
  turn: { turn: { state: "open", since: null, doubt: null }, asks: null },
};

const triggers: Record<StatusTrigger, true> = {
  "agent-asks": true,
  "agent-is-answered": true,
  "owner-becomes-clear": true,
  "process-exits": true,
  "prompt-is-recorded": true,
  resumed: true,
  "server-drops-it": true,
  "turn-becomes-clear": true,
  "turn-end-is-recorded": true,
  "turn-ends": true,
};

test("reasons for a status", () => expect(sentences(reasons, reasonText)).toMatchSnapshot());
test("reasons why an announcement is stale", () => expect(sentences(staleReasons, staleText)).toMatchSnapshot());
test("contradictions", () => expect(sentences(contradictions, conflictText)).toMatchSnapshot());
test("reasons why a process is left running", () => expect(sentences(spareReasons, spareText)).toMatchSnapshot());
test("details of problems", () => expect(sentences(details, detailText)).toMatchSnapshot());
test("facts of proofs", () => expect(sentences(facts, factText)).toMatchSnapshot());
test("events that would change a status", () =>
  expect((Object.keys(triggers) as StatusTrigger[]).map((each) => [each, triggerText(each)])).toMatchSnapshot());
