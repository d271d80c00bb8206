// Reads an agent's own records in one home. One bad file costs one row; a slow store costs its own rows.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { anyPid, type PidClaim, type Store } from "../core/evidence.ts";
import { type Problem, type Reading, read, unread } from "../core/problem.ts";
import type { Deadline } from "../lib/deadline.ts";
import { linesBackward, readChunk } from "../lib/jsonl.ts";
import type { Databases } from "../sys/sqlite.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { type FoundFile, findFiles, ownUid, readWhole, withFile } from "./files.ts";
import { RecordNames, visitRecords } from "./names.ts";
import { type RecordCache, statOf } from "./record-cache.ts";
import { type Failure, type FoundRecord, parsed, type ReadRecord, readRecord } from "./records.ts";

const claimLimit = 1024 * 1024;

/** null: there is no such store, which is no problem. */
export function readStore(
  adapter: Adapter,
  home: string,
  deadline: Deadline,
  cache: RecordCache | null = null,
): Store | null {
  const store = storeAt(adapter, home);
  if (store === null) return null;
  const found = visitRecords(adapter, home, (record, read) => readFound(adapter, record, read, deadline, cache));
  store.rows = found.visited;
  noteFailures(store, adapter, found.failures);
  return store;
}

/** The same with the names of its records alone. */
export function nameStore(
  adapter: Adapter,
  home: string,
  databases: Databases,
): { store: Store; names: RecordNames } | null {
  const store = storeAt(adapter, home);
  if (store === null) return null;
  const names = new RecordNames(adapter, home, databases);
  noteFailures(store, adapter, names.failures);
  return { store, names };
}

/** What could not be read hides sessions: those that begin like it, or nobody knows which. Said twice it is noted once. */
export function noteFailures(store: Store, adapter: Adapter, failures: readonly Failure[]): void {
  const nameless = new Map((store.nameless ?? []).map((each) => [each.problem.source, each]));
  for (const { begins, path, message } of failures) {
    const problem = storeProblem(adapter, path, message);
    if (begins !== null) nameless.set(path, { begins, problem, writtenAt: statOf(path)?.mtimeMs ?? null });
    else if (store.listing.ok) store.listing = unread(problem);
  }
  if (nameless.size > 0) store.nameless = [...nameless.values()];
}

/** Without its records. */
function storeAt(adapter: Adapter, home: string): Store | null {
  const place = findHome(home);
  if (place === "absent") return null;
  return {
    agent: adapter.agent,
    home,
    names: [home],
    onRootDevice: place.isOnRoot,
    ...(place.isOursAlone ? {} : { mayHoldOthers: true }),
    listing: read(0),
    rows: [],
    claims: readClaims(adapter, home),
    successions: readSuccessions(adapter, home),
  };
}

/** null: the file vanished between listing and reading, so there is no such record. */
export function readFound(
  adapter: Adapter,
  record: FoundRecord,
  read: ReadRecord,
  deadline: Deadline,
  cache: RecordCache | null,
): Store["rows"][number] | null {
  if (deadline.isOver()) return unreadRow(record, tooSlow(adapter, record.path));
  const isFile = record.set.assembled === undefined;
  return cache !== null && isFile ? readCached(adapter, record, read, cache) : readRow(adapter, record, read);
}

function findHome(home: string): { isOnRoot: boolean; isOursAlone: boolean } | "absent" {
  try {
    const { dev, uid, mode } = statSync(home);
    return { isOnRoot: dev === statSync("/").dev, isOursAlone: uid === ownUid && (mode & writableByOthers) === 0 };
  } catch (error) {
    // Any other failure shows again, with its name, when the folders are listed.
    return isGone(error) ? "absent" : { isOnRoot: true, isOursAlone: true };
  }
}

const writableByOthers = 0o022;

const storeProblem = (adapter: Adapter, source: string, message: string): Problem => ({
  code: "store-unreadable",
  agent: adapter.agent,
  source,
  message,
});

const tooSlow = (adapter: Adapter, source: string): Problem => ({
  code: "store-slow",
  agent: adapter.agent,
  source,
  message: "not read: its store was too slow",
});

/** The file's state is asked for before it is read: what is written in between belongs to a later state. */
function readCached(
  adapter: Adapter,
  record: FoundRecord,
  read: ReadRecord,
  cache: RecordCache,
): Store["rows"][number] | null {
  const stat = statOf(record.path);
  const known = stat === null ? null : cache.find(record.path, stat);
  if (known !== null) return known;
  let isAlone = true;
  const watched: ReadRecord = (use) =>
    read((file, open) => {
      const beside = (path: string): string | null => {
        isAlone = false;
        return file.beside(path);
      };
      return use({ ...file, beside }, open);
    });
  const row = readRow(adapter, record, watched);
  // What also depends on another file is not told by the state of this one.
  if (stat !== null && isAlone && row?.reading.ok === true) cache.keep(record.path, stat, row);
  return row;
}

