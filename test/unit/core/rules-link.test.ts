// Rules 4, 8 and 9: how a session gets its process, and how sure that is. No id is ever made up.
import { describe, expect, test } from "bun:test";
import { anyPid } from "../../../src/core/evidence.ts";
import { unread } from "../../../src/core/problem.ts";
import type { ProcessRow } from "../../../src/core/process.ts";
import {
  ago,
  badClaim,
  badRecord,
  claim,
  derive,
  fileOf,
  look,
  open,
  problem,
  process,
  type RowChange,
  record,
  running,
  type Seen,
  stopped,
  store,
  unknown,
  unrecorded,
  type World,
} from "./world.ts";

const tagged = (session: string, sid: string) => ({
  HOME: "/home/me",
  AGENTCTL_TAG: "launch-1",
  AGENTCTL_TAG_SID: sid,
  AGENTCTL_TAG_SESSION: session,
});
const resume = (id: string) => ["speaker", "--resume", id];
const elsewhere = { cwd: "/else" };
const speaker = (change: RowChange, pid = 10) => process(pid, "speaker", { ...elsewhere, ...change });
const three = [record("s1"), record("s2"), record("s3")];
const rest = (...ids: string[]) => ids.map((id) => stopped(id));

describe("rule 9: the strongest link wins", () => {
  const all = { argv: resume("s3"), env: tagged("speaker:s2", "10") };
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "its own word before tag and arguments",
      { processes: [speaker(all)], stores: [store("speaker", three, [claim(10, "s1")])] },
      [running("s1", [10], "announced"), ...rest("s2", "s3")],
    ],
    [
      "a lock before tag and arguments",
      {
        processes: [
          process(10, "locker", { ...elsewhere, lockedFiles: ["/l/s1.lock"], env: tagged("locker:s2", "10") }),
        ],
        stores: [store("locker", three)],
      },
      [running("s1", [10], "announced"), ...rest("s2", "s3")],
    ],
    [
      "the tag before arguments",
      { processes: [speaker(all)], stores: [store("speaker", three)] },
      [stopped("s1"), running("s2", [10], "assigned"), stopped("s3")],
    ],
    [
      "arguments before the directory",
      { processes: [process(10, "mute", { argv: ["mute", "--resume", "s3"] })], stores: [store("mute", three)] },
      [...rest("s1", "s2"), running("s3", [10], "argv")],
    ],
    [
      "a stale word leaves the tag standing",
      { processes: [speaker(all)], stores: [store("speaker", three, [claim(10, "s1", { start: "1" })])] },
      [stopped("s1"), running("s2", [10], "assigned"), stopped("s3")],
    ],
    [
      "a tag that another kernel session inherited",
      { processes: [speaker({ ...all, session: 77 })], stores: [store("speaker", three)] },
      [...rest("s1", "s2"), running("s3", [10], "argv")],
    ],
    [
      "a tag for another agent",
      { processes: [speaker({ env: tagged("mute:s2", "10") })], stores: [store("speaker", three)] },
      [...rest("s1", "s2", "s3"), unrecorded(10)],
    ],
    [
      "two processes of one tag, one kernel session: both have it",
      {
        processes: [
          speaker({ env: tagged("speaker:s1", "10") }),
          speaker({ env: tagged("speaker:s1", "10"), session: 10 }, 11),
        ],
        stores: [store("speaker", [record("s1")])],
      },
      [running("s1", [10, 11], "assigned", { conflicts: ["2 live processes have this session: 10, 11"] })],
    ],
    [
      "of two sessions that it began one after the other it has the newer one",
      {
        processes: [speaker({}), speaker({ argv: resume("s1") }, 11)],
        stores: [
          store("speaker", three, [
            claim(10, "s1", { begunAt: ago(8) }),
            claim(10, "s2", { begunAt: ago(5) }),
            claim(10, "s3", { begunAt: ago(3), isOver: true }),
          ]),
        ],
      },
      [running("s1", [11], "argv"), running("s2", [10], "announced"), stopped("s3")],
    ],
    [
      "and who has taken up the older one is not known",
      {
        processes: [speaker({})],
        stores: [
          store("speaker", three.slice(0, 2), [
            claim(10, "s1", { begunAt: ago(8) }),
            claim(10, "s2", { begunAt: ago(5) }),
          ]),
        ],
      },
      [
        unknown("s1", "process 10 began it, and another session since (s2): who has taken it up again is not said"),
        running("s2", [10], "announced"),
      ],
    ],
    [
      "another user's arguments",
      { processes: [speaker({ argv: resume("s1"), ours: false, env: null })], stores: [store("speaker", three)] },
      rest("s1", "s2", "s3"),
    ],
    [
      "a helper's arguments",
      { processes: [speaker({ argv: ["speaker", "helper", "--resume", "s1"] })], stores: [store("speaker", three)] },
      rest("s1", "s2", "s3"),
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));
});

