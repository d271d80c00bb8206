// Rule 10: files from another pid namespace or host prove nothing here, unless the process is visible.

import { describe, expect, test } from "bun:test";
import { read } from "../../../src/core/problem.ts";
import type { OwnerDoubt } from "../../../src/core/reason.ts";
import {
  ago,
  announcement,
  derive,
  look,
  type PartialEvidence,
  process,
  type RowChange,
  record,
  running,
  type Seen,
  stopped,
  store,
  stranger,
  unknown,
} from "./build-evidence.ts";

const other = "pid:[2]";
const s1 = record("s1", { cwd: "/box" });
const word = announcement(7, "s1", { namespace: other, start: "50000" });
const inside = (change: RowChange = {}) =>
  process(500, "speaker", { namespace: other, innerPid: 7, sameFiles: false, cwd: "/box", ...change });
const stores = [store("speaker", [s1], [word])];
const cannotTell = unknown("s1", { code: "announced-by-other-namespace", pid: 7, namespace: "pid:[2]" });

describe("an announcement from another pid namespace", () => {
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    ["seen from outside, alive", { processes: [inside()], stores }, [running("s1", [500], "announced")]],
    ["not seen", { stores }, [cannotTell]],
    [
      "our process with that pid is another one",
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
      {
        table: { namespace: { id: null, initial: false } },
        stores: [store("speaker", [s1], [announcement(10, "s1")])],
      },
      [unknown("s1", { code: "announced-by-other-namespace", pid: 10, namespace: "pid:[1]" })],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  // hidden holds our numbers, the announcement those of its own namespace.
  test("a process inside is found from outside, while a process with its inner pid is hidden", () => {
    const rows = look({ processes: [inside()], table: { hidden: [7] }, stores });
    expect(rows).toEqual([running("s1", [500], "announced")]);
  });

  // Claude 2.1.197 writes pid and start, no namespace: the number is the inner one, the start is the same seen from outside.
  test("an announcement without a namespace is not stale if a live process has its inner pid and start", () => {
    const rows = look({ processes: [inside()], stores: [store("speaker", [s1], [{ ...word, namespace: null }])] });
    expect(rows.find((row) => row.id === "s1")?.state).not.toBe("stopped");
  });
});

describe("inside a pid namespace", () => {
  const table = { namespace: { id: "pid:[1]", initial: false } };
  const shared = { onRootDevice: false };
  const why: OwnerDoubt = { code: "outer-namespace" };
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    ["a store on our device", { table, stores: [store("mute", [record("s1")])] }, [stopped("s1")]],
    ["a store on another device", { table, stores: [store("mute", [record("s1")], [], shared)] }, [unknown("s1", why)]],
    [
      "a store on another device, with an owner here",
      {
        table,
        processes: [process(10, "speaker")],
        stores: [store("speaker", [record("s1")], [announcement(10, "s1")], shared)],
      },
      [running("s1", [10], "announced")],
    ],
    [
      "outside a pid namespace another device proves nothing",
      { stores: [store("mute", [record("s1")], [], shared)] },
      [stopped("s1")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));
});

describe("an agent in another mount namespace", () => {
  test("is not linked to our records by directory, because its HOME is another folder", () => {
    const rows = look({
      processes: [process(10, "mute", { sameFiles: false })],
      stores: [store("mute", [record("s1")])],
    });
    expect(rows.map((row) => [row.id, row.link])).not.toContainEqual(["s1", "cwd"]);
  });
});

describe("a store on a network file system", () => {
  const shared = { isShared: true };
  const why: OwnerDoubt = { code: "network-store" };
  const mayRun: OwnerDoubt = { code: "may-be-on-other-host", pid: 10 };
  const bare = { boot: null, namespace: null };
  const on = (...announcements: Parameters<typeof store>[2] & object) => [
    store("speaker", [record("s1")], announcements, shared),
  ];
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    ["without an announcement", { stores: on() }, [unknown("s1", why)]],
    [
      "with a process here",
      { processes: [process(10, "speaker")], stores: on(announcement(10, "s1")) },
      [running("s1", [10], "announced")],
    ],
    ["with a dead process of this boot", { stores: on(announcement(10, "s1")) }, [stopped("s1")]],
    [
      "with a dead process of this host",
      { host: "m1", stores: on(announcement(10, "s1", { ...bare, host: "m1" })) },
      [stopped("s1")],
    ],
    [
      "with a process of an unnamed host",
      { host: "m1", stores: on(announcement(10, "s1", bare)) },
      [unknown("s1", mayRun)],
    ],
    [
      "with a process of another boot, which may be one of another host",
      { stores: on(announcement(10, "s1", { boot: "boot-0" })) },
      [unknown("s1", mayRun)],
    ],
    [
      "with a pid alone that a process here has, too",
      {
        processes: [process(10, "speaker", { argv: ["speaker", "helper"] })],
        stores: on(announcement(10, "s1", { ...bare, start: null })),
      },
      [unknown("s1", mayRun)],
    ],
    [
      "with pid and start of a process here",
      { processes: [process(10, "speaker")], stores: on(announcement(10, "s1", bare)) },
      [running("s1", [10], "announced")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  test("an announcement of another user does not prove that a process of this host is dead", () => {
    const word = { pid: 10, uid: 42, reading: read(announcement(10, "s1")) };
    expect(look({ stores: on(word) })).toEqual([unknown("s1", why)]);
  });

  test("links nothing by directory, because a directory of the same name may be on another host", () => {
    const stores = [store("mute", [record("s1")], [], shared)];
    expect(look({ processes: [process(10, "mute")], stores })[0]).toMatchObject({ id: "s1", state: "unknown" });
  });
});

describe("an announcement that names another host", () => {
  const far = { boot: null, host: "m2" };
  const elsewhere = unknown("s1", { code: "announced-by-other-host", pid: 10, host: "m2" });
  const stores = [store("speaker", [record("s1")], [announcement(10, "s1", far)])];

  test("matches no process of this host, whatever its pid and start", () => {
    const partial = { host: "m1", processes: [process(10, "speaker", { argv: ["speaker", "helper"] })], stores };
    expect(look(partial)).toEqual([elsewhere]);
    expect(look({ ...partial, host: "m2", processes: [process(10, "speaker")] })).toEqual([
      running("s1", [10], "announced"),
    ]);
  });

  test("matches a container of this host with another machine id if exactly that process is seen", () => {
    const contained = [store("speaker", [s1], [{ ...word, ...far, pid: 7 }])];
    expect(look({ host: "m1", processes: [inside()], stores: contained })).toEqual([running("s1", [500], "announced")]);
    const recycled = inside({ start: "7777", argv: ["speaker", "helper"] });
    expect(look({ host: "m1", processes: [recycled], stores: contained })[0]?.state).toBe("unknown");
  });

  test("proves nothing if the id of this host is unknown", () => {
    expect(look({ processes: [process(10, "speaker")], stores })).toEqual([running("s1", [10], "announced")]);
  });
});

// "An mtime before boot is only shown as a conflict when pid, start ticks and executable match."
test("an announcement far older than its process, with its pid, start and program, is shown as a conflict", () => {
  const old = announcement(10, "s1", { boot: null, writtenAt: ago(60 * 24 * 365) });
  const [session] = derive({
    processes: [process(10, "speaker")],
    stores: [store("speaker", [record("s1")], [old])],
  }).sessions;
  expect(session?.status.state).toBe("running");
  expect(session?.conflicts.length).toBe(1);
});
