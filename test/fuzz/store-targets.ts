// Damages one file of a store, lists the sessions, and checks that only the session of the damaged file changes.
import { rmSync, utimesSync, writeFileSync } from "node:fs";
import type { Adapter } from "../../src/agents/adapter.ts";
import { sessionTable } from "../../src/cli/session-table.ts";
import { deriveSessions } from "../../src/core/derive.ts";
import type { Store } from "../../src/core/evidence.ts";
import { type Problem, type Reading, read, unread } from "../../src/core/problem.ts";
import { isLive, type ProcessTable } from "../../src/core/process.ts";
import type { Session, SessionList } from "../../src/core/session.ts";
import { deadlineIn } from "../../src/lib/deadline.ts";
import { entriesBackward, entriesForward, readHistory, startMark } from "../../src/observe/conversation.ts";
import { readMore } from "../../src/observe/follow.ts";
import { recordAt, tailLimit } from "../../src/observe/records.ts";
import { readStore } from "../../src/observe/stores.ts";
import { readTotals } from "../../src/observe/usage/read-counts.ts";
import {
  databaseVictims,
  hasAnnouncementFiles,
  hasRecordFiles,
  type Victim,
  victims,
} from "../conformance/damaged-case.ts";
import { faultsOf, isPlain, relativeFaults } from "../conformance/invariants.ts";
import type { Dice } from "../truth/random.ts";
import type { Material } from "./corpus.ts";
import { jsonOf, mutate, mutatedJson } from "./mutate.ts";
import { announcementFaults, readingFaults, recordFaults, totalsFaults } from "./parsed-shapes.ts";
import { patienceMs, plain, stopwatch, type Target } from "./target.ts";

/** Captured cases, each in its own home with a second session. */
export interface Homes {
  records: Victim[];
  announcements: Victim[];
}

export const homesFor = ({ adapter }: Material, folder: string): Homes => ({
  records: hasRecordFiles(adapter)
    ? victims(adapter, "record", `${folder}/${adapter.agent}`)
    : databaseVictims(adapter, `${folder}/${adapter.agent}`),
  announcements: hasAnnouncementFiles(adapter) ? victims(adapter, "announcement", `${folder}/${adapter.agent}`) : [],
});

export const storeTargets = (material: Material, { records, announcements }: Homes): Target[] => [
  ...(hasRecordFiles(material.adapter) ? [target(material, "record", records)] : []),
  ...(announcements.length === 0 ? [] : [target(material, "announcement", announcements)]),
];

function target(material: Material, kind: "record" | "announcement", all: readonly Victim[]): Target {
  const faults = kind === "record" ? recordVictimFaults : announcementVictimFaults;
  return {
    name: `store-${kind}:${material.adapter.agent}`,
    weight: 10,
    make(dice: Dice) {
      const victim = dice.pick(all);
      const value = kind === "announcement" && dice.chance(0.7) ? jsonOf(victim.bytes.toString("utf8")) : undefined;
      const input =
        value === undefined ? mutate(victim.bytes, dice, material) : Buffer.from(mutatedJson(value, dice, material));
      return plain(`${kind} ${victim.path}`, input, (bytes) => lookAtDamaged(victim, bytes, faults));
    },
  };
}

export interface Answers {
  store: Store;
  live: SessionList;
  dead: SessionList;
}

export function lookAtDamaged(
  victim: Victim,
  input: Buffer,
  more: (victim: Victim, answers: Answers) => string[],
): string[] {
  const { adapter, home, path, bytes } = victim;
  writeFileSync(path, input);
  try {
    const elapsed = stopwatch();
    const store = readStore(adapter, home, deadlineIn(patienceMs));
    if (store === null) return ["there is no store any more"];
    const [live, dead] = [derive(adapter, store, read(victim.table)), derive(adapter, store, read(victim.noProcesses))];
    const tookMs = elapsed();
    // The rest would take even longer.
    if (tookMs > patienceMs) return [`a look takes ${Math.round(tookMs / 100) / 10} s`];
    return [
      ...faultsOf(adapter, store, live),
      ...faultsOf(adapter, store, dead),
      ...relativeFaults(adapter, live),
      ...strictFaults(adapter, store),
      ...proofFaults(adapter, store, victim),
      ...twiceFaults(live),
      ...twiceFaults(dead),
      ...shownFaults(live),
      ...shownFaults(dead),
      ...conversationFaults(victim),
      ...more(victim, { store, live, dead }),
    ];
  } finally {
    rmSync(path, { force: true });
    writeFileSync(path, bytes);
    utimesSync(path, writtenAt, writtenAt);
  }
}

