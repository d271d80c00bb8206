// Which processes stop with a session: the owner's tree and marked processes, but none that may belong to others.

import { describe, expect, test } from "bun:test";
import { type FamilySigns, familyOf, launchOf } from "../../../src/core/family.ts";
import type { ProcessRow, ProcessTable } from "../../../src/core/process.ts";
import type { SpareReason } from "../../../src/core/reason.ts";
import type { Session } from "../../../src/core/session.ts";
import {
  ago,
  announcement,
  boot,
  derive,
  me,
  ownNamespace,
  process,
  record,
  served,
  serverAnswer,
  store,
} from "./build-evidence.ts";

const sessionVariables = new Map([
  ["speaker", "SPEAKER_SESSION"],
  ["mute", "MUTE_SESSION"],
  ["pool", "POOL_SESSION"],
]);
const tool = (session: string) => ({ SPEAKER_SESSION: session });
const tag = (launch: string, sid: number) => ({ AGENTCTL_TAG: launch, AGENTCTL_TAG_SID: String(sid) });

const tableOf = (rows: ProcessRow[]): ProcessTable => ({
  boot,
  uid: me,
  namespace: { id: ownNamespace, initial: true },
  rows,
  gaps: [],
  hidden: [],
});

/** A shell, without a terminal, in the project; no agent's. */
const shell = (pid: number, parent: number, env: Record<string, string> = {}, change: Partial<ProcessRow> = {}) => ({
  ...process(pid, "speaker", { name: "sh", argv: ["sh"], parent, env }),
  ...change,
});

/** A program of this name, without a terminal. */
const named = (pid: number, parent: number, name: string, ...argv: string[]): ProcessRow =>
  process(pid, "speaker", { name, argv: [name, ...argv], parent, env: {} });

function detailOf({ detail }: ProcessRow): NonNullable<ProcessRow["detail"]> {
  if (detail === null) throw new Error("no detail");
  return detail;
}

const owner = (pid: number, change: Parameters<typeof process>[2] = {}) => process(pid, "speaker", change);

interface Given {
  rows: ProcessRow[];
  of?: string;
  sessions?: Session[];
  launches?: string[];
  callers?: number[];
  signs?: Partial<FamilySigns>;
}

/** Sessions s10, s11, …, each announced by the speaker with that pid. */
function speakers(rows: ProcessRow[]): Session[] {
  const own = rows.filter(({ name, state }) => name === "speaker" && state !== "Z");
  const announcements = own.map(({ identity: { pid, start } }) => announcement(pid, `s${pid}`, { start }));
  const records = [...own.map(({ identity }) => record(`s${identity.pid}`)), record("s99")];
  return derive({ processes: own, stores: [store("speaker", records, announcements)] }).sessions;
}

/** Pids of members, and why others are left. */
function family({ rows, of = "s10", sessions = speakers(rows), launches = [], callers = [], signs = {} }: Given) {
  const session = sessions.find(({ id }) => id === of);
  if (session === undefined) throw new Error(`no session ${of}`);
  const { members, leftovers } = familyOf(
    session,
    sessions,
    tableOf(rows),
    { sessionVariables, launches, ...signs },
    new Set(callers),
  );
  return {
    members: members.map(({ identity }) => identity.pid).sort((a, b) => a - b),
    left: Object.fromEntries(leftovers.map(({ row, why }) => [row.identity.pid, why])),
  };
}

const init = shell(1, 0);
const none = { members: [], left: {} };
const people = { code: "multiplexer" } as const;
const below = (why: SpareReason): SpareReason => ({ code: "below-spared-process", why });

