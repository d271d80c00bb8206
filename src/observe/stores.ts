// Reads the records and announcements of one home. An unreadable file makes one row unknown, a slow store only its own rows.
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, AnnouncementFiles } from "../agents/adapter.ts";
import { type Announcement, anyPid, type Store } from "../core/evidence.ts";
import { type Problem, type ProblemDetail, type Reading, read, unread } from "../core/problem.ts";
import type { Deadline } from "../lib/deadline.ts";
import { isGone, tryOr } from "../lib/errors.ts";
import { linesBackward, readChunk } from "../lib/jsonl.ts";
import { failureOf } from "./failure.ts";
import { type FoundFile, findFiles, type OpenFile, ownUid, readWhole, withFile } from "./files.ts";
import { type RecordCache, type StoreRow, statOf } from "./record-cache.ts";
import { visitRecords } from "./record-names.ts";
import { type FoundRecord, parsed, type ReadRecord, readRecord, type UnlistedFiles } from "./records.ts";

const announcementLimit = 1024 * 1024;

/** null: the home does not exist. */
export function readStore(
  adapter: Adapter,
  home: string,
  deadline: Deadline,
  cache: RecordCache | null = null,
): Store | null {
  const store = storeAt(adapter, home);
  if (store === null) return null;
  const { visited, failures } = visitRecords(adapter, home, (record, read) =>
    readFound(adapter, record, read, deadline, cache),
  );
  return withFailures({ ...store, rows: visited }, failures);
}

/** Adds each unreadable file once. Such a file may hide sessions: those whose ids begin like its name, or any. */
export function withFailures(store: Store, failures: readonly UnlistedFiles[]): Store {
  if (failures.length === 0) return store;
  const problemOf = ({ path, detail }: UnlistedFiles): Problem => storeProblem(store, path, detail);
  const unlisted = failures.find(({ begins }) => begins === null);
  const named = failures.flatMap((failure) => {
    const { begins, path } = failure;
    return begins === null ? [] : [{ begins, problem: problemOf(failure), writtenAt: statOf(path)?.mtimeMs ?? null }];
  });
  const nameless = new Map([...(store.nameless ?? []), ...named].map((each) => [each.problem.source, each]));
  return {
    ...store,
    ...(unlisted === undefined || !store.listing.ok ? {} : { listing: unread(problemOf(unlisted)) }),
    ...(nameless.size === 0 ? {} : { nameless: [...nameless.values()] }),
  };
}

/** The store without its records. null: the home does not exist. */
export function storeAt(adapter: Adapter, home: string): Store | null {
  const place = findHome(home);
  if (place === "absent") return null;
  return {
    ...{ agent: adapter.agent, home, names: [home], onRootDevice: place.isOnRoot, listing: read(0), rows: [] },
    ...(place.isOursAlone ? {} : { mayHoldOthers: true }),
    announcements: readAnnouncements(adapter, home),
    successions: readSuccessions(adapter, home),
  };
}

/** null: the file vanished between listing and reading. */
export function readFound(
  adapter: Adapter,
  record: FoundRecord,
  read: ReadRecord,
  deadline: Deadline,
  cache: RecordCache | null,
): StoreRow | null {
  if (deadline.isOver())
    return unreadRow(record, storeProblem(adapter, record.path, { code: "store-slow" }, "store-slow"));
  const isFile = record.set.assembled === undefined;
  return cache !== null && isFile ? readCached(adapter, record, read, cache) : readRow(adapter, record, read);
}

function findHome(home: string): { isOnRoot: boolean; isOursAlone: boolean } | "absent" {
  try {
    const { dev, uid, mode } = statSync(home);
    return { isOnRoot: dev === statSync("/").dev, isOursAlone: uid === ownUid && (mode & writableByOthers) === 0 };
  } catch (error) {
    // Every other failure is reported when the folders are listed.
    return isGone(error) ? "absent" : { isOnRoot: true, isOursAlone: true };
  }
}

const writableByOthers = 0o022;

const storeProblem = (
  { agent }: { agent: string },
  source: string,
  detail: ProblemDetail,
  code: Problem["code"] = "store-unreadable",
): Problem => ({ code, agent, source, detail });