describe("rule 4: no invented ids", () => {
  const shapes: [name: string, change: RowChange][] = [
    ["an argument that is no id", { argv: resume("../../etc/passwd") }],
    ["a tag that is no id", { env: tagged("speaker:$(reboot)", "10") }],
    ["an empty tag", { env: tagged("speaker:", "10") }],
    ["a tag with the launch's id only", { env: { HOME: "/home/me", AGENTCTL_TAG: "s9", AGENTCTL_TAG_SID: "10" } }],
  ];
  test.each(shapes)("%s", (_name, change) => {
    expect(look({ processes: [speaker(change)], stores: [store("speaker", [])] })).toEqual([unrecorded(10)]);
  });

  test("a stale announcement without a record makes no row", () => {
    expect(look({ stores: [store("speaker", [], [claim(10, "s1")])] })).toEqual([]);
  });
});

test("an announcement that cannot be read, but is named after its session, leaves that one open alone", () => {
  const named = { ...badClaim(anyPid), session: "s1" };
  expect(look({ stores: [store("speaker", three, [named])] })).toEqual([
    unknown("s1", "which process has it cannot be read"),
    ...rest("s2", "s3"),
  ]);
});

describe("rule 9: an interface in which a person may go on to another session", () => {
  const shown = process(10, "mute", { argv: ["mute", "--resume", "s1", "--interface"] });
  const old = { lastMessageAt: ago(60), createdAt: ago(70) };
  const doubt = "process 10 was started with s1, and may have gone on to another session since";
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "has what it was started with",
      { processes: [shown], stores: [store("mute", [record("s1", old)])] },
      [running("s1", [10], "argv")],
    ],
    [
      "also once that has gone on; older ones are none of its",
      { processes: [shown], stores: [store("mute", [record("s1"), record("s2", old)])] },
      [running("s1", [10], "argv"), stopped("s2")],
    ],
    [
      "or one that was begun since: nobody can tell",
      { processes: [shown], stores: [store("mute", [record("s1", old), record("s2")])] },
      [unknown("s1", doubt), unknown("s2", doubt), unrecorded(10, "may have s2")],
    ],
    [
      "not one of another directory, nor one that has its own process",
      {
        processes: [shown, process(11, "mute", { argv: ["mute", "--resume", "s3"] })],
        stores: [store("mute", [record("s1", old), record("s2", { cwd: "/else" }), record("s3")])],
      },
      [running("s1", [10], "argv"), stopped("s2"), running("s3", [11], "argv")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));
});