describe("members", () => {
  test("are the tree below the owner, marked or not, including terminals that the agent gave to its tools", () => {
    const at = { tty: "/dev/pts/1" };
    const rows = [owner(10), shell(20, 10), shell(21, 20), shell(22, 10, {}, at), shell(23, 22, {}, at), shell(30, 1)];
    expect(family({ rows })).toEqual({ members: [20, 21, 22, 23], left: {} });
  });

  test("include a terminal that a helper of the agent gave to its tools", () => {
    const helper = shell(20, 10, {}, { name: "helper" });
    const rows = [owner(10), helper, shell(21, 20, {}, { tty: "/dev/pts/1" })];
    const signs = { isOfAgent: ({ name }: ProcessRow, agent: string) => name === "helper" && agent === "speaker" };
    expect(family({ rows, signs })).toEqual({ members: [20, 21], left: {} });
  });

  test("include programs without a window and their descendants, whatever their names", () => {
    const chrome = (pid: number, parent: number, ...argv: string[]) => named(pid, parent, "chrome", ...argv);
    const rows = [
      ...[owner(10), chrome(20, 10, "--headless=new"), chrome(21, 20, "--type=renderer"), chrome(22, 21)],
      ...[named(30, 10, "emacs", "--batch", "-l", "x"), named(31, 10, "soffice.bin", "--headless")],
      ...[named(32, 10, "chrome-headless"), named(33, 10, "firefox", "-headless"), named(34, 10, "codex")],
    ];
    expect(family({ rows })).toEqual({ members: [20, 21, 22, 30, 31, 32, 33, 34], left: {} });
  });

  test("include processes with the mark of its tools, its tag, or its name in a tag, and their descendants", () => {
    const rows = [
      init,
      owner(10, { session: 5, env: tag("L1", 5) }),
      shell(20, 1, tool("s10")),
      shell(21, 1, { AGENTCTL_TAG: "L1" }),
      shell(22, 1, { AGENTCTL_TAG_SESSION: "speaker:s10" }),
      shell(23, 22),
      shell(24, 1, { AGENTCTL_TAG: "L0" }),
    ];
    expect(family({ rows, launches: ["L0"] })).toEqual({ members: [20, 21, 22, 23, 24], left: {} });
  });

  test("of a stopped session are only the processes with its marks", () => {
    const rows = [init, owner(10), shell(20, 10), shell(21, 1, tool("s99")), shell(22, 1, { AGENTCTL_TAG: "L9" })];
    expect(family({ rows, of: "s99", launches: ["L9"] })).toEqual({ members: [21, 22], left: {} });
    expect(family({ rows: rows.slice(0, 3), of: "s99" })).toEqual(none);
  });

  test("exclude dead processes, owners and the caller", () => {
    const rows = [owner(10), shell(20, 10), shell(21, 20), shell(22, 10, {}, { state: "Z" }), shell(23, 21)];
    expect(family({ rows, callers: [1, 10, 20, 21] })).toEqual({ members: [23], left: {} });
  });

  test("are not found by marks of another agent, parts of a mark, or arguments that mention one", () => {
    const rows = [
      init,
      owner(10),
      shell(20, 1, { MUTE_SESSION: "s10" }),
      shell(21, 1, tool("s1")),
      shell(22, 1, { AGENTCTL_TAG_SESSION: "mute:s10" }),
      shell(23, 1, { AGENTCTL_TAG: "" }),
      { ...process(24, "speaker", { name: "sh", argv: ["sh", "agentctl", "daemon", "s10"] }), parent: 1 },
    ];
    expect(family({ rows })).toEqual(none);
  });

  test("exclude a process that is older than its parent, because the parent's pid was reused", () => {
    const rows = [
      owner(10, { startedAt: ago(5) }),
      shell(20, 10, {}, { startedAt: ago(6) }),
      shell(21, 10, {}, { startedAt: ago(5) }),
    ];
    expect(family({ rows })).toEqual({ members: [21], left: {} });
  });

  test("are found even if two processes look like each other's parents", () => {
    const rows = [shell(20, 21, tool("s10")), shell(21, 20), owner(10)];
    expect(family({ rows })).toEqual({ members: [20, 21], left: {} });
  });
});

