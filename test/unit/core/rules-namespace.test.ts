// Rule 10: what was written in another pid namespace proves nothing here, unless we see the process inside.
import { describe, expect, test } from "bun:test";
import { read } from "../../../src/core/problem.ts";
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

describe("a store on a network file system", () => {
  const shared = { isShared: true };
  const why = "its store is on a network file system: a process on another host may have it";
  const mayRun = "announced by process 10, which may run on another host: its store is on a network file system";
  const bare = { boot: null, namespace: null };
  const on = (...claims: Parameters<typeof store>[2] & object) => [store("speaker", [record("s1")], claims, shared)];
  const cases: [name: string, world: World, expected: Seen[]][] = [
    ["without an announcement", { stores: on() }, [unknown("s1", why)]],
    [
      "with a process here",
      { processes: [process(10, "speaker")], stores: on(claim(10, "s1")) },
      [running("s1", [10], "announced")],
    ],
    ["with a dead process of this boot", { stores: on(claim(10, "s1")) }, [stopped("s1")]],
    [
      "with a dead process of this host",
      { host: "m1", stores: on(claim(10, "s1", { ...bare, host: "m1" })) },
      [stopped("s1")],
    ],
    [
      "with a process of no host that is named",
      { host: "m1", stores: on(claim(10, "s1", bare)) },
      [unknown("s1", mayRun)],
    ],
    [
      "with a process of another boot, which may be one of another host",
      { stores: on(claim(10, "s1", { boot: "boot-0" })) },
      [unknown("s1", mayRun)],
    ],
    [
      "with a pid alone that a process here has, too",
      {
        processes: [process(10, "speaker", { argv: ["speaker", "helper"] })],
        stores: on(claim(10, "s1", { ...bare, start: null })),
      },
      [unknown("s1", mayRun)],
    ],
    [
      "with pid and start of a process here",
      { processes: [process(10, "speaker")], stores: on(claim(10, "s1", bare)) },
      [running("s1", [10], "announced")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  test("another user's word that a process of this host is dead proves nothing", () => {
    const word = { pid: 10, uid: 42, reading: read(claim(10, "s1")) };
    expect(look({ stores: on(word) })).toEqual([unknown("s1", why)]);
  });

  test("a process in a directory of the same name may be on another host: nothing is linked by directory", () => {
    const stores = [store("mute", [record("s1")], [], shared)];
    expect(look({ processes: [process(10, "mute")], stores })[0]).toMatchObject({ id: "s1", state: "unknown" });
  });
});

describe("an announcement that names another host", () => {
  const far = { boot: null, host: "m2" };
  const elsewhere = unknown("s1", "announced by process 10 of another host (machine id m2)");
  const stores = [store("speaker", [record("s1")], [claim(10, "s1", far)])];

  test("fits no process here, whatever its number and start", () => {
    const world = { host: "m1", processes: [process(10, "speaker", { argv: ["speaker", "helper"] })], stores };
    expect(look(world)).toEqual([elsewhere]);
    expect(look({ ...world, host: "m2", processes: [process(10, "speaker")] })).toEqual([
      running("s1", [10], "announced"),
    ]);
  });

  test("is one of a container here, which may have a machine id of its own, if that very process is seen", () => {
    const contained = [store("speaker", [s1], [{ ...word, ...far, pid: 7 }])];
    expect(look({ host: "m1", processes: [inside()], stores: contained })).toEqual([running("s1", [500], "announced")]);
    const recycled = inside({ start: "7777", argv: ["speaker", "helper"] });
    expect(look({ host: "m1", processes: [recycled], stores: contained })[0]?.state).toBe("unknown");
  });

  test("says nothing about this host where its own id is not known", () => {
    expect(look({ processes: [process(10, "speaker")], stores })).toEqual([running("s1", [10], "announced")]);
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
