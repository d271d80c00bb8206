// Reads the records of one home. A record is a file of JSON lines, or its adapter assembles the lines from a database or from files.
import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Adapter, Assembly, LikeNames, Line, Reader, RecordFile, RecordSet } from "../agents/adapter.ts";
import { errorWith, isGone, tryOr } from "../lib/errors.ts";
import { linesBackward, linesForward, readChunk } from "../lib/jsonl.ts";
import { type Database, type Databases, withDatabase } from "../sys/sqlite.ts";
import { unpack } from "../sys/zstd.ts";
import {
  type FileFacts,
  type FileSearch,
  type FoundFile,
  type OpenFile,
  openFile,
  readWhole,
  withFile,
} from "./files.ts";

/** The search for the state of the last turn ends this far from the end of the record. */
export const tailLimit = 64 * 1024 * 1024;

/** Where a session's record is; `subject` is the session's id. */
export interface FoundRecord extends FoundFile {
  set: RecordSet;
  /** The directory of the session, if it is known without reading the record. */
  cwd?: string | null;
  /** The time of the last write, if it is known without reading the record. */
  updatedAt?: number | null;
}

/** Throws if the record cannot be read. */
export type ReadRecord = <T>(use: (file: RecordFile, facts: FileFacts) => T) => T;

/** `begins`: only one record is missing, and its session id begins like this; null: any records may be missing. */
export type UnlistedFiles = FileSearch["failures"][number] & { begins: string | null };

/** The record in a file. Throws if its session id cannot be read. */
export function recordIn(file: FoundFile, set: RecordSet): FoundRecord {
  const { idIn } = set;
  const subject = idIn === undefined ? file.subject : withFile(file.path, (open) => idOf(file, open, idIn));
  return { path: file.path, subject, set };
}

/** The records in a database; with `like`, at least the matching ones. Throws if they cannot be read. */
export const recordsInDatabase = (
  path: string,
  set: RecordSet,
  databases: Databases,
  like: LikeNames | null,
): FoundRecord[] =>
  inDatabase(path, databases, (reader) => {
    const sessions = set.assembled?.sessions?.(reader, like) ?? [];
    return Array.from(sessions, ({ id, cwd = null, updatedAt = null }) => ({ path, subject: id, set, cwd, updatedAt }));
  });

/** Whether each file of the set holds many sessions. */
export const isDatabase = ({ assembled }: RecordSet): boolean => assembled?.sessions != null;

/** Visits records of databases first, and then closes them: an agent that exits while we read leaves its write-ahead log behind. */
export function visitFound<T>(
  records: readonly FoundRecord[],
  visit: (record: FoundRecord, read: ReadRecord) => T | null,
  databases?: Databases,
): T[] {
  const apart = (record: FoundRecord): T | null => visit(record, (use) => readRecord(record, use));
  const groups = Map.groupBy(records, ({ path, set }) => (isDatabase(set) ? path : null));
  return [...groups]
    .sort(([a], [b]) => Number(a === null) - Number(b === null))
    .flatMap(([path, group]) => {
      const assembled = group[0]?.set.assembled;
      if (path === null || assembled === undefined) {
        // Also closes databases without a wanted record.
        databases?.close();
        return group.map(apart);
      }
      const together = (): (T | null)[] =>
        inDatabase(path, databases, (reader) => {
          const facts = factsOf(path);
          return group.map((record) =>
            visit(record, (use) => use(assembledFile(record, assembled, reader, facts), facts)),
          );
        });
      try {
        // Visiting each record separately reports for each why it cannot be read.
        return tryOr(null, together) ?? group.map(apart);
      } finally {
        databases?.close(path);
      }
    })
    .filter((value) => value !== null);
}

/** The latest possible time of each record's newest entry; null: known only after reading the record. */
export function newestOf(records: readonly FoundRecord[], databases: Databases): Map<string, number | null> {
  const found = new Map<string, number | null>();
  for (const [path, group] of Map.groupBy(records, (record) => record.path)) {
    const newest = group[0]?.set.assembled?.newest;
    if (newest === undefined) continue;
    tryOr(null, () =>
      inDatabase(path, databases, (reader) => {
        for (const { subject } of group) found.set(subject, newest(reader, subject));
      }),
    );
  }
  return found;
}

/** "": the first line is not complete yet, so the file has no session yet. */
function idOf(file: FoundFile, open: OpenFile, idIn: (first: unknown) => string | null): string {
  const record = recordFile(file, open);
  const [line] = record.forward();
  const id = line?.ok ? idIn(line.value) : null;
  if (id !== null) return id;
  if (line === undefined && record.startsLikeJson) return "";
  throw errorWith("EINVAL", "its first line does not say whose record it is");
}

export function recordAt(adapter: Adapter, path: string, id: string): FoundRecord {
  const set = adapter.records.find(({ name }) => name.test(basename(path))) ?? adapter.records[0];
  if (set === undefined) throw new Error(`${adapter.agent} keeps no records`);
  return { path, subject: id, set };
}

