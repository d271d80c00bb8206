// Reads of a store only what a question needs: the names of all records first, then those that somebody has, may have, or asks for.
import type { Adapter } from "../adapters/adapter.ts";
import type { Evidence, Store } from "../core/evidence.ts";
import { type Needed, neededRecords, outline } from "../core/needed.ts";
import type { Deadline } from "../lib/deadline.ts";
import { lookUpDirectories } from "./directories.ts";
import { type FoundRecord, newestOf, visitFound } from "./records.ts";
import { readFound } from "./stores.ts";

/** A store of which only the names were read. */
export interface NamedStore {
  adapter: Adapter;
  store: Store;
  named: FoundRecord[];
}

export function outlineAll({ store, named }: NamedStore): void {
  store.rows = named.map(({ subject, path, cwd = null }) => outline(subject, path, cwd));
}

/** In place of the outlines, the records that are needed, and those of which somebody wants to know. */
export function openNeeded(
  stores: readonly NamedStore[],
  evidence: Evidence,
  adapters: readonly Adapter[],
  wanted: (id: string) => boolean,
  mounts: string,
  deadline: Deadline,
): void {
  let needed = neededRecords(evidence, adapters);
  if (needed.named !== null) {
    // Silent processes: whose directory is whose, and who is too old to be theirs, rules out most of what they may have.
    evidence.directories = lookUpDirectories(evidence, needed.named, adapters, mounts);
    needed = neededRecords(evidence, adapters);
    for (const each of stores) tellTimes(each, needed);
    needed = neededRecords(evidence, adapters);
  }
  for (const { adapter, store, named } of stores) {
    const isOpened = ({ subject }: FoundRecord): boolean => wanted(subject) || needed.of(store, subject) !== null;
    store.rows = visitFound(named.filter(isOpened), (record, read) => readFound(adapter, record, read, deadline));
    store.unopened = named.filter((record) => !isOpened(record)).map(({ subject }) => subject);
  }
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
