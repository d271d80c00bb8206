// Rule 13: who may be believed about whom.
import { describe, expect, test } from "bun:test";
import { familyOf } from "../../../src/core/family.ts";
import { read, unread } from "../../../src/core/problem.ts";
import type { ProcessTable } from "../../../src/core/process.ts";
import {
  boot,
  claim,
  derive,
  fileOf,
  host,
  hosted,
  look,
  me,
  ownNamespace,
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

const other = 42;
const announced = (uid: number | null, pid = 10, session = "s1") => ({
  pid,
  uid,
  reading: read(claim(pid, session)),
});
const theirs = { ours: false, env: null };
const notBelieved = (uid: number, owner: string) =>
  `the announcement is a file of uid ${uid}, but process 10 is ${owner}`;

describe("an announcement counts for a process", () => {
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "of ours, in a file of ours",
      { processes: [process(10, "speaker")], stores: [store("speaker", [record("s1")], [announced(me)])] },
      [running("s1", [10], "announced")],
    ],
    [
      "of ours, in another user's file: not",
      {
        processes: [process(10, "speaker")],
        stores: [store("speaker", [record("s2", { lastMessageAt: 1 })], [announced(other)])],
      },
      [unknown("s1", notBelieved(other, `of uid ${me}`)), stopped("s2"), unrecorded(10)],
    ],
    [
      "of another user, in that user's file",
      {
        processes: [process(10, "speaker", { ...theirs, uid: other })],
        stores: [store("speaker", [record("s1")], [announced(other)])],
      },
      [running("s1", [10], "announced")],
    ],
    [
      "of another user, in a third user's file: not",
      {
        processes: [process(10, "speaker", { ...theirs, uid: other })],
        stores: [store("speaker", [fileOf(43, record("s1"))], [announced(43)])],
      },
      [unknown("s1", notBelieved(43, `of uid ${other}`))],
    ],
    [
      "of no single user (setuid), in the file of one of its users: not",
      {
        processes: [process(10, "speaker", { ...theirs, uid: null })],
        stores: [store("speaker", [fileOf(other, record("s1"))], [announced(other)])],
      },
      [unknown("s1", notBelieved(other, "no single user's"))],
    ],
    [
      "of ours, in a file whose owner cannot be seen: not",
      { processes: [process(10, "speaker")], stores: [store("speaker", [], [announced(null)])] },
      [unknown("s1", "whose file it is cannot be seen, but process 10 is of uid 1000"), unrecorded(10)],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  test("a forged one takes nothing away from the one that is true, and puts no session of ours in doubt", () => {
    const past = { lastMessageAt: 1, writtenAt: 1 };
    const stores = [store("speaker", [record("s1"), record("s2", past)], [announced(other, 10, "s2"), announced(me)])];
    expect(look({ processes: [process(10, "speaker")], stores })).toEqual([
      running("s1", [10], "announced"),
      stopped("s2"),
    ]);
  });

  test("one of another user that cannot be read leaves only that user's sessions in doubt", () => {
    const past = { lastMessageAt: 1, writtenAt: 1 };
    const broken = { pid: 10, uid: other, reading: unread(problem("claim-unreadable", "/live/10.json")) };
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

  test("speaks for the processes in there, and for no other", () => {
    const stores = [store("speaker", [record("s1")], [announced(me), announced(me, 11, "s2")], only)];
    const outside = process(11, "speaker", { env: { HOME: "/elsewhere" } });
    expect(look({ processes: [inside, outside], stores })).toEqual([
      running("s1", [10], "announced"),
      unknown(
        "s2",
        "announced in a home that only a sandboxed process names, and process 11 is outside of the sandbox",
      ),
      unrecorded(11),
    ]);
  });

  test("does not take in a process of another sandbox, or one whose home is not known", () => {
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

  test("is not linked to a process of ours by arguments", () => {
    const rows = look({ processes: [process(10, "mute", { argv })], stores: [store("mute", foreign)] });
    const why = `process 10 was started with it, but its record is a file of uid ${other}`;
    expect(rows.find(({ id }) => id === "s1")).toMatchObject({
      state: "unknown",
      reason: expect.stringContaining("process 10"),
    });
    expect(
      derive({ processes: [process(10, "mute", { argv })], stores: [store("mute", foreign)] })
        .sessions.find(({ id }) => id === "s1")
        ?.evidence.map(({ value }) => value),
    ).toContain(why);
  });

  test("is not linked to an interface of ours that may have gone on, either", () => {
    const moved = process(10, "mute", { argv: [...argv, "--interface"] });
    const [row] = look({ processes: [moved], stores: [store("mute", foreign)] });
    expect(row).toMatchObject({ id: "s1", state: "unknown" });
  });

  test("is not linked to a process of ours by directory", () => {
    const [row] = look({ processes: [process(10, "mute")], stores: [store("mute", foreign)] });
    expect(row).toMatchObject({ id: "s1", state: "unknown" });
  });

  test("does not speak in place of ours, however young it is", () => {
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

describe("what ends with a session", () => {
  const tableOf = (rows: ProcessTable["rows"]): ProcessTable => ({
    ...{ boot, uid: me, namespace: { id: ownNamespace, initial: true }, rows, gaps: [], hidden: [] },
  });
  const marks = { childMarks: new Map([["speaker", "SPEAKER_SESSION"]]), launches: [] };
  const shell = (pid: number, env: Record<string, string>) =>
    process(pid, "mute", { name: "bash", argv: ["bash"], env, startedAt: 1 });

  test("the id of another user's record makes no process of ours its member", () => {
    const tool = shell(20, { SPEAKER_SESSION: "s1" });
    const membersFor = (uid: number) => {
      const { sessions } = derive({ stores: [store("speaker", [fileOf(uid, record("s1"))])] });
      const [session] = sessions;
      if (session === undefined) throw new Error("no session");
      return familyOf(session, sessions, tableOf([tool]), marks, new Set()).members.map(({ identity }) => identity.pid);
    };
    expect([membersFor(me), membersFor(other)]).toEqual([[20], []]);
  });

  test("the tag of a confined owner does not end another launch", () => {
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

  test("of a user that cannot be read may have any", () => {
    const unreadable = { ...theirs, uid: null, unread: [problem("process-unreadable", "/proc/10/status")] };
    const server = process(10, "pool", { argv: ["pool", "serve"], ...unreadable });
    expect(look({ processes: [server], stores: [store("pool", [record("s1")])] })[0]?.state).toBe("unknown");
  });

  test("of ours that answers is believed about its home", () => {
    const server = process(10, "pool", { argv: ["pool", "serve"] });
    const world = { processes: [server], stores: [store("pool", [record("s1")])] };
    const rows = look({ ...world, hosts: [host(server, [hosted("s1", "working")])] });
    expect(rows[0]).toMatchObject({ id: "s1", state: "running", link: "host" });
  });
});

test("where other users' processes are hidden, a record of another user is not proven to be nobody's", () => {
  const stores = [store("mute", [record("s1"), fileOf(other, record("s2"))])];
  const why = `its record is a file of uid ${other}, and this system hides other users' processes from us (hidepid)`;
  expect(look({ othersAreHidden: true, stores })).toEqual([stopped("s1"), unknown("s2", why)]);
});

test("a process whose user cannot be read is no owner, but keeps its agent's sessions from being stopped", () => {
  const unreadable = { ...theirs, uid: null, unread: [problem("process-unreadable", "/proc/10/status")] };
  const world = { processes: [process(10, "mute", unreadable)], stores: [store("mute", [record("s1")])] };
  expect(look(world)).toMatchObject([
    { id: "s1", state: "unknown", reason: expect.stringContaining("could not be read") },
  ]);
  expect(derive(world).complete).toBe(false);
});
