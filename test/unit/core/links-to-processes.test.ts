// Rules 4, 8 and 9: how a session is linked to its process, and how strong the link is. No id is ever invented.

import { describe, expect, test } from "bun:test";
import { anyPid } from "../../../src/core/evidence.ts";
import { unread } from "../../../src/core/problem.ts";
import type { ProcessRow } from "../../../src/core/process.ts";
import type { Contradiction, OwnerDoubt } from "../../../src/core/reason.ts";
import {
  ago,
  announcement,
  badAnnouncement,
  badRecord,
  derive,
  fileOf,
  look,
  open,
  type PartialEvidence,
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
} from "./build-evidence.ts";

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
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "the announcement is stronger than tag and arguments",
      { processes: [speaker(all)], stores: [store("speaker", three, [announcement(10, "s1")])] },
      [running("s1", [10], "announced"), ...rest("s2", "s3")],
    ],
    [
      "a lock is stronger than tag and arguments",
      {
        processes: [
          process(10, "locker", { ...elsewhere, lockedFiles: ["/l/s1.lock"], env: tagged("locker:s2", "10") }),
        ],
        stores: [store("locker", three)],
      },
      [running("s1", [10], "announced"), ...rest("s2", "s3")],
    ],
    [
      "the tag is stronger than the arguments",
      { processes: [speaker(all)], stores: [store("speaker", three)] },
      [stopped("s1"), running("s2", [10], "assigned"), stopped("s3")],
    ],
    [
      "the arguments are stronger than the directory",
      { processes: [process(10, "mute", { argv: ["mute", "--resume", "s3"] })], stores: [store("mute", three)] },
      [...rest("s1", "s2"), running("s3", [10], "argv")],
    ],
    [
      "a stale announcement does not weaken the tag",
      { processes: [speaker(all)], stores: [store("speaker", three, [announcement(10, "s1", { start: "1" })])] },
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
      "two processes with one tag in one kernel session both have the session",
      {
        processes: [
          speaker({ env: tagged("speaker:s1", "10") }),
          speaker({ env: tagged("speaker:s1", "10"), session: 10 }, 11),
        ],
        stores: [store("speaker", [record("s1")])],
      },
      [running("s1", [10, 11], "assigned", { conflicts: [{ code: "several-processes", pids: [10, 11] }] })],
    ],
    [
      "a process that announced two sessions has the newer one",
      {
        processes: [speaker({}), speaker({ argv: resume("s1") }, 11)],
        stores: [
          store("speaker", three, [
            announcement(10, "s1", { begunAt: ago(8) }),
            announcement(10, "s2", { begunAt: ago(5) }),
            announcement(10, "s3", { begunAt: ago(3), isOver: true }),
          ]),
        ],
      },
      [running("s1", [11], "argv"), running("s2", [10], "announced"), stopped("s3")],
    ],
    [
      "the owner of the older session is not known",
      {
        processes: [speaker({})],
        stores: [
          store("speaker", three.slice(0, 2), [
            announcement(10, "s1", { begunAt: ago(8) }),
            announcement(10, "s2", { begunAt: ago(5) }),
          ]),
        ],
      },
      [unknown("s1", { code: "began-another-session", pid: 10, next: "s2" }), running("s2", [10], "announced")],
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
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));
});

describe("rule 4: agentctl invents no ids", () => {
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
    expect(look({ stores: [store("speaker", [], [announcement(10, "s1")])] })).toEqual([]);
  });
});

test("an unreadable announcement whose file name has the session's id leaves only that session unknown", () => {
  const named = { ...badAnnouncement(anyPid), session: "s1" };
  expect(look({ stores: [store("speaker", three, [named])] })).toEqual([
    unknown("s1", { code: "holder-unreadable" }),
    ...rest("s2", "s3"),
  ]);
});