/** null: the file vanished between listing and reading, so there is no such record. */
export function readRow(
  adapter: Adapter,
  record: FoundRecord,
  read: ReadRecord = (use) => readRecord(record, use),
): Store["rows"][number] | null {
  try {
    return read((file, open) => {
      const reading = adapter.parseRecord(file);
      const writtenAt = reading.ok ? reading.value.writtenAt : open.writtenAt;
      return { id: record.subject, reading, writtenAt, uid: open.uid };
    });
  } catch (error) {
    if (isGone(error)) return null;
    const message = `its record cannot be read: ${failureText(error)}`;
    return unreadRow(record, { code: "record-unreadable", agent: adapter.agent, source: record.path, message });
  }
}

/** Of an unread record at least its file's time and owner, where that much can be seen. */
function unreadRow(file: FoundFile, problem: Problem): Store["rows"][number] {
  try {
    const { mtimeMs, uid } = statSync(file.path);
    return { id: file.subject, reading: unread(problem), writtenAt: mtimeMs, uid };
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return { id: file.subject, reading: unread(problem), writtenAt: null, uid: null };
  }
}

export function readClaims(adapter: Adapter, home: string): Store["claims"] {
  if (adapter.claims === null) return [];
  const { files, failures } = findFiles(home, adapter.claims);
  const claims: Store["claims"] = files.flatMap((file) => {
    const claim = readClaim(adapter, file);
    if (claim === null) return [];
    const { reading, uid } = claim;
    const named = pidIn(file);
    // Whose announcement it is stands in its name, or at least which session it is about.
    const about = named === null && !reading.ok ? { session: file.subject } : {};
    return [{ pid: reading.ok ? reading.value.pid : (named ?? anyPid), reading, uid, ...about }];
  });
  for (const { path, message } of failures)
    claims.push({
      pid: anyPid,
      uid: null,
      reading: unread({ ...storeProblem(adapter, path, message), code: "claim-unreadable" }),
    });
  return claims;
}

const pidIn = ({ subject }: FoundFile): number | null => (/^[1-9][0-9]{0,9}$/.test(subject) ? Number(subject) : null);

const successionBytes = 256 * 1024;

/** A history that cannot be read, or is not ours, costs a "continued by", never a status. */
function readSuccessions(adapter: Adapter, home: string): Store["successions"] {
  if (adapter.successions === null) return [];
  const { file, words, parse } = adapter.successions;
  try {
    return withFile(join(home, file), ({ bytes, size, uid }) => {
      if (uid !== ownUid) return [];
      const from = Math.max(0, size - successionBytes);
      const end = readChunk(bytes, from, size - from);
      const sought = words.map((word) => Buffer.from(word));
      const isTold = (text: Buffer | null): boolean => sought.some((word) => text?.includes(word) === true);
      if (!isTold(end)) return [];
      const lines = [...linesBackward(end, end.length, end.length)];
      // What was cut by the limit is no whole line.
      const whole = from === 0 ? lines : lines.slice(0, -1);
      return [...parsed(whole.filter(isTold))].flatMap((line) => (line.ok ? (parse(line.value) ?? []) : []));
    });
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return [];
  }
}

/**
 * With the owner of the very file that was read, wherever a link led to. Rewritten in place by some agents: a torn file is read
 * once more before it counts as broken.
 */
function readClaim(adapter: Adapter, file: FoundFile): { reading: Reading<PidClaim>; uid: number | null } | null {
  let problem: Problem | null = null;
  let uid: number | null = null;
  for (const _attempt of [1, 2]) {
    try {
      const reading = withFile(file.path, (open) => {
        uid = open.uid;
        const value: unknown = JSON.parse(readWhole(open, claimLimit).toString("utf8"));
        return adapter.parseClaim({ pid: pidIn(file), path: file.path, writtenAt: open.writtenAt, value });
      });
      if (reading.ok) return { reading, uid };
      problem = reading.problem;
    } catch (error) {
      if (isGone(error)) return null;
      const message = `its announcement cannot be read: ${failureText(error)}`;
      problem = { code: "claim-unreadable", agent: adapter.agent, source: file.path, message };
    }
  }
  return problem === null ? null : { reading: unread(problem), uid: uid ?? statOf(file.path)?.uid ?? null };
}
