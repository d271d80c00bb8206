// The words of every failure and notice under a snapshot, and the page that lists the codes.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  Failure,
  type FailureCode,
  type FailureFacts,
  type GuardRule,
  type StartProblemCode,
} from "../../../src/core/failure.ts";
import { failureKinds } from "../../../src/core/failure-kinds.ts";
import type { KeepReason } from "../../../src/core/keep-reason.ts";
import type { Notice, NoticeCode, NoticeFacts } from "../../../src/core/notice.ts";
import type { PermissionEffect } from "../../../src/core/permission.ts";
import { exitCodes } from "../../../src/core/problem.ts";
import { effectText, startProblemWords } from "../../../src/words/agent-start.ts";
import { failureWords } from "../../../src/words/failures.ts";
import { keepReasonText, keepRemedy } from "../../../src/words/keep-reasons.ts";
import { noticeLines } from "../../../src/words/notices.ts";
import { requestAnswerText } from "../../../src/words/occupants.ts";

const ref = "3f2a91c4";
const agent = "Claude Code";
const path = "/home/ann/api.worktrees/fix";
const detail = "permission denied";
const problem = { code: "system-error", errno: "EACCES", text: detail } as const;
const why = { code: "announced-by-other-host", pid: 812, host: "build1" } as const;
const spare = { code: "did-not-exit", state: "D" } as const;
const address = "127.0.0.1:4096";
const failure = new Failure("git-not-installed", {});
const occupants = [
  { kind: "session", agent: "claude", id: "3f2a", status: "working", since: null, pid: 812, tty: null },
  { kind: "lock", by: "ann", until: "2026-11-18T12:00:00.000Z", reason: "release" },
  { kind: "launch", pid: 900 },
] as const;
const guardRules: Readonly<Record<GuardRule, string | null>> = {
  "permission-bypass": null,
  "own-setting-bypass": null,
  "agent-arguments": null,
  hooks: null,
  "session-of-others": ref,
  "launch-of-others": "5c1d",
  command: "prune",
};