describe("processes that are spared", () => {
  test("are another live session in the tree and its descendants", () => {
    const rows = [owner(10), shell(20, 10), owner(11, { parent: 20 }), shell(21, 11, tool("s11"))];
    const has = { code: "has-session", id: "s11" } as const;
    expect(family({ rows })).toEqual({ members: [20], left: { 11: has, 21: below(has) } });
  });

  test("a session inside another session has its own tools as members", () => {
    const rows = [owner(10), shell(20, 10), owner(11, { parent: 20, env: tool("s10") }), shell(21, 11, tool("s11"))];
    expect(family({ rows, of: "s11" })).toEqual({ members: [21], left: {} });
  });

  test("include a live agent without a known session", () => {
    const rows = [owner(10), owner(11, { parent: 10 })];
    const sessions = derive({
      processes: rows,
      stores: [store("speaker", [record("s10", { cwd: "/else" })], [announcement(10, "s10")])],
    }).sessions;
    expect(family({ rows, sessions })).toEqual({ members: [], left: { 11: { code: "live-agent", agent: "speaker" } } });
  });

  test("include multiplexers and the processes in them, inside and outside the tree", () => {
    const mux = (pid: number, parent: number, env = {}) => shell(pid, parent, env, { name: "tmux: server" });
    const rows = [
      init,
      owner(10),
      mux(20, 10),
      shell(21, 20),
      mux(30, 1, tool("s10")),
      shell(31, 30),
      mux(40, 1),
      shell(41, 40, tool("s10")),
      shell(42, 40),
    ];
    const left = { 20: people, 21: below(people), 30: people, 31: below(people), 41: below(people) };
    expect(family({ rows })).toEqual({ members: [], left });
  });

  test("do not include the tools of an agent that runs in a multiplexer", () => {
    const rows = [shell(5, 1, {}, { name: "tmux: server" }), shell(6, 5), owner(10, { parent: 6 }), shell(20, 10)];
    expect(family({ rows })).toEqual({ members: [20], left: {} });
  });

  test("include daemons outside the tree and their descendants; inside the tree they are tools", () => {
    const inRoot = (pid: number, parent: number, env = {}) => ({
      ...process(pid, "speaker", { name: "d", argv: ["d"], cwd: "/", env }),
      parent,
    });
    const rows = [
      init,
      owner(10),
      inRoot(20, 10),
      inRoot(30, 1, tool("s10")),
      shell(31, 30),
      shell(40, 1, tool("s10"), { name: "ssh-agent" }),
    ];
    const daemon = { code: "daemon" } as const;
    expect(family({ rows })).toEqual({
      members: [20],
      left: { 30: daemon, 31: below(daemon), 40: { code: "shared-service" } },
    });
  });

  test("do not include the tools of an agent below a daemon", () => {
    const daemon = { ...process(5, "speaker", { name: "d", argv: ["d"], cwd: "/", env: tool("s10") }), parent: 1 };
    const rows = [init, daemon, owner(10, { parent: 5 }), shell(20, 10)];
    expect(family({ rows })).toEqual({
      members: [20],
      left: { 5: { code: "daemon" } as const },
    });
  });

  test("include a process outside the tree with a terminal, and the process that holds the other end", () => {
    const at = { tty: "/dev/pts/7" };
    const rows = [init, owner(10), shell(20, 1, tool("s10")), shell(21, 20, tool("s10"), at), shell(22, 21, {}, at)];
    const own = { code: "has-terminal", tty: "/dev/pts/7" } as const;
    expect(family({ rows })).toEqual({
      members: [],
      left: { 20: { code: "terminal-depends-on-it", pid: 21 } as const, 21: own, 22: own },
    });
  });

  test("include a process in the tree whose terminal another program holds, and that program", () => {
    const at = { tty: "/dev/pts/7" };
    const rows = [owner(10), shell(20, 10), named(21, 20, "script"), shell(22, 21, {}, at), shell(23, 22)];
    const own = { code: "has-terminal", tty: "/dev/pts/7" } as const;
    expect(family({ rows })).toEqual({
      members: [20],
      left: { 21: { code: "terminal-depends-on-it", pid: 22 } as const, 22: own, 23: below(own) },
    });
  });

  test.each([
    ["kitty", "terminal"],
    ["gnome-terminal-", "terminal"],
    ["firefox", "browser"],
    ["chrome", "browser"],
    ["code", "editor"],
    ["emacs", "editor"],
  ] as const)("include %s and its children, inside and outside of the tree", (name, kind) => {
    const rows = [init, owner(10), shell(20, 10), named(21, 20, name), shell(22, 21)];
    const out = [named(31, 1, name), shell(32, 31)].map((row) => ({
      ...row,
      detail: row.detail && { ...row.detail, env: tool("s10") },
    }));
    const why: SpareReason = { code: "window", kind };
    expect(family({ rows: [...rows, ...out] })).toEqual({
      members: [20],
      left: { 21: why, 22: below(why), 31: why, 32: below(why) },
    });
  });

  test("include programs that have loaded a window toolkit, if there is a display", () => {
    const maps: Record<number, string> = {
      20: "7f00 r-xp 0 /usr/lib/libgtk-3.so.0.2406\n",
      21: "7f00 r-xp 0 /usr/lib/libQt6Widgets.so.6\n7f01 r-xp 0 /usr/lib/libc.so.6\n",
      22: "7f00 r-xp 0 /usr/lib/libX11.so.6\n",
      23: "7f00 r-xp 0 /usr/lib/libgtk-3.so.0\n",
      24: "7f00 r-xp 0 /usr/lib/libQt5Gui.so.5\n",
      25: "7f00 r-xp 0 /usr/lib/libgtk-3.so.0\n",
    };
    const shown = { DISPLAY: ":0" };
    const rows = [
      ...[owner(10), shell(20, 10, shown), shell(21, 10, { WAYLAND_DISPLAY: "wayland-0" }), shell(22, 10, shown)],
      ...[shell(23, 10, {}), shell(24, 10, { ...shown, QT_QPA_PLATFORM: "offscreen" })],
      { ...shell(25, 10, shown), detail: { ...detailOf(shell(25, 10, shown)), argv: ["x", "--headless"] } },
    ];
    const why: SpareReason = { code: "window", kind: "other" };
    const signs = { readMaps: ({ identity }: ProcessRow) => maps[identity.pid] ?? "" };
    expect(family({ rows, signs })).toEqual({ members: [22, 23, 24, 25], left: { 20: why, 21: why } });
  });

  test("include the terminal of another live session in the tree, but not the agent's own terminal", () => {
    const at = { tty: "/dev/pts/7" };
    const inner = { ...owner(11, { parent: 22 }), ...at };
    const rows = (own: Partial<ProcessRow>, script: Partial<ProcessRow>) => [
      { ...owner(10), ...own },
      shell(20, 10, {}, own),
      shell(21, 20, {}, script),
      shell(22, 21, {}, at),
      inner,
    ];
    const has = { code: "has-session", id: "s11" } as const;
    const needed = { code: "terminal-depends-on-it", pid: 22 } as const;
    const apart = { code: "has-terminal", tty: "/dev/pts/7" } as const;
    expect(family({ rows: rows({}, {}) })).toEqual({ members: [20], left: { 11: has, 21: needed, 22: apart } });
    expect(family({ rows: rows(at, at) })).toEqual({ members: [20, 21, 22], left: { 11: has } });
  });

  test("include a launch that was started inside the session, and its tools", () => {
    const rows = [
      owner(10, { session: 5, env: tag("L1", 5) }),
      shell(20, 10, { ...tool("s10"), AGENTCTL_TAG: "L1" }),
      shell(21, 20, { AGENTCTL_TAG: "L2" }),
      shell(22, 21),
    ];
    const why = { code: "of-launch", launch: "L2" } as const;
    expect(family({ rows })).toEqual({ members: [20], left: { 21: why, 22: below(why) } });
  });

  test("an inherited tag makes no process outside the tree a member", () => {
    const rows = [
      init,
      owner(11, { session: 5, env: tag("L1", 5) }),
      owner(10, { parent: 11, env: { ...tool("s11"), ...tag("L1", 5) } }),
      shell(20, 10, { ...tool("s10"), ...tag("L1", 5) }),
      shell(21, 10, tag("L1", 5)),
      shell(22, 1, { ...tool("s10"), ...tag("L1", 5) }),
      shell(30, 1, { ...tool("s11"), ...tag("L1", 5) }),
      shell(31, 1, tag("L1", 5)),
    ];
    expect(family({ rows })).toEqual({ members: [20, 21, 22], left: {} });
    const outer = family({ rows, of: "s11" });
    expect(outer.members).toEqual([30, 31]);
    expect(outer.left).toMatchObject({
      10: { code: "has-session", id: "s10" } as const,
      22: { code: "of-session", id: "s10" } as const,
    });
  });

  test("orphans of a session that crashed inside a launch are members, whatever tag they inherited", () => {
    const rows = [
      init,
      owner(11, { session: 5, env: tag("L1", 5) }),
      shell(20, 1, { ...tool("s99"), ...tag("L1", 5) }),
    ];
    expect(family({ rows, of: "s99" })).toEqual({ members: [20], left: {} });
    expect(family({ rows, of: "s11" })).toEqual({ members: [20], left: {} });
  });

  test("an orphan with the marks of two live sessions belongs to the inner one if its owner has the other mark", () => {
    const both = { ...tool("s10"), MUTE_SESSION: "s50" };
    const orphan = shell(20, 1, both);
    const outer = process(50, "mute", { argv: ["mute", "--resume", "s50"] });
    const partial = (inner: ProcessRow) => {
      const stores = [store("speaker", [record("s10")], [announcement(10, "s10")]), store("mute", [record("s50")])];
      const rows = [init, outer, inner, orphan];
      return family({ rows, sessions: derive({ processes: [outer, inner], stores }).sessions });
    };
    expect(partial(owner(10, { env: { MUTE_SESSION: "s50" } }))).toEqual({ members: [20], left: {} });
    expect(partial(owner(10))).toEqual({ members: [], left: { 20: { code: "of-session", id: "s50" } as const } });
  });
});

