// Rules 3 and 11: idle needs an end, waiting needs a word, the rest is unclear; time alone changes nothing.
import { describe, expect, test } from "bun:test";
import type { NativeRecord, PidClaim, Turn, Waiting } from "../../../src/core/evidence.ts";
import {
  ago,
  badRecord,
  claim,
  closed,
  derive,
  host,
  hosted,
  look,
  now,
  open,
  process,
  record,
  running,
  type Seen,
  seen,
  stopped,
  store,
} from "./world.ts";

const asks: Waiting = { kind: "permission", text: "Run rm?", tool: "Bash", options: ["yes", "no"] };
const asked = { ...asks, since: ago(1) };
const pending: Turn = { state: "open", since: ago(2), doubt: "tool call pending" };
const ended = (outcome: "failed" | "interrupted" | null): Turn => ({ state: "closed", at: ago(1), outcome });

function live(change: Partial<NativeRecord>, word: Partial<PidClaim> = {}): Seen[] {
  const stores = [store("speaker", [record("s1", change)], [claim(10, "s1", word)])];
  return look({ processes: [process(10, "speaker")], stores });
}
const runs = (change: Partial<Seen>): Seen[] => [running("s1", [10], "announced", change)];

describe("rule 3: what the record of a running session says", () => {
  const cases: [name: string, record: Partial<NativeRecord>, expected: Partial<Seen>][] = [
    ["an end of turn", { turn: closed }, { activity: "idle" }],
    ["an end of turn, failed", { turn: ended("failed") }, { activity: "idle", reason: "its last turn failed" }],
    [
      "an end of turn, failed for want of a login",
      { turn: { state: "closed", at: null, outcome: "failed", needs: { kind: "login", text: "Please run /login" } } },
      {
        activity: "waiting",
        reason: "login",
        waiting: { kind: "login", text: "Please run /login", tool: null, options: [] },
      },
    ],
    [
      "a failure after which it may try again",
      { turn: { state: "closed", at: ago(1), outcome: "failed", doubt: "may try again" } },
      { activity: "unclear", reason: "may try again" },
    ],
    ["an end of turn and one shell", { background: { shells: 1, subagents: 0 } }, { reason: "1 background shell" }],
    [
      "an end of turn, shells and a subagent",
      { background: { shells: 2, subagents: 1 } },
      { reason: "2 background shells, 1 subagent" },
    ],
    ["an open turn", { turn: open }, { activity: "working" }],
    [
      "a turn that was begun before the process",
      { turn: { state: "open", since: ago(9_999), doubt: null } },
      { activity: "unclear", reason: "its turn was begun by an earlier process" },
    ],
    [
      "a question of such a turn",
      { turn: { state: "open", since: ago(9_999), doubt: null }, waiting: asked },
      { activity: "unclear", reason: "its turn was begun by an earlier process" },
    ],
    ["an open turn with a pending tool", { turn: pending }, { activity: "unclear", reason: "tool call pending" }],
    [
      "an open turn and a question",
      { turn: open, waiting: asked },
      { activity: "waiting", reason: "permission", waiting: asked },
    ],
    [
      "a pending tool and a question",
      { turn: pending, waiting: asked },
      { activity: "waiting", reason: "permission", waiting: asked },
    ],
    ["a question before the end of the turn", { turn: closed, waiting: asked }, { activity: "idle" }],
    ["no prompt", { turn: { state: "none" } }, { activity: "unclear", reason: "no prompt recorded yet" }],
    ["no way to tell", { turn: { state: "unclear", why: "torn" } }, { activity: "unclear", reason: "torn" }],
  ];
  test.each(cases)("%s", (_name, change, expected) => expect(live(change)).toEqual(runs(expected)));
});

describe("rule 3: the process's own word goes before the record", () => {
  const says = (activity: "working" | "waiting" | "idle" | "unclear", reason: string | null = null) => ({
    says: { activity, reason, since: ago(1) },
  });
  const cases: [name: string, record: Partial<NativeRecord>, word: Partial<PidClaim>, expected: Partial<Seen>][] = [
    ["working, over an end", { turn: closed }, says("working"), { activity: "working" }],
    ["idle, over an open turn", { turn: open }, says("idle"), { activity: "idle" }],
    [
      "waiting, with its question",
      { turn: pending },
      { ...says("waiting", "permission"), waiting: asks },
      { activity: "waiting", reason: "permission", waiting: asks },
    ],
    [
      "waiting, with the record's question",
      { turn: open, waiting: asked },
      says("waiting", "dialog"),
      { activity: "waiting", reason: "dialog", waiting: asked },
    ],
    ["working, over the record's question", { turn: open, waiting: asked }, says("working"), { activity: "working" }],
    ["unclear", { turn: closed }, says("unclear", "shell"), { activity: "unclear", reason: "shell" }],
  ];
  test.each(cases)("%s", (_name, change, word, expected) => expect(live(change, word)).toEqual(runs(expected)));

  test("suspended is the reason, whatever it was doing", () => {
    const stores = [store("speaker", [record("s1", { turn: pending })], [claim(10, "s1")])];
    const rows = look({ processes: [process(10, "speaker", { state: "T" })], stores });
    expect(rows).toEqual(runs({ activity: "unclear", reason: "suspended" }));
  });

  test("of two owners the one that needs a person speaks", () => {
    const words = [claim(10, "s1", says("working")), claim(11, "s1", { ...says("waiting"), waiting: asks })];
    const [row] = look({
      processes: [process(10, "speaker"), process(11, "speaker")],
      stores: [store("speaker", [record("s1")], words)],
    });
    expect([row?.activity, row?.waiting]).toEqual(["waiting", asks]);
  });

  test("no child process and no record of a question: unclear, never waiting", () => {
    const rows = look({
      processes: [process(10, "speaker")],
      stores: [store("speaker", [badRecord("s1")], [claim(10, "s1")])],
    });
    expect(rows).toEqual(runs({ activity: "unclear", reason: "its record cannot be read" }));
  });
});

describe("rules 2 and 11: the outcome of a stopped session comes from its record", () => {
  const cases: [name: string, record: Partial<NativeRecord>, expected: Partial<Seen>][] = [
    ["completed", { turn: closed }, { outcome: "completed" }],
    ["failed", { turn: ended("failed") }, { outcome: "failed" }],
    ["interrupted", { turn: ended("interrupted") }, { outcome: "interrupted" }],
    ["an end that does not say how", { turn: ended(null) }, { outcome: null }],
    ["inside a turn", { turn: open }, { outcome: "cut-off", reason: "ended inside a turn" }],
    ["inside a tool call", { turn: pending }, { outcome: "cut-off", reason: "ended inside a turn" }],
    [
      "inside a question",
      { turn: open, waiting: asked },
      { outcome: "cut-off", reason: "ended while waiting for an answer" },
    ],
    ["no prompt", { turn: { state: "none" } }, { outcome: null, reason: "no prompt recorded" }],
    ["unclear", { turn: { state: "unclear", why: "torn" } }, { outcome: null, reason: "torn" }],
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
      store("speaker", [record("s1", { turn: open }), record("s2", { turn: pending })], [claim(10, "s1")]),
      store("mute", [record("s3", { turn: pending }), record("s4"), record("s5", { cwd: "/else", turn: open })]),
      store("pool", [record("s6"), record("s7", { turn: open, waiting: asked })]),
    ],
    hosts: [host(pool, [hosted("s6", "working")])],
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