describe("rule 9: wrappers", () => {
  const wrapper = speaker({ argv: resume("s1") });
  const stores = [store("speaker", [record("s1")])];
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "the agent below is the owner",
      { processes: [wrapper, speaker({ argv: resume("s1"), parent: 10 }, 11)], stores },
      [running("s1", [11], "argv")],
    ],
    [
      "also two levels below",
      {
        processes: [
          wrapper,
          speaker({ argv: ["speaker", "helper"], parent: 10 }, 11),
          speaker({ argv: resume("s1"), parent: 11 }, 12),
        ],
        stores,
      },
      [running("s1", [12], "argv")],
    ],
    [
      "also when the agent below announces",
      {
        processes: [wrapper, speaker({ parent: 10 }, 11)],
        stores: [store("speaker", [record("s1")], [claim(11, "s1")])],
      },
      [running("s1", [11], "announced")],
    ],
    ["alone it is the owner: the agent below is gone", { processes: [wrapper], stores }, [running("s1", [10], "argv")]],
    [
      "who announces is no wrapper",
      {
        processes: [speaker({}), speaker({ parent: 10 }, 11)],
        stores: [store("speaker", [record("s1")], [claim(10, "s1"), claim(11, "s1")])],
      },
      [running("s1", [10, 11], "announced", { conflicts: ["2 live processes have this session: 10, 11"] })],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  const mute = (pid: number, change: RowChange = {}) => process(pid, "mute", change);
  const silent = { stores: [store("mute", [record("s1")])] };
  const silentCases: [name: string, world: World, expected: Seen[]][] = [
    [
      "of an agent that says nothing: the one below may be linked by its directory",
      { processes: [mute(10), mute(11, { parent: 10, session: 10 })], ...silent },
      [running("s1", [11], "cwd")],
    ],
    [
      "in another kernel session it is an agent that another one's tool started",
      { processes: [mute(10), mute(11, { parent: 10 })], ...silent },
      [unknown("s1", "process 10 of this agent may have it: it lives, and has not said which session it has")],
    ],
    ["alone it may be the agent", { processes: [mute(10)], ...silent }, [running("s1", [10], "cwd")]],
  ];
  test.each(silentCases)("%s", (_name, world, expected) =>
    expect(look(world).filter(({ id }) => id !== null)).toEqual(expected),
  );

  test("of two silent ones that seem to be each other's parents both are shown", () => {
    const ring = [mute(10, { parent: 11, session: 5 }), mute(11, { parent: 10, session: 5 })];
    expect(look({ processes: ring }).map(({ processes }) => processes)).toEqual([[10], [11]]);
  });

  // A table is not read in one instant: a recycled pid can make two rows each other's parent.
  test("two owners that seem to be each other's parents do not cancel out", () => {
    const ring = [speaker({ argv: resume("s1"), parent: 11 }), speaker({ argv: resume("s1"), parent: 10 }, 11)];
    expect(look({ processes: ring, stores }).map((row) => row.state)).toEqual(["running"]);
  });
});

describe("rule 9: two live writers", () => {
  test("running, both processes, a conflict", () => {
    const rows = look({
      processes: [speaker({}), speaker({}, 11)],
      stores: [store("speaker", [record("s1", { turn: open })], [claim(11, "s1"), claim(10, "s1")])],
    });
    const conflicts = ["2 live processes have this session: 10, 11"];
    expect(rows).toEqual([running("s1", [10, 11], "announced", { activity: "working", conflicts })]);
  });

  test("the stronger link comes first", () => {
    const rows = look({
      processes: [speaker({ argv: resume("s1") }), speaker({}, 11)],
      stores: [store("speaker", [record("s1")], [claim(11, "s1")])],
    });
    const conflicts = ["2 live processes have this session: 11, 10"];
    expect(rows).toEqual([running("s1", [11, 10], "announced", { conflicts })]);
  });

  test("one process that says it twice is one process", () => {
    const twice = process(10, "locker", { lockedFiles: ["/l/s1.lock", "/m/s1.lock"] });
    expect(look({ processes: [twice], stores: [store("locker", [record("s1")])] })).toEqual([
      running("s1", [10], "announced"),
    ]);
    const both = process(10, "locker", { lockedFiles: ["/l/s1.lock"] });
    expect(look({ processes: [both], stores: [store("locker", [record("s1")], [claim(10, "s1")])] })).toEqual([
      running("s1", [10], "announced"),
    ]);
  });
});

