// Rules 5, 6 and 7 and the rest of the answer: evidence for every status, problems, parents, records that share an id.
import { describe, expect, test } from "bun:test";
import { deriveSessions } from "../../../src/core/derive.ts";
import { anyPid } from "../../../src/core/evidence.ts";
import { type Problem, unread } from "../../../src/core/problem.ts";
import {
  ago,
  badClaim,
  badRecord,
  claim,
  derive,
  evidence,
  host,
  hosted,
  look,
  now,
  open,
  problem,
  process,
  record,
  rules,
  running,
  seen,
  stopped,
  store,
  stranger,
  type World,
} from "./world.ts";

const server = process(20, "pool", { argv: ["pool", "serve"] });
const gap = problem("process-unreadable", "/proc/55/stat", "EIO");

/** One of each kind of row. */
const zoo: World = {
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
      [claim(10, "s1"), claim(99, "s3")],
    ),
    store("mute", [record("s4"), record("s5", { cwd: "/else" })]),
    store("pool", [record("s6"), record("s7", { turn: open })]),
    store("locker", [record("s8", { turn: { state: "none" } })]),
  ],
  hosts: [host(server, [hosted("s6", "working")]), host(null, [hosted("s10", "idle")], "https://gateway")],
};

describe("rule 7: every status carries its evidence", () => {
  const worlds: [string, World][] = [
    ["a full house", zoo],
    ["the process table failed", { ...zoo, processes: "failed" }],
    ["the table has a gap", { ...zoo, table: { gaps: [gap] } }],
    ["inside a namespace", { ...zoo, table: { namespace: { id: "pid:[9]", initial: false } } }],
    ["no stores", { ...zoo, stores: [] }],
    [
      "an agent whose home nobody knows",
      { processes: [process(10, "speaker", { env: null, argv: ["speaker", "--resume", "s1"] })] },
    ],
  ];
  test.each(worlds)("%s", (_name, world) => {
    const { sessions } = derive(world);
    expect(sessions.length).toBeGreaterThan(0);
    for (const session of sessions) {
      expect(session.evidence.length).toBeGreaterThan(0);
      for (const proof of session.evidence) {
        expect(proof.rule).toMatch(/^R([1-9]|1[0-2])$/);
        expect([proof.fact, proof.value, proof.source]).not.toContain("");
      }
      expect(session.wouldChange.length).toBeGreaterThan(0);
      expect(session.wouldChange).not.toContain("");
    }
  });

  test("running: the process, the link, the turn", () => {
    const world = {
      processes: [process(10, "speaker")],
      stores: [store("speaker", [record("s1")], [claim(10, "s1")])],
    };
    const [session] = derive(world).sessions;
    expect(session?.evidence).toEqual([
      {
        fact: "process",
        value: "pid 10 (speaker) is alive, state S, start 1000",
        source: "/proc/10/stat",
        rule: "R1",
        at: now,
      },
      {
        fact: "link",
        value:
          "the process announced this session itself: it wrote pid 10, start 1000, this boot; the kernel says start 1000",
        source: "/live/10.json",
        rule: "R9",
        at: now,
      },
      {
        fact: "turn",
        value: "closed by the record, outcome completed",
        source: "/records/s1.jsonl",
        rule: "R3",
        at: ago(1),
      },
    ]);
    expect(session?.wouldChange).toEqual(["the process ends: stopped", "a new prompt is recorded: working"]);
  });

  test("stopped: the stale announcement, the absence, the turn", () => {
    const [session] = derive({
      processes: [stranger(5)],
      stores: [store("speaker", [record("s1", { turn: open })], [claim(10, "s1")])],
    }).sessions;
    expect(session?.evidence).toEqual([
      { fact: "announcement", value: "stale: process 10 is gone", source: "/live/10.json", rule: "R1", at: ago(9) },
      {
        fact: "no owner",
        value: "1 processes seen, the table read to its end; no process of speaker lives",
        source: "/proc",
        rule: "R2",
        at: now,
      },
      { fact: "turn", value: "open: no end recorded", source: "/records/s1.jsonl", rule: "R3", at: ago(2) },
    ]);
    expect(session?.wouldChange).toEqual(["a live process takes it up again (resume): running"]);
  });

  test("unknown: every reason, not only the first", () => {
    const listing = unread(problem("store-unreadable", "/records", "EACCES"));
    const stores = [store("speaker", [record("s1")], [badClaim(anyPid)], { listing })];
    const [session] = derive({ table: { gaps: [gap] }, stores }).sessions;
    expect(session?.evidence.map(({ fact, source, rule }) => [fact, source, rule])).toEqual([
      ["not proven", "/proc/55/stat", "R2"],
      ["not proven", "/live", "R2"],
      ["not proven", "/records", "R2"],
      ["turn", "/records/s1.jsonl", "R3"],
    ]);
  });
});

