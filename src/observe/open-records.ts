// Opens only the records that a question needs: those that a process or server has or may have, and the selected ones.
import type { Adapter } from "../agents/adapter.ts";
import type { Evidence, Store } from "../core/evidence.ts";
import { read } from "../core/problem.ts";
import { anyRecord, type Needed, neededRecords, outline } from "../core/required-records.ts";
import { likeness } from "../core/session.ts";
import type { Databases } from "../sys/sqlite.ts";
import { lookUpDirectories } from "./directories.ts";
import { statOf } from "./record-cache.ts";
import { RecordNames } from "./record-names.ts";
import { type FoundRecord, isDatabase, newestOf, type ReadRecord, visitFound } from "./records.ts";
import type { Scan } from "./scan.ts";
import type { SelectionCriteria } from "./selection.ts";
import { readFound, storeAt, withFailures } from "./stores.ts";

/** A store whose records are known by name only. */
export interface NamedStore {
  agent: string;
  home: string;
  adapter: Adapter;
  names: RecordNames;
  /** The records that may be selected, listed before the processes were read. */
  asked: FoundRecord[];
}

export const storeKey = ({ agent, home }: Pick<Store, "agent" | "home">): string => `${agent}\0${home}`;

export function withStores(evidence: Evidence, changed: readonly Store[]): Evidence {
  const byKey = new Map(changed.map((store) => [storeKey(store), store]));
  return { ...evidence, stores: evidence.stores.map((store) => byKey.get(storeKey(store)) ?? store) };
}

/** null: there is no such store. Until its records are opened, one outline represents all of them. */
export function outlineStore(
  adapter: Adapter,
  home: string,
  selection: SelectionCriteria,
  databases: Databases,
): { store: Store; named: NamedStore } | null {
  const store = storeAt(adapter, home);
  if (store === null) return null;
  const names = new RecordNames(adapter, home, databases);
  const listed = withFailures(store, names.failures);
  const asked = selection.since === undefined ? names.like(selection) : names.all();
  return {
    store: { ...listed, rows: [outline(anyRecord, home, null)] },
    named: { agent: adapter.agent, home, adapter, names, asked },
  };
}

/** Opens the required and the selected records in place of the outlines. */
export function openRequired(
  evidence: Evidence,
  named: readonly NamedStore[],
  selection: SelectionCriteria,
  scan: Scan,
): Evidence {
  const stores = outlinedStores(evidence, named);
  const needed = neededRecords(evidence, scan.adapters);
  const search = searchRequired(stores, needed, evidence, scan);
  const records = new Map(
    stores.map((each) => {
      const ids = needed.idsOf(each.store);
      const required = ids === null ? (search.records.get(each) ?? []) : each.names.like({ ids });
      const known = new Set(required.map(keyOf));
      const selected = each.asked.filter((record) => !known.has(keyOf(record)) && isSelected(record, selection));
      // If the time runs out, selected records stay unread, not the required ones.
      return [each, [...required, ...selected]];
    }),
  );
  const opened = new Set([...needed.ids, ...[...records.values()].flat().map(({ subject }) => subject)]);
  opened.delete("");
  const beginnings = new Set([...opened].map((id) => id.slice(0, likeness).toLowerCase()));
  // Ids that begin like an opened one count for unique references; a selection by time lists all that were not opened.
  const unopened = stores.map(({ names, asked }) => {
    const others = selection.since === undefined ? names.like({ beginnings }) : asked;
    return others.flatMap(({ subject }) => (opened.has(subject) ? [] : [subject]));
  });
  const rows = readRows(records, scan);
  const changed = stores.map((each, index) => {
    const store = { ...each.store, rows: rows.get(each) ?? [], unopened: unopened[index] ?? [] };
    return withFailures(store, each.names.failures);
  });
  return withStores({ ...evidence, directories: search.directories }, changed);
}

interface OutlinedStore extends NamedStore {
  store: Store;
}

function outlinedStores({ stores }: Evidence, named: readonly NamedStore[]): OutlinedStore[] {
  const byKey = new Map(stores.map((store) => [storeKey(store), store]));
  return named.flatMap((each) => {
    const store = byKey.get(storeKey(each));
    return store === undefined ? [] : [{ ...each, store }];
  });
}

const keyOf = ({ path, subject }: FoundRecord): string => `${path}\0${subject}`;