const failures: { readonly [C in FailureCode]: readonly FailureFacts[C][] } = {
  "agent-exited": [
    { agent, status: 1, output: "boom" },
    { agent, status: null, output: "" },
  ],
  "agent-not-found": [{ name: "cluade", agents: ["claude-code", "codex"] }],
  "agent-not-installed": [
    { agent, command: "claude", install: "npm install -g claude", variable: "AGENTCTL_CLAUDE_CODE_BIN" },
  ],
  "agent-not-session": [
    { reference: "claude", agent: "claude-code", sessions: [] },
    { reference: "claude", agent: "claude-code", sessions: [{ ref, status: "working" }] },
  ],
  "agent-refused-to-start": [{ agent, program: "claude", problem: { code: "not-logged-in" }, output: "Not logged in" }],
  "already-continuing": [{ ref, pid: 812 }],
  "arguments-too-long": [{}],
  "branch-exists": [{ branch: "fix" }],
  "changed-during-removal": [{ path: "src/a.ts" }],
  "changes-unknown": [{ place: path, detail }],
  "commit-not-found": [{ commit: "v9" }],
  "config-invalid": [
    {
      path: "/home/ann/.config/agentctl/config.json",
      details: [
        { code: "setting-invalid", setting: "defaults.permission", expected: "permission" },
        { code: "setting-of-unknown-agent", setting: "defaults.cluade", agent: "cluade" },
      ],
    },
  ],
  "confirmation-required": [
    { confirmations: [{ code: "weak-link", key: "k", ref, pid: 812, link: "cwd" }] },
    { confirmations: [{ code: "many-sessions", key: "k", count: 4 }] },
  ],
  "demo-failed": [{ problem: "not-started" }, { problem: "status-changed" }],
  "demo-home-failed": [{ folder: "/tmp", detail }],
  "directory-gone": [
    { ref, cwd: path, detail: null },
    { ref, cwd: path, detail },
  ],
  "directory-unknown": [{ ref }],
  "foreign-repository": [{ cwd: path, detail: "fatal: dubious ownership" }],
  "git-busy": [{ folder: "/home/ann/api/.git/worktrees/fix" }],
  "git-failed": [{ command: "diff", detail: "fatal: bad object" }],
  "git-lock-failed": [{ folder: "/home/ann/api/.git/worktrees/fix", detail }],
  "git-not-installed": [{}],
  "group-empty": [{ group: "speed" }],
  "guarded-caller": (Object.keys(guardRules) as GuardRule[]).map((rule) => ({ rule, subject: guardRules[rule] })),
  "inside-repository": [{ root: "/home/ann/api/lib", around: "/home/ann/api" }],
  "inside-target": [{ ref }],
  interrupted: [
    { result: "nothing-started" },
    { result: "stopped" },
    { result: "cleaned-up" },
    { result: "maybe-sent" },
  ],
  "interrupted-after-request": [{ agent }],
  "launch-files-unreadable": [{ source: "/home/ann/.agentctl/launches", detail: problem }],
  "launch-lock-busy": [{ seconds: 30, path: "/run/user/1000/agentctl/launch.lock" }],
  "live-elsewhere": [
    { ref, id: "3f2a91c4-77", pid: 812, tty: "/dev/pts/3", activity: "working" },
    { ref, id: "3f2a91c4-77", pid: null, tty: null, activity: "idle" },
  ],
  "left-in-server": [
    { id: "ses_1", answer: "interrupted" },
    { id: "ses_1", answer: null },
  ],
  "list-incomplete": [{}],
  "lock-file-unusable": [{ path: "/run/user/1000/agentctl/launch.lock", detail }],
  "lock-not-found": [
    { place: "/srv/api", occupants: [] },
    { place: "/srv/api", occupants: [occupants[0]] },
  ],
  "looks-like-option": [
    { value: "-x", option: null },
    { value: "-x", option: "--model" },
  ],
  "name-taken": [
    { name: "api", by: { agent: "claude-code", id: "3f2a" } },
    { name: "api", by: { pid: 812 } },
  ],
  "no-captured-output": [{ ref }],
  "no-commits": [{ root: "/home/ann/api" }],
  "no-disk-space": [{ folder: "/home/ann/.agentctl" }],
  "no-match": [{}],
  "no-session-yet": [{ ref: "pid:812" }],
  "not-a-branch-name": [{ branch: "a b" }],
  "not-a-pid": [{ reference: "pid:x" }],
  "not-a-program": [{ variable: "AGENTCTL_CODEX_BIN", path: "/nowhere" }],
  "not-a-repository": [{ cwd: "/tmp", detail: "fatal: not a git repository" }],
  "not-confirmed": [{}],
  "nothing-recorded": [{ ref }],
  "only-for-holder": [{}],
  "outside-tmux": [{ ref, tty: "/dev/pts/3", keys: "Escape" }],
  "own-stop-failed": [{ command: "claude stop 7", detail: "no such job" }],
  "pane-not-reached": [{ pane: "main:2.1" }],
  "partial-clone": [{ command: "diff", detail: "missing blob", place: path, commit: "abc123" }],
  "path-exists": [{ path }],
  "place-locked": [{ place: "/srv/api", directory: ".", lock: occupants[1] }],
  "place-occupied": [
    { cwd: "/home/ann/api", occupants: [occupants[0]] },
    { cwd: "/srv/api", occupants },
  ],
  "place-unknown": [{}],
  "processes-unreadable": [{}],
  "program-not-started": [{ program: "claude", cwd: path, detail }],
  "read-failed": [{ path: "/home/ann/.agentctl/logs/5c1d.out", detail }],
  "record-unreadable": [{ ref, detail: problem }],
  "reference-ambiguous": [{ reference: "3f", candidates: [{ ref, agent: "codex", id: "3f2a91c4-77" }] }],
  "reference-unresolved": [{ reference: "3f" }],
  "remove-failed": [{ path: "src/a.ts", detail }],
  "repository-unknown": [{ cwd: path, detail: "no answer within 10 s" }],
  "server-gone": [
    { address, detail: null },
    { address, detail },
  ],
  "server-is-private": [{ address: "process 812" }],
  "server-not-running": [
    { agent: "OpenClaw", home: "/home/ann/.openclaw", start: "openclaw gateway" },
    { agent: "OpenClaw", home: "/home/ann/.openclaw", start: null },
  ],
  "server-refused": [{ address, detail: problem }],
  "server-refused-session": [{ agent: "OpenClaw", detail: problem }],
  "server-timed-out": [{ address }],
  "server-unreachable": [
    { agent: "OpenClaw", address, detail: null },
    { agent: "OpenClaw", address, detail: problem },
  ],
  "session-not-found": [".", "@self", "@last", "3f2a"].map((reference) => ({ reference })),
  "setup-failed": [
    { status: 2, signal: null, output: "npm: not found" },
    { status: null, signal: "SIGKILL", output: "" },
  ],
  "signal-not-permitted": [{ pid: 812 }],
  "start-time-unknown": [{}],
  "start-timed-out": [{ agent, seconds: 60, output: "" }],
  "start-unconfirmed": [{ agent: "OpenClaw", address, seconds: 60 }],
  "status-unknown": [{ ref, why }],
  "system-error": [{ detail }],
  "too-many-older-files": [{ count: 90_000 }],
  "untrusted-folder": (
    [
      { code: "not-a-folder" },
      { code: "other-owner", uid: 7 },
      { code: "writable-by-others" },
      { code: "unusable", detail },
    ] as const
  ).map((problem) => ({ folder: "/home/ann/.agentctl", problem, variable: "AGENTCTL_HOME" })),
  "wait-timed-out": [
    {
      until: "done",
      timeout: "5s",
      sessions: [
        { called: ref, status: "working" },
        { called: "b", status: null },
      ],
    },
  ],
  "worktree-ambiguous": [{ name: "fix", paths: [path, "/srv/fix"] }],
  "worktree-folder-untrusted": [
    { folder: "/srv/api.worktrees", problem: "other-owner" },
    { folder: "/srv/api.worktrees", problem: "writable-by-others" },
  ],
  "worktree-folder-unusable": [{ folder: "/srv/api.worktrees", detail }],
  "worktree-kept": [{ path, reasons: [{ code: "commits", ahead: 2, commit: "abc123" }, { code: "locked" }] }],
  "worktree-misplaced": [{ path, place: `${path}.agentctl-removing`, detail: "fatal: no", failure }],
  "worktree-not-created": [{ path, detail: "fatal: no" }],
  "worktree-not-found": [{ name: "fix" }],
  "worktree-taken": [{ path, detail: "fatal: already checked out" }],
  "worktrees-out-of-reach": [
    { folder: "/mnt/w", count: 1 },
    { folder: "/mnt/w", count: 3 },
  ],
  "write-failed": [
    { path: "/home/ann/.agentctl", detail: problem, variable: "AGENTCTL_HOME" },
    { path: "page.html", detail: problem, variable: null },
  ],
  "agent-refused": (
    [
      { code: "bypass-as-root", variable: "IS_SANDBOX=1" },
      { code: "continues-in-interface" },
      { code: "settings-not-json", variable: "OPENCODE_CONFIG_CONTENT", permission: "read" },
      { code: "takes-no-arguments" },
    ] as const
  ).map((refusal) => ({ agent, refusal })),
  "answer-not-written": [{ id: ref, detail: "cannot write the answer: no space left" }],
  "home-unset": [{ agent }],
  "hooks-not-supported": [{ agent: "OpenClaw" }],
  "interface-not-started": [{ program: "claude", cwd: path, detail }],
  "no-agent-installed": [{}],
  "no-such-interface": [
    { agent: "OpenClaw", action: "fork" },
    { agent: "OpenClaw", action: "reopen" },
  ],
  "nothing-to-attach-to": (
    ["not-running", "in-server", "no-terminal", "outside-tmux", "pane-not-found", "tmux-not-installed"] as const
  ).map((problem) => ({ ref, host: "build1", pid: 812, tty: "/dev/pts/3", problem })),
  "option-without-effect": [
    { ref, option: "--model" },
    { ref, option: "--" },
  ],
  "pane-elsewhere": [
    { ref, pane: "main:2.1", command: "tmux attach -t main", isInTmux: true },
    { ref, pane: "main:2.1", command: "tmux attach -t main", isInTmux: false },
  ],
  "permission-void": [{ agent: "Gemini CLI", permission: "read", policy: "/etc/gemini-cli/policies/x.toml" }],
  "session-gone": [{ id: ref }],
  "terminal-required": [{ reference: ref }],
  usage: [{ message: "a sentence", hint: "a hint" }],
};