test("rule 6: thinking changes nothing that was seen", () => {
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
  const cases: [name: string, world: World, expected: Problem[]][] = [
    ["none", { processes: [process(10, "speaker")], stores: [store("speaker", [s1], [claim(10, "s1")])] }, []],
    ["the process table", { processes: "failed" }, [problem("processes-unreadable", "/proc")]],
    ["a gap", { table: { gaps: [gap] } }, [gap]],
    ["a detail of ours", { processes: [process(10, "speaker", { unread: [unreadPart] })] }, [unreadPart]],
    ["another user's detail", { processes: [process(10, "speaker", { ours: false, unread: [unreadPart] })] }, []],
    ["a listing", { stores: [store("speaker", [], [], { listing })] }, [problem("store-unreadable", "/records")]],
    [
      "a record",
      { stores: [store("speaker", [badRecord("s1")])] },
      [problem("record-unreadable", "/records/s1.jsonl", "its record cannot be read: EIO")],
    ],
    [
      "the announcement of a live process",
      { processes: [process(10, "speaker")], stores: [store("speaker", [], [badClaim(10)])] },
      [problem("claim-unreadable", "/live/10.json")],
    ],
    ["the announcement of a dead process", { stores: [store("speaker", [], [badClaim(10)])] }, []],
    [
      "the folder of announcements",
      { stores: [store("speaker", [], [badClaim(anyPid)])] },
      [problem("claim-unreadable", "/live")],
    ],
    ["a silent host", { hosts: [host(null, "silent")] }, [problem("host-silent", "/run/host")]],
    ["before any store", { problems: [config] }, [config]],
    [
      "several, by source",
      { problems: [config], table: { gaps: [gap] }, hosts: [host(null, "silent")] },
      [config, gap, problem("host-silent", "/run/host")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => {
    const { at, complete, problems } = derive(world);
    expect({ at, complete, problems }).toEqual({ at: now, complete: expected.length === 0, problems: expected });
  });
});

describe("records that share an id", () => {
  const older = record("s1", { source: "/a/s1", lastMessageAt: ago(5), turn: open });
  const newer = record("s1", { source: "/b/s1", lastMessageAt: ago(2) });
  const conflicts = ["another record has the same id: /a/s1"];
  test("one row, the newest message speaks, the other is named", () => {
    for (const rows of [
      [older, newer],
      [newer, older],
    ])
      expect(look({ stores: [store("speaker", rows)] })).toEqual([stopped("s1", { conflicts })]);
  });

  test("one of them unread: the whole id is unread", () => {
    const why = ["unknown", "its record cannot be read: EIO"];
    for (const rows of [
      [newer, badRecord("s1")],
      [badRecord("s1"), newer],
    ])
      expect(look({ stores: [store("speaker", rows)] }).map(({ state, reason }) => [state, reason])).toEqual([why]);
  });

  test("three: their order does not show", () => {
    const oldest = record("s1", { source: "/c/s1", lastMessageAt: ago(8) });
    const all = [
      [oldest, older, newer],
      [newer, older, oldest],
      [older, newer, oldest],
    ];
    const [first, ...others] = all.map((rows) => look({ stores: [store("speaker", rows)] }));
    for (const other of others) expect(other).toEqual(first ?? []);
  });

  test("in two homes they are two sessions", () => {
    const stores = [store("speaker", [older], [claim(10, "s1")]), store("speaker", [newer], [], { home: "/other" })];
    const rows = derive({ processes: [process(10, "speaker")], stores }).sessions.map((s) => [s.home, seen(s)]);
    expect(rows).toEqual([
      ["/other", stopped("s1")],
      ["/home/me/.speaker", running("s1", [10], "announced", { activity: "working" })],
    ]);
  });
});

describe("parents", () => {
  const parents = (world: World) =>
    Object.fromEntries(derive(world).sessions.map((s) => [s.id ?? s.processes[0]?.identity.pid, s.parent]));
  const three = (...claims: [number, string][]) => [
    store(
      "speaker",
      [record("s1"), record("s2"), record("s3")],
      claims.map(([pid, id]) => claim(pid, id)),
    ),
  ];

  test("an agent below another agent, with a shell in between", () => {
    const processes = [process(10, "speaker"), stranger(11, { parent: 10 }), process(12, "speaker", { parent: 11 })];
    expect(parents({ processes, stores: three([10, "s1"], [12, "s2"]) })).toEqual({ s1: null, s2: "s1", s3: null });
  });

  test("the record's word goes first", () => {
    const processes = [process(10, "speaker"), process(12, "speaker", { parent: 10 })];
    const stores = [
      store("speaker", [record("s1"), record("s2", { parent: "s7" })], [claim(10, "s1"), claim(12, "s2")]),
    ];
    expect(parents({ processes, stores })).toEqual({ s1: null, s2: "s7" });
  });

  test("a nameless process has a parent but is none", () => {
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

  test("a ring of parents ends", () => {
    const processes = [process(10, "speaker", { parent: 12 }), process(12, "speaker", { parent: 10 })];
    expect(parents({ processes, stores: three([10, "s1"], [12, "s2"]) })).toEqual({ s1: "s2", s2: "s1", s3: null });
  });

  test("a process with two sessions below another agent: both have the parent", () => {
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

describe("fields that pass through", () => {
  test("a stopped session's record", () => {
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

  test("a live process before its first record", () => {
    const word = claim(10, "s1", { cwd: "/elsewhere", background: { shells: 1, subagents: 0 } });
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

  test("newest first, then by agent, home and id", () => {
    const at = (minutes: number) => ({ lastMessageAt: ago(minutes) });
    const stores = [
      store("speaker", [record("s3", at(3)), record("s2", at(3))]),
      store("mute", [record("s9", at(3)), record("s8", at(1))]),
    ];
    expect(derive({ stores }).sessions.map(({ id }) => id)).toEqual(["s8", "s9", "s2", "s3"]);
  });
});