export function readRecord<T>(record: FoundRecord, use: (file: RecordFile, facts: FileFacts) => T): T {
  const { assembled } = record.set;
  if (assembled === undefined) return withFile(record.path, (open) => use(recordFile(record, open), open));
  return withReader(record.path, assembled, (reader) => {
    const facts = factsOf(record.path);
    return use(assembledFile(record, assembled, reader, facts), facts);
  });
}

/** The whole record as lines; the caller closes it. */
export function openRecord(record: FoundRecord): OpenFile {
  const { assembled } = record.set;
  if (assembled === undefined) return openFile(record.path);
  return withReader(record.path, assembled, (reader) => {
    const lines = [...assembled.forward(reader, record.subject)].map((line) => `${JSON.stringify(line)}\n`);
    const bytes = Buffer.from(lines.join(""));
    return { ...factsOf(record.path), bytes, size: bytes.length };
  });
}

const assembledFile = (
  { subject: id, path }: FoundRecord,
  { forward, backward }: Assembly,
  reader: Reader,
  { size, writtenAt }: FileFacts,
): RecordFile => ({
  ...{ id, path, size, writtenAt, torn: false, startsLikeJson: true, tailBytes: Number.POSITIVE_INFINITY },
  forward: () => asLines(forward(reader, id)),
  backward: () => asLines(backward(reader, id)),
  beside: (near) => smallText(join(dirname(path), near)),
});

/** The database is not opened here: closing any file of a database drops all locks that this process has on it. */
function factsOf(path: string): FileFacts {
  const { size, mtimeMs, uid } = statSync(path);
  return { size, writtenAt: mtimeMs, uid };
}

function* asLines(values: Iterable<unknown>): Generator<Line> {
  for (const value of values) yield { ok: true, value };
}

const documentLimit = 64 * 1024 * 1024;

const withReader = <T>(path: string, { sessions }: Assembly, use: (reader: Reader) => T): T =>
  sessions === null ? use(readerOf(path, null)) : inDatabase(path, undefined, use);

function inDatabase<T>(path: string, databases: Databases | undefined, use: (reader: Reader) => T): T {
  const useDatabase = (database: Database): T => use(readerOf(path, database));
  return databases === undefined ? withDatabase(path, useDatabase) : databases.use(path, useDatabase);
}

function readerOf(path: string, database: Database | null): Reader {
  const near = (name: string): string => join(dirname(path), name);
  return {
    rows: (sql, ...values) => database?.rows(sql, ...values) ?? [],
    each: (sql, ...values) => database?.each(sql, ...values) ?? [],
    json: (name) => readJson(name === undefined ? path : near(name)),
    names: (folder) => tryOr([], () => readdirSync(near(folder)).sort(), isGone),
    unpacked: (bytes) => unpack(bytes, documentLimit),
  };
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(withFile(path, (open) => readWhole(open, documentLimit)).toString("utf8"));
  } catch (error) {
    if (isGone(error)) return undefined;
    if (error instanceof SyntaxError) throw errorWith("EINVAL", "not JSON", error);
    throw error;
  }
}

const smallFile = 64 * 1024;

const smallText = (path: string): string | null =>
  tryOr(null, () => withFile(path, (open) => readWhole(open, smallFile)).toString("utf8"));

export const recordFile = (file: FoundFile, { bytes, size, writtenAt }: OpenFile): RecordFile => ({
  id: file.subject,
  path: file.path,
  size,
  writtenAt,
  torn: size > 0 && readChunk(bytes, size - 1, 1)[0] !== newline,
  startsLikeJson: size === 0 || readChunk(bytes, 0, 1)[0] === openBrace,
  tailBytes: tailLimit,
  forward: () => parsed(linesForward(bytes, size, 0, "passing")),
  backward: (mayMatter) => parsed(linesBackward(bytes, size, tailLimit, "passing"), mayMatter),
  beside: (path) => smallText(join(dirname(file.path), path)),
});

/** More lines than any turn has. Parsing millions of tiny lines would take too long, so the rest counts as one broken line. */
const mostLines = 200_000;

export function* parsed(
  lines: Iterable<Buffer | null>,
  mayMatter: (line: Buffer) => boolean = () => true,
): Generator<Line> {
  let count = 0;
  for (const line of lines) {
    count += 1;
    if (count > mostLines) {
      yield { ok: false };
      return;
    }
    if (line === null) yield { ok: false };
    else if (line.length > 0) yield mayMatter(line) ? parseJson(line) : { ok: false };
  }
}

export function parseJson(bytes: Buffer, from = 0, to = bytes.length): Line {
  // Every line of a record is an object. A failed parse takes a hundred times as long as this check.
  if (bytes[from] !== openBrace) return { ok: false };
  try {
    return { ok: true, value: JSON.parse(bytes.toString("utf8", from, to)) };
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return { ok: false };
    throw error;
  }
}

const openBrace = 123;
const newline = 10;
