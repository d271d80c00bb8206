// For processes without a known session: which records of their directory may be theirs. Rule 9.

import { startSlackMs } from "./announcements.ts";
import { mayBeTied, whyNotTied } from "./belief.ts";
import type { Evidence, Store } from "./evidence.ts";
import { givenId } from "./given-id.ts";
import {
  type AgentProcess,
  add,
  addOwner,
  type Doubt,
  homeFor,
  type Matches,
  processOwner,
  reasonKey,
  sessionKey,
} from "./matches.ts";
import { sameProcess } from "./process.ts";
import type { OwnerDoubt } from "./reason.ts";

/**
 * A process without a known session may have a record of its directory with a message newer than the process. One process that
 * never announces and one record are linked, weakly. In all other cases the session stays unknown. A process that normally
 * announces is never linked this way; but until it has announced, such a record is not proven to have no owner.
 */
export function matchByDirectory(unnamed: AgentProcess[], evidence: Evidence, found: Matches): void {
  const recordsOf = new Map<AgentProcess, Candidate[]>();
  const processesOf = new Map<string, AgentProcess[]>();
  const places = new Map<Store, Places>();
  for (const process of unnamed) {
    // Locks are read together with their process: without a lock there is no session. A process that asks for trust has none, either.
    const byLock = process.rules.serversNameBy === "lock";
    const inDialog = evidence.dialogs.some((dialog) => sameProcess(dialog.process, process.row.identity));
    const candidates = byLock || inDialog ? [] : directoryCandidates(process, evidence, found, places);
    recordsOf.set(process, candidates);
    for (const { key, isPast } of candidates) if (!isPast) add(processesOf, key, process);
  }
  for (const process of unnamed) {
    const candidates = recordsOf.get(process) ?? [];
    if (process.muted !== null) {
      matchMuted(process, process.muted, candidates, evidence, found);
      continue;
    }
    const recent = candidates.filter(({ isPast }) => !isPast);
    const [only, ...more] = recent;
    const { pid } = process.row.identity;
    const source = `/proc/${pid}/cwd`;
    const alone = more.length === 0 && only !== undefined && processesOf.get(only.key)?.length === 1;
    if (alone && only.fits && !process.rules.announces(process.detail)) {
      addOwner(found, only.key, processOwner(process.row, "cwd", source));
      continue;
    }
    const why: OwnerDoubt = { code: "open-in-silent-process", pid };
    for (const { key } of candidates) add(found.doubts, key, { why, source, rule: "R9" });
    if (process.detail.ours) found.unrecorded.push({ process, maybe: recent.map(({ id }) => id) });
  }
}

/**
 * None of the candidates is proven to have no owner. The session that the process was started with is still its own if there is no
 * other candidate in its directory.
 */
function matchMuted(
  process: AgentProcess,
  { store: { agent }, ...doubt }: NonNullable<AgentProcess["muted"]>,
  candidates: Candidate[],
  evidence: Evidence,
  found: Matches,
): void {
  for (const { key } of candidates) doubtOnce(found, key, doubt);
  const given = givenId(process);
  if (given !== null) {
    const { id, link, source } = given;
    const home = homeFor(process, id, evidence);
    const key = sessionKey(agent, home, id);
    const isTied = link !== "argv" || whyNotTied(process, { agent, home, id }, evidence) === null;
    if (isTied && candidates.every((each) => each.id === id)) {
      addOwner(found, key, processOwner(process.row, link, source));
      return;
    }
    doubtOnce(found, key, doubt);
  }
  found.unrecorded.push({ process, maybe: candidates.map(({ id }) => id) });
}

function doubtOnce({ doubts }: Matches, key: string, doubt: Doubt): void {
  const isKnown = doubts.get(key)?.some(({ why }) => reasonKey(why) === reasonKey(doubt.why));
  if (isKnown !== true) add(doubts, key, doubt);
}

