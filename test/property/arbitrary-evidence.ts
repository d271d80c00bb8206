// Small random worlds in which everything collides: few ids, few pids, few times, all four test agents.
import fc from "fast-check";
import {
  type Announcement,
  anyPid,
  type Evidence,
  type NativeRecord,
  type ServedSession,
  type ServerAnswer,
  type Store,
  type Turn,
} from "../../src/core/evidence.ts";
import { read, unread } from "../../src/core/problem.ts";
import { isLive, type ProcessRow, type ProcessTable } from "../../src/core/process.ts";
import {
  type Agent,
  ago,
  announcement,
  boot,
  evidence,
  fileOf,
  homeOf,
  me,
  ownNamespace,
  problem,
  process,
  record,
  serverAnswer,
  store,
  stranger,
} from "../unit/core/build-evidence.ts";

const agents: Agent[] = ["speaker", "mute", "pool", "locker"];
const otherNamespace = "pid:[2]";
export const box = "pid:[2] mnt:[2] user:[2]";
/** Another user of this machine. */
export const other = 42;
const strangePid = 99;

const anAgent = fc.constantFrom(...agents);
const anId = fc.constantFrom("s1", "s2", "s3", "s4");
const aPid = fc.integer({ min: 10, max: 15 });
const aStart = fc.constantFrom("100", "200");
const aTime = fc.constantFrom(ago(60), ago(20), ago(10), ago(5), ago(1));
const aPlace = fc.constantFrom("/project", "/else");
const sometimes = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.oneof({ arbitrary: fc.constant(null), weight: 3 }, { arbitrary: value, weight: 2 });
const rarely = fc.integer({ min: 0, max: 7 }).map((n) => n === 0);
const waiting = { kind: "question" as const, text: "Which?", tool: null, options: [] };

const aTurn: fc.Arbitrary<Turn> = fc.oneof(
  fc.constant<Turn>({ state: "none" }),
  fc.constant<Turn>({ state: "unclear", why: { code: "last-line-incomplete" } }),
  fc
    .record({ at: aTime, outcome: fc.constantFrom("completed", "failed", null) })
    .map((end): Turn => ({ state: "closed", ...end })),
  fc
    .record({ since: aTime, doubt: fc.constantFrom(null, { code: "tool-call-pending" } as const) })
    .map((begun): Turn => ({ state: "open", ...begun })),
);

const aRecord: fc.Arbitrary<NativeRecord> = fc
  .record({
    id: anId,
    turn: aTurn,
    cwd: fc.option(aPlace, { freq: 8 }),
    createdAt: fc.option(aTime, { freq: 8 }),
    lastMessageAt: fc.option(aTime, { freq: 8 }),
    writtenAt: fc.option(aTime, { freq: 8 }),
    asks: fc.boolean(),
    parent: sometimes(anId),
    continuedBy: sometimes(anId),
  })
  .map(({ asks, id, ...rest }) => record(id, { ...rest, waiting: asks ? { ...waiting, since: ago(1) } : null }));

const aAnnouncement: fc.Arbitrary<Announcement> = fc
  .record({
    pid: aPid,
    session: anId,
    // Of no process here: true announcements are made in announce().
    start: fc.constantFrom("900", "900", null),
    boot: fc.constantFrom(boot, boot, boot, null, "boot-0"),
    namespace: fc.constantFrom(ownNamespace, ownNamespace, null, otherNamespace),
    writtenAt: aTime,
    says: fc.option(fc.constantFrom("working" as const, "waiting" as const, "idle" as const)),
  })
  .map(({ pid, session, says, ...rest }) =>
    announcement(pid, session, { ...rest, says: says === null ? null : { activity: says, reason: null, since: null } }),
  );