/** Without a time, `asked` holds only records with the selected ids. */
const isSelected = (record: FoundRecord, { ids, beginnings = [], since }: SelectionCriteria): boolean =>
  since === undefined ||
  ids?.has(record.subject) === true ||
  beginnings.some((start) => record.subject.toLowerCase().startsWith(start)) ||
  (writtenAt(record) ?? Number.POSITIVE_INFINITY) >= since;

const writtenAt = ({ path, updatedAt }: FoundRecord): number | null => updatedAt ?? statOf(path)?.mtimeMs ?? null;

/** Reads databases first, because they stay open until they are read. */
function readRows(
  records: ReadonlyMap<OutlinedStore, readonly FoundRecord[]>,
  { cache, databases, localDeadline }: Scan,
): Map<OutlinedStore, Store["rows"]> {
  const deadline = localDeadline();
  const rows = new Map<OutlinedStore, Store["rows"]>();
  const hasDatabase = ({ adapter }: OutlinedStore): boolean => adapter.records.some(isDatabase);
  const readInto = (each: OutlinedStore): void => {
    const visit = (record: FoundRecord, reading: ReadRecord) =>
      readFound(each.adapter, record, reading, deadline, cache);
    rows.set(each, visitFound(records.get(each) ?? [], visit, databases));
  };
  const stores = Map.groupBy(records.keys(), hasDatabase);
  stores.get(true)?.forEach(readInto);
  databases.close();
  stores.get(false)?.forEach(readInto);
  return rows;
}

interface RequiredSearch {
  records: Map<OutlinedStore, FoundRecord[]>;
  directories: Evidence["directories"];
}

/** Finds the required records by name, directory and time, in stores where any record may be required. */
function searchRequired(
  stores: readonly OutlinedStore[],
  first: Needed,
  evidence: Evidence,
  { adapters, mounts, databases }: Scan,
): RequiredSearch {
  const open = stores.filter(({ store }) => first.idsOf(store) === null);
  const { directories } = evidence;
  if (open.length === 0) return { records: new Map(), directories };
  const near = new Map(open.map((each) => [each, nearOrNamed(each, first)]));
  const needed = neededRecords(withOutlines(evidence, near), adapters);
  if (needed.named === null) return { records: requiredAmong(near, needed), directories };
  // Some processes do not name their session. Their directories and start times rule out most records.
  const all = new Map(open.map((each) => [each, each.names.all()]));
  const outlined = withOutlines(evidence, all);
  const located = { ...outlined, directories: lookUpDirectories(outlined, needed.named, adapters, mounts) };
  const timed = withTimes(located, open, neededRecords(located, adapters), databases);
  return { records: requiredAmong(all, neededRecords(timed, adapters)), directories: located.directories };
}

const requiredAmong = (records: RequiredSearch["records"], { of }: Needed): RequiredSearch["records"] =>
  new Map([...records].map(([each, all]) => [each, all.filter(({ subject }) => of(each.store, subject) !== null)]));

const withOutlines = (evidence: Evidence, records: RequiredSearch["records"]): Evidence =>
  withStores(
    evidence,
    [...records].map(([{ store }, all]) => ({
      ...store,
      rows: all.map(({ subject, path, cwd = null }) => outline(subject, path, cwd)),
    })),
  );

/** The records of the directories in which processes work, and the records that a process names. */
function nearOrNamed({ names, store }: OutlinedStore, { directoriesOf, ids }: Needed): FoundRecord[] {
  const near = names.near(directoriesOf(store));
  const known = new Set(near.map(keyOf));
  return [...near, ...names.like({ ids }).filter((record) => !known.has(keyOf(record)))];
}

/** Adds the time of the newest entry to records that may be required, where this is faster than reading them. */
function withTimes(evidence: Evidence, open: readonly OutlinedStore[], needed: Needed, databases: Databases): Evidence {
  const changed = outlinedStores(evidence, open).map(({ store, names }) => {
    const isDoubted = ({ subject, set }: FoundRecord): boolean =>
      set.assembled?.newest !== undefined && needed.of(store, subject) === "doubted";
    const times = newestOf(names.all().filter(isDoubted), databases);
    const rows = store.rows.map((row) => {
      const time = times.get(row.id) ?? null;
      if (time === null || !row.reading.ok) return row;
      return { ...row, writtenAt: time, reading: read({ ...row.reading.value, writtenAt: time }) };
    });
    return { ...store, rows };
  });
  return withStores(evidence, changed);
}
