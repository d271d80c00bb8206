// Rules 3 and 11: a turn that has ended is idle, an open question is waiting, the rest is unclear; time alone changes nothing.

import { describe, expect, test } from "bun:test";
import type { Announcement, NativeRecord, Turn, Waiting } from "../../../src/core/evidence.ts";
import type { RunningReason } from "../../../src/core/reason.ts";
import {
  ago,
  announcement,
  badRecord,
  closed,
  derive,
  look,
  now,
  open,
  process,
  record,
  running,
  type Seen,
  seen,
  served,
  serverAnswer,
  stopped,
  store,
  systemError,
} from "./build-evidence.ts";

const asks: Waiting = { kind: "permission", text: "Run rm?", tool: "Bash", options: ["yes", "no"] };
const asked = { ...asks, since: ago(1) };
const pending: Turn = { state: "open", since: ago(2), doubt: { code: "tool-call-pending" } };
const ended = (outcome: "failed" | "interrupted" | null): Turn => ({ state: "closed", at: ago(1), outcome });

function live(change: Partial<NativeRecord>, word: Partial<Announcement> = {}): Seen[] {
  const stores = [store("speaker", [record("s1", change)], [announcement(10, "s1", word)])];
  return look({ processes: [process(10, "speaker")], stores });
}
const runs = (change: Partial<Seen>): Seen[] => [running("s1", [10], "announced", change)];

describe("rule 3: the record of a running session gives its activity", () => {
  const cases: [name: string, record: Partial<NativeRecord>, expected: Partial<Seen>][] = [
    ["a turn that has ended", { turn: closed }, { activity: "idle" }],
    ["a turn that has failed", { turn: ended("failed") }, { activity: "idle", reason: { code: "last-turn-failed" } }],
    [
      "a turn that has failed because a login is missing",
      { turn: { state: "closed", at: null, outcome: "failed", needs: { kind: "login", text: "Please run /login" } } },
      {
        activity: "waiting",
        reason: { code: "waiting", kind: "login" },
        waiting: { kind: "login", text: "Please run /login", tool: null, options: [] },
      },
    ],
    [
      "a failed request that may be repeated",
      { turn: { state: "closed", at: ago(1), outcome: "failed", doubt: { code: "may-retry" } } },
      { activity: "unclear", reason: { code: "may-retry" } },
    ],
    [
      "a turn that has ended, with one background shell",
      { background: { shells: 1, subagents: 0 } },
      { reason: { code: "background", shells: 1, subagents: 0 } },
    ],
    [
      "a turn that has ended, with background shells and a subagent",
      { background: { shells: 2, subagents: 1 } },
      { reason: { code: "background", shells: 2, subagents: 1 } },
    ],
    ["an open turn", { turn: open }, { activity: "working" }],
    [
      "an open turn from before the start of the process",
      { turn: { state: "open", since: ago(9_999), doubt: null } },
      { activity: "unclear", reason: { code: "reopened" } },
    ],
    [
      "a question from before the start of the process",
      { turn: { state: "open", since: ago(9_999), doubt: null }, waiting: asked },
      { activity: "unclear", reason: { code: "reopened" } },
    ],
    [
      "an open turn with a pending tool",
      { turn: pending },
      { activity: "unclear", reason: { code: "tool-call-pending" } },
    ],
    [
      "an open turn and a question",
      { turn: open, waiting: asked },
      { activity: "waiting", reason: { code: "waiting", kind: "permission" }, waiting: asked },
    ],
    [
      "a pending tool and a question",
      { turn: pending, waiting: asked },
      { activity: "waiting", reason: { code: "waiting", kind: "permission" }, waiting: asked },
    ],
    ["a question before the end of the turn", { turn: closed, waiting: asked }, { activity: "idle" }],
    ["no prompt", { turn: { state: "none" } }, { activity: "unclear", reason: { code: "no-prompt-yet" } }],
    [
      "a turn that is unclear",
      { turn: { state: "unclear", why: { code: "last-line-incomplete" } } },
      { activity: "unclear", reason: { code: "last-line-incomplete" } },
    ],
  ];
  test.each(cases)("%s", (_name, change, expected) => expect(live(change)).toEqual(runs(expected)));
});

