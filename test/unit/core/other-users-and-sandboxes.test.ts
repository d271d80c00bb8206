// Rule 13: files of another user or of a sandbox prove nothing about our processes.

import { describe, expect, test } from "bun:test";
import { familyOf } from "../../../src/core/family.ts";
import { read, unread } from "../../../src/core/problem.ts";
import type { ProcessTable } from "../../../src/core/process.ts";
import type { OwnerDoubt } from "../../../src/core/reason.ts";
import {
  announcement,
  boot,
  derive,
  fileOf,
  look,
  me,
  ownNamespace,
  type PartialEvidence,
  problem,
  process,
  record,
  running,
  type Seen,
  served,
  serverAnswer,
  stopped,
  store,
  unknown,
  unrecorded,
} from "./build-evidence.ts";

const other = 42;
const announced = (uid: number | null, pid = 10, session = "s1") => ({
  pid,
  uid,
  reading: read(announcement(pid, session)),
});
const theirs = { ours: false, env: null };
const notBelieved = (fileUid: number | null, processUid: number | null): OwnerDoubt => ({
  ...{ code: "file-of-other-user", pid: 10 },
  fileUid,
  processUid,
});

describe("an announcement", () => {
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "counts for our process in our file",
      { processes: [process(10, "speaker")], stores: [store("speaker", [record("s1")], [announced(me)])] },
      [running("s1", [10], "announced")],
    ],
    [
      "does not count for our process in another user's file",
      {
        processes: [process(10, "speaker")],
        stores: [store("speaker", [record("s2", { lastMessageAt: 1 })], [announced(other)])],
      },
      [unknown("s1", notBelieved(other, me)), stopped("s2"), unrecorded(10)],
    ],
    [
      "counts for another user's process in that user's file",
      {
        processes: [process(10, "speaker", { ...theirs, uid: other })],
        stores: [store("speaker", [record("s1")], [announced(other)])],
      },
      [running("s1", [10], "announced")],
    ],
    [
      "does not count for another user's process in a third user's file",
      {
        processes: [process(10, "speaker", { ...theirs, uid: other })],
        stores: [store("speaker", [fileOf(43, record("s1"))], [announced(43)])],
      },
      [unknown("s1", notBelieved(43, other))],
    ],
    [
      "does not count for a setuid process in the file of one of its users",
      {
        processes: [process(10, "speaker", { ...theirs, uid: null })],
        stores: [store("speaker", [fileOf(other, record("s1"))], [announced(other)])],
      },
      [unknown("s1", notBelieved(other, null))],
    ],
    [
      "does not count for our process in a file with an unknown owner",
      { processes: [process(10, "speaker")], stores: [store("speaker", [], [announced(null)])] },
      [unknown("s1", notBelieved(null, me)), unrecorded(10)],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  test("that is forged does not weaken the true one and puts no session of ours in doubt", () => {
    const past = { lastMessageAt: 1, writtenAt: 1 };
    const stores = [store("speaker", [record("s1"), record("s2", past)], [announced(other, 10, "s2"), announced(me)])];
    expect(look({ processes: [process(10, "speaker")], stores })).toEqual([
      running("s1", [10], "announced"),
      stopped("s2"),
    ]);
  });

  test("of another user that cannot be read leaves only that user's sessions in doubt", () => {
    const past = { lastMessageAt: 1, writtenAt: 1 };
    const broken = { pid: 10, uid: other, reading: unread(problem("announcement-unreadable", "/live/10.json")) };
    const stores = [
      store("speaker", [record("s1"), record("s2", past), fileOf(other, record("s3", past))], [announced(me), broken]),
    ];
    const states = look({ processes: [process(10, "speaker")], stores }).map(({ id, state }) => [id, state]);
    expect(states).toEqual([
      ["s1", "running"],
      ["s2", "stopped"],
      ["s3", "unknown"],
    ]);
  });
});

describe("a home that only a confined process names", () => {
  const box = "pid:[2] mnt:[1] user:[2]";
  const inside = process(10, "speaker", { confinement: box });
  const only = { namedOnlyIn: [box] };

  test("announces sessions only of processes in that sandbox", () => {
    const stores = [store("speaker", [record("s1")], [announced(me), announced(me, 11, "s2")], only)];
    const outside = process(11, "speaker", { env: { HOME: "/elsewhere" } });
    expect(look({ processes: [inside, outside], stores })).toEqual([
      running("s1", [10], "announced"),
      unknown("s2", { code: "outside-sandbox", pid: 11 }),
      unrecorded(11),
    ]);
  });

  test("proves no session of a process in another sandbox or with an unknown home", () => {
    const argv = ["mute", "--resume", "s1"];
    const stores = [store("mute", [record("s1")], [], only)];
    for (const confinement of ["pid:[3] mnt:[1] user:[3]", null]) {
      const stray = process(10, "mute", { argv, env: null, confinement });
      expect(look({ processes: [stray], stores }).find(({ id }) => id === "s1")?.state).not.toBe("running");
    }
  });
});

