// Reads of a store only what a question needs: the names of all records first, then those that somebody has, may have, or asks for.
import type { Adapter } from "../adapters/adapter.ts";
import type { Evidence, Store } from "../core/evidence.ts";
import { anyRecord, type Needed, neededRecords, outline } from "../core/needed.ts";
import { likeness } from "../core/session.ts";
import type { Deadline } from "../lib/deadline.ts";
import type { Databases } from "../sys/sqlite.ts";
import { lookUpDirectories } from "./directories.ts";
import type { RecordNames } from "./names.ts";
import { type RecordCache, statOf } from "./record-cache.ts";
import { type FoundRecord, isDatabase, newestOf, type ReadRecord, visitFound } from "./records.ts";
import { nameStore, noteFailures, readFound } from "./stores.ts";
import type { WantedSome } from "./wanted.ts";

/** A store of which only the names were read. */
export interface NamedStore {
  adapter: Adapter;
  store: Store;
  names: RecordNames;
  /** Those that may be wanted, as they were before anybody looked at the processes. */
  asked: FoundRecord[];
}

/** null: there is no such store. Until more is asked, one outline stands for all of its records. */
export function outlineStore(
  adapter: Adapter,
  home: string,
  wanted: WantedSome,
  databases: Databases,
): NamedStore | null {
  const found = nameStore(adapter, home, databases);
  if (found === null) return null;
  const { store, names } = found;
  store.rows = [outline(anyRecord, store.home, null)];
  return { adapter, store, names, asked: wanted.since === undefined ? names.like(wanted) : names.all() };
}

function outlineEach(store: Store, records: readonly FoundRecord[]): void {
  store.rows = records.map(({ subject, path, cwd = null }) => outline(subject, path, cwd));
}

interface Means {
  mounts: string;
  deadline: Deadline;
  cache: RecordCache | null;
  databases: Databases;
}

/** In place of the outlines, the records that are needed, and those of which somebody wants to know. */
export function openNeeded(
  stores: readonly NamedStore[],
  evidence: Evidence,
  adapters: readonly Adapter[],
  wanted: WantedSome,
  { mounts, deadline, cache, databases }: Means,
): void {
  const needed = neededRecords(evidence, adapters);
  const open = stores.filter(({ store }) => needed.idsOf(store) === null);
  const among = open.length === 0 ? null : neededAmong(open, needed, evidence, adapters, { mounts, databases });
  const told = new Set(needed.ids);
  told.delete("");
  const opened = new Map<NamedStore, FoundRecord[]>();
  for (const each of stores) {
    const { store, names, asked } = each;
    const ids = needed.idsOf(store);
    const first = ids === null ? (among?.get(store) ?? []) : names.like({ ids });
    const known = new Set(first.map(keyOf));
    const then = asked.filter((record) => !known.has(keyOf(record)) && isWanted(record, wanted));
    // Where the time runs out, those who run are not the ones that are left unread.
    opened.set(each, [...first, ...then]);
    for (const { subject } of [...first, ...then]) told.add(subject);
  }
  const beginnings = [...new Set([...told].map((id) => id.slice(0, likeness).toLowerCase()))];
  for (const { store, names, asked } of stores) {
    const all = wanted.since === undefined ? names.like({ beginnings }) : asked;
    store.unopened = all.flatMap(({ subject }) => (told.has(subject) ? [] : [subject]));
  }
  const visit = (each: NamedStore): void => {
    const { adapter, store, names } = each;
    const read = (record: FoundRecord, reading: ReadRecord) => readFound(adapter, record, reading, deadline, cache);
    store.rows = visitFound(opened.get(each) ?? [], read, databases);
    noteFailures(store, adapter, names.failures);
  };
  // Databases first: they are held open until they are read.
  const hasDatabase = ({ adapter }: NamedStore): boolean => adapter.records.some(isDatabase);
  for (const each of stores.filter(hasDatabase)) visit(each);
  databases.close();
  for (const each of stores.filter((store) => !hasDatabase(store))) visit(each);
}

const keyOf = ({ path, subject }: FoundRecord): string => `${path}\0${subject}`;

/** Where names were asked for by ids and beginnings, only those are there. */
const isWanted = (record: FoundRecord, { ids, beginnings = [], since }: WantedSome): boolean =>
  since === undefined ||
  ids?.has(record.subject) === true ||
  beginnings.some((start) => record.subject.toLowerCase().startsWith(start)) ||
  (writtenAt(record) ?? Number.POSITIVE_INFINITY) >= since;

const writtenAt = ({ path, updatedAt }: FoundRecord): number | null => updatedAt ?? statOf(path)?.mtimeMs ?? null;

/** Where any record may be somebody's: by what their names tell, and their directories. */
function neededAmong(
  open: readonly NamedStore[],
  first: Needed,
  evidence: Evidence,
  adapters: readonly Adapter[],
  { mounts, databases }: Pick<Means, "mounts" | "databases">,
): Map<Store, FoundRecord[]> {
  const records = new Map(open.map(({ store, names }) => [store, nearOrNamed(names, store, first)]));
  for (const [store, near] of records) outlineEach(store, near);
  let needed = neededRecords(evidence, adapters);
  if (needed.named !== null) {
    for (const { store, names } of open) records.set(store, names.all());
    for (const [store, all] of records) outlineEach(store, all);
    // Silent processes: whose directory is whose, and who is too old to be theirs, rules out most of what they may have.
    evidence.directories = lookUpDirectories(evidence, needed.named, adapters, mounts);
    needed = neededRecords(evidence, adapters);
    for (const each of open) tellTimes(each, needed, databases);
    needed = neededRecords(evidence, adapters);
  }
  const { of } = needed;
  return new Map([...records].map(([store, all]) => [store, all.filter(({ subject }) => of(store, subject) !== null)]));
}

/** The records of the directories that processes work in, and those that a process names although they work elsewhere. */
function nearOrNamed(names: RecordNames, store: Store, { directoriesOf, ids }: Needed): FoundRecord[] {
  const near = names.near(directoriesOf(store));
  const known = new Set(near.map(keyOf));
  return [...near, ...names.like({ ids }).filter((record) => !known.has(keyOf(record)))];
}

/** Of records that somebody may have: how young they can be, where that is cheaper than reading them. */
function tellTimes({ store, names }: NamedStore, needed: Needed, databases: Databases): void {
  const isDoubted = ({ subject, set }: FoundRecord): boolean =>
    set.assembled?.newest !== undefined && needed.of(store, subject) === "doubted";
  const times = newestOf(names.all().filter(isDoubted), databases);
  for (const row of store.rows) {
    const writtenAt = times.get(row.id) ?? null;
    if (writtenAt === null || !row.reading.ok) continue;
    row.writtenAt = writtenAt;
    row.reading = { ok: true, value: { ...row.reading.value, writtenAt } };
  }
}
