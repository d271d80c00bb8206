// Rule 1 for served sessions: a session runs only if its server names it; a silent server leaves its sessions unknown.

import { describe, expect, test } from "bun:test";
import type { Waiting } from "../../../src/core/evidence.ts";
import type { OwnerDoubt } from "../../../src/core/reason.ts";
import {
  ago,
  announcement,
  badRecord,
  derive,
  look,
  open,
  type PartialEvidence,
  process,
  type RowChange,
  record,
  running,
  type Seen,
  served,
  serverAnswer,
  stopped,
  store,
  stranger,
  systemError,
  unknown,
} from "./build-evidence.ts";

const asks: Waiting = { kind: "question", text: "Which?", tool: null, options: [] };
const serve = (change: RowChange = {}, pid = 20) => process(pid, "pool", { argv: ["pool", "serve"], ...change });
const server = serve();
const s1 = record("s1");
const old = record("s2", { writtenAt: ago(60), lastMessageAt: ago(60) });
const both = [store("pool", [s1, old])];
const silent = unknown("s1", { code: "server-silent", address: "/run/server" });
const runs = (change: Partial<Seen> = {}) => running("s1", [20], "server", change);

describe("a server that answers", () => {
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "working",
      { processes: [server], stores: both, servers: [serverAnswer(server, [served("s1", "working")])] },
      [runs({ activity: "working" }), stopped("s2")],
    ],
    [
      "waiting",
      { processes: [server], stores: both, servers: [serverAnswer(server, [served("s1", "waiting", asks)])] },
      [runs({ activity: "waiting", waiting: asks }), stopped("s2")],
    ],
    [
      "reports idle although the record has an open turn",
      {
        processes: [server],
        stores: [store("pool", [record("s1", { turn: open })])],
        servers: [serverAnswer(server, [served("s1", "idle")])],
      },
      [runs({ activity: "idle" })],
    ],
    [
      "names no session, so all are stopped",
      { processes: [server], stores: both, servers: [serverAnswer(server, [])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "names a session without a record",
      { processes: [server], servers: [serverAnswer(server, [served("s9", "working")])] },
      [running("s9", [20], "server", { activity: "working" })],
    ],
    [
      "is also an interface: it has only the sessions that it names",
      {
        processes: [process(20, "pool")],
        stores: [store("pool", [s1, record("s3")])],
        servers: [serverAnswer(process(20, "pool"), [served("s1", "working")])],
      },
      [runs({ activity: "working" }), stopped("s3")],
    ],
    [
      "suspended",
      {
        processes: [serve({ state: "T" })],
        stores: [store("pool", [s1])],
        servers: [serverAnswer(server, [served("s1", "working")])],
      },
      [runs({ activity: "working", reason: { code: "suspended" } })],
    ],
    [
      "its process ended after the answer",
      { stores: both, servers: [serverAnswer(server, [served("s1", "working")])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "its process is a zombie",
      { processes: [serve({ state: "Z" })], stores: both, servers: [serverAnswer(server, [served("s1", "working")])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "its pid belongs to another program now",
      {
        processes: [stranger(20, { start: "7777" })],
        stores: both,
        servers: [serverAnswer(server, [served("s1", "working")])],
      },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "a gateway without a process here",
      { stores: both, servers: [serverAnswer(null, [served("s1", "working")])] },
      [running("s1", [], "server", { activity: "working" }), stopped("s2")],
    ],
    [
      "a gateway answers although the process table failed",
      { processes: "failed", stores: [store("pool", [s1])], servers: [serverAnswer(null, [served("s1", "working")])] },
      [running("s1", [], "server", { activity: "working" })],
    ],
    [
      "two servers name one session",
      {
        processes: [server, serve({}, 21)],
        stores: [store("pool", [s1])],
        servers: [
          serverAnswer(server, [served("s1", "idle")]),
          serverAnswer(serve({}, 21), [served("s1", "working")], "/run/b"),
        ],
      },
      [
        running("s1", [20, 21], "server", {
          activity: "working",
          conflicts: [{ code: "several-processes", pids: [20, 21] }],
        }),
      ],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  test("is the owner of its sessions, with its address", () => {
    const partial = { processes: [server], stores: both, servers: [serverAnswer(server, [served("s1", "idle")])] };
    const session = derive(partial).sessions.find(({ id }) => id === "s1");
    expect(session?.status).toEqual({
      state: "running",
      activity: "idle",
      owner: { kind: "server", process: server.identity, address: "/run/server" },
    });
  });

  test("is another process if its identity is from another boot", () => {
    const before = { ...server, identity: { ...server.identity, boot: "boot-0" } };
    const rows = look({
      processes: [stranger(20)],
      stores: [store("pool", [s1])],
      servers: [serverAnswer(before, [served("s1", "working")])],
    });
    expect(rows).toEqual([stopped("s1")]);
  });
});

describe("a server that does not answer", () => {
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "may have only sessions that were written since it started",
      { processes: [server], stores: both, servers: [serverAnswer(server, "silent")] },
      [silent, stopped("s2")],
    ],
    [
      "may have the session of an unreadable record",
      { processes: [server], stores: [store("pool", [badRecord("s1")])], servers: [serverAnswer(server, "silent")] },
      [silent],
    ],
    [
      "may have the session of a record without a time",
      {
        processes: [server],
        stores: [store("pool", [record("s1", { writtenAt: null })])],
        servers: [serverAnswer(server, "silent")],
      },
      [silent],
    ],
    [
      "may have all sessions if it is a gateway without a process",
      { stores: both, servers: [serverAnswer(null, "silent")] },
      [silent, unknown("s2", { code: "server-silent", address: "/run/server" })],
    ],
    [
      "is dead, so no session is in doubt",
      { stores: both, servers: [serverAnswer(server, "silent")] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "of another home",
      {
        processes: [server],
        stores: [store("pool", [s1], [], { home: "/other" })],
        servers: [serverAnswer(server, "silent")],
      },
      [stopped("s1")],
    ],
    [
      "does not matter if another process names the session",
      {
        processes: [server, process(10, "pool", { argv: ["pool", "--resume", "s1"] })],
        stores: both,
        servers: [serverAnswer(server, "silent")],
      },
      [running("s1", [10], "argv"), stopped("s2")],
    ],
    [
      "was found in the process table but not asked",
      { processes: [server], stores: both },
      [unknown("s1", { code: "server-silent", address: "process 20" }), stopped("s2")],
    ],
    [
      "does not count if it is only a helper",
      { processes: [serve({ argv: ["pool", "helper"] })], stores: both },
      [stopped("s1"), stopped("s2")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  // Rule 1: a process is pid, start and boot; that its pid was asked before says nothing about the server that has it now.
  test("a new server with the pid of an ended server counts as not asked", () => {
    const rows = look({
      processes: [serve({ start: "7777" })],
      stores: [store("pool", [s1])],
      servers: [serverAnswer(server, [])],
    });
    expect(rows.map((row) => row.state)).toEqual(["unknown"]);
  });
});

describe("two gateways", () => {
  test("give the same row in every order if both name one session", () => {
    const a = serverAnswer(null, [served("s1", "idle")], "https://a");
    const b = serverAnswer(null, [served("s1", "waiting", asks)], "https://b");
    const stores = [store("pool", [s1])];
    expect(look({ stores, servers: [a, b] })).toEqual(look({ stores, servers: [b, a] }));
    expect(derive({ stores, servers: [a, b] }).sessions).toEqual(derive({ stores, servers: [b, a] }).sessions);
    expect(look({ stores, servers: [a, b] }).map((row) => row.activity)).toEqual(["waiting"]);
  });
});

describe("a server that holds locks", () => {
  const holds = (...ids: string[]) =>
    process(30, "locker", { argv: ["locker", "serve"], lockedFiles: ids.map((id) => `/locks/${id}.lock`) });
  const stores = [store("locker", [record("s1", { turn: open }), record("s2")])];
  const cases: [name: string, partial: PartialEvidence, expected: Seen[]][] = [
    [
      "has the sessions whose locks it holds; the record gives the activity",
      { processes: [holds("s1")], stores },
      [running("s1", [30], "server", { activity: "working" }), stopped("s2")],
    ],
    [
      "holds two",
      { processes: [holds("s1", "s2")], stores },
      [running("s1", [30], "server", { activity: "working" }), running("s2", [30], "server")],
    ],
    [
      "holds no lock, so it has no session and none is in doubt",
      { processes: [holds()], stores },
      [stopped("s1", { outcome: "cut-off", reason: { code: "died-in-turn" } }), stopped("s2")],
    ],
    [
      "has no session by its arguments or its directory",
      { processes: [process(30, "locker", { argv: ["locker", "serve", "--resume", "s2"] })], stores },
      [stopped("s1", { outcome: "cut-off", reason: { code: "died-in-turn" } }), stopped("s2")],
    ],
  ];
  test.each(cases)("%s", (_name, partial, expected) => expect(look(partial)).toEqual(expected));

  test("may have any session of its agent if its descriptors are unreadable", () => {
    const unread = [
      { code: "process-unreadable" as const, agent: null, source: "/proc/30/fd", detail: systemError("EACCES") },
    ];
    const why: OwnerDoubt = { code: "process-unreadable", pid: 30, name: "locker", detail: systemError("EACCES") };
    const rows = look({ processes: [process(30, "locker", { argv: ["locker", "serve"], unread })], stores });
    expect(rows).toEqual([unknown("s1", why), unknown("s2", why)]);
  });
});

describe("a server that announces in records", () => {
  const says = (isOver: boolean) => [
    store(
      "pool",
      [record("s1", { turn: open, isOver }), record("s2", { turn: open })],
      [announcement(20, "s1", { isOver })],
    ),
  ];
  const mayHave = unknown("s2", { code: "server-silent", address: "process 20" });

  test("has the sessions recorded under its pid, and may have every session that is not over", () => {
    const one = derive({ processes: [server], stores: says(false) }).sessions.find(({ id }) => id === "s1");
    expect(one?.status).toMatchObject({ state: "running", activity: "working", owner: { kind: "server" } });
    expect(look({ processes: [server], stores: says(false) })).toContainEqual(mayHave);
  });

  test("does not have a session whose record says that it is over", () => {
    const seen = look({ processes: [server], stores: says(true) });
    expect(seen.map(({ id, state }) => [id, state])).toEqual([
      ["s1", "stopped"],
      ["s2", "unknown"],
    ]);
  });

  test("may live on after it left a session", () => {
    const stores = [store("speaker", [record("s1")], [announcement(10, "s1", { isOver: true })])];
    const { sessions } = derive({ processes: [process(10, "speaker")], stores });
    expect(sessions.map(({ id, status }) => [id, status.state])).toContainEqual([null, "running"]);
    expect(sessions.find(({ id }) => id === "s1")?.status.state).not.toBe("running");
  });
});
