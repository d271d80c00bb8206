// Properties of every family, for random process tables with few pids and few sessions, in which every process has a parent and
// a mark. A failure prints its seed and path.
import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { type Family, familyOf } from "../../src/core/family.ts";
import { isLive, type ProcessRow, type ProcessTable } from "../../src/core/process.ts";
import type { Session } from "../../src/core/session.ts";
import {
  ago,
  announcement,
  boot,
  derive,
  me,
  ownNamespace,
  record,
  process as row,
  store,
} from "../unit/core/build-evidence.ts";

setDefaultTimeout(60_000);
const wanted = process.env["PROPERTY_SEED"] ?? "20261116";
fc.configureGlobal({ seed: wanted === "fresh" ? Date.now() : Number(wanted) });

const sessionVariables = new Map([["speaker", "SPEAKER_SESSION"]]);
const pids = [10, 11, 12, 13, 14, 15, 16, 17];
const sessionIds = ["s1", "s2", "s3"];
const launchIds = ["L1", "L2"];
const maybe = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: undefined, freq: 2 });

const aRow = (pid: number): fc.Arbitrary<ProcessRow> =>
  fc
    .record({
      name: fc.constantFrom("speaker", "sh", "sh", "sh", "tmux: server", "ssh-agent", "firefox"),
      flags: fc.constantFrom([], [], ["--headless"]),
      parent: fc.constantFrom(1, 1, ...pids),
      session: fc.constantFrom(...pids),
      state: fc.constantFrom("S", "S", "S", "S", "T", "D", "Z"),
      tty: fc.constantFrom(null, null, null, "/dev/pts/1", "/dev/pts/2"),
      startedAt: fc.constantFrom(ago(10), ago(9), ago(8)),
      cwd: fc.constantFrom("/project", "/project", "/"),
      mark: maybe(...sessionIds),
      tag: maybe(...launchIds),
      sid: maybe("10", "11", "12"),
      given: maybe("speaker:s1", "speaker:s2"),
    })
    .map(({ mark, tag, sid, given, name, tty, flags, ...rest }) => {
      const marks = { SPEAKER_SESSION: mark, AGENTCTL_TAG: tag, AGENTCTL_TAG_SID: sid, AGENTCTL_TAG_SESSION: given };
      const env: Record<string, string> = { HOME: "/home/me" };
      for (const [key, value] of Object.entries(marks)) if (value !== undefined) env[key] = value;
      return { ...row(pid, "speaker", { ...rest, name, env, argv: [name, ...flags] }), tty };
    });

interface Case {
  rows: ProcessRow[];
  sessions: Session[];
  session: Session;
  launches: string[];
  callers: Set<number>;
}

const aCase: fc.Arbitrary<Case> = fc
  .record({
    rows: fc
      .tuple(...pids.map(aRow))
      .map((all) => [
        row(1, "speaker", { name: "init", parent: 0, argv: ["init"], startedAt: ago(99), env: {} }),
        ...all,
      ]),
    announced: fc.array(fc.constantFrom(...sessionIds), { minLength: pids.length, maxLength: pids.length }),
    which: fc.nat(20),
    launches: fc.subarray(launchIds),
    callers: fc.subarray(pids, { maxLength: 3 }),
  })
  .map(({ rows, announced, which, launches, callers }) => {
    const agents = rows.filter(({ name }) => name === "speaker");
    const announcements = agents.map(({ identity: { pid, start } }, at) =>
      announcement(pid, announced[at] ?? "s1", { start }),
    );
    const stores = [
      store(
        "speaker",
        sessionIds.map((id) => record(id)),
        announcements,
      ),
    ];
    const { sessions } = derive({ processes: rows, stores });
    const session = sessions[which % sessions.length];
    if (session === undefined) throw new Error("no session");
    return { rows, sessions, session, launches, callers: new Set(callers) };
  });

const tableOf = (rows: ProcessRow[]): ProcessTable => ({
  boot,
  uid: me,
  namespace: { id: ownNamespace, initial: true },
  rows,
  gaps: [],
  hidden: [],
});

const familyIn = ({ rows, sessions, session, launches, callers }: Case): Family =>
  familyOf(session, sessions, tableOf(rows), { sessionVariables, launches }, callers);

const pidOf = ({ identity }: ProcessRow): number => identity.pid;
const pidsOf = (session: Session): number[] => session.processes.map(pidOf);

/** The process and all its ancestors, by the kernel's data; no ancestor is younger than its child. */
function lineage(of: ProcessRow, rows: ProcessRow[]): ProcessRow[] {
  const found = [of];
  for (const each of found) {
    const parent = rows.find((other) => pidOf(other) === each.parent && other.startedAt <= each.startedAt);
    if (parent !== undefined && !found.includes(parent)) found.push(parent);
  }
  return found;
}

const holds = (name: string, check: (given: Case, family: Family) => void, numRuns = 1500): void =>
  test(name, () => {
    fc.assert(
      fc.property(aCase, (given) => check(given, familyIn(given))),
      { numRuns },
    );
  });

holds("each process is at most once a member or a leftover", (_given, { members, leftovers }) => {
  const all = [...members, ...leftovers.map((left) => left.row)].map(pidOf);
  expect(new Set(all).size).toBe(all.length);
});

holds(
  "owners, callers and dead processes are neither members nor leftovers",
  ({ session, callers }, { members, leftovers }) => {
    for (const each of [...members, ...leftovers.map((left) => left.row)])
      expect([isLive(each), callers.has(pidOf(each)), pidsOf(session).includes(pidOf(each))]).toEqual([
        true,
        false,
        false,
      ]);
  },
);

