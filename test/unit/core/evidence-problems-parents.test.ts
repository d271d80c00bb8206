// Rules 5, 6 and 7: every status has evidence. Also problems, parents, and records that share an id.

import { describe, expect, test } from "bun:test";
import { deriveSessions } from "../../../src/core/derive.ts";
import { anyPid } from "../../../src/core/evidence.ts";
import { type Problem, unread } from "../../../src/core/problem.ts";
import type { Contradiction } from "../../../src/core/reason.ts";
import {
  ago,
  announcement,
  badAnnouncement,
  badRecord,
  closed,
  derive,
  evidence,
  look,
  now,
  open,
  type PartialEvidence,
  problem,
  process,
  record,
  rules,
  running,
  seen,
  served,
  serverAnswer,
  stopped,
  store,
  stranger,
  systemError,
} from "./build-evidence.ts";

const server = process(20, "pool", { argv: ["pool", "serve"] });
const gap = problem("process-unreadable", "/proc/55/stat", "EIO");

/** One of each kind of row. */
const zoo: PartialEvidence = {
  processes: [
    process(10, "speaker"),
    process(11, "speaker", { argv: ["speaker", "--resume", "s2"] }),
    process(12, "mute"),
    process(13, "mute", { cwd: "/else" }),
    process(14, "mute", { cwd: "/else" }),
    process(15, "locker", { argv: ["locker", "serve"], lockedFiles: ["/l/s8.lock"] }),
    process(16, "speaker", { cwd: "/none", state: "T" }),
    server,
  ],
  stores: [
    store(
      "speaker",
      [record("s1"), record("s3", { cwd: "/gone", skippedLines: 2 }), badRecord("s9")],
      [announcement(10, "s1"), announcement(99, "s3")],
    ),
    store("mute", [record("s4"), record("s5", { cwd: "/else" })]),
    store("pool", [record("s6"), record("s7", { turn: open })]),
    store("locker", [record("s8", { turn: { state: "none" } })]),
  ],
  servers: [
    serverAnswer(server, [served("s6", "working")]),
    serverAnswer(null, [served("s10", "idle")], "https://gateway"),
  ],
};

describe("rule 7: every status carries its evidence", () => {
  const worlds: [string, PartialEvidence][] = [
    ["many processes and sessions of every kind", zoo],
    ["the process table failed", { ...zoo, processes: "failed" }],
    ["the table has a gap", { ...zoo, table: { gaps: [gap] } }],
    ["inside a namespace", { ...zoo, table: { namespace: { id: "pid:[9]", initial: false } } }],
    ["no stores", { ...zoo, stores: [] }],
    [
      "an agent with an unknown home",
      { processes: [process(10, "speaker", { env: null, argv: ["speaker", "--resume", "s1"] })] },
    ],
  ];
  test.each(worlds)("%s", (_name, partial) => {
    const { sessions } = derive(partial);
    expect(sessions.length).toBeGreaterThan(0);
    for (const session of sessions) {
      expect(session.evidence.length).toBeGreaterThan(0);
      for (const proof of session.evidence) {
        expect(proof.rule).toMatch(/^R([1-9]|1[0-2])$/);
        expect(proof.source).not.toBe("");
      }
      expect(session.wouldChange.length).toBeGreaterThan(0);
    }
  });

  test("a running session shows the process, the link and the turn", () => {
    const partial = {
      processes: [process(10, "speaker")],
      stores: [store("speaker", [record("s1")], [announcement(10, "s1")])],
    };
    const [session] = derive(partial).sessions;
    expect(session?.evidence).toEqual([
      {
        fact: { code: "process", pid: 10, name: "speaker", state: "S", start: "1000", isSuspended: false },
        source: "/proc/10/stat",
        rule: "R1",
        at: now,
      },
      {
        fact: { code: "link", link: "announced", start: "1000", announced: { pid: 10, start: "1000", boot: "boot-1" } },
        source: "/live/10.json",
        rule: "R9",
        at: now,
      },
      {
        fact: { code: "turn", turn: closed, asks: null },
        source: "/records/s1.jsonl",
        rule: "R3",
        at: ago(1),
      },
    ]);
    expect(session?.wouldChange).toEqual(["process-exits", "prompt-is-recorded"]);
  });

  test("a stopped session shows the stale announcement, the absent process and the turn", () => {
    const [session] = derive({
      processes: [stranger(5)],
      stores: [store("speaker", [record("s1", { turn: open })], [announcement(10, "s1")])],
    }).sessions;
    expect(session?.evidence).toEqual([
      {
        fact: { code: "stale-announcement", why: { code: "pid-gone", pid: 10 } },
        source: "/live/10.json",
        rule: "R1",
        at: ago(9),
      },
      {
        fact: { code: "no-owner", agent: "speaker", processes: 1, pids: [] },
        source: "/proc",
        rule: "R2",
        at: now,
      },
      { fact: { code: "turn", turn: open, asks: null }, source: "/records/s1.jsonl", rule: "R3", at: ago(2) },
    ]);
    expect(session?.wouldChange).toEqual(["resumed"]);
  });

  test("an unknown session shows every reason", () => {
    const listing = unread(problem("store-unreadable", "/records", "EACCES"));
    const stores = [store("speaker", [record("s1")], [badAnnouncement(anyPid)], { listing })];
    const [session] = derive({ table: { gaps: [gap] }, stores }).sessions;
    expect(session?.evidence.map(({ fact, source, rule }) => [fact.code, source, rule])).toEqual([
      ["not-proven", "/proc/55/stat", "R2"],
      ["not-proven", "/live", "R2"],
      ["not-proven", "/records", "R2"],
      ["turn", "/records/s1.jsonl", "R3"],
    ]);
  });
});