const aRow: fc.Arbitrary<ProcessRow> = fc
  .record({
    pid: aPid,
    agent: anAgent,
    role: fc.constantFrom("agent", "agent", "agent", "serve", "helper", "stranger"),
    resume: sometimes(anId),
    isInterface: fc.boolean(),
    tag: sometimes(anId),
    wrongSession: rarely,
    locks: fc.uniqueArray(anId, { maxLength: 2 }),
    start: aStart,
    state: fc.constantFrom("S", "R", "S", "T", "Z"),
    parent: fc.integer({ min: 9, max: 15 }),
    cwd: aPlace,
    startedAt: aTime,
    foreign: rarely,
    contained: rarely,
  })
  .map(({ pid, agent, role, resume, isInterface, tag, wrongSession, locks, foreign, contained, ...rest }) => {
    // A parent is older than its child: no rings here, they have a case of their own.
    const parent = rest.parent < pid ? rest.parent : 1;
    // Looked at, as every announced pid is.
    if (role === "stranger") return process(pid, agent, { ...rest, parent, name: "nginx", argv: ["nginx"] });
    const tags = tag === null ? {} : { AGENTCTL_TAG_SID: String(pid), AGENTCTL_TAG_SESSION: `${agent}:${tag}` };
    const resumed = resume === null ? [] : ["--resume", resume, ...(isInterface ? ["--interface"] : [])];
    return process(pid, agent, {
      ...rest,
      parent,
      session: wrongSession ? 1 : pid,
      argv: role === "agent" ? [agent, ...resumed] : [agent, role],
      env: foreign ? null : { HOME: "/home/me", ...tags },
      lockedFiles: agent === "locker" && !foreign ? locks.map((id) => `/l/${id}.lock`) : [],
      ours: !foreign,
      namespace: contained ? otherNamespace : ownNamespace,
      innerPid: contained ? pid - 3 : pid,
      sameFiles: !contained,
      confinement: contained ? box : null,
    });
  });

const aStore: fc.Arbitrary<Store> = fc
  .record({
    agent: anAgent,
    second: rarely,
    records: fc.array(aRecord, { maxLength: 3 }),
    foreignRecords: fc.array(rarely, { minLength: 3, maxLength: 3 }),
    announcements: fc.uniqueArray(aAnnouncement, { maxLength: 3, selector: ({ pid }) => pid }),
    foreignAnnouncements: rarely,
    onRootDevice: fc.boolean(),
    shared: rarely,
    confined: rarely,
  })
  .map(
    ({
      agent,
      second,
      records,
      foreignRecords,
      announcements,
      foreignAnnouncements,
      onRootDevice,
      shared,
      confined,
    }) => {
      const home = second ? `/other/.${agent}` : homeOf(agent);
      const named = records.map((row, index) =>
        fileOf(foreignRecords[index] === true ? other : me, { ...row, source: `${home}/${index}/${row.id}` }),
      );
      const announced = agent === "speaker" ? announcements : [];
      const spoken = announced.map((word) => ({
        pid: word.pid,
        uid: foreignAnnouncements ? other : me,
        reading: read({ ...word, source: `${home}/live/${word.pid}` }),
      }));
      const only = confined ? { namedOnlyIn: [box] } : {};
      const mayHoldOthers = named.some(({ uid }) => uid !== me);
      return store(agent, named, spoken, { home, onRootDevice, isShared: shared, mayHoldOthers, ...only });
    },
  );

const aServed: fc.Arbitrary<ServedSession> = fc.record({
  id: anId,
  activity: fc.constantFrom("working" as const, "waiting" as const, "idle" as const),
  waiting: fc.constant(null),
});
const anAnswer = fc.uniqueArray(aServed, { maxLength: 2, selector: ({ id }) => id });

interface Asked {
  asked: boolean;
  answer: ServedSession[];
  silent: boolean;
}
const anAsked: fc.Arbitrary<Asked> = fc.record({ asked: fc.boolean(), answer: anAnswer, silent: rarely });

const isServer = (row: ProcessRow): boolean => row.name === "pool" && row.detail?.argv?.[1] === "serve";

function serversOf(rows: ProcessRow[], asked: readonly Asked[], gateway: ServedSession[] | null): ServerAnswer[] {
  const servers = rows.filter(isServer).flatMap((row, index) => {
    const { asked: wasAsked, answer, silent } = asked[index] ?? { asked: false, answer: [], silent: false };
    return wasAsked ? [serverAnswer(row, silent ? "silent" : answer, `/run/${row.identity.pid}`)] : [];
  });
  return gateway === null ? servers : [...servers, serverAnswer(null, gateway, "https://gateway")];
}

/** A bare word has pid and start only, as Claude 2.1.197 wrote it. */
interface Word {
  session: string;
  bare: boolean;
}

/** Some of the speakers have said, truthfully, which session they have: in the first of their stores. */
function announce(stores: readonly Store[], rows: readonly ProcessRow[], words: readonly (Word | null)[]): Store[] {
  const kept = stores.find(({ agent }) => agent === "speaker");
  return stores.map((one) => (one === kept ? { ...one, announcements: withWords(one, rows, words) } : one));
}