interface Candidate {
  key: string;
  id: string;
  /** Directory and time are recorded and agree. Otherwise the record merely cannot be ruled out. */
  fits: boolean;
  /** The record's last message is older than the process. But the arguments of the process are hidden, and may name the record. */
  isPast: boolean;
}

/** Directories are moved and removed while processes run, and differ between containers: another path alone proves nothing. */
function isElsewhere({ row, detail }: AgentProcess, cwd: string | null, { directories }: Evidence): boolean {
  if (cwd === null || detail.cwd === null || (cwd === detail.cwd && detail.sameFiles)) return false;
  const there = directories[cwd];
  const here = directories[`/proc/${row.identity.pid}/cwd`];
  // Not looked up yet: compare the paths.
  if (there === undefined || here === undefined) return detail.sameFiles;
  return there !== null && here !== null && there !== here;
}

const tickMs = 10;

/** True if an unreadable record without a known id was written since then: it may belong to the process. */
const hasNameless = ({ nameless = [] }: Store, startedAt: number): boolean =>
  nameless.some(({ writtenAt }) => (writtenAt ?? Number.POSITIVE_INFINITY) >= startedAt - startSlackMs);

/** A store by directories, because thousands of records share a few. */
interface Places {
  rowsIn: ReadonlyMap<string | null, Store["rows"]>;
  unreadIds: ReadonlySet<string>;
}

const placesIn = (store: Store): Places => ({
  rowsIn: Map.groupBy(store.rows, ({ reading }) => (reading.ok ? reading.value.cwd : null)),
  unreadIds: new Set(store.rows.flatMap(({ id, reading }) => (reading.ok ? [] : [id]))),
});

function directoryCandidates(
  process: AgentProcess,
  evidence: Evidence,
  found: Matches,
  places: Map<Store, Places>,
): Candidate[] {
  const candidates = new Map<string, Candidate>();
  const { detail, row, home, rules } = process;
  for (const store of evidence.stores) {
    if (store.agent !== rules.agent || (home !== null && store.home !== home)) continue;
    const { rowsIn, unreadIds } = places.get(store) ?? placesIn(store);
    places.set(store, { rowsIn, unreadIds });
    const near = [...rowsIn].flatMap(([cwd, rows]) => (isElsewhere(process, cwd, evidence) ? [] : rows));
    for (const { id, reading, writtenAt, uid } of near) {
      const key = sessionKey(store.agent, store.home, id);
      if (found.owners.has(key) || (!detail.ours && (uid === null || uid !== detail.uid))) continue;
      const record = reading.ok ? reading.value : null;
      // Subagents belong to the process of their parent.
      if (record?.subagentOf != null) continue;
      const cwd = record?.cwd ?? null;
      // Without a time in the record, use the file's: a record last written before the start does not belong to this process.
      const told = record?.lastMessageAt ?? record?.createdAt ?? null;
      // If its newest lines are broken, only the time of the file tells how new they are.
      const isWhole = record === null || (record.skippedLines === 0 && !record.torn);
      const newest = told !== null && isWhole ? told : Math.max(told ?? 0, writtenAt ?? Number.POSITIVE_INFINITY);
      const isPast = newest < row.startedAt - startSlackMs;
      if (isPast && rules.hidesArguments?.(detail) !== true) continue;
      const isYounger = told !== null && told >= row.startedAt + tickMs && !unreadIds.has(id);
      const fits =
        isYounger &&
        detail.ours &&
        mayBeTied(uid, detail) &&
        // A process on another host may work in a directory of the same name.
        store.isShared !== true &&
        detail.sameFiles &&
        home !== null &&
        cwd !== null &&
        cwd === detail.cwd &&
        store.listing.ok &&
        !hasNameless(store, row.startedAt);
      const twin = candidates.get(key);
      candidates.set(key, { key, id, fits: fits && (twin?.fits ?? true), isPast: isPast && (twin?.isPast ?? true) });
    }
  }
  return [...candidates.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}