describe("rule 9: by directory", () => {
  const mute = (pid: number, change: RowChange = {}) => process(pid, "mute", change);
  const why = (pid: number) =>
    `process ${pid} of this agent may have it: it lives, and has not said which session it has`;
  const r = record;
  const one = [store("mute", [r("s1")])];
  const two = [store("mute", [r("s1"), r("s2")])];
  const weak = running("s1", [10], "cwd");
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["one process, one record", { processes: [mute(10)], stores: one }, [weak]],
    ["no record", { processes: [mute(10)], stores: [store("mute", [])] }, [unrecorded(10)]],
    ["no store", { processes: [mute(10)] }, [unrecorded(10)]],
    [
      "two processes, one record",
      { processes: [mute(10), mute(11)], stores: one },
      [unknown("s1", why(10)), unrecorded(10, "may have s1"), unrecorded(11, "may have s1")],
    ],
    [
      "one process, two records",
      { processes: [mute(10)], stores: two },
      [unknown("s1", why(10)), unknown("s2", why(10)), unrecorded(10, "may have s1 or s2")],
    ],
    [
      "one process, two records, one of them has an owner",
      { processes: [mute(10), mute(11, { argv: ["mute", "--resume", "s2"] })], stores: two },
      [weak, running("s2", [11], "argv")],
    ],
    ["another directory", { processes: [mute(10, elsewhere)], stores: one }, [stopped("s1"), unrecorded(10)]],
    [
      "another home",
      { processes: [mute(10, { env: { HOME: "/home/you" } })], stores: one },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "the same home under another name",
      {
        processes: [mute(10, { env: { HOME: "/link" } })],
        stores: [store("mute", [r("s1")], [], { names: ["/link/.mute"] })],
      },
      [weak],
    ],
    [
      "a record older than the process",
      { processes: [mute(10)], stores: [store("mute", [r("s1", { lastMessageAt: ago(11) })])] },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "a record older than the process, which hides what it was started with",
      {
        processes: [mute(10, { argv: ["mute", ""] })],
        stores: [
          store("mute", [r("s1", { lastMessageAt: ago(11) }), r("s2", { cwd: "/other", lastMessageAt: ago(11) })]),
        ],
      },
      [unknown("s1", why(10)), stopped("s2"), unrecorded(10)],
    ],
    [
      "the same, and one that has grown since",
      {
        processes: [mute(10, { argv: ["mute", ""] })],
        stores: [store("mute", [r("s1"), r("s2", { lastMessageAt: ago(11) })])],
      },
      [weak, stopped("s2")],
    ],
    [
      "an older record whose newest lines are broken: the file says how young they are",
      { processes: [mute(10)], stores: [store("mute", [r("s1", { lastMessageAt: ago(11), skippedLines: 1 })])] },
      [unknown("s1", why(10)), unrecorded(10, "may have s1")],
    ],
    [
      "a file touched later is not a message",
      { processes: [mute(10)], stores: [store("mute", [r("s1", { lastMessageAt: ago(11), writtenAt: ago(1) })])] },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "no message yet: the record's creation counts",
      {
        processes: [mute(10)],
        stores: [
          store("mute", [r("s1", { lastMessageAt: null, createdAt: ago(11) }), r("s2", { lastMessageAt: null })]),
        ],
      },
      [stopped("s1"), running("s2", [10], "cwd")],
    ],
    ["another agent's process", { processes: [process(10, "pool")], stores: one }, [stopped("s1"), unrecorded(10)]],
    ["another user's process", { processes: [mute(10, { ours: false, env: null })], stores: one }, [stopped("s1")]],
    ["a helper", { processes: [mute(10, { argv: ["mute", "helper"] })], stores: one }, [stopped("s1")]],
    [
      "an announcing process is never linked, but nothing in its directory is proven ownerless",
      {
        processes: [process(10, "speaker")],
        stores: [store("speaker", [r("s1"), r("s2", { lastMessageAt: ago(20) })])],
      },
      [unknown("s1", why(10)), stopped("s2"), unrecorded(10, "may have s1")],
    ],
    [
      "an announcing process that has spoken",
      { processes: [process(10, "speaker")], stores: [store("speaker", [r("s1"), r("s2")], [claim(10, "s2")])] },
      [stopped("s1"), running("s2", [10], "announced")],
    ],
    [
      "suspended",
      { processes: [mute(10, { state: "T" })], stores: [store("mute", [])] },
      [unrecorded(10, "suspended")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  const state = (processes: ProcessRow[], stores: World["stores"]) =>
    look({ processes, stores: stores ?? [] }).map((row) => `${row.id} ${row.state}`);

  test("a directory that could not be read links nothing", () => {
    const blind = mute(10, { cwd: null, unread: [problem("process-unreadable", "/proc/10/cwd", "EACCES")] });
    expect(state([blind], one)).toEqual(["s1 unknown", "null running"]);
  });

  test("a record without a directory is not linked by directory", () => {
    expect(state([mute(10)], [store("mute", [r("s1", { cwd: null })])])).toEqual(["s1 unknown", "null running"]);
  });

  test("a record that cannot be read may be the one: the other is not linked", () => {
    expect(state([mute(10)], [store("mute", [r("s1"), badRecord("s2")])])).toEqual([
      "s1 unknown",
      "s2 unknown",
      "null running",
    ]);
  });

  test("in a store that was not listed whole there may be more records: none is linked", () => {
    const listing = unread(problem("store-unreadable", "/records"));
    expect(state([mute(10)], [store("mute", [r("s1")], [], { listing })])).toEqual(["s1 unknown", "null running"]);
  });

  test("a record that nobody can name may be the one, unless it was last written before the process began", () => {
    const states = (writtenAt: number | null) => {
      const nameless = [{ begins: "zz", problem: problem("store-unreadable", "/records/zz.jsonl"), writtenAt }];
      return state([mute(10)], [store("mute", [r("s1")], [], { nameless })]);
    };
    const { startedAt } = mute(10);
    expect(states(startedAt - 60_000)).toEqual(["s1 running"]);
    expect(states(startedAt + 1)).toEqual(["s1 unknown", "null running"]);
    expect(states(null)).toEqual(["s1 unknown", "null running"]);
  });
});

describe("rules 4 and 9: what a nameless process may have, and where", () => {
  test("one id in two records is named once", () => {
    const twice = [record("s1", { source: "/a/s1" }), record("s1", { source: "/b/s1" })];
    const rows = look({ processes: [process(10, "mute")], stores: [store("mute", twice)] });
    expect(rows.map((row) => row.reason)).not.toContain("may have s1 or s1");
  });

  test("its home is not known and two homes have the id: the order of the stores decides nothing", () => {
    const processes = [speaker({ argv: resume("s1"), env: null, sameFiles: false })];
    const stores = [store("speaker", [record("s1")]), store("speaker", [record("s1")], [], { home: "/other" })];
    const rows = derive({ processes, stores }).sessions;
    expect(derive({ processes, stores: stores.toReversed() }).sessions).toEqual(rows);
  });

  test("the records that it may have stand in one order", () => {
    const rows = [record("s1"), record("s2")];
    const seen = look({ processes: [process(10, "mute")], stores: [store("mute", rows)] });
    expect(look({ processes: [process(10, "mute")], stores: [store("mute", rows.toReversed())] })).toEqual(seen);
  });
});

describe("rule 8: the link is part of the status", () => {
  test("an identity to signal, and how it was linked", () => {
    const [session] = derive({
      processes: [speaker({})],
      stores: [store("speaker", [record("s1")], [claim(10, "s1")])],
    }).sessions;
    expect(session?.status).toEqual({
      state: "running",
      activity: "idle",
      owner: { kind: "process", link: "announced", processes: [{ pid: 10, start: "1000", boot: "boot-1" }] },
    });
  });

  test("an unnamed process has no link", () => {
    const [session] = derive({ processes: [speaker({})] }).sessions;
    expect(session?.status).toEqual({
      state: "running",
      activity: "unclear",
      owner: { kind: "process", link: null, processes: [{ pid: 10, start: "1000", boot: "boot-1" }] },
    });
  });
});

describe("rule 9: a live process that names no session keeps what may be its own from being called stopped", () => {
  const stateOf = (world: World): string[] => look(world).map((row) => `${row.id} ${row.state}`);
  const silent = (change: Parameters<typeof process>[2] = {}) => process(10, "mute", change);
  const moved = [store("mute", [record("s1", { cwd: "/before" })])];

  test("another path is another directory where nobody looked", () => {
    expect(stateOf({ processes: [silent()], stores: moved })).toEqual(["s1 stopped", "null running"]);
  });

  test("a directory that was moved away under it", () => {
    const directories = { "/before": null, "/proc/10/cwd": "1:5" };
    expect(stateOf({ processes: [silent()], stores: moved, directories })).toEqual(["s1 unknown", "null running"]);
  });

  test("one directory under two names, and two directories", () => {
    const same = { "/before": "1:5", "/proc/10/cwd": "1:5" };
    expect(stateOf({ processes: [silent()], stores: moved, directories: same })).toEqual([
      "s1 unknown",
      "null running",
    ]);
    const different = { "/before": "1:6", "/proc/10/cwd": "1:5" };
    expect(stateOf({ processes: [silent()], stores: moved, directories: different })).toEqual([
      "s1 stopped",
      "null running",
    ]);
  });

  test("in another mount namespace its paths mean nothing here", () => {
    const world = { processes: [silent({ sameFiles: false, env: null })], stores: [store("mute", [record("s1")])] };
    expect(stateOf(world)).toEqual(["s1 unknown", "null running"]);
  });

  test("of another user: only where the record is that user's file", () => {
    const stores = [store("mute", [fileOf(42, record("s1"))])];
    const foreign = silent({ ours: false, uid: 42, env: null });
    expect(stateOf({ processes: [foreign], stores })).toEqual(["s1 unknown"]);
    for (const uid of [43, null])
      expect(stateOf({ processes: [silent({ ours: false, uid, env: null })], stores })).toEqual(["s1 stopped"]);
  });
});