holds("each member or leftover is below the owner, or it or an ancestor is marked", (given, { members, leftovers }) => {
  const { rows, session, launches } = given;
  const own = new Set([
    ...launches,
    ...session.processes.flatMap(({ detail, session: sid }) =>
      detail?.env?.["AGENTCTL_TAG_SID"] === String(sid) ? (detail.env["AGENTCTL_TAG"] ?? []) : [],
    ),
  ]);
  const isMarked = ({ detail }: ProcessRow) =>
    detail?.env?.["SPEAKER_SESSION"] === session.id ||
    detail?.env?.["AGENTCTL_TAG_SESSION"] === `speaker:${session.id}` ||
    own.has(detail?.env?.["AGENTCTL_TAG"] ?? "");
  for (const each of [...members, ...leftovers.map((left) => left.row)])
    expect(lineage(each, rows).some((at) => pidsOf(session).includes(pidOf(at)) || isMarked(at))).toBe(true);
});

holds(
  "no member belongs to another session by the nearest agent above it, or lives in a multiplexer",
  (given, { members }) => {
    const { rows, sessions, session } = given;
    const others = new Set(
      sessions.filter((other) => other !== session && other.status.state === "running").flatMap(pidsOf),
    );
    for (const member of members) {
      const path = lineage(member, rows);
      const end = path.findIndex((at) => pidsOf(session).includes(pidOf(at)));
      for (const at of end === -1 ? path : path.slice(0, end))
        expect([others.has(pidOf(at)), at.name === "tmux: server"]).toEqual([false, false]);
    }
  },
);

holds(
  "outside of the tree no member has a terminal, is a daemon, or another live session's tool",
  (given, { members }) => {
    const { rows, sessions, session } = given;
    const outside = members.filter((each) => !lineage(each, rows).some((at) => pidsOf(session).includes(pidOf(at))));
    const live = sessions.filter(({ status }) => status.state === "running").map(({ id }) => id);
    for (const { tty, detail, name } of outside) {
      expect([tty, detail?.cwd === "/", name === "ssh-agent"]).toEqual([null, false, false]);
      const mark = detail?.env?.["SPEAKER_SESSION"];
      const inherited = session.processes.some((own) => own.detail?.env?.["SPEAKER_SESSION"] === mark);
      if (mark !== undefined && mark !== session.id && live.includes(mark)) expect(inherited).toBe(true);
    }
  },
);

/** Up to the nearest owner, without it; the whole way where there is none. */
function pathOf(member: ProcessRow, { rows, session }: Case): ProcessRow[] {
  const path = lineage(member, rows);
  const end = path.findIndex((at) => pidsOf(session).includes(pidOf(at)));
  return end === -1 ? path : path.slice(0, end);
}

holds(
  "no member has a window, or is below a program that has one, unless it was told to show none",
  (given, { members }) => {
    // Reused pids may form a circle of parents: each window is judged by its own path, which may go round.
    for (const member of members)
      for (const at of pathOf(member, given))
        if (at.name === "firefox")
          expect(pathOf(at, given).some(({ detail }) => detail?.argv?.includes("--headless"))).toBe(true);
  },
);

holds(
  "no member in the tree has a terminal but the agent's own, or one that the agent gave it",
  (given, { members }) => {
    const owners = pidsOf(given.session);
    for (const member of members.filter(({ tty }) => tty !== null)) {
      const above = lineage(member, given.rows);
      const keeper = above.find((at) => owners.includes(pidOf(at)) || at.tty !== member.tty);
      expect(keeper !== undefined && owners.includes(pidOf(keeper))).toBe(true);
    }
  },
);

holds("nothing below a process that stays is ended", ({ rows, session }, { members, leftovers }) => {
  const left = new Set(leftovers.map((each) => pidOf(each.row)));
  for (const member of members) {
    const path = lineage(member, rows);
    const end = path.findIndex((at) => pidsOf(session).includes(pidOf(at)));
    for (const at of end === -1 ? path : path.slice(0, end)) expect(left.has(pidOf(at))).toBe(false);
  }
});

test("the order of the process table does not change the answer", () => {
  const sets = ({ members, leftovers }: Family) => ({
    members: members.map(pidOf).sort(),
    left: leftovers.map((each) => pidOf(each.row)).sort(),
  });
  const shuffled = aCase.chain((given) =>
    fc.record({
      given: fc.constant(given),
      rows: fc.shuffledSubarray(given.rows, { minLength: given.rows.length }),
      sessions: fc.shuffledSubarray(given.sessions, { minLength: given.sessions.length }),
    }),
  );
  fc.assert(
    fc.property(shuffled, ({ given, rows, sessions }) => {
      expect(sets(familyIn({ ...given, rows, sessions }))).toEqual(sets(familyIn(given)));
    }),
    { numRuns: 1500 },
  );
});

test("the random process tables contain members, leftovers and unrelated processes of every kind", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(aCase, (given) => {
      const { members, leftovers } = familyIn(given);
      if (members.length > 1) seen.add("members");
      for (const { why } of leftovers) seen.add(why.code === "window" ? `${why.code} ${why.kind}` : why.code);
    }),
    { numRuns: 1500 },
  );
  expect([...seen].sort()).toEqual([
    "below-spared-process",
    "daemon",
    "has-session",
    "has-terminal",
    "members",
    "multiplexer",
    "of-launch",
    "of-session",
    "shared-service",
    "terminal-depends-on-it",
    "window browser",
  ]);
});
