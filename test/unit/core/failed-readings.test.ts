// Rule 2: stopped needs proof, so a failed reading gives unknown; a process that names its session runs anyway.

import { describe, expect, test } from "bun:test";
import { anyPid } from "../../../src/core/evidence.ts";
import { unread } from "../../../src/core/problem.ts";
import type { OwnerDoubt } from "../../../src/core/reason.ts";
import {
  announcement,
  badAnnouncement,
  badRecord,
  derive,
  look,
  type PartialEvidence,
  problem,
  process,
  record,
  running,
  type Seen,
  stopped,
  store,
  systemError,
  unknown,
  unrecorded,
} from "./build-evidence.ts";

const s1 = record("s1");
const gap = problem("process-unreadable", "/proc/55/stat", "EIO");
const listing = unread(problem("store-unreadable", "/records", "EACCES"));
const nameless = [{ begins: "s", problem: problem("store-unreadable", "/records/s.jsonl", "EIO"), writtenAt: null }];
const mayBeIts = {
  code: "record-unreadable",
  detail: { code: "unnamed-record", detail: systemError("EIO") },
} as const;
const unreadable = { argv: null, cwd: "/else", unread: [problem("process-unreadable", "/proc/10/cmdline", "EIO")] };
const announcementFails: OwnerDoubt = { code: "announcement-of-live-process-unreadable", pid: 10 };
const mayHave: OwnerDoubt = { code: "process-unreadable", pid: 10, name: "speaker", detail: systemError("EIO") };
const noTable: OwnerDoubt = { code: "processes-unreadable", detail: systemError("input/output error") };

describe("rule 2: a failed reading", () => {
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    ["no reading failed, so the session is stopped", { stores: [store("speaker", [s1])] }, [stopped("s1")]],
    ["the process table", { processes: "failed", stores: [store("speaker", [s1])] }, [unknown("s1", noTable)]],
    [
      "the process table, with an announcement",
      { processes: "failed", stores: [store("speaker", [s1], [announcement(10, "s1")])] },
      [unknown("s1", noTable)],
    ],
    [
      "one stat line",
      { table: { gaps: [gap] }, stores: [store("speaker", [s1])] },
      [unknown("s1", { code: "processes-incomplete", detail: systemError("EIO") })],
    ],
    [
      "a candidate of ours",
      { processes: [process(10, "speaker", unreadable)], stores: [store("speaker", [s1])] },
      [unknown("s1", mayHave), unrecorded(10)],
    ],
    [
      "a candidate of ours, of another agent",
      { processes: [process(10, "mute", unreadable)], stores: [store("speaker", [s1])] },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "a helper of ours",
      {
        processes: [process(10, "speaker", { ...unreadable, argv: ["speaker", "helper"] })],
        stores: [store("speaker", [s1])],
      },
      [stopped("s1")],
    ],
    [
      "a candidate of ours that is dead",
      { processes: [process(10, "speaker", { ...unreadable, state: "Z" })], stores: [store("speaker", [s1])] },
      [stopped("s1")],
    ],
    [
      "another user's process",
      {
        processes: [process(10, "speaker", { ...unreadable, ours: false, unread: [] })],
        stores: [store("speaker", [s1])],
      },
      [stopped("s1")],
    ],
    [
      "the listing",
      { stores: [store("speaker", [s1], [], { listing })] },
      [unknown("s1", { code: "store-incomplete", detail: systemError("EACCES") })],
    ],
    [
      "the listing of another agent",
      { stores: [store("speaker", [s1]), store("mute", [], [], { listing })] },
      [stopped("s1")],
    ],
    [
      "a record that names only the start of its session's id",
      { stores: [store("speaker", [s1, record("s2"), record("other")], [], { nameless })] },
      [stopped("other"), unknown("s1", mayBeIts), unknown("s2", mayBeIts)],
    ],
    [
      "a record that may belong to a session that only its process names",
      { processes: [process(10, "speaker")], stores: [store("speaker", [], [announcement(10, "s1")], { nameless })] },
      [running("s1", [10], "announced", { activity: "unclear", reason: mayBeIts })],
    ],
    [
      "one unread record affects one row",
      { stores: [store("speaker", [s1, badRecord("s2")])] },
      [stopped("s1"), unknown("s2", { code: "record-unreadable", detail: systemError("EIO") })],
    ],
    [
      "the announcement of a live process",
      {
        processes: [process(10, "speaker", { cwd: "/else" })],
        stores: [store("speaker", [s1], [badAnnouncement(10)])],
      },
      [unknown("s1", announcementFails), unrecorded(10, { code: "announcement-unreadable" })],
    ],
    [
      "the announcement of a dead process",
      { stores: [store("speaker", [s1], [badAnnouncement(10)])] },
      [stopped("s1")],
    ],
    [
      "the announcement of a zombie",
      { processes: [process(10, "speaker", { state: "Z" })], stores: [store("speaker", [s1], [badAnnouncement(10)])] },
      [stopped("s1")],
    ],
    [
      "an announcement with a pid that another program has now",
      {
        processes: [process(10, "mute", { name: "nginx", argv: ["nginx"] })],
        stores: [store("speaker", [s1], [badAnnouncement(10)])],
      },
      [stopped("s1")],
    ],
    [
      "the folder of announcements",
      { stores: [store("speaker", [s1], [badAnnouncement(anyPid)])] },
      [unknown("s1", { code: "announcement-of-live-process-unreadable", pid: null })],
    ],
    [
      "the folder of announcements of another home",
      { stores: [store("speaker", [s1]), store("speaker", [], [badAnnouncement(anyPid)], { home: "/other" })] },
      [stopped("s1")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));
});

