// Rules 1 and 12: a session runs if and only if exactly the process that announced it is alive.

import { describe, expect, test } from "bun:test";
import type { OwnerDoubt } from "../../../src/core/reason.ts";
import {
  ago,
  announcement,
  look,
  type PartialEvidence,
  problem,
  process,
  record,
  running,
  type Seen,
  stopped,
  store,
  stranger,
  unknown,
  unrecorded,
} from "./build-evidence.ts";

const s1 = record("s1");
const announced = store("speaker", [s1], [announcement(10, "s1")]);
const without = (change: Parameters<typeof announcement>[2]) => [
  store("speaker", [s1], [announcement(10, "s1", change)]),
];
const runs = running("s1", [10], "announced");
const foreign = { ours: false, uid: 0, env: null };

describe("rule 1: a session runs if its announced process lives", () => {
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    ["lives", { processes: [process(10, "speaker")], stores: [announced] }, [runs]],
    [
      "the process is running on a CPU",
      { processes: [process(10, "speaker", { state: "R" })], stores: [announced] },
      [runs],
    ],
    [
      "the process waits for a disk",
      { processes: [process(10, "speaker", { state: "D" })], stores: [announced] },
      [runs],
    ],
    ["is gone", { stores: [announced] }, [stopped("s1")]],
    ["is a zombie", { processes: [process(10, "speaker", { state: "Z" })], stores: [announced] }, [stopped("s1")]],
    ["is dead (X)", { processes: [process(10, "speaker", { state: "X" })], stores: [announced] }, [stopped("s1")]],
    ["is dead (x)", { processes: [process(10, "speaker", { state: "x" })], stores: [announced] }, [stopped("s1")]],
    [
      "the process is suspended",
      { processes: [process(10, "speaker", { state: "T" })], stores: [announced] },
      [{ ...runs, reason: { code: "suspended" } }],
    ],
    [
      "is traced",
      { processes: [process(10, "speaker", { state: "t" })], stores: [announced] },
      [{ ...runs, reason: { code: "suspended" } }],
    ],
    [
      "the process belongs to another user",
      { processes: [process(10, "speaker", foreign)], stores: [announced] },
      [runs],
    ],
    [
      "the process of another user shows only its stat line",
      { processes: [process(10, "speaker", { ...foreign, argv: null, exe: null, cwd: null })], stores: [announced] },
      [runs],
    ],
    ["only the stat line of the process was read", { processes: [stranger(10)], stores: [announced] }, [runs]],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));
});

describe("rule 1: a pid alone never identifies a process", () => {
  const alive = [process(10, "speaker")];
  const recycled = [process(10, "speaker", { start: "7777" })];
  const why: OwnerDoubt = { code: "open-in-silent-process", pid: 10 };
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "another program has the pid",
      { processes: [stranger(10, { start: "7777" })], stores: [announced] },
      [stopped("s1")],
    ],
    [
      "another process of the agent has the pid, in the same directory",
      { processes: recycled, stores: [announced] },
      [unknown("s1", why), unrecorded(10, { code: "may-have", ids: ["s1"] })],
    ],
    [
      "another process of the agent has the pid, started after the last message",
      { processes: [process(10, "speaker", { start: "7777", startedAt: ago(0.5) })], stores: [announced] },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "announced in an earlier boot, with the same pid and start",
      { processes: [stranger(10)], stores: without({ boot: "boot-0" }) },
      [stopped("s1")],
    ],
    [
      "no boot in the announcement, but start and program match",
      { processes: alive, stores: without({ boot: null }) },
      [runs],
    ],
    [
      "no boot in the announcement, another program",
      { processes: [process(10, "mute", { cwd: "/else" })], stores: without({ boot: null }) },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "the announcement has no start, and the process is older than the announcement",
      { processes: alive, stores: without({ start: null }) },
      [runs],
    ],
    [
      "the announcement has no start, and the process is younger than the announcement",
      { processes: [process(10, "speaker", { cwd: "/else", startedAt: ago(8) })], stores: without({ start: null }) },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "the announcement has no start, and the process is younger by less than a clock adjustment",
      {
        processes: [process(10, "speaker", { cwd: "/else", startedAt: ago(9) + 1_000 })],
        stores: without({ start: null }),
      },
      [unknown("s1", { code: "pid-may-be-recycled", pid: 10 }), unrecorded(10)],
    ],
    [
      "the announcement has no start, and the process is as old as the announcement",
      { processes: [process(10, "speaker", { startedAt: ago(9) + 40 })], stores: without({ start: null }) },
      [runs],
    ],
    [
      "the announcement has no start, and the process is unreadable",
      {
        processes: [process(10, "mute", { ...foreign, name: "sudo", argv: null, exe: null, cwd: null })],
        stores: without({ start: null }),
      },
      [unknown("s1", { code: "pid-unreadable", pid: 10 })],
    ],
    [
      "the process is hidden",
      { table: { hidden: [10] }, stores: [announced] },
      [unknown("s1", { code: "pid-hidden", pid: 10 })],
    ],
    [
      "the process is hidden, but the announcement is of an earlier boot",
      { table: { hidden: [10] }, stores: without({ boot: "boot-0" }) },
      [stopped("s1")],
    ],
    [
      "rule 12: same pid, start and boot within one tick cannot be told apart",
      { processes: [stranger(10)], stores: [announced] },
      [runs],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  // Not "another program": what says which program it is could not be read.
  test("a session is unknown if its announcement has no boot id and the arguments of its process are unread", () => {
    const unread = [problem("process-unreadable", "/proc/10/cmdline")];
    const node = { name: "node", exe: "/usr/bin/node" };
    const stores = without({ boot: null });
    expect(look({ processes: [process(10, "speaker", { ...node, argv: ["speaker"] })], stores })).toEqual([runs]);
    const blind = look({ processes: [process(10, "speaker", { ...node, argv: null, unread })], stores });
    expect(blind.map((row) => [row.id, row.state])).toEqual([["s1", "unknown"]]);
  });
});
