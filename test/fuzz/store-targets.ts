// A damaged file in a store among others, through everything up to the answer: what it may cost, and what it must not.
import { rmSync, utimesSync, writeFileSync } from "node:fs";
import type { Adapter } from "../../src/adapters/adapter.ts";
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
import { readTotals } from "../../src/observe/totals.ts";
import { faultsOf, isPlain, relativeFaults } from "../conformance/faults.ts";
import { databaseVictims, hasClaimFiles, hasRecordFiles, type Victim, victims } from "../conformance/victim.ts";
import type { Dice } from "../truth/random.ts";
import type { Material } from "./corpus.ts";
import { jsonOf, mutate, mutatedJson } from "./mutate.ts";
import { claimFaults, readingFaults, recordFaults, totalsFaults } from "./shape.ts";
import { patienceMs, plain, stopwatch, type Target } from "./target.ts";

/** Captured cases in homes of their own, each with a neighbour. */
export interface Homes {
  records: Victim[];
  claims: Victim[];
}

export const homesFor = ({ adapter }: Material, folder: string): Homes => ({
  records: hasRecordFiles(adapter)
    ? victims(adapter, "record", `${folder}/${adapter.agent}`)
    : databaseVictims(adapter, `${folder}/${adapter.agent}`),
  claims: hasClaimFiles(adapter) ? victims(adapter, "claim", `${folder}/${adapter.agent}`) : [],
});

export const storeTargets = (material: Material, { records, claims }: Homes): Target[] => [
  ...(hasRecordFiles(material.adapter) ? [target(material, "record", records)] : []),
  ...(claims.length === 0 ? [] : [target(material, "claim", claims)]),
];

function target(material: Material, kind: "record" | "claim", all: readonly Victim[]): Target {
  const faults = kind === "record" ? recordVictimFaults : claimVictimFaults;
  return {
    name: `store-${kind}:${material.adapter.agent}`,
    weight: 10,
    make(dice: Dice) {
      const victim = dice.pick(all);
      const value = kind === "claim" && dice.chance(0.7) ? jsonOf(victim.bytes.toString("utf8")) : undefined;
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
    const [live, dead] = [derive(adapter, store, read(victim.table)), derive(adapter, store, read(victim.nobody))];
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
  return deriveSessions({ at, processes, stores: [store], hosts: [], dialogs: [], problems: [], directories: {} }, [
    adapter,
  ]);
}

const strictFaults = (adapter: Adapter, { rows, claims }: Store): string[] => [
  ...rows.flatMap(({ id, reading }) => readingFaults(reading, (record) => recordFaults(adapter, id, record))),
  ...claims.flatMap(({ pid, reading }) => readingFaults(reading, (claim) => claimFaults(adapter, pid, claim))),
];

const problem: Problem = { code: "processes-unreadable", agent: null, source: "/proc", message: "it cannot be read" };

/** Rule 2: whatever the files say, nobody is stopped by a look that was not whole. */
function proofFaults(adapter: Adapter, store: Store, { table, nobody }: Victim): string[] {
  const looks: [string, Reading<ProcessTable>, Store][] = [
    ["the process table could not be read", unread(problem), store],
    ["the process table has a gap", read({ ...table, gaps: [problem] }), store],
    ["an empty process table has a gap", read({ ...nobody, gaps: [problem] }), store],
    ["the store was not listed whole", read(nobody), { ...store, listing: unread(problem) }],
    ["a record may be anybody's", read(nobody), { ...store, nameless: [{ begins: "", problem, writtenAt: null }] }],
    [
      "we are inside a namespace, the store is not",
      read({ ...nobody, namespace: { id: "pid:[1]", initial: false } }),
      { ...store, onRootDevice: false },
    ],
  ];
  return looks.flatMap(([name, processes, seen]) => {
    const { sessions } = derive(adapter, seen, processes);
    return sessions.some(({ status }) => status.state === "stopped") ? [`stopped, though ${name}`] : [];
  });
}

/** Whose record it is stands in its first line: broken, it may be of any session whose id begins like this. */
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

/** What logs, peek, result and the totals read. */
function conversationFaults({ adapter, home, path, id }: Victim): string[] {
  if (!path.endsWith(".jsonl")) return [];
  const place = { adapter, home, file: recordAt(adapter, path, id) };
  const { own, earlier } = readHistory(place);
  const [forward, backward] = [entriesForward, entriesBackward].map((read) => count(read(adapter, [own, ...earlier])));
  // It keeps what it reads, which is meant to be little.
  const grown = own.mark.offset > mostFollowed ? forward : readMore(adapter, place.file, startMark).entries.length;
  return [
    ...totalsFaults(readTotals(place)),
    // Of several chapters each reader skips what a fork did not inherit, from its own side.
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

/** A damaged record costs its own row. */
function recordVictimFaults(victim: Victim, { store, live, dead }: Answers): string[] {
  return [
    ...announcedFaults(victim, store, live),
    ...otherFaults(victim.dead, dead, victim.id, "nobody alive", (other) => mayBeOf(victim, other)),
    ...(isLinkedByDirectory(victim)
      ? []
      : otherFaults(victim.live, live, victim.id, "as captured", (other) => mayBeOf(victim, other))),
  ];
}

/** Rule 1: whom a live process announces, runs, whatever its record holds. */
function announcedFaults(victim: Victim, store: Store, live: SessionList): string[] {
  return announcedIds(victim).flatMap((id) => {
    const state = live.sessions.find((session) => session.id === id)?.status.state;
    const reading = store.rows.find((row) => row.id === id)?.reading;
    // A record may say of itself that it is a subagent's: then it is no row.
    if (state === undefined && reading?.ok && reading.value.subagentOf !== null) return [];
    return state === "running" ? [] : [`a live process announces it, but it is ${state ?? "not listed"}`];
  });
}

/** By the table and the announcements themselves, not by what anyone made of them. */
function announcedIds({ adapter, table, store }: Victim): string[] {
  const claims = store.claims.flatMap(({ reading }) => (reading.ok ? [reading.value] : []));
  return table.rows.filter(isLive).flatMap(({ identity, detail }) => {
    const own = claims.filter(({ pid, start }) => pid === identity.pid && (start === null || start === identity.start));
    return [...own.map(({ session }) => session), ...(detail === null ? [] : adapter.announcedIds(detail))];
  });
}

/** Where only its content says whose a record is, a broken one may be anybody's: unknown is honest. */
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

/** This weakest link is a choice among all records of a directory. */
const isLinkedByDirectory = ({ live }: Victim): boolean =>
  live.sessions.some(({ id, status }) => {
    const owner = status.state === "running" && status.owner.kind === "process" ? status.owner : null;
    return owner !== null && (id === null || owner.link === "cwd");
  });

/** A damaged announcement may cost what it announced; nobody else stops, and where it cannot be read nobody does. */
function claimVictimFaults(victim: Victim, { store, live }: Answers): string[] {
  const isUnread = store.claims.some(({ reading }) => !reading.ok);
  const ran = victim.live.sessions.filter(({ status }) => status.state !== "stopped");
  const lost = ran.filter(({ id }) =>
    live.sessions.some((session) => session.id === id && id !== null && session.status.state === "stopped"),
  );
  return lost
    .filter(({ id }) => isUnread || id !== victim.id)
    .map(() => (isUnread ? "it ran, its announcement cannot be read, now it is stopped" : "another session stopped"));
}