describe("rule 2: a process that names its session runs even if the store is unreadable", () => {
  const argv = process(10, "speaker", { argv: ["speaker", "--resume", "s1"] });
  const tag = process(10, "speaker", {
    env: { HOME: "/home/me", AGENTCTL_TAG_SID: "10", AGENTCTL_TAG_SESSION: "speaker:s1" },
  });
  const lost = {
    activity: "unclear",
    reason: { code: "record-unreadable", detail: systemError("EIO") },
  } as const;
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "announced, record unread, listing failed",
      {
        processes: [process(10, "speaker")],
        stores: [store("speaker", [badRecord("s1")], [announcement(10, "s1")], { listing })],
      },
      [running("s1", [10], "announced", lost)],
    ],
    [
      "tag, record unread",
      { processes: [tag], stores: [store("speaker", [badRecord("s1")])] },
      [running("s1", [10], "assigned", lost)],
    ],
    [
      "argv, record unread",
      { processes: [argv], stores: [store("speaker", [badRecord("s1")])] },
      [running("s1", [10], "argv", lost)],
    ],
    [
      "argv, the folder of announcements unread",
      { processes: [argv], stores: [store("speaker", [s1], [badAnnouncement(anyPid)])] },
      [running("s1", [10], "argv")],
    ],
    [
      "argv, no store at all",
      { processes: [argv] },
      [running("s1", [10], "argv", { activity: "unclear", reason: { code: "nothing-recorded" } })],
    ],
    [
      "announced, with a gap in the table",
      {
        processes: [process(10, "speaker")],
        table: { gaps: [gap] },
        stores: [store("speaker", [s1], [announcement(10, "s1")])],
      },
      [running("s1", [10], "announced")],
    ],
    [
      "the arguments count if the unread announcement can name no other session",
      { processes: [argv], stores: [store("speaker", [record("s1", { cwd: "/else" })], [badAnnouncement(10)])] },
      [running("s1", [10], "argv")],
    ],
    [
      "the arguments do not count if the unread announcement may name another session of the directory",
      { processes: [argv], stores: [store("speaker", [s1, record("s2")], [badAnnouncement(10)])] },
      [
        unknown("s1", announcementFails),
        unknown("s2", announcementFails),
        unrecorded(10, { code: "may-have", ids: ["s1", "s2"] }),
      ],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));
});

describe("rule 2: an unread announcement whose process may live out of sight", () => {
  const stateOf = (partial: PartialEvidence): string[] => look(partial).map((row) => `${row.id} ${row.state}`);
  const unreadAnnouncement = [store("speaker", [s1], [badAnnouncement(10)])];

  // Readable, the same announcement makes it unknown ("this system hides it from us"): unread it proves even less.
  test("the process is hidden", () => {
    expect(stateOf({ table: { hidden: [10] }, stores: unreadAnnouncement })).toEqual(["s1 unknown"]);
  });

  test("another user's process that shows nothing", () => {
    const shut = process(10, "speaker", { name: "sudo", ours: false, argv: null, exe: null, cwd: null, env: null });
    expect(stateOf({ processes: [shut], stores: unreadAnnouncement })).toEqual(["s1 unknown"]);
  });

  test("the number that a live process of this agent has in another pid namespace", () => {
    const inside = { namespace: "pid:[2]", innerPid: 10, cwd: "/else", sameFiles: false };
    const states = stateOf({ processes: [process(500, "speaker", inside)], stores: unreadAnnouncement });
    expect(states).toEqual(["s1 unknown", "null running"]);
  });
});

describe("rules 2 and 7: without a process table the answer names no process", () => {
  test.each([
    ["with boot id", announcement(10, "s1")],
    ["without boot id", announcement(10, "s1", { boot: null, namespace: null })],
    ["without namespace", announcement(10, "s1", { namespace: null })],
  ])("an announcement %s is not called stale or foreign", (_name, word) => {
    const [session] = derive({ processes: "failed", stores: [store("speaker", [s1], [word])] }).sessions;
    const facts = session?.evidence.map(({ fact }) => JSON.stringify(fact)) ?? [];
    expect(facts.filter((fact) => /stale|gone|earlier-boot|other-namespace/.test(fact))).toEqual([]);
  });
});

// A weaker name stands in only where the stronger one is known to be absent, not where it could not be read.
describe("rule 2: a weak source names another session while a stronger one is unread", () => {
  const states = (partial: PartialEvidence) => look(partial).map((row) => `${row.id} ${row.state}`);
  const part = (name: string) => [problem("process-unreadable", `/proc/10/${name}`, "EACCES")];
  const both = [record("s1"), record("s2")];

  test("with unread locks, a session that a lock may hold is not stopped", () => {
    const argv = ["locker", "--resume", "s1"];
    const before = process(10, "locker", { argv, lockedFiles: ["/l/s2.lock"] });
    expect(states({ processes: [before], stores: [store("locker", both)] })).toEqual(["s1 stopped", "s2 running"]);
    const after = process(10, "locker", { argv, unread: part("fd") });
    expect(states({ processes: [after], stores: [store("locker", both)] })).toContain("s2 unknown");
  });

  test("with an unread environment, a session that the tag may name is not stopped", () => {
    const argv = ["speaker", "--resume", "s1"];
    const env = { HOME: "/home/me", AGENTCTL_TAG_SID: "10", AGENTCTL_TAG_SESSION: "speaker:s2" };
    const stores = [store("speaker", both)];
    expect(states({ processes: [process(10, "speaker", { argv, env })], stores })).toEqual([
      "s1 stopped",
      "s2 running",
    ]);
    const after = process(10, "speaker", { argv, env: null, unread: part("environ") });
    expect(states({ processes: [after], stores })).toContain("s2 unknown");
  });
});