test("rule 6: deriving does not change the evidence", () => {
  const before = evidence(zoo);
  const copy = structuredClone(before);
  deriveSessions(before, rules);
  expect(before).toEqual(copy);
});

test("rule 5: the same evidence gives the same answer", () => {
  expect(derive(zoo)).toEqual(derive(structuredClone(zoo)));
});

describe("problems and completeness", () => {
  const listing = unread(problem("store-unreadable", "/records"));
  const unreadPart = problem("process-unreadable", "/proc/10/environ", "EACCES");
  const config = problem("config-unreadable", "/config");
  const s1 = record("s1");
  const cases: [name: string, partial: PartialEvidence, expected: Problem[]][] = [
    ["none", { processes: [process(10, "speaker")], stores: [store("speaker", [s1], [announcement(10, "s1")])] }, []],
    ["the process table", { processes: "failed" }, [problem("processes-unreadable", "/proc")]],
    ["a gap", { table: { gaps: [gap] } }, [gap]],
    ["a detail of our process", { processes: [process(10, "speaker", { unread: [unreadPart] })] }, [unreadPart]],
    [
      "a detail of another user's process",
      { processes: [process(10, "speaker", { ours: false, unread: [unreadPart] })] },
      [],
    ],
    ["a listing", { stores: [store("speaker", [], [], { listing })] }, [problem("store-unreadable", "/records")]],
    [
      "a record",
      { stores: [store("speaker", [badRecord("s1")])] },
      [problem("record-unreadable", "/records/s1.jsonl", "EIO")],
    ],
    [
      "the announcement of a live process",
      { processes: [process(10, "speaker")], stores: [store("speaker", [], [badAnnouncement(10)])] },
      [problem("announcement-unreadable", "/live/10.json")],
    ],
    ["the announcement of a dead process", { stores: [store("speaker", [], [badAnnouncement(10)])] }, []],
    [
      "the folder of announcements",
      { stores: [store("speaker", [], [badAnnouncement(anyPid)])] },
      [problem("announcement-unreadable", "/live")],
    ],
    ["a silent server", { servers: [serverAnswer(null, "silent")] }, [problem("server-silent", "/run/server")]],
    ["a problem before any store was read", { problems: [config] }, [config]],
    [
      "several problems, sorted by source",
      { problems: [config], table: { gaps: [gap] }, servers: [serverAnswer(null, "silent")] },
      [config, gap, problem("server-silent", "/run/server")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => {
    const { at, complete, problems } = derive(partial);
    expect({ at, complete, problems }).toEqual({ at: now, complete: expected.length === 0, problems: expected });
  });
});

describe("records that share an id", () => {
  const older = record("s1", { source: "/a/s1", lastMessageAt: ago(5), turn: open });
  const newer = record("s1", { source: "/b/s1", lastMessageAt: ago(2) });
  const conflicts: Contradiction[] = [{ code: "same-id-elsewhere", source: "/a/s1" }];
  test("give one row: the newest message decides, and the other record is named", () => {
    for (const rows of [
      [older, newer],
      [newer, older],
    ])
      expect(look({ stores: [store("speaker", rows)] })).toEqual([stopped("s1", { conflicts })]);
  });

  test("are all unread if one of them is unread", () => {
    const why = ["unknown" as const, { code: "record-unreadable" as const, detail: systemError("EIO") }];
    for (const rows of [
      [newer, badRecord("s1")],
      [badRecord("s1"), newer],
    ])
      expect(look({ stores: [store("speaker", rows)] }).map(({ state, reason }) => [state, reason])).toEqual([why]);
  });

  test("give the same row in every order", () => {
    const oldest = record("s1", { source: "/c/s1", lastMessageAt: ago(8) });
    const all = [
      [oldest, older, newer],
      [newer, older, oldest],
      [older, newer, oldest],
    ];
    const [first, ...others] = all.map((rows) => look({ stores: [store("speaker", rows)] }));
    for (const other of others) expect(other).toEqual(first ?? []);
  });

  test("are two sessions if they are in two homes", () => {
    const stores = [
      store("speaker", [older], [announcement(10, "s1")]),
      store("speaker", [newer], [], { home: "/other" }),
    ];
    const rows = derive({ processes: [process(10, "speaker")], stores }).sessions.map((s) => [s.home, seen(s)]);
    expect(rows).toEqual([
      ["/other", stopped("s1")],
      ["/home/me/.speaker", running("s1", [10], "announced", { activity: "working" })],
    ]);
  });
});

describe("parents", () => {
  const parents = (partial: PartialEvidence) =>
    Object.fromEntries(derive(partial).sessions.map((s) => [s.id ?? s.processes[0]?.identity.pid, s.parent]));
  const three = (...announcements: [number, string][]) => [
    store(
      "speaker",
      [record("s1"), record("s2"), record("s3")],
      announcements.map(([pid, id]) => announcement(pid, id)),
    ),
  ];

  test("an agent below another agent has it as its parent, with a shell in between", () => {
    const processes = [process(10, "speaker"), stranger(11, { parent: 10 }), process(12, "speaker", { parent: 11 })];
    expect(parents({ processes, stores: three([10, "s1"], [12, "s2"]) })).toEqual({ s1: null, s2: "s1", s3: null });
  });

  test("the parent in the record overrides the process tree", () => {
    const processes = [process(10, "speaker"), process(12, "speaker", { parent: 10 })];
    const stores = [
      store(
        "speaker",
        [record("s1"), record("s2", { parent: "s7" })],
        [announcement(10, "s1"), announcement(12, "s2")],
      ),
    ];
    expect(parents({ processes, stores })).toEqual({ s1: null, s2: "s7" });
  });

  test("a process without a session has a parent but is not a parent", () => {
    const processes = [
      process(10, "speaker"),
      process(11, "mute", { parent: 10 }),
      process(12, "speaker", { parent: 11 }),
    ];
    expect(parents({ processes, stores: three([10, "s1"], [12, "s2"]) })).toEqual({
      s1: null,
      s2: "s1",
      s3: null,
      11: "s1",
    });
  });

  test("a cycle of parents ends", () => {
    const processes = [process(10, "speaker", { parent: 12 }), process(12, "speaker", { parent: 10 })];
    expect(parents({ processes, stores: three([10, "s1"], [12, "s2"]) })).toEqual({ s1: "s2", s2: "s1", s3: null });
  });

  test("both sessions of a process below another agent have the parent", () => {
    const processes = [
      process(10, "speaker"),
      process(12, "locker", { parent: 10, lockedFiles: ["/l/s5.lock", "/l/s6.lock"] }),
    ];
    expect(parents({ processes, stores: three([10, "s1"]) })).toEqual({
      s1: null,
      s2: null,
      s3: null,
      s5: "s1",
      s6: "s1",
    });
  });
});

describe("fields that are copied", () => {
  test("a stopped session has the fields of its record", () => {
    const [session] = derive({
      stores: [store("speaker", [record("s1", { continuedBy: "s2", parent: "s0" })])],
    }).sessions;
    const { continuedBy, parent, cwd, startedAt, updatedAt, endedAt, background } = session ?? {};
    expect({ continuedBy, parent, cwd, startedAt, updatedAt, endedAt, background }).toEqual({
      continuedBy: "s2",
      parent: "s0",
      cwd: "/project",
      startedAt: ago(9),
      updatedAt: ago(1),
      endedAt: ago(1),
      background: null,
    });
  });

  test("a live process without a record has its own fields", () => {
    const word = announcement(10, "s1", { cwd: "/elsewhere", background: { shells: 1, subagents: 0 } });
    const [session] = derive({ processes: [process(10, "speaker")], stores: [store("speaker", [], [word])] }).sessions;
    const { record: none, cwd, startedAt, updatedAt, endedAt, background } = session ?? {};
    expect({ none, cwd, startedAt, updatedAt, endedAt, background }).toEqual({
      none: null,
      cwd: "/elsewhere",
      startedAt: ago(10),
      updatedAt: ago(9),
      endedAt: null,
      background: { shells: 1, subagents: 0 },
    });
  });

  test("sessions are sorted by time, then by agent, home and id", () => {
    const at = (minutes: number) => ({ lastMessageAt: ago(minutes) });
    const stores = [
      store("speaker", [record("s3", at(3)), record("s2", at(3))]),
      store("mute", [record("s9", at(3)), record("s8", at(1))]),
    ];
    expect(derive({ stores }).sessions.map(({ id }) => id)).toEqual(["s8", "s9", "s2", "s3"]);
  });
});
