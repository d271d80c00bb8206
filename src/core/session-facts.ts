// Everything known about each session id of each home, gathered before any of it is judged.
import type { Evidence, NativeRecord, Store } from "./evidence.ts";
import { type Doubt, type FoundOwner, type Matches, reasonKey, type StaleAnnouncement, sessionKey } from "./matches.ts";
import { type Reading, unread } from "./problem.ts";
import { type Link, linkStrengths } from "./session.ts";

export interface SessionFacts {
  agent: string;
  home: string;
  id: string;
  store: Store | null;
  /** null: no record. A live process may announce a session before it writes one. */
  reading: Reading<NativeRecord> | null;
  /** The uid that owns the record; null: no record, or its owner cannot be read. */
  recordOwner: number | null;
  /** Another uid that owns one of its records; null: all records are ours, or their owner cannot be read. */
  foreignOwner: number | null;
  /** More records under the same id (Claude keeps one per directory). */
  otherRecords: NativeRecord[];
  owners: FoundOwner[];
  doubts: Doubt[];
  staleAnnouncements: StaleAnnouncement[];
  /** The session to which its process switched, by announcement or by the agent's own history. */
  continuedBy: string | null;
}

export function gatherFacts(evidence: Evidence, matches: Matches): SessionFacts[] {
  const found = new Map<string, SessionFacts>();
  const factsOf = (agent: string, home: string, id: string, store: Store | null): SessionFacts => {
    const key = sessionKey(agent, home, id);
    const known = found.get(key);
    if (known !== undefined) return known;
    const owners = (matches.owners.get(key) ?? []).toSorted(byOwnerOrder);
    const doubts = [...(matches.doubts.get(key) ?? []), ...(matches.agentDoubts.get(agent) ?? [])].sort(byDoubtOrder);
    const stale = matches.staleAnnouncements.get(key) ?? [];
    const staleAnnouncements = stale.toSorted((a, b) => compareText(a.announcement.source, b.announcement.source));
    const continuedBy = matches.continuedBy.get(key) ?? successorOf(id, store);
    const made: SessionFacts = {
      ...{ agent, home, id, store, owners, doubts, staleAnnouncements, continuedBy },
      ...{ reading: null, recordOwner: null, foreignOwner: null, otherRecords: [] },
    };
    found.set(key, made);
    return made;
  };
  const own = evidence.processes.ok ? evidence.processes.value.uid : null;
  for (const store of evidence.stores)
    for (const row of store.rows) addRecord(factsOf(store.agent, store.home, row.id, store), row, own);
  for (const key of [...matches.owners.keys(), ...matches.doubts.keys()]) {
    const [agent = "", home = "", id = ""] = key.split("\0");
    const store = evidence.stores.find((candidate) => candidate.agent === agent && candidate.home === home) ?? null;
    factsOf(agent, home, id, store);
  }
  for (const one of found.values()) {
    const [nameless] = namelessOf(one.store, one.id);
    if (nameless === undefined || one.reading?.ok === false) continue;
    one.reading = unread({ ...nameless.problem, detail: { code: "unnamed-record", detail: nameless.problem.detail } });
  }
  for (const { otherRecords } of found.values()) otherRecords.sort(byNewestMessage);
  return [...found.values()];
}

/** Unreadable records that may belong to this session. */
export const namelessOf = (store: Store | null, id: string): NonNullable<Store["nameless"]> =>
  store?.nameless?.filter(({ begins }) => id.startsWith(begins)) ?? [];

/** After `/clear` the new session begins within this time. */
const successionMs = 1_000;

/** The only record of the same directory that began when a person left this session. */
function successorOf(id: string, store: Store | null): string | null {
  for (const { from, to, at, cwd } of store?.successions ?? []) {
    if (from !== id) continue;
    if (to !== null) return to === id ? null : to;
    const begun = (store?.rows ?? []).flatMap(({ reading }) => {
      const record = reading.ok ? reading.value : null;
      if (record === null || record.id === id || record.createdAt === null || record.cwd !== cwd) return [];
      return record.createdAt >= at && record.createdAt <= at + successionMs ? [record.id] : [];
    });
    if (begun.length === 1) return begun[0] ?? null;
  }
  return null;
}

const byDoubtOrder = (a: Doubt, b: Doubt): number =>
  compareText(reasonKey(a.why), reasonKey(b.why)) || compareText(a.source, b.source);

/**
 * Of several records of one id the one with the newest message counts. If one is unreadable, that one counts. A record of
 * another user never replaces ours.
 */
function addRecord(subject: SessionFacts, { reading, uid }: Store["rows"][number], own: number | null): void {
  const before = subject.reading;
  const isForeign = (owner: number | null): boolean => owner !== null && owner !== own;
  if (isForeign(uid)) subject.foreignOwner = Math.min(uid ?? 0, subject.foreignOwner ?? Number.POSITIVE_INFINITY);
  const isFirst =
    before === null ||
    (isForeign(uid) === isForeign(subject.recordOwner)
      ? byWeight(reading, before) < 0
      : isForeign(subject.recordOwner));
  const other = isFirst ? before : reading;
  if (other?.ok === true) subject.otherRecords.push(other.value);
  if (!isFirst) return;
  subject.reading = reading;
  subject.recordOwner = uid;
}

function byWeight(a: Reading<NativeRecord>, b: Reading<NativeRecord>): number {
  if (a.ok && b.ok) return byNewestMessage(a.value, b.value);
  if (!a.ok && !b.ok) return compareText(a.problem.source, b.problem.source);
  return a.ok ? 1 : -1;
}

const byNewestMessage = (a: NativeRecord, b: NativeRecord): number =>
  (b.lastMessageAt ?? 0) - (a.lastMessageAt ?? 0) || compareText(a.source, b.source);

const strength = (link: Link | null): number => (link === null ? linkStrengths.length : linkStrengths.indexOf(link));

const byOwnerOrder = (a: FoundOwner, b: FoundOwner): number =>
  strength(a.kind === "process" ? a.link : null) - strength(b.kind === "process" ? b.link : null) ||
  (a.row?.identity.pid ?? 0) - (b.row?.identity.pid ?? 0) ||
  compareText(a.kind === "server" ? a.address : a.source, b.kind === "server" ? b.address : b.source);

export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