const writtenAt = Date.parse("2026-12-01T00:00:00Z") / 1000;
const at = Date.parse("2027-01-01T00:00:00Z");

export function derive(adapter: Adapter, store: Store, processes: Reading<ProcessTable>): SessionList {
  return deriveSessions({ at, processes, stores: [store], servers: [], dialogs: [], problems: [], directories: {} }, [
    adapter,
  ]);
}

const strictFaults = (adapter: Adapter, { rows, announcements }: Store): string[] => [
  ...rows.flatMap(({ id, reading }) => readingFaults(reading, (record) => recordFaults(adapter, id, record))),
  ...announcements.flatMap(({ pid, reading }) =>
    readingFaults(reading, (announcement) => announcementFaults(adapter, pid, announcement)),
  ),
];

const problem: Problem = {
  code: "processes-unreadable",
  agent: null,
  source: "/proc",
  detail: { code: "unknown-shape" },
};

/** Rule 2: an incomplete reading makes no session stopped, whatever the files contain. */
function proofFaults(adapter: Adapter, store: Store, { table, noProcesses }: Victim): string[] {
  const looks: [string, Reading<ProcessTable>, Store][] = [
    ["the process table could not be read", unread(problem), store],
    ["the process table has a gap", read({ ...table, gaps: [problem] }), store],
    ["an empty process table has a gap", read({ ...noProcesses, gaps: [problem] }), store],
    ["the store was not listed whole", read(noProcesses), { ...store, listing: unread(problem) }],
    [
      "a record may belong to any session",
      read(noProcesses),
      { ...store, nameless: [{ begins: "", problem, writtenAt: null }] },
    ],
    [
      "we are inside a namespace, the store is not",
      read({ ...noProcesses, namespace: { id: "pid:[1]", initial: false } }),
      { ...store, onRootDevice: false },
    ],
  ];
  return looks.flatMap(([name, processes, seen]) => {
    const { sessions } = derive(adapter, seen, processes);
    return sessions.some(({ status }) => status.state === "stopped") ? [`stopped, though ${name}`] : [];
  });
}

/** The first line names the session. If it is broken, the record may belong to any session whose id starts like this. */
const mayBeOf = ({ adapter, id }: Victim, other: string): boolean =>
  adapter.records.some(({ idIn }) => idIn !== undefined) && other.startsWith(id.slice(0, 8));

const twiceFaults = ({ sessions }: SessionList): string[] => {
  const ids = sessions.flatMap(({ id }) => (id === null ? [] : [id]));
  return new Set(ids).size === ids.length ? [] : ["one session has two rows"];
};

const context = { env: { HOME: "/home/user" }, cwd: "/", out: () => {}, err: () => {} };

/** The table for people. */
function shownFaults({ sessions }: SessionList): string[] {
  const rows = sessions.map((session) => ({ session, ref: "ref", launch: null }));
  const shown = sessionTable(rows, at, context, { columns: 100, colour: false });
  const lines = shown.split("\n").length - 1;
  return [
    ...(isPlain(shown) ? [] : ["the table holds control characters"]),
    ...(rows.length === 0 || lines === rows.length + 1 ? [] : ["the table has too many lines"]),
  ];
}