describe("rule 9: a person may change the session of an interface", () => {
  const shown = process(10, "mute", { argv: ["mute", "--resume", "s1", "--interface"] });
  const old = { lastMessageAt: ago(60), createdAt: ago(70) };
  const doubt: OwnerDoubt = { code: "may-have-moved-on", pid: 10, id: "s1" };
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "has the session in its arguments",
      { processes: [shown], stores: [store("mute", [record("s1", old)])] },
      [running("s1", [10], "argv")],
    ],
    [
      "still has it after newer messages, and has no older session",
      { processes: [shown], stores: [store("mute", [record("s1"), record("s2", old)])] },
      [running("s1", [10], "argv"), stopped("s2")],
    ],
    [
      "may have a session that was started since",
      { processes: [shown], stores: [store("mute", [record("s1", old), record("s2")])] },
      [unknown("s1", doubt), unknown("s2", doubt), unrecorded(10, { code: "may-have", ids: ["s2"] })],
    ],
    [
      "cannot have a session of another directory, or one with its own process",
      {
        processes: [shown, process(11, "mute", { argv: ["mute", "--resume", "s3"] })],
        stores: [store("mute", [record("s1", old), record("s2", { cwd: "/else" }), record("s3")])],
      },
      [running("s1", [10], "argv"), stopped("s2"), running("s3", [11], "argv")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));
});

describe("rule 9: a wrapper does not own the session of its child", () => {
  const wrapper = speaker({ argv: resume("s1") });
  const stores = [store("speaker", [record("s1")])];
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "the agent below the wrapper is the owner",
      { processes: [wrapper, speaker({ argv: resume("s1"), parent: 10 }, 11)], stores },
      [running("s1", [11], "argv")],
    ],
    [
      "the agent two levels below the wrapper is the owner",
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
      "an announcing agent below the wrapper is the owner",
      {
        processes: [wrapper, speaker({ parent: 10 }, 11)],
        stores: [store("speaker", [record("s1")], [announcement(11, "s1")])],
      },
      [running("s1", [11], "announced")],
    ],
    [
      "the wrapper is the owner if the agent below is gone",
      { processes: [wrapper], stores },
      [running("s1", [10], "argv")],
    ],
    [
      "a process that announces is not a wrapper",
      {
        processes: [speaker({}), speaker({ parent: 10 }, 11)],
        stores: [store("speaker", [record("s1")], [announcement(10, "s1"), announcement(11, "s1")])],
      },
      [running("s1", [10, 11], "announced", { conflicts: [{ code: "several-processes", pids: [10, 11] }] })],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  const mute = (pid: number, change: RowChange = {}) => process(pid, "mute", change);
  const silent = { stores: [store("mute", [record("s1")])] };
  const silentCases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "the agent below a wrapper without a session may be linked by directory",
      { processes: [mute(10), mute(11, { parent: 10, session: 10 })], ...silent },
      [running("s1", [11], "cwd")],
    ],
    [
      "an agent in another kernel session was started by a tool and is no wrapper's child",
      { processes: [mute(10), mute(11, { parent: 10 })], ...silent },
      [unknown("s1", { code: "open-in-silent-process", pid: 10 })],
    ],
    ["a wrapper without a child may be the agent", { processes: [mute(10)], ...silent }, [running("s1", [10], "cwd")]],
  ];
  test.each(silentCases)("%s", (_name, partial, expected) =>
    expect(look(partial).filter(({ id }) => id !== null)).toEqual(expected),
  );

  test("two processes without a session that look like each other's parents are both shown", () => {
    const ring = [mute(10, { parent: 11, session: 5 }), mute(11, { parent: 10, session: 5 })];
    expect(look({ processes: ring }).map(({ processes }) => processes)).toEqual([[10], [11]]);
  });

  // A table is not read in one instant: a recycled pid can make two rows each other's parent.
  test("two owners that look like each other's parents both count", () => {
    const ring = [speaker({ argv: resume("s1"), parent: 11 }), speaker({ argv: resume("s1"), parent: 10 }, 11)];
    expect(look({ processes: ring, stores }).map((row) => row.state)).toEqual(["running"]);
  });
});