function withWords(
  { home, announcements }: Store,
  rows: readonly ProcessRow[],
  words: readonly (Word | null)[],
): Store["announcements"] {
  const spoken = rows.flatMap(({ name, identity, detail }, index) => {
    const word = words[index] ?? null;
    if (word === null || name !== "speaker" || detail === null) return [];
    const pid = detail.innerPid ?? identity.pid;
    const whole = word.bare ? { boot: null, namespace: null } : { boot: identity.boot, namespace: detail.namespace };
    const said = announcement(pid, word.session, { start: identity.start, ...whole, source: `${home}/live/${pid}` });
    return [{ pid, reading: read(said), uid: detail.uid ?? me }];
  });
  // A folder holds one file of a name.
  return [...new Map([...announcements, ...spoken].map((one) => [one.pid, one])).values()];
}

/** Up to four processes and some stores; every reading succeeded. */
export const anEvidence: fc.Arbitrary<Evidence> = fc
  .record({
    rows: fc.uniqueArray(aRow, { maxLength: 4, selector: (row) => row.identity.pid }),
    stores: fc.uniqueArray(aStore, { maxLength: 4, selector: ({ home }) => home }),
    words: fc.array(sometimes(fc.record({ session: anId, bare: fc.boolean() })), { minLength: 4, maxLength: 4 }),
    asked: fc.array(anAsked, { minLength: 4, maxLength: 4 }),
    gateway: fc.option(anAnswer, { freq: 2 }),
    initial: fc.constantFrom(true, true, false),
    othersAreHidden: rarely,
  })
  .map(({ rows, stores, words, asked, gateway, initial, othersAreHidden }) => {
    return evidence({
      othersAreHidden,
      processes: rows,
      table: { namespace: { id: ownNamespace, initial } },
      stores: announce(stores, rows, words),
      servers: serversOf(rows, asked, gateway),
    });
  });

export const failureKinds = [
  "table",
  "gap",
  "detail",
  "hidden",
  "listing",
  "record",
  "nameless",
  "announcement",
  "announcements",
  "server",
] as const;
export type FailureKind = (typeof failureKinds)[number];

/** The same look, in which one reading of this kind went wrong; null: there is none of this kind. */
export function failOne(before: Evidence, kind: FailureKind, choice: number): Evidence | null {
  const after = structuredClone(before);
  const pick = <T>(values: readonly T[]): T | undefined => values[choice % Math.max(1, values.length)];
  const table = after.processes.ok ? after.processes.value : null;
  if (table === null) return null;
  const withoutRow = (row: ProcessRow): void => {
    table.rows = table.rows.filter((other) => other !== row);
  };
  switch (kind) {
    case "table":
      return { ...after, processes: unread(problem("processes-unreadable", "/proc")) };
    case "gap": {
      const row = pick(table.rows);
      if (row === undefined) return null;
      withoutRow(row);
      table.gaps.push(problem("process-unreadable", `/proc/${row.identity.pid}/stat`));
      return after;
    }
    case "detail": {
      const detail = pick(table.rows.filter((row) => row.detail?.ours))?.detail;
      const part = (["argv", "cwd", "env", "lockedFiles"] as const)[choice % 4];
      if (detail === undefined || detail === null || part === undefined) return null;
      Object.assign(detail, { [part]: part === "lockedFiles" ? [] : null });
      detail.unread.push(problem("process-unreadable", `/proc/0/${part}`));
      return after;
    }
    case "hidden": {
      // hidepid hides other users' processes. It is noticed where someone announcements the pid.
      const row = pick(
        table.rows.filter(
          (one) => one.detail?.ours === false && one.detail.namespace === ownNamespace && !isServer(one),
        ),
      );
      if (row === undefined) return null;
      withoutRow(row);
      after.othersAreHidden = true;
      const announced = after.stores
        .flatMap(({ announcements }) => announcements)
        .some(({ pid }) => pid === row.identity.pid);
      if (announced) table.hidden.push(row.identity.pid);
      return after;
    }
    case "listing": {
      const failed = pick(after.stores);
      if (failed === undefined) return null;
      failed.listing = unread(problem("store-unreadable", failed.home));
      failed.rows = failed.rows.filter((_row, index) => (choice >> index) % 2 === 0);
      return after;
    }
    case "record": {
      const row = pick(after.stores.flatMap(({ rows }) => rows));
      if (row === undefined) return null;
      row.reading = unread(
        problem("record-unreadable", row.reading.ok ? row.reading.value.source : row.reading.problem.source),
      );
      return after;
    }
    case "nameless": {
      // Its first line named its session.
      const failed = pick(after.stores.filter(({ rows }) => rows.length > 0));
      const row = failed?.rows[choice % failed.rows.length];
      if (failed === undefined || row === undefined) return null;
      failed.rows = failed.rows.filter((other) => other !== row);
      const { id, writtenAt } = row;
      failed.nameless = [
        { begins: id.slice(0, choice % 3), problem: problem("store-unreadable", failed.home), writtenAt },
      ];
      return after;
    }
    case "announcement": {
      // An unread announcement of an invisible process looks like that of a dead one, so it is allowed here.
      const word = pick(
        after.stores.flatMap(({ announcements }) => announcements).filter((one) => isSeenFrom(one, table)),
      );
      if (word === undefined) return null;
      word.reading = unread(
        problem("announcement-unreadable", word.reading.ok ? word.reading.value.source : word.reading.problem.source),
      );
      return after;
    }
    case "announcements": {
      const failed = pick(after.stores.filter(({ announcements }) => announcements.length > 0));
      if (failed === undefined) return null;
      failed.announcements = [
        { pid: anyPid, uid: null, reading: unread(problem("announcement-unreadable", `${failed.home}/live`)) },
      ];
      return after;
    }
    case "server": {
      const silent = pick(after.servers);
      if (silent === undefined) return null;
      silent.answer = unread(problem("server-silent", silent.address));
      return after;
    }
  }
}