describe("servers", () => {
  const server = process(10, "pool", { argv: ["pool", "serve"] });
  const rows = [
    init,
    server,
    shell(20, 10),
    shell(21, 10, { POOL_SESSION: "s1" }),
    shell(22, 10, { POOL_SESSION: "s2" }),
    shell(23, 1, { POOL_SESSION: "s1" }),
  ];
  const sessions = derive({
    processes: [server],
    stores: [store("pool", [record("s1"), record("s2")])],
    servers: [serverAnswer(server, [served("s1", "working"), served("s2", "working")])],
  }).sessions;

  test("only processes with the mark of a served session are its members, never the server", () => {
    expect(family({ rows, sessions, of: "s1" })).toEqual({ members: [21, 23], left: {} });
    expect(family({ rows, sessions, of: "s2" })).toEqual({ members: [22], left: {} });
  });

  test("a server that was started inside a session and serves other sessions is spared", () => {
    const speaker = owner(9);
    const inside = { ...server, parent: 9 };
    const found = derive({
      processes: [speaker, inside],
      stores: [store("speaker", [record("s9")], [announcement(9, "s9")]), store("pool", [record("s1")])],
      servers: [serverAnswer(inside, [served("s1", "working")])],
    }).sessions;
    const has = { code: "has-session", id: "s1" } as const;
    expect(family({ rows: [speaker, inside, shell(20, 10)], sessions: found, of: "s9" })).toEqual({
      members: [],
      left: { 10: has, 20: below(has) },
    });
  });
});