const processes = [{ pid: 812, name: "node", why: spare }];

const notices: { readonly [C in NoticeCode]: readonly NoticeFacts[C][] } = {
  "also-active": [{ occupants }],
  "clean-up-failed": [{ failure }],
  "empty-session-left": [{ command: "opencode session delete ses_1", detail: "no such session" }],
  "exit-hook-not-run": [{ launch: "5c1d", failure }],
  "hooks-postponed": [{ failure }],
  "left-running": [{ processes }],
  "name-dropped": [{ name: "api", by: { pid: 812 } }],
  "not-stopped": [{ failure }],
  "note-not-saved": [{ failure }],
  "inherited-permission": [
    { permission: "bypass", from: "config", effect: "everything" },
    { permission: "bypass", from: "launch", effect: "everything" },
  ],
  "own-permission": [
    { agent: "codex", own: { mode: null, effect: "cannot-edit", isBypass: false }, hasArguments: false },
    { agent: "qwen", own: { mode: "strict", effect: null, isBypass: false }, hasArguments: true },
    {
      agent: "gemini",
      own: { mode: "default", effect: "settings-only", isBypass: true, mayLeavePlan: true },
      hasArguments: false,
    },
    {
      agent: "codex",
      own: { mode: null, effect: null, isBypass: true, unread: { path: "/home/ann/.codex/config.toml", detail } },
      hasArguments: false,
    },
  ],
  "server-sessions": [
    {
      confirmation: {
        ...{ code: "server-sessions", key: "k", ref, server: "pid 336" },
        others: [{ agent: "codex", ref: "77aa", status: "idle" }],
      },
    },
  ],
  "filter-not-run": [
    { filter: "lfs", count: 1 },
    { filter: "lfs", count: 2 },
  ],
  "names-not-shown": [{ paths: ["caf\ufffd"] }],
  "submodules-not-shown": [{ paths: ["module"] }],
  "start-hook-not-run": [{ failure }],
  "status-unknown": [{ called: ref, why }],
  "still-running": [{ processes }],
  "stop-unconfirmed": [{ why }],
  "unknown-left-out": [{ refs: [ref, "77aa"] }],
  "removal-undone": [{ path }],
  "worktree-kept": [{ path, branch: "fix", reasons: [{ code: "uncommitted", paths: ["a", "b"] }] }],
  "worktree-removed": [{ path }],
  "worktree-setup": [{ path }],
  "worktree-without-files": [
    { path, root: "/home/ann/api", count: 1 },
    { path, root: "/home/ann/api", count: 2 },
  ],
  "worktree-without-submodules": [{ path }],
};

