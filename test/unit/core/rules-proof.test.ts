// Rule 2: stopped needs proof. A reading that failed makes unknown; who names itself runs all the same.
import { describe, expect, test } from "bun:test";
import { anyPid } from "../../../src/core/evidence.ts";
import { unread } from "../../../src/core/problem.ts";
import {
  badClaim,
  badRecord,
  claim,
  derive,
  look,
  problem,
  process,
  record,
  running,
  type Seen,
  stopped,
  store,
  unknown,
  unrecorded,
  type World,
} from "./world.ts";

const s1 = record("s1");
const gap = problem("process-unreadable", "/proc/55/stat", "EIO");
const listing = unread(problem("store-unreadable", "/records", "EACCES"));
const nameless = [{ begins: "s", problem: problem("store-unreadable", "/records/s.jsonl", "EIO"), writtenAt: null }];
const mayBeIts = "a record that may be its own cannot be read: EIO";
const unreadable = { argv: null, cwd: "/else", unread: [problem("process-unreadable", "/proc/10/cmdline", "EIO")] };
const claimFails = "live process 10 announces a session, but its announcement cannot be read";
const mayHave = "process 10 (speaker) may have it, but could not be read: EIO";
const noTable = "the process table could not be read: input/output error";

describe("rule 2: a reading that failed", () => {
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["none: stopped", { stores: [store("speaker", [s1])] }, [stopped("s1")]],
    ["the process table", { processes: "failed", stores: [store("speaker", [s1])] }, [unknown("s1", noTable)]],
    [
      "the process table, with an announcement",
      { processes: "failed", stores: [store("speaker", [s1], [claim(10, "s1")])] },
      [unknown("s1", noTable)],
    ],
    [
      "one stat line",
      { table: { gaps: [gap] }, stores: [store("speaker", [s1])] },
      [unknown("s1", "the process table was not read whole: EIO")],
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
      [unknown("s1", "its store could not be read whole: EACCES")],
    ],
    [
      "the listing of another agent",
      { stores: [store("speaker", [s1]), store("mute", [], [], { listing })] },
      [stopped("s1")],
    ],
    [
      "a record that tells only how its session's id begins",
      { stores: [store("speaker", [s1, record("s2"), record("other")], [], { nameless })] },
      [stopped("other"), unknown("s1", mayBeIts), unknown("s2", mayBeIts)],
    ],
    [
      "a record that may be of a session which only its process names",
      { processes: [process(10, "speaker")], stores: [store("speaker", [], [claim(10, "s1")], { nameless })] },
      [running("s1", [10], "announced", { activity: "unclear", reason: "its record cannot be read" })],
    ],
    [
      "one record costs one row",
      { stores: [store("speaker", [s1, badRecord("s2")])] },
      [stopped("s1"), unknown("s2", "its record cannot be read: EIO")],
    ],
    [
      "the announcement of a live process",
      { processes: [process(10, "speaker", { cwd: "/else" })], stores: [store("speaker", [s1], [badClaim(10)])] },
      [unknown("s1", claimFails), unrecorded(10, "its announcement cannot be read")],
    ],
    ["the announcement of a dead process", { stores: [store("speaker", [s1], [badClaim(10)])] }, [stopped("s1")]],
    [
      "the announcement of a zombie",
      { processes: [process(10, "speaker", { state: "Z" })], stores: [store("speaker", [s1], [badClaim(10)])] },
      [stopped("s1")],
    ],
    [
      "an announcement whose pid is now a stranger's",
      {
        processes: [process(10, "mute", { name: "nginx", argv: ["nginx"] })],
        stores: [store("speaker", [s1], [badClaim(10)])],
      },
      [stopped("s1")],
    ],
    [
      "the folder of announcements",
      { stores: [store("speaker", [s1], [badClaim(anyPid)])] },
      [unknown("s1", "an announcement of a live process cannot be read")],
    ],
    [
      "the folder of announcements of another home",
      { stores: [store("speaker", [s1]), store("speaker", [], [badClaim(anyPid)], { home: "/other" })] },
      [stopped("s1")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));
});