test("the process and tools of a session with the same id in another home are not members", () => {
  const [here, there] = [owner(10), owner(11, { env: { HOME: "/copy", AGENTCTL_TAG_SESSION: "speaker:s10" } })];
  const rows = [init, here, there, shell(20, 10, tool("s10")), shell(21, 11, tool("s10")), shell(22, 1, tool("s10"))];
  const { sessions } = derive({
    processes: [here, there],
    stores: [
      store("speaker", [record("s10")], [announcement(10, "s10")]),
      store("speaker", [record("s10")], [announcement(11, "s10")], {
        home: "/copy/.speaker",
        names: ["/copy/.speaker"],
      }),
    ],
  });
  const ours = sessions.filter(({ processes: [first] }) => first?.identity.pid === 10);
  expect([sessions.length, ours.length]).toEqual([2, 1]);
  const has = { code: "has-session", id: "s10" } as const;
  expect(family({ rows, sessions: [...ours, ...sessions.filter((each) => !ours.includes(each))] })).toEqual({
    members: [20],
    left: { 11: has, 21: below(has), 22: { code: "of-session", id: "s10" } as const },
  });
});

test("the tag of a launch counts only in the kernel session of its holder", () => {
  expect(launchOf(owner(10, { session: 5, env: tag("L1", 5) }))).toBe("L1");
  expect(launchOf(owner(10, { session: 10, env: tag("L1", 5) }))).toBeNull();
  expect(launchOf(owner(10, { env: {} }))).toBeNull();
});

test("a server of many sessions and its descendants are spared, also below the owner", () => {
  const rows = [owner(10), shell(20, 10), shell(30, 10), shell(31, 30)];
  const [session] = speakers(rows);
  if (session === undefined) throw new Error("no session");
  const isServer = ({ identity }: ProcessRow): boolean => identity.pid === 30;
  const { members, leftovers } = familyOf(
    session,
    [session],
    tableOf(rows),
    { sessionVariables, launches: [], isServer },
    new Set(),
  );
  expect(members.map(({ identity }) => identity.pid)).toEqual([20]);
  const why = { code: "serves-other-sessions" } as const;
  expect(leftovers.map((each) => each.why)).toEqual([why, below(why)]);
});