const keepReasons: { readonly [C in KeepReason["code"]]: readonly (KeepReason & { code: C })[] } = {
  main: [{ code: "main" }],
  locked: [{ code: "locked" }],
  session: [
    { code: "session", agent: "codex", id: "77aa", state: "running" },
    { code: "session", agent: "codex", id: null, state: "unknown" },
  ],
  "more-sessions": [
    { code: "more-sessions", count: 1 },
    { code: "more-sessions", count: 2 },
  ],
  inside: (["inconsistent", "symbolic-link", "other-git", "no-git", "worktree", "repository", "mount"] as const).map(
    (obstacle) => ({ code: "inside", obstacle, paths: [path] }),
  ),
  standing: [
    { code: "standing", pid: 812, name: "sh", role: "self", file: null },
    { code: "standing", pid: 812, name: "sh", role: "caller", file: null },
    { code: "standing", pid: 812, name: "sh", role: "other", file: null },
    { code: "standing", pid: 812, name: "vim", role: "other", file: "a.ts" },
  ],
  "more-standing": [
    { code: "more-standing", count: 1 },
    { code: "more-standing", count: 2 },
  ],
  "out-of-reach": (
    ["unreadable", "seen-by-git", "unmounted", "parent-empty", "parent-missing", "parent-unreadable", "moved"] as const
  ).map((absence) => ({ code: "out-of-reach", absence, path: "/mnt/w", detail })),
  unknown: [
    { code: "unknown", problem: "git-failed", command: "status", detail: "warning: could not open directory" },
    { code: "unknown", problem: "git-failed", command: "rev-list", detail: "" },
    { code: "unknown", problem: "unreadable", path: "closed", detail },
    { code: "unknown", problem: "unreadable", path: "", detail },
    { code: "unknown", problem: "processes-unreadable", detail: "no-proc" },
    { code: "unknown", problem: "name-not-utf8", path: "caf\ufffd" },
    { code: "unknown", problem: "other-folder", path: "/home/ann/api" },
    { code: "unknown", problem: "unexpected-answer", command: "ls-files", detail: "H" },
  ],
  uncommitted: [{ code: "uncommitted", paths: ["a", "b", "c", "d"] }],
  hidden: [{ code: "hidden", paths: ["a"] }],
  unseen: [{ code: "unseen", paths: ["a", "b"] }],
  unfinished: [
    { code: "unfinished", work: "rebase", hasStash: true, name: null },
    { code: "unfinished", work: "own-ref", hasStash: false, name: "refs/worktree/mine" },
  ],
  modules: [{ code: "modules" }],
  commits: [
    { code: "commits", ahead: 1, commit: "abc123" },
    { code: "commits", ahead: 2, commit: "abc123" },
    { code: "commits", ahead: null, commit: "abc123" },
  ],
  inconsistent: [{ code: "inconsistent", path }],
  "not-moved": [{ code: "not-moved", detail: "fatal: no" }],
  "unknown-to-git": [{ code: "unknown-to-git" }],
  "moved-on": [
    { code: "moved-on", branch: "fix", commit: "abc123" },
    { code: "moved-on", branch: null, commit: null },
  ],
  "own-commits": [{ code: "own-commits", commit: "abc123" }],
  newcomer: [{ code: "newcomer", pid: 812, name: "sh" }],
  changed: [{ code: "changed", paths: ["a"] }],
  "may-still-begin": [{ code: "may-still-begin" }],
  failed: [{ code: "failed", failure }],
};

