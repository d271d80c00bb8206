// Rules 1 and 12: a session runs if and only if exactly the process that announced it lives.
import { describe, expect, test } from "bun:test";
import {
  ago,
  claim,
  look,
  process,
  record,
  running,
  type Seen,
  stopped,
  store,
  stranger,
  unknown,
  unrecorded,
  type World,
} from "./world.ts";

const s1 = record("s1");
const announced = store("speaker", [s1], [claim(10, "s1")]);
const without = (change: Parameters<typeof claim>[2]) => [store("speaker", [s1], [claim(10, "s1", change)])];
const runs = running("s1", [10], "announced");
const foreign = { ours: false, uid: 0, env: null };

describe("rule 1: the announced process", () => {
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["lives", { processes: [process(10, "speaker")], stores: [announced] }, [runs]],
    ["lives, running on a cpu", { processes: [process(10, "speaker", { state: "R" })], stores: [announced] }, [runs]],
    ["lives, in disk wait", { processes: [process(10, "speaker", { state: "D" })], stores: [announced] }, [runs]],
    ["is gone", { stores: [announced] }, [stopped("s1")]],
    ["is a zombie", { processes: [process(10, "speaker", { state: "Z" })], stores: [announced] }, [stopped("s1")]],
    ["is dead (X)", { processes: [process(10, "speaker", { state: "X" })], stores: [announced] }, [stopped("s1")]],
    ["is dead (x)", { processes: [process(10, "speaker", { state: "x" })], stores: [announced] }, [stopped("s1")]],
    [
      "is suspended",
      { processes: [process(10, "speaker", { state: "T" })], stores: [announced] },
      [{ ...runs, reason: "suspended" }],
    ],
    [
      "is traced",
      { processes: [process(10, "speaker", { state: "t" })], stores: [announced] },
      [{ ...runs, reason: "suspended" }],
    ],
    ["is another user's", { processes: [process(10, "speaker", foreign)], stores: [announced] }, [runs]],
    [
      "is another user's and shows nothing but its stat line",
      { processes: [process(10, "speaker", { ...foreign, argv: null, exe: null, cwd: null })], stores: [announced] },
      [runs],
    ],
    ["was not looked at beyond its stat line", { processes: [stranger(10)], stores: [announced] }, [runs]],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));
});

describe("rule 1: never the pid alone", () => {
  const alive = [process(10, "speaker")];
  const recycled = [process(10, "speaker", { start: "7777" })];
  const why = "process 10 of this agent may have it: it lives, and has not said which session it has";
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["recycled by a stranger", { processes: [stranger(10, { start: "7777" })], stores: [announced] }, [stopped("s1")]],
    [
      "recycled by the same agent, in its directory",
      { processes: recycled, stores: [announced] },
      [unknown("s1", why), unrecorded(10, "may have s1")],
    ],
    [
      "recycled by the same agent, after the last message",
      { processes: [process(10, "speaker", { start: "7777", startedAt: ago(0.5) })], stores: [announced] },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "announced in an earlier boot, with the same pid and start",
      { processes: [stranger(10)], stores: without({ boot: "boot-0" }) },
      [stopped("s1")],
    ],
    [
      "no boot in the claim, but start and program match",
      { processes: alive, stores: without({ boot: null }) },
      [runs],
    ],
    [
      "no boot in the claim, another program",
      { processes: [process(10, "mute", { cwd: "/else" })], stores: without({ boot: null }) },
      [stopped("s1"), unrecorded(10)],
    ],
    ["no start in the claim, older than its word", { processes: alive, stores: without({ start: null }) }, [runs]],
    [
      "no start in the claim, younger than its word",
      { processes: [process(10, "speaker", { cwd: "/else", startedAt: ago(8) })], stores: without({ start: null }) },
      [stopped("s1"), unrecorded(10)],
    ],
    [
      "no start in the claim, younger than its word by less than clocks are set",
      {
        processes: [process(10, "speaker", { cwd: "/else", startedAt: ago(9) + 1_000 })],
        stores: without({ start: null }),
      },
      [
        unknown(
          "s1",
          "pid 10 may have been recycled: it started just after the announcement was written, or the clock was set",
        ),
        unrecorded(10),
      ],
    ],
    [
      "no start in the claim, as old as its word",
      { processes: [process(10, "speaker", { startedAt: ago(9) + 40 })], stores: without({ start: null }) },
      [runs],
    ],
    [
      "no start in the claim, and the process shows nothing",
      {
        processes: [process(10, "mute", { ...foreign, name: "sudo", argv: null, exe: null, cwd: null })],
        stores: without({ start: null }),
      },
      [unknown("s1", "process 10 may be the announced one, but we may not look at it")],
    ],
    [
      "hidden from us",
      { table: { hidden: [10] }, stores: [announced] },
      [unknown("s1", "process 10 exists, but this system hides it from us")],
    ],
    [
      "hidden, but of an earlier boot",
      { table: { hidden: [10] }, stores: without({ boot: "boot-0" }) },
      [stopped("s1")],
    ],
    [
      "rule 12: same pid, start and boot within one tick cannot be told apart",
      { processes: [stranger(10)], stores: [announced] },
      [runs],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  // Not "another program": what says which program it is could not be read.
  test("no boot in the claim, start matches, but the arguments that would show the agent are unread", () => {
    const unread = [{ code: "process-unreadable" as const, agent: null, source: "/proc/10/cmdline", message: "EIO" }];
    const node = { name: "node", exe: "/usr/bin/node" };
    const stores = without({ boot: null });
    expect(look({ processes: [process(10, "speaker", { ...node, argv: ["speaker"] })], stores })).toEqual([runs]);
    const blind = look({ processes: [process(10, "speaker", { ...node, argv: null, unread })], stores });
    expect(blind.map((row) => [row.id, row.state])).toEqual([["s1", "unknown"]]);
  });
});