describe("rule 2: who names itself runs even if the store is unreadable", () => {
  const argv = process(10, "speaker", { argv: ["speaker", "--resume", "s1"] });
  const tag = process(10, "speaker", {
    env: { HOME: "/home/me", AGENTCTL_TAG_SID: "10", AGENTCTL_TAG_SESSION: "speaker:s1" },
  });
  const lost = { activity: "unclear", reason: "its record cannot be read" } as const;
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "announced, record unread, listing failed",
      {
        processes: [process(10, "speaker")],
        stores: [store("speaker", [badRecord("s1")], [claim(10, "s1")], { listing })],
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
      { processes: [argv], stores: [store("speaker", [s1], [badClaim(anyPid)])] },
      [running("s1", [10], "argv")],
    ],
    [
      "argv, no store at all",
      { processes: [argv] },
      [running("s1", [10], "argv", { activity: "unclear", reason: "nothing recorded yet" })],
    ],
    [
      "announced, with a gap in the table",
      {
        processes: [process(10, "speaker")],
        table: { gaps: [gap] },
        stores: [store("speaker", [s1], [claim(10, "s1")])],
      },
      [running("s1", [10], "announced")],
    ],
    [
      "argv, its own announcement unread, and nothing else that it could mean",
      { processes: [argv], stores: [store("speaker", [record("s1", { cwd: "/else" })], [badClaim(10)])] },
      [running("s1", [10], "argv")],
    ],
    [
      "argv does not count while its own announcement is unread and may name another session of its directory",
      { processes: [argv], stores: [store("speaker", [s1, record("s2")], [badClaim(10)])] },
      [unknown("s1", claimFails), unknown("s2", claimFails), unrecorded(10, "may have s1 or s2")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));
});

describe("rule 2: an unread announcement whose process may live where we cannot tell", () => {
  const stateOf = (world: World): string[] => look(world).map((row) => `${row.id} ${row.state}`);
  const unreadClaim = [store("speaker", [s1], [badClaim(10)])];

  // Readable, the same announcement makes it unknown ("this system hides it from us"): unread it proves even less.
  test("hidden from us", () => {
    expect(stateOf({ table: { hidden: [10] }, stores: unreadClaim })).toEqual(["s1 unknown"]);
  });

  test("another user's process that shows nothing", () => {
    const shut = process(10, "speaker", { name: "sudo", ours: false, argv: null, exe: null, cwd: null, env: null });
    expect(stateOf({ processes: [shut], stores: unreadClaim })).toEqual(["s1 unknown"]);
  });

  test("the number that a live process of this agent has in another pid namespace", () => {
    const inside = { namespace: "pid:[2]", innerPid: 10, cwd: "/else", sameFiles: false };
    const states = stateOf({ processes: [process(500, "speaker", inside)], stores: unreadClaim });
    expect(states).toEqual(["s1 unknown", "null running"]);
  });
});

describe("rules 2 and 7: without a process table nothing is said about any process", () => {
  test.each([
    ["with boot id", claim(10, "s1")],
    ["without boot id", claim(10, "s1", { boot: null, namespace: null })],
    ["without namespace", claim(10, "s1", { namespace: null })],
  ])("an announcement %s is not called stale or foreign", (_name, word) => {
    const [session] = derive({ processes: "failed", stores: [store("speaker", [s1], [word])] }).sessions;
    const values = session?.evidence.map((proof) => proof.value) ?? [];
    expect(values.filter((value) => /stale|gone|earlier boot|another pid namespace/.test(value))).toEqual([]);
  });
});

// A weaker name stands in only where the stronger one is known to be absent, not where it could not be read.
describe("rule 2: the stronger name could not be read, and a weaker one names another session", () => {
  const states = (world: World) => look(world).map((row) => `${row.id} ${row.state}`);
  const part = (name: string) => [problem("process-unreadable", `/proc/10/${name}`, "EACCES")];
  const both = [record("s1"), record("s2")];

  test("locks unread, arguments read: what the lock may hold is not stopped", () => {
    const argv = ["locker", "--resume", "s1"];
    const before = process(10, "locker", { argv, lockedFiles: ["/l/s2.lock"] });
    expect(states({ processes: [before], stores: [store("locker", both)] })).toEqual(["s1 stopped", "s2 running"]);
    const after = process(10, "locker", { argv, unread: part("fd") });
    expect(states({ processes: [after], stores: [store("locker", both)] })).toContain("s2 unknown");
  });

  test("environment unread, arguments read: what the tag may name is not stopped", () => {
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
