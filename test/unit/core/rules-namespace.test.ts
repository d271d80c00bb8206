// Rule 10: what was written in another pid namespace proves nothing here, unless we see the process inside.
import { describe, expect, test } from "bun:test";
import {
  ago,
  claim,
  derive,
  look,
  process,
  type RowChange,
  record,
  running,
  type Seen,
  stopped,
  store,
  stranger,
  unknown,
  type World,
} from "./world.ts";

const other = "pid:[2]";
const s1 = record("s1", { cwd: "/box" });
const word = claim(7, "s1", { namespace: other, start: "50000" });
const inside = (change: RowChange = {}) =>
  process(500, "speaker", { namespace: other, innerPid: 7, sameFiles: false, cwd: "/box", ...change });
const stores = [store("speaker", [s1], [word])];
const cannotTell = unknown("s1", "announced by process 7 of another pid namespace (pid:[2])");

describe("an announcement from another pid namespace", () => {
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["seen from outside, alive", { processes: [inside()], stores }, [running("s1", [500], "announced")]],
    ["not seen", { stores }, [cannotTell]],
    [
      "our process of that number is another one",
      { processes: [stranger(7, { start: "50000" })], stores },
      [cannotTell],
    ],
    ["seen from outside, a zombie", { processes: [inside({ state: "Z" })], stores }, [cannotTell]],
    [
      "seen from outside, recycled",
      { processes: [inside({ start: "7777", argv: ["speaker", "helper"] })], stores },
      [stopped("s1")],
    ],
    [
      "of an earlier boot",
      {
        processes: [inside({ argv: ["speaker", "helper"] })],
        stores: [store("speaker", [s1], [{ ...word, boot: "boot-0" }])],
      },
      [stopped("s1")],
    ],
    [
      "our namespace is not known",
      { table: { namespace: { id: null, initial: false } }, stores: [store("speaker", [s1], [claim(10, "s1")])] },
      [unknown("s1", "announced by process 10 of another pid namespace (pid:[1])")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  // hidden holds our numbers, the announcement those of its own namespace.
  test("seen from outside, while another process with its inner number is hidden from us", () => {
    const rows = look({ processes: [inside()], table: { hidden: [7] }, stores });
    expect(rows).toEqual([running("s1", [500], "announced")]);
  });

  // Claude 2.1.197 writes pid and start, no namespace: the number is the inner one, the start is the same seen from outside.
  test("the announcement does not say its namespace, but a live process has number and start there", () => {
    const rows = look({ processes: [inside()], stores: [store("speaker", [s1], [{ ...word, namespace: null }])] });
    expect(rows.find((row) => row.id === "s1")?.state).not.toBe("stopped");
  });
});

describe("inside a pid namespace", () => {
  const table = { namespace: { id: "pid:[1]", initial: false } };
  const shared = { onRootDevice: false };
  const why =
    "we are inside a pid namespace and its store is shared from outside: an owner could be invisible from here";
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["a store of our own", { table, stores: [store("mute", [record("s1")])] }, [stopped("s1")]],
    ["a store on another device", { table, stores: [store("mute", [record("s1")], [], shared)] }, [unknown("s1", why)]],
    [
      "a store on another device, with an owner here",
      {
        table,
        processes: [process(10, "speaker")],
        stores: [store("speaker", [record("s1")], [claim(10, "s1")], shared)],
      },
      [running("s1", [10], "announced")],
    ],
    [
      "outside of any, another device says nothing",
      { stores: [store("mute", [record("s1")], [], shared)] },
      [stopped("s1")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));
});

describe("an agent in another mount namespace", () => {
  test("its HOME is not our HOME: it takes no record of ours by directory", () => {
    const rows = look({
      processes: [process(10, "mute", { sameFiles: false })],
      stores: [store("mute", [record("s1")])],
    });
    expect(rows.map((row) => [row.id, row.link])).not.toContainEqual(["s1", "cwd"]);
  });
});

// "An mtime before boot is only shown as a conflict when pid, start ticks and executable match."
test("an announcement far older than its process, with its pid, start and program, is shown as a conflict", () => {
  const old = claim(10, "s1", { boot: null, writtenAt: ago(60 * 24 * 365) });
  const [session] = derive({
    processes: [process(10, "speaker")],
    stores: [store("speaker", [record("s1")], [old])],
  }).sessions;
  expect(session?.status.state).toBe("running");
  expect(session?.conflicts.length).toBe(1);
});