describe("rule 9: two live processes have one session", () => {
  test("the session runs, has both processes and is a conflict", () => {
    const rows = look({
      processes: [speaker({}), speaker({}, 11)],
      stores: [store("speaker", [record("s1", { turn: open })], [announcement(11, "s1"), announcement(10, "s1")])],
    });
    const conflicts: Contradiction[] = [{ code: "several-processes", pids: [10, 11] }];
    expect(rows).toEqual([running("s1", [10, 11], "announced", { activity: "working", conflicts })]);
  });

  test("the process with the stronger link comes first", () => {
    const rows = look({
      processes: [speaker({ argv: resume("s1") }), speaker({}, 11)],
      stores: [store("speaker", [record("s1")], [announcement(11, "s1")])],
    });
    const conflicts: Contradiction[] = [{ code: "several-processes", pids: [11, 10] }];
    expect(rows).toEqual([running("s1", [11, 10], "announced", { conflicts })]);
  });

  test("two announcements of one process are one process", () => {
    const twice = process(10, "locker", { lockedFiles: ["/l/s1.lock", "/m/s1.lock"] });
    expect(look({ processes: [twice], stores: [store("locker", [record("s1")])] })).toEqual([
      running("s1", [10], "announced"),
    ]);
    const both = process(10, "locker", { lockedFiles: ["/l/s1.lock"] });
    expect(look({ processes: [both], stores: [store("locker", [record("s1")], [announcement(10, "s1")])] })).toEqual([
      running("s1", [10], "announced"),
    ]);
  });
});