describe("rule 3: the report of the process itself overrides the record", () => {
  const says = (activity: "working" | "waiting" | "idle" | "unclear", reason: RunningReason | null = null) => ({
    says: { activity, reason, since: ago(1) },
  });
  const cases: [name: string, record: Partial<NativeRecord>, word: Partial<Announcement>, expected: Partial<Seen>][] = [
    [
      "the process reports working, the record an ended turn",
      { turn: closed },
      says("working"),
      { activity: "working" },
    ],
    ["the process reports idle, the record an open turn", { turn: open }, says("idle"), { activity: "idle" }],
    [
      "the process reports waiting with its question",
      { turn: pending },
      { ...says("waiting", { code: "agent-says", text: "permission" }), waiting: asks },
      { activity: "waiting", reason: { code: "agent-says", text: "permission" }, waiting: asks },
    ],
    [
      "the process reports waiting, the record has the question",
      { turn: open, waiting: asked },
      says("waiting", { code: "agent-says", text: "dialog" }),
      { activity: "waiting", reason: { code: "agent-says", text: "dialog" }, waiting: asked },
    ],
    [
      "the process reports working, the record has a question",
      { turn: open, waiting: asked },
      says("working"),
      { activity: "working" },
    ],
    [
      "unclear",
      { turn: closed },
      says("unclear", { code: "agent-says", text: "shell" }),
      { activity: "unclear", reason: { code: "agent-says", text: "shell" } },
    ],
  ];
  test.each(cases)("%s", (_name, change, word, expected) => expect(live(change, word)).toEqual(runs(expected)));

  test("suspended is the reason, whatever it was doing", () => {
    const stores = [store("speaker", [record("s1", { turn: pending })], [announcement(10, "s1")])];
    const rows = look({ processes: [process(10, "speaker", { state: "T" })], stores });
    expect(rows).toEqual(runs({ activity: "unclear", reason: { code: "suspended" } }));
  });

  test("of two owners the one that needs a person speaks", () => {
    const words = [
      announcement(10, "s1", says("working")),
      announcement(11, "s1", { ...says("waiting"), waiting: asks }),
    ];
    const [row] = look({
      processes: [process(10, "speaker"), process(11, "speaker")],
      stores: [store("speaker", [record("s1")], words)],
    });
    expect([row?.activity, row?.waiting]).toEqual(["waiting", asks]);
  });

  test("no child process and no record of a question: unclear, never waiting", () => {
    const rows = look({
      processes: [process(10, "speaker")],
      stores: [store("speaker", [badRecord("s1")], [announcement(10, "s1")])],
    });
    expect(rows).toEqual(
      runs({ activity: "unclear", reason: { code: "record-unreadable", detail: systemError("EIO") } }),
    );
  });
});

describe("rules 2 and 11: the outcome of a stopped session comes from its record", () => {
  const cases: [name: string, record: Partial<NativeRecord>, expected: Partial<Seen>][] = [
    ["completed", { turn: closed }, { outcome: "completed" }],
    ["failed", { turn: ended("failed") }, { outcome: "failed" }],
    ["interrupted", { turn: ended("interrupted") }, { outcome: "interrupted" }],
    ["a turn that ended without an outcome", { turn: ended(null) }, { outcome: null }],
    ["the record ends inside a turn", { turn: open }, { outcome: "cut-off", reason: { code: "died-in-turn" } }],
    ["the record ends inside a tool call", { turn: pending }, { outcome: "cut-off", reason: { code: "died-in-turn" } }],
    [
      "the record ends with a question",
      { turn: open, waiting: asked },
      { outcome: "cut-off", reason: { code: "died-waiting" } },
    ],
    ["no prompt", { turn: { state: "none" } }, { outcome: null, reason: { code: "never-prompted" } }],
    [
      "unclear",
      { turn: { state: "unclear", why: { code: "last-line-incomplete" } } },
      { outcome: null, reason: { code: "last-line-incomplete" } },
    ],
  ];
  test.each(cases)("%s", (_name, change, expected) =>
    expect(look({ stores: [store("speaker", [record("s1", change)])] })).toEqual([stopped("s1", expected)]),
  );

  test("when it ended: the end of the turn, else the last message", () => {
    const ends = (turn: Turn) => {
      const stores = [store("speaker", [record("s1", { turn, lastMessageAt: ago(3) })])];
      return derive({ stores }).sessions.map(({ endedAt, since }) => ({ endedAt, since }));
    };
    expect(ends(closed)).toEqual([{ endedAt: ago(1), since: ago(1) }]);
    expect(ends(open)).toEqual([{ endedAt: ago(3), since: ago(3) }]);
  });
});

describe("rule 3: time alone never changes a state", () => {
  const years = 20 * 365 * 24 * 60 * 60_000;
  const pool = process(20, "pool", { argv: ["pool", "serve"] });
  const worlds = {
    processes: [process(10, "speaker"), process(11, "mute"), process(12, "mute", { state: "T" }), pool],
    stores: [
      store("speaker", [record("s1", { turn: open }), record("s2", { turn: pending })], [announcement(10, "s1")]),
      store("mute", [record("s3", { turn: pending }), record("s4"), record("s5", { cwd: "/else", turn: open })]),
      store("pool", [record("s6"), record("s7", { turn: open, waiting: asked })]),
    ],
    servers: [serverAnswer(pool, [served("s6", "working")])],
  };
  const atTime = (at: number) =>
    derive({ ...worlds, at }).sessions.map((session) => ({ ...session, ...seen(session), evidence: [] }));
  test.each([
    ["a second later", now + 1000],
    ["twenty years later", now + years],
    ["twenty years earlier", now - years],
    ["at the epoch", 0],
  ])("%s", (_name, at) => expect(atTime(at)).toEqual(atTime(now)));
});