/** Reads the times of the file before its content: a write in between makes the cached entry outdated. */
function readCached(adapter: Adapter, record: FoundRecord, read: ReadRecord, cache: RecordCache): StoreRow | null {
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
  // A record that depends on a second file is not cached: the times of this file do not show a change of the second one.
  if (stat !== null && isAlone && row?.reading.ok === true) cache.keep(record.path, stat, row);
  return row;
}

/** null: the file vanished between listing and reading. */
export function readRow(
  adapter: Adapter,
  record: FoundRecord,
  read: ReadRecord = (use) => readRecord(record, use),
): StoreRow | null {
  try {
    return read((file, open) => {
      const reading = adapter.parseRecord(file);
      const writtenAt = reading.ok ? reading.value.writtenAt : open.writtenAt;
      return { id: record.subject, reading, writtenAt, uid: open.uid };
    });
  } catch (error) {
    if (isGone(error)) return null;
    return unreadRow(record, storeProblem(adapter, record.path, failureOf(error), "record-unreadable"));
  }
}

function unreadRow({ path, subject }: FoundFile, problem: Problem): StoreRow {
  const stat = statOf(path);
  return { id: subject, reading: unread(problem), writtenAt: stat?.mtimeMs ?? null, uid: stat?.uid ?? null };
}

export function readAnnouncements(adapter: Adapter, home: string): Store["announcements"] {
  if (adapter.announcements === undefined) return [];
  const { parse } = adapter.announcements;
  const { files, failures } = findFiles(home, adapter.announcements);
  const announcements = files.flatMap((file): Store["announcements"] => {
    const announcement = readAnnouncement(adapter, parse, file);
    if (announcement === null) return [];
    const { reading, uid } = announcement;
    const named = pidIn(file);
    // The name of an unreadable file is the pid or the session id.
    const about = named === null && !reading.ok ? { session: file.subject } : {};
    return [{ pid: reading.ok ? reading.value.pid : (named ?? anyPid), reading, uid, ...about }];
  });
  const hidden = failures.map(({ path, detail }) => storeProblem(adapter, path, detail, "announcement-unreadable"));
  return [...announcements, ...hidden.map((problem) => ({ pid: anyPid, uid: null, reading: unread(problem) }))];
}

const pidIn = ({ subject }: FoundFile): number | null => (/^[1-9][0-9]{0,9}$/.test(subject) ? Number(subject) : null);

const successionBytes = 256 * 1024;

/** A history that is not ours or cannot be read is ignored: it only adds "continued by", and changes no status. */
function readSuccessions(adapter: Adapter, home: string): Store["successions"] {
  if (adapter.successions === undefined) return [];
  const { file, words, parse } = adapter.successions;
  const readEnd = ({ bytes, size, uid }: OpenFile): Store["successions"] => {
    if (uid !== ownUid) return [];
    const from = Math.max(0, size - successionBytes);
    const end = readChunk(bytes, from, size - from);
    const sought = words.map((word) => Buffer.from(word));
    const hasWord = (text: Buffer | null): boolean => sought.some((word) => text?.includes(word) === true);
    if (!hasWord(end)) return [];
    const lines = [...linesBackward(end, end.length, end.length)];
    // The line at the limit may be cut.
    const whole = from === 0 ? lines : lines.slice(0, -1);
    return [...parsed(whole.filter(hasWord))].flatMap((line) => (line.ok ? (parse(line.value) ?? []) : []));
  };
  return tryOr([], () => withFile(join(home, file), readEnd));
}

/** Reads a broken file a second time, because some agents rewrite it in place. `uid`: the owner of the file behind any link. */
function readAnnouncement(
  adapter: Adapter,
  parse: AnnouncementFiles["parse"],
  file: FoundFile,
): { reading: Reading<Announcement>; uid: number | null } | null {
  let problem: Problem | null = null;
  let uid: number | null = null;
  for (const _attempt of [1, 2]) {
    try {
      const reading = withFile(file.path, (open) => {
        uid = open.uid;
        const value: unknown = JSON.parse(readWhole(open, announcementLimit).toString("utf8"));
        return parse({ pid: pidIn(file), path: file.path, writtenAt: open.writtenAt, value });
      });
      if (reading.ok) return { reading, uid };
      problem = reading.problem;
    } catch (error) {
      if (isGone(error)) return null;
      problem = storeProblem(adapter, file.path, failureOf(error), "announcement-unreadable");
    }
  }
  return problem === null ? null : { reading: unread(problem), uid: uid ?? statOf(file.path)?.uid ?? null };
}