const isSeenFrom = ({ pid, reading }: Store["announcements"][number], { rows, namespace }: ProcessTable): boolean =>
  !reading.ok ||
  reading.value.namespace === null ||
  reading.value.namespace === namespace.id ||
  rows.some((row) => isLive(row) && row.detail?.namespace === reading.value.namespace && row.detail.innerPid === pid);

/** Evidence in which any reading may have failed. */
export const anyEvidence: fc.Arbitrary<Evidence> = fc
  .tuple(anEvidence, fc.array(fc.tuple(fc.constantFrom(...failureKinds), fc.nat(31)), { maxLength: 2 }))
  .map(([whole, failures]) => failures.reduce((seen, [kind, choice]) => failOne(seen, kind, choice) ?? seen, whole));

/** Not of any agent, whatever it carries: a tool's child inherits directory and tag. */
export const aStranger: fc.Arbitrary<ProcessRow> = fc
  .record({
    looked: fc.boolean(),
    foreign: fc.boolean(),
    state: fc.constantFrom("S", "Z", "T"),
    parent: aPid,
    tag: anId,
  })
  .map(({ looked, foreign, state, parent, tag }) => {
    const change = { name: "bash", argv: ["bash"], state, parent, ours: !foreign };
    const env = { HOME: "/home/me", AGENTCTL_TAG_SID: String(strangePid), AGENTCTL_TAG_SESSION: `speaker:${tag}` };
    return looked ? process(strangePid, "speaker", { ...change, env }) : stranger(strangePid, change);
  });

/** A shuffle by random keys: fast-check shrinks it to the identity. */
export function shuffled(whole: Evidence, keys: readonly number[]): Evidence {
  let next = 0;
  const mix = <T>(values: readonly T[]): T[] => {
    const keyed = values.map((value) => ({ value, key: keys[next++ % Math.max(1, keys.length)] ?? 0 }));
    return keyed.sort((a, b) => a.key - b.key).map(({ value }) => value);
  };
  const { processes } = whole;
  const table = processes.ok ? processes.value : null;
  return {
    ...whole,
    processes:
      table === null
        ? processes
        : read({ ...table, rows: mix(table.rows), gaps: mix(table.gaps), hidden: mix(table.hidden) }),
    stores: mix(whole.stores).map((one) => ({ ...one, rows: mix(one.rows), announcements: mix(one.announcements) })),
    servers: mix(whole.servers).map((one) => (one.answer.ok ? { ...one, answer: read(mix(one.answer.value)) } : one)),
    problems: mix(whole.problems),
  };
}

/** Every text that could honestly have become an id. */
export function idsIn({ stores, servers, processes }: Evidence): Set<string> {
  const ids = new Set<string>();
  for (const { rows, announcements } of stores) {
    for (const { id, reading } of rows) {
      ids.add(id);
      for (const also of reading.ok ? [reading.value.parent, reading.value.continuedBy] : []) if (also) ids.add(also);
    }
    for (const { reading } of announcements) if (reading.ok) ids.add(reading.value.session);
  }
  for (const { answer } of servers) for (const { id } of answer.ok ? answer.value : []) ids.add(id);
  for (const { detail } of processes.ok ? processes.value.rows : []) {
    for (const text of detail?.argv ?? []) ids.add(text);
    for (const path of detail?.lockedFiles ?? []) ids.add(path.replace(/^.*\/|\.lock$/g, ""));
    ids.add(detail?.env?.["AGENTCTL_TAG_SESSION"]?.split(":")[1] ?? "");
  }
  return ids;
}
