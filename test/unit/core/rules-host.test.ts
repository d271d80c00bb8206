// Rule 1 for hosted sessions: running only if the host names it; a silent host leaves open only what it may have written.
import { describe, expect, test } from "bun:test";
import type { Waiting } from "../../../src/core/evidence.ts";
import {
  ago,
  badRecord,
  claim,
  derive,
  host,
  hosted,
  look,
  open,
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

const asks: Waiting = { kind: "question", text: "Which?", tool: null, options: [] };
const serve = (change: RowChange = {}, pid = 20) => process(pid, "pool", { argv: ["pool", "serve"], ...change });
const server = serve();
const s1 = record("s1");
const old = record("s2", { writtenAt: ago(60), lastMessageAt: ago(60) });
const both = [store("pool", [s1, old])];
const silent = unknown("s1", "its host /run/host does not answer");
const runs = (change: Partial<Seen> = {}) => running("s1", [20], "host", change);

describe("a host that answers", () => {
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "working",
      { processes: [server], stores: both, hosts: [host(server, [hosted("s1", "working")])] },
      [runs({ activity: "working" }), stopped("s2")],
    ],
    [
      "waiting",
      { processes: [server], stores: both, hosts: [host(server, [hosted("s1", "waiting", asks)])] },
      [runs({ activity: "waiting", waiting: asks }), stopped("s2")],
    ],
    [
      "idle, over a record that is open",
      {
        processes: [server],
        stores: [store("pool", [record("s1", { turn: open })])],
        hosts: [host(server, [hosted("s1", "idle")])],
      },
      [runs({ activity: "idle" })],
    ],
    [
      "names none: all stopped",
      { processes: [server], stores: both, hosts: [host(server, [])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "names one without a record",
      { processes: [server], hosts: [host(server, [hosted("s9", "working")])] },
      [running("s9", [20], "host", { activity: "working" })],
    ],
    [
      "an interface that is a host as well has what it names, and nothing else of its directory",
      {
        processes: [process(20, "pool")],
        stores: [store("pool", [s1, record("s3")])],
        hosts: [host(process(20, "pool"), [hosted("s1", "working")])],
      },
      [runs({ activity: "working" }), stopped("s3")],
    ],
    [
      "suspended",
      {
        processes: [serve({ state: "T" })],
        stores: [store("pool", [s1])],
        hosts: [host(server, [hosted("s1", "working")])],
      },
      [runs({ activity: "working", reason: "suspended" })],
    ],
    [
      "its process ended after the answer",
      { stores: both, hosts: [host(server, [hosted("s1", "working")])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "its process is a zombie",
      { processes: [serve({ state: "Z" })], stores: both, hosts: [host(server, [hosted("s1", "working")])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "its pid is now a stranger's",
      { processes: [stranger(20, { start: "7777" })], stores: both, hosts: [host(server, [hosted("s1", "working")])] },
      [stopped("s1"), stopped("s2")],
    ],
    [
      "a gateway without a process here",
      { stores: both, hosts: [host(null, [hosted("s1", "working")])] },
      [running("s1", [], "host", { activity: "working" }), stopped("s2")],
    ],
    [
      "a gateway answers even where the process table failed",
      { processes: "failed", stores: [store("pool", [s1])], hosts: [host(null, [hosted("s1", "working")])] },
      [running("s1", [], "host", { activity: "working" })],
    ],
    [
      "two hosts name one session",
      {
        processes: [server, serve({}, 21)],
        stores: [store("pool", [s1])],
        hosts: [host(server, [hosted("s1", "idle")]), host(serve({}, 21), [hosted("s1", "working")], "/run/b")],
      },
      [
        running("s1", [20, 21], "host", {
          activity: "working",
          conflicts: ["2 live processes have this session: 20, 21"],
        }),
      ],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  test("the owner is the host, with its address", () => {
    const world = { processes: [server], stores: both, hosts: [host(server, [hosted("s1", "idle")])] };
    const session = derive(world).sessions.find(({ id }) => id === "s1");
    expect(session?.status).toEqual({
      state: "running",
      activity: "idle",
      owner: { kind: "host", process: server.identity, address: "/run/host" },
    });
  });

  test("an identity of another boot is another process", () => {
    const before = { ...server, identity: { ...server.identity, boot: "boot-0" } };
    const rows = look({
      processes: [stranger(20)],
      stores: [store("pool", [s1])],
      hosts: [host(before, [hosted("s1", "working")])],
    });
    expect(rows).toEqual([stopped("s1")]);
  });
});

describe("a host that does not answer", () => {
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "only what was written since it started",
      { processes: [server], stores: both, hosts: [host(server, "silent")] },
      [silent, stopped("s2")],
    ],
    [
      "a record that cannot be read may be any",
      { processes: [server], stores: [store("pool", [badRecord("s1")])], hosts: [host(server, "silent")] },
      [silent],
    ],
    [
      "a record without a time of writing",
      {
        processes: [server],
        stores: [store("pool", [record("s1", { writtenAt: null })])],
        hosts: [host(server, "silent")],
      },
      [silent],
    ],
    [
      "a gateway without a process: all its sessions",
      { stores: both, hosts: [host(null, "silent")] },
      [silent, unknown("s2", "its host /run/host does not answer")],
    ],
    ["dead: nothing to doubt", { stores: both, hosts: [host(server, "silent")] }, [stopped("s1"), stopped("s2")]],
    [
      "of another home",
      { processes: [server], stores: [store("pool", [s1], [], { home: "/other" })], hosts: [host(server, "silent")] },
      [stopped("s1")],
    ],
    [
      "named by another process all the same",
      {
        processes: [server, process(10, "pool", { argv: ["pool", "--resume", "s1"] })],
        stores: both,
        hosts: [host(server, "silent")],
      },
      [running("s1", [10], "argv"), stopped("s2")],
    ],
    [
      "in the table, never asked",
      { processes: [server], stores: both },
      [unknown("s1", "its host process 20 does not answer"), stopped("s2")],
    ],
    [
      "a helper is no host",
      { processes: [serve({ argv: ["pool", "helper"] })], stores: both },
      [stopped("s1"), stopped("s2")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  // Rule 1: a process is pid, start and boot; that its pid was asked before says nothing about the host that has it now.
  test("a new host on the pid of one that was asked and ended was never asked", () => {
    const rows = look({
      processes: [serve({ start: "7777" })],
      stores: [store("pool", [s1])],
      hosts: [host(server, [])],
    });
    expect(rows.map((row) => row.state)).toEqual(["unknown"]);
  });
});

describe("two gateways", () => {
  test("both name one session: the order of asking does not show", () => {
    const a = host(null, [hosted("s1", "idle")], "https://a");
    const b = host(null, [hosted("s1", "waiting", asks)], "https://b");
    const stores = [store("pool", [s1])];
    expect(look({ stores, hosts: [a, b] })).toEqual(look({ stores, hosts: [b, a] }));
    expect(derive({ stores, hosts: [a, b] }).sessions).toEqual(derive({ stores, hosts: [b, a] }).sessions);
    expect(look({ stores, hosts: [a, b] }).map((row) => row.activity)).toEqual(["waiting"]);
  });
});

describe("a host that holds locks", () => {
  const holds = (...ids: string[]) =>
    process(30, "locker", { argv: ["locker", "serve"], lockedFiles: ids.map((id) => `/locks/${id}.lock`) });
  const stores = [store("locker", [record("s1", { turn: open }), record("s2")])];
  const cases: [name: string, world: World, expected: Seen[]][] = [
    [
      "names what it holds; the record says how far it is",
      { processes: [holds("s1")], stores },
      [running("s1", [30], "host", { activity: "working" }), stopped("s2")],
    ],
    [
      "holds two",
      { processes: [holds("s1", "s2")], stores },
      [running("s1", [30], "host", { activity: "working" }), running("s2", [30], "host")],
    ],
    [
      "holds none: it is no session itself, and nothing is in doubt",
      { processes: [holds()], stores },
      [stopped("s1", { outcome: "cut-off", reason: "ended inside a turn" }), stopped("s2")],
    ],
    [
      "its arguments and its directory name nothing",
      { processes: [process(30, "locker", { argv: ["locker", "serve", "--resume", "s2"] })], stores },
      [stopped("s1", { outcome: "cut-off", reason: "ended inside a turn" }), stopped("s2")],
    ],
  ];
  test.each(cases)("%s", (_name, world, expected) => expect(look(world)).toEqual(expected));

  test("its descriptors cannot be read: any session of the agent may be held", () => {
    const unread = [{ code: "process-unreadable" as const, agent: null, source: "/proc/30/fd", message: "EACCES" }];
    const why = "process 30 (locker) may have it, but could not be read: EACCES";
    const rows = look({ processes: [process(30, "locker", { argv: ["locker", "serve"], unread })], stores });
    expect(rows).toEqual([unknown("s1", why), unknown("s2", why)]);
  });
});

describe("a host that announces in records", () => {
  const says = (isOver: boolean) => [
    store("pool", [record("s1", { turn: open, isOver }), record("s2", { turn: open })], [claim(20, "s1", { isOver })]),
  ];
  const mayHave = unknown("s2", "its host process 20 does not answer");

  test("what stands under its pid is its own; what is not over may be", () => {
    const one = derive({ processes: [server], stores: says(false) }).sessions.find(({ id }) => id === "s1");
    expect(one?.status).toMatchObject({ state: "running", activity: "working", owner: { kind: "host" } });
    expect(look({ processes: [server], stores: says(false) })).toContainEqual(mayHave);
  });

  test("what is over by its own word has nobody", () => {
    const seen = look({ processes: [server], stores: says(true) });
    expect(seen.map(({ id, state }) => [id, state])).toEqual([
      ["s1", "stopped"],
      ["s2", "unknown"],
    ]);
  });

  test("a process that left a session may live on without it", () => {
    const stores = [store("speaker", [record("s1")], [claim(10, "s1", { isOver: true })])];
    const { sessions } = derive({ processes: [process(10, "speaker")], stores });
    expect(sessions.map(({ id, status }) => [id, status.state])).toContainEqual([null, "running"]);
    expect(sessions.find(({ id }) => id === "s1")?.status.state).not.toBe("running");
  });
});