const startProblems: Readonly<Record<StartProblemCode, true>> = {
  "bypass-as-root": true,
  "config-unreadable": true,
  "database-locked": true,
  "directory-gone": true,
  "no-such-session": true,
  "not-logged-in": true,
  "prompt-too-long": true,
  "session-exists": true,
  "session-in-use": true,
  "unknown-argument": true,
  "unknown-model": true,
  "untrusted-directory": true,
};

const effects: Readonly<Record<PermissionEffect, true>> = {
  "approved-only": true,
  "cannot-edit": true,
  "changes-nothing": true,
  "denies-changes": true,
  "edits-allowed-commands": true,
  "edits-and-runs": true,
  "edits-approved-commands": true,
  "edits-below": true,
  "edits-below-allowed-commands": true,
  "edits-below-and-runs": true,
  "edits-below-checked-commands": true,
  "edits-below-kept-approvals": true,
  "edits-below-no-commands": true,
  "edits-below-simple-commands": true,
  "edits-in-sandbox": true,
  "edits-no-commands": true,
  everything: true,
  "everything-by-default": true,
  "everything-not-denied": true,
  "everything-not-as-root": true,
  "own-command-rules": true,
  "own-sandbox": true,
  "plans-first": true,
  "plans-only": true,
  "reads-below": true,
  "reads-below-and-web": true,
  "reads-everywhere": true,
  "reads-files-and-web": true,
  "read-only-sandbox": true,
  "settings-decide": true,
  "settings-only": true,
  "settings-unreadable": true,
  "model-decides": true,
  "no-sandbox": true,
  "workspace-sandbox": true,
};

const entries = <T extends object>(table: T) => Object.entries(table) as [keyof T & string, T[keyof T]][];

test.each(entries(failures))("failure %s", (code, examples) => {
  expect(examples.map((facts) => failureWords({ code, facts }, "/home/ann"))).toMatchSnapshot();
});

test.each(entries(notices))("notice %s", (code, examples) => {
  expect(examples.map((facts) => noticeLines({ code, facts } as Notice))).toMatchSnapshot();
});

test.each(entries(keepReasons))("a worktree is kept: %s", (_code, examples) => {
  expect(examples.map((reason) => [keepReasonText(reason), keepRemedy([reason])])).toMatchSnapshot();
});

test.each(entries(startProblems))("an agent refuses to start: %s", (code) => {
  const remedy = { variable: "AGENT_KEY", command: "agent fix", argument: "--force", isByDirectory: true } as const;
  const problems = [{ code }, { code, ...remedy }];
  expect(problems.map((problem) => startProblemWords(problem, "Agent", "agent"))).toMatchSnapshot();
});

test("a failure carries no sentence of its own", () => {
  expect(failure.message).toBe("git-not-installed");
});

test("docs/errors.md lists every code with its exit code", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/errors.md"), "utf8");
  const listed = [...page.matchAll(/^\| `([a-z-]+)` \| (\d+) \|/gm)].map(([, code, exit]) => `${code} ${exit}`);
  const known = entries(failureKinds).map(([code, { exit }]) => `${code} ${exitCodes[exit]}`);
  expect(listed).toEqual([...known, "internal-error 1"].sort());
});

test("permissions", () => {
  expect(entries(effects).map(([effect]) => [effect, effectText(effect)])).toMatchSnapshot();
});

test.each(["interrupted", "no-turn", "begun", "queued"] as const)("a server answers %s", (answer) => {
  expect(requestAnswerText(answer)).toMatchSnapshot();
});