/** Reads the conversation like logs, peek, result and the totals. */
function conversationFaults({ adapter, home, path, id }: Victim): string[] {
  if (!path.endsWith(".jsonl")) return [];
  const place = { adapter, home, file: recordAt(adapter, path, id) };
  const { own, earlier } = readHistory(place);
  const [forward, backward] = [entriesForward, entriesBackward].map((read) => count(read(adapter, [own, ...earlier])));
  // `readMore` keeps all entries in memory, so it is tested only with small files.
  const grown = own.mark.offset > mostFollowed ? forward : readMore(adapter, place.file, startMark).entries.length;
  return [
    ...totalsFaults(readTotals(place)),
    // In a history of several files, each reader skips the lines that a fork did not inherit, starting from a different end.
    ...(earlier.length > 0 || own.mark.offset > tailLimit || forward === backward
      ? []
      : [`${forward} entries forward, ${backward} backward`]),
    ...(earlier.length > 0 || grown === forward ? [] : ["following sees other lines than reading"]),
  ];
}

const mostFollowed = 1024 * 1024;

function count(entries: Iterable<unknown>): number {
  let found = 0;
  for (const _entry of entries) found += 1;
  return found;
}

/** A damaged record may change only its own row. */
function recordVictimFaults(victim: Victim, { store, live, dead }: Answers): string[] {
  return [
    ...announcedFaults(victim, store, live),
    ...otherFaults(victim.dead, dead, victim.id, "no process alive", (other) => mayBeOf(victim, other)),
    ...(isLinkedByDirectory(victim)
      ? []
      : otherFaults(victim.live, live, victim.id, "as captured", (other) => mayBeOf(victim, other))),
  ];
}

/** Rule 1: a session that a live process announces is running, whatever its record contains. */
function announcedFaults(victim: Victim, store: Store, live: SessionList): string[] {
  return announcedIds(victim).flatMap((id) => {
    const state = live.sessions.find((session) => session.id === id)?.status.state;
    const reading = store.rows.find((row) => row.id === id)?.reading;
    // A damaged record may claim to be a subagent's, which has no row.
    if (state === undefined && reading?.ok && reading.value.subagentOf !== null) return [];
    return state === "running" ? [] : [`a live process announces it, but it is ${state ?? "not listed"}`];
  });
}

/** Read directly from the process table and the announcements, without the code under test. */
function announcedIds({ adapter, table, store }: Victim): string[] {
  const announcements = store.announcements.flatMap(({ reading }) => (reading.ok ? [reading.value] : []));
  return table.rows.filter(isLive).flatMap(({ identity, detail }) => {
    const own = announcements.filter(
      ({ pid, start }) => pid === identity.pid && (start === null || start === identity.start),
    );
    return [...own.map(({ session }) => session), ...(detail === null ? [] : (adapter.announcedIds?.(detail) ?? []))];
  });
}

/** If only the content names the session, a broken record may belong to any session, so unknown is allowed. */
const otherFaults = (
  before: SessionList,
  after: SessionList,
  id: string,
  when: string,
  mayDoubt: (other: string) => boolean,
): string[] =>
  before.sessions
    .filter((session) => session.id !== id && session.id !== null)
    .filter((session) => {
      const now = after.sessions.find((other) => other.id === session.id && other.home === session.home);
      return (
        !Bun.deepEquals(now?.status, session.status) && !(mayDoubt(session.id ?? "") && now?.status.state === "unknown")
      );
    })
    .map((session) => `another session's status changed (${when}): ${wordOf(session)}`);

const wordOf = ({ status }: Session): string => `was ${status.state}`;

/** A link by directory is the weakest: it depends on all records of the directory. */
const isLinkedByDirectory = ({ live }: Victim): boolean =>
  live.sessions.some(({ id, status }) => {
    const owner = status.state === "running" && status.owner.kind === "process" ? status.owner : null;
    return owner !== null && (id === null || owner.link === "cwd");
  });

/** A damaged announcement may make only its own session stopped; an unreadable one makes no session stopped. */
function announcementVictimFaults(victim: Victim, { store, live }: Answers): string[] {
  const isUnread = store.announcements.some(({ reading }) => !reading.ok);
  const ran = victim.live.sessions.filter(({ status }) => status.state !== "stopped");
  const lost = ran.filter(({ id }) =>
    live.sessions.some((session) => session.id === id && id !== null && session.status.state === "stopped"),
  );
  return lost
    .filter(({ id }) => isUnread || id !== victim.id)
    .map(() => (isUnread ? "stopped, because its announcement cannot be read" : "another session stopped"));
}