describe("rule 9: links by directory", () => {
  const mute = (pid: number, change: RowChange = {}) => process(pid, "mute", change);
  const why = (pid: number): OwnerDoubt => ({ code: "open-in-silent-process", pid });
  const r = record;
  const one = [store("mute", [r("s1")])];
  const two = [store("mute", [r("s1"), r("s2")])];
  const weak = running("s1", [10], "cwd");
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    ["one process, one record", { processes: [mute(10)], stores: one }, [weak]],
    ["no record", { processes: [mute(10)], stores: [store("mute", [])] }, [unrecorded(10)]],
    ["no store", { processes: [mute(10)] }, [unrecorded(10)]],
    [
      "two processes, one record",
      { processes: [mute(10), mute(11)], stores: one },
      [
        unknown("s1", why(10)),
        unrecorded(10, { code: "may-have", ids: ["s1"] }),
        unrecorded(11, { code: "may-have", ids: ["s1"] }),
      ],
    ],
    [
      "one process, two records",
      { processes: [mute(10)], stores: two },
      [unknown("s1", why(10)), unknown("s2", why(10)), unrecorded(10, { code: "may-have", ids: ["s1", "s2"] })],
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
      "a record older than a process that hides its arguments",
      {
        processes: [mute(10, { argv: ["mute", ""] })],
        stores: [
          store("mute", [r("s1", { lastMessageAt: ago(11) }), r("s2", { cwd: "/other", lastMessageAt: ago(11) })]),
        ],
      },
      [unknown("s1", why(10)), stopped("s2"), unrecorded(10)],
    ],
    [
      "a record older than a process that hides its arguments, and a newer one",
      {
        processes: [mute(10, { argv: ["mute", ""] })],
        stores: [store("mute", [r("s1"), r("s2", { lastMessageAt: ago(11) })])],
      },
      [weak, stopped("s2")],
    ],
    [
      "an older record with broken last lines, dated by its file time",
      { processes: [mute(10)], stores: [store("mute", [r("s1", { lastMessageAt: ago(11), skippedLines: 1 })])] },
      [unknown("s1", why(10)), unrecorded(10, { code: "may-have", ids: ["s1"] })],
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
      "a process that announces later is not linked, but no session of its directory is stopped",
      {
        processes: [process(10, "speaker")],
        stores: [store("speaker", [r("s1"), r("s2", { lastMessageAt: ago(20) })])],
      },
      [unknown("s1", why(10)), stopped("s2"), unrecorded(10, { code: "may-have", ids: ["s1"] })],
    ],
    [
      "a process that has announced its session",
      { processes: [process(10, "speaker")], stores: [store("speaker", [r("s1"), r("s2")], [announcement(10, "s2")])] },
      [stopped("s1"), running("s2", [10], "announced")],
    ],
    [
      "suspended",
      { processes: [mute(10, { state: "T" })], stores: [store("mute", [])] },
      [unrecorded(10, { code: "suspended" })],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  const state = (processes: ProcessRow[], stores: PartialEvidence["stores"]) =>
    look({ processes, stores: stores ?? [] }).map((row) => `${row.id} ${row.state}`);

  test("an unreadable directory links nothing", () => {
    const blind = mute(10, { cwd: null, unread: [problem("process-unreadable", "/proc/10/cwd", "EACCES")] });
    expect(state([blind], one)).toEqual(["s1 unknown", "null running"]);
  });

  test("a record without a directory is not linked by directory", () => {
    expect(state([mute(10)], [store("mute", [r("s1", { cwd: null })])])).toEqual(["s1 unknown", "null running"]);
  });

  test("an unreadable record prevents a link to the other record", () => {
    expect(state([mute(10)], [store("mute", [r("s1"), badRecord("s2")])])).toEqual([
      "s1 unknown",
      "s2 unknown",
      "null running",
    ]);
  });

  test("a store that was not listed completely links no record", () => {
    const listing = unread(problem("store-unreadable", "/records"));
    expect(state([mute(10)], [store("mute", [r("s1")], [], { listing })])).toEqual(["s1 unknown", "null running"]);
  });

  test("a record without a known id prevents the link, unless it was last written before the process started", () => {
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

describe("rules 4 and 9: a process without a session lists the sessions that it may have", () => {
  test("an id in two records is listed once", () => {
    const twice = [record("s1", { source: "/a/s1" }), record("s1", { source: "/b/s1" })];
    const rows = look({ processes: [process(10, "mute")], stores: [store("mute", twice)] });
    expect(rows.map((row) => row.reason)).not.toContainEqual({ code: "may-have", ids: ["s1", "s1"] });
  });

  test("the order of the stores does not matter if its home is unknown and two homes have the id", () => {
    const processes = [speaker({ argv: resume("s1"), env: null, sameFiles: false })];
    const stores = [store("speaker", [record("s1")]), store("speaker", [record("s1")], [], { home: "/other" })];
    const rows = derive({ processes, stores }).sessions;
    expect(derive({ processes, stores: stores.toReversed() }).sessions).toEqual(rows);
  });

  test("the sessions are always listed in the same order", () => {
    const rows = [record("s1"), record("s2")];
    const seen = look({ processes: [process(10, "mute")], stores: [store("mute", rows)] });
    expect(look({ processes: [process(10, "mute")], stores: [store("mute", rows.toReversed())] })).toEqual(seen);
  });
});

describe("rule 8: the link is part of the status", () => {
  test("a row has an identity to signal and its link", () => {
    const [session] = derive({
      processes: [speaker({})],
      stores: [store("speaker", [record("s1")], [announcement(10, "s1")])],
    }).sessions;
    expect(session?.status).toEqual({
      state: "running",
      activity: "idle",
      owner: { kind: "process", link: "announced", processes: [{ pid: 10, start: "1000", boot: "boot-1" }] },
    });
  });

  test("a process without a session has no link", () => {
    const [session] = derive({ processes: [speaker({})] }).sessions;
    expect(session?.status).toEqual({
      state: "running",
      activity: "unclear",
      owner: { kind: "process", link: null, processes: [{ pid: 10, start: "1000", boot: "boot-1" }] },
    });
  });
});

describe("rule 9: a session that a live process without a session may have is not stopped", () => {
  const stateOf = (partial: PartialEvidence): string[] => look(partial).map((row) => `${row.id} ${row.state}`);
  const silent = (change: Parameters<typeof process>[2] = {}) => process(10, "mute", change);
  const moved = [store("mute", [record("s1", { cwd: "/before" })])];

  test("different paths are different directories if they were not compared", () => {
    expect(stateOf({ processes: [silent()], stores: moved })).toEqual(["s1 stopped", "null running"]);
  });

  test("a directory that was moved while the process ran still counts", () => {
    const directories = { "/before": null, "/proc/10/cwd": "1:5" };
    expect(stateOf({ processes: [silent()], stores: moved, directories })).toEqual(["s1 unknown", "null running"]);
  });

  test("two names of one directory match, two directories do not", () => {
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

  test("paths of a process in another mount namespace prove nothing", () => {
    const partial = { processes: [silent({ sameFiles: false, env: null })], stores: [store("mute", [record("s1")])] };
    expect(stateOf(partial)).toEqual(["s1 unknown", "null running"]);
  });

  test("a process of another user may have only sessions in that user's files", () => {
    const stores = [store("mute", [fileOf(42, record("s1"))])];
    const foreign = silent({ ours: false, uid: 42, env: null });
    expect(stateOf({ processes: [foreign], stores })).toEqual(["s1 unknown"]);
    for (const uid of [43, null])
      expect(stateOf({ processes: [silent({ ours: false, uid, env: null })], stores })).toEqual(["s1 stopped"]);
  });
});
