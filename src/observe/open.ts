// Reads of a store only what a question needs: the names of all records first, then those that somebody has, may have, or asks for.
import type { Adapter } from "../adapters/adapter.ts";
import type { Evidence, Store } from "../core/evidence.ts";
import { anyRecord, type Needed, neededRecords, outline } from "../core/needed.ts";
import type { Deadline } from "../lib/deadline.ts";
import { lookUpDirectories } from "./directories.ts";
import { type RecordCache, statOf } from "./record-cache.ts";
import { type FoundRecord, newestOf, visitFound } from "./records.ts";
import { readFound } from "./stores.ts";

/** A store of which only the names were read. */
export interface NamedStore {
  adapter: Adapter;
  store: Store;
  named: FoundRecord[];
}

/** Until more is asked, one outline stands for all. */
export function outlineAny({ store }: NamedStore): void {
  store.rows = [outline(anyRecord, store.home, null)];
}

function outlineEach({ store, named }: NamedStore): void {
  store.rows = named.map(({ subject, path, cwd = null }) => outline(subject, path, cwd));
}

/** In place of the outlines, the records that are needed, and those of which somebody wants to know. */
export function openNeeded(
  stores: readonly NamedStore[],
  evidence: Evidence,
  adapters: readonly Adapter[],
  wanted: (id: string, writtenAt: () => number | null) => boolean,
  { mounts, deadline, cache }: { mounts: string; deadline: Deadline; cache: RecordCache | null },
): void {
  const needed = neededRecords(evidence, adapters);
  const open = stores.filter(({ store }) => needed.idsOf(store) === null);
  const isNeeded = open.length === 0 ? () => false : neededAmong(open, evidence, adapters, mounts);
  for (const each of stores) {
    const { adapter, store, named } = each;
    const ids = needed.idsOf(store);
    const first: FoundRecord[] = [];
    const then: FoundRecord[] = [];
    const unopened: string[] = [];
    for (const record of named) {
      const { subject } = record;
      if (ids === null ? isNeeded(store, subject) : ids.has(subject)) first.push(record);
      else if (wanted(subject, () => writtenAt(record))) then.push(record);
      else unopened.push(subject);
    }
    // Where the time runs out, those who run are not the ones that are left unread.
    const opened = [...first, ...then];
    store.rows = visitFound(opened, (record, read) => readFound(adapter, record, read, deadline, cache));
    store.unopened = unopened;
  }
}

const writtenAt = ({ path, updatedAt }: FoundRecord): number | null => updatedAt ?? statOf(path)?.mtimeMs ?? null;

/** Where any record may be somebody's: by what their names tell. */
function neededAmong(
  open: readonly NamedStore[],
  evidence: Evidence,
  adapters: readonly Adapter[],
  mounts: string,
): (store: Store, id: string) => boolean {
  for (const each of open) outlineEach(each);
  let needed = neededRecords(evidence, adapters);
  if (needed.named !== null) {
    // Silent processes: whose directory is whose, and who is too old to be theirs, rules out most of what they may have.
    evidence.directories = lookUpDirectories(evidence, needed.named, adapters, mounts);
    needed = neededRecords(evidence, adapters);
    for (const each of open) tellTimes(each, needed);
    needed = neededRecords(evidence, adapters);
  }
  return (store, id) => needed.of(store, id) !== null;
}

/** Of records that somebody may have: how young they can be, where that is cheaper than reading them. */
function tellTimes({ store, named }: NamedStore, needed: Needed): void {
  const doubted = named.filter(({ subject, set }) => set.assembled?.newest && needed.of(store, subject) === "doubted");
  const times = newestOf(doubted);
  for (const row of store.rows) {
    const writtenAt = times.get(row.id) ?? null;
    if (writtenAt === null || !row.reading.ok) continue;
    row.writtenAt = writtenAt;
    row.reading = { ok: true, value: { ...row.reading.value, writtenAt } };
  }
}