describe("a record of another user", () => {
  const foreign = [fileOf(other, record("s1"))];
  const argv = ["mute", "--resume", "s1"];

  test("is never linked to our process by arguments", () => {
    const rows = look({ processes: [process(10, "mute", { argv })], stores: [store("mute", foreign)] });
    const why: OwnerDoubt = { code: "record-of-other-user", pid: 10, uid: other };
    expect(rows.find(({ id }) => id === "s1")?.state).toBe("unknown");
    expect(
      derive({ processes: [process(10, "mute", { argv })], stores: [store("mute", foreign)] })
        .sessions.find(({ id }) => id === "s1")
        ?.evidence.map(({ fact }) => fact),
    ).toContainEqual({ code: "not-proven", why });
  });

  test("is never linked to our interface that may have changed its session", () => {
    const moved = process(10, "mute", { argv: [...argv, "--interface"] });
    const [row] = look({ processes: [moved], stores: [store("mute", foreign)] });
    expect(row).toMatchObject({ id: "s1", state: "unknown" });
  });

  test("is never linked to our process by directory", () => {
    const [row] = look({ processes: [process(10, "mute")], stores: [store("mute", foreign)] });
    expect(row).toMatchObject({ id: "s1", state: "unknown" });
  });

  test("does not replace our record, even if it is newer", () => {
    const forged = fileOf(other, record("s1", { source: "/forged", lastMessageAt: Date.now() }));
    for (const rows of [
      [record("s1"), forged],
      [forged, record("s1")],
    ]) {
      const [session] = derive({ stores: [store("mute", rows)] }).sessions;
      expect([session?.record?.source, session?.recordOwner]).toEqual(["/records/s1.jsonl", me]);
    }
  });
});

describe("the processes that stop with a session", () => {
  const tableOf = (rows: ProcessTable["rows"]): ProcessTable => ({
    ...{ boot, uid: me, namespace: { id: ownNamespace, initial: true }, rows, gaps: [], hidden: [] },
  });
  const marks = { sessionVariables: new Map([["speaker", "SPEAKER_SESSION"]]), launches: [] };
  const shell = (pid: number, env: Record<string, string>) =>
    process(pid, "mute", { name: "bash", argv: ["bash"], env, startedAt: 1 });

  test("do not include our process because it names the id of another user's record", () => {
    const tool = shell(20, { SPEAKER_SESSION: "s1" });
    const membersFor = (uid: number) => {
      const { sessions } = derive({ stores: [store("speaker", [fileOf(uid, record("s1"))])] });
      const [session] = sessions;
      if (session === undefined) throw new Error("no session");
      return familyOf(session, sessions, tableOf([tool]), marks, new Set()).members.map(({ identity }) => identity.pid);
    };
    expect([membersFor(me), membersFor(other)]).toEqual([[20], []]);
  });

  test("do not include another launch because a confined owner carries its tag", () => {
    const env = { HOME: "/home/me", AGENTCTL_TAG: "l1", AGENTCTL_TAG_SID: "10" };
    const membersFor = (confinement: string | null) => {
      const owner = process(10, "speaker", { env, confinement });
      const { sessions } = derive({ processes: [owner], stores: [store("speaker", [], [announced(me)])] });
      const [session] = sessions;
      if (session === undefined) throw new Error("no session");
      const table = tableOf([owner, shell(20, { AGENTCTL_TAG: "l1" })]);
      return familyOf(session, sessions, table, marks, new Set()).members.map(({ identity }) => identity.pid);
    };
    expect([membersFor(null), membersFor("box")]).toEqual([[20], []]);
  });
});

describe("a server", () => {
  test("of another user has only that user's sessions", () => {
    const server = process(10, "pool", { argv: ["pool", "serve"], ...theirs, uid: other });
    const stores = [store("pool", [record("s1"), fileOf(other, record("s2"))])];
    expect(look({ processes: [server], stores }).map(({ id, state }) => [id, state])).toEqual([
      ["s1", "stopped"],
      ["s2", "unknown"],
    ]);
  });

  test("of an unknown user may have any session", () => {
    const unreadable = { ...theirs, uid: null, unread: [problem("process-unreadable", "/proc/10/status")] };
    const server = process(10, "pool", { argv: ["pool", "serve"], ...unreadable });
    expect(look({ processes: [server], stores: [store("pool", [record("s1")])] })[0]?.state).toBe("unknown");
  });

  test("of this user that answers proves the sessions of its home", () => {
    const server = process(10, "pool", { argv: ["pool", "serve"] });
    const partial = { processes: [server], stores: [store("pool", [record("s1")])] };
    const rows = look({ ...partial, servers: [serverAnswer(server, [served("s1", "working")])] });
    expect(rows[0]).toMatchObject({ id: "s1", state: "running", link: "server" });
  });
});

test("if other users' processes are hidden, a record of another user may have a process", () => {
  const stores = [store("mute", [record("s1"), fileOf(other, record("s2"))])];
  const why: OwnerDoubt = { code: "hidden-from-user", uid: other };
  expect(look({ othersAreHidden: true, stores })).toEqual([stopped("s1"), unknown("s2", why)]);
});

test("a process of an unknown user owns no session, but no session of its agent is proven stopped", () => {
  const unreadable = { ...theirs, uid: null, unread: [problem("process-unreadable", "/proc/10/status")] };
  const partial = { processes: [process(10, "mute", unreadable)], stores: [store("mute", [record("s1")])] };
  expect(look(partial)).toMatchObject([
    { id: "s1", state: "unknown", reason: { code: "process-unreadable", pid: 10 } },
  ]);
  expect(derive(partial).complete).toBe(false);
});
