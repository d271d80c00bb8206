// An agent's records in one home, whatever they are kept in: files of JSON lines, or what an adapter assembles to lines.
import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type {
  Adapter,
  Assembly,
  LikeNames,
  Line,
  Reader,
  RecordFile,
  RecordSet,
  SessionName,
} from "../adapters/adapter.ts";
import { linesBackward, linesForward, readChunk } from "../lib/jsonl.ts";
import { type Database, type Databases, withDatabase } from "../sys/sqlite.ts";
import { unpack } from "../sys/zstd.ts";
import { errorCode, isGone } from "./failure.ts";
import { type FileFacts, type Found, type FoundFile, type OpenFile, openFile, readWhole, withFile } from "./files.ts";

/** How far back from a record's end the state of its last turn is looked for. */
export const tailLimit = 64 * 1024 * 1024;

/** Where a session's record is; `subject` is the session's id. */
export interface FoundRecord extends FoundFile {
  set: RecordSet;
  /** Where the session works, where that is told without reading the record. */
  cwd?: string | null;
  /** When it was last written to, where that is told in the same way. */
  updatedAt?: number | null;
}

/** A record that may be read now. Throws where it cannot be. */
export type ReadRecord = <T>(use: (file: RecordFile, facts: FileFacts) => T) => T;

/** `begins`: one record, of a session whose id begins like this; null: there may be any behind it. */
export type Failure = Found["failures"][number] & { begins: string | null };

const recordNamed = ({ id, cwd = null, updatedAt = null }: SessionName, { path }: FoundFile, set: RecordSet) => ({
  ...{ path, subject: id, set, cwd, updatedAt },
});

/** The record that a file is. Throws where nobody can tell whose. */
export function recordIn(file: FoundFile, set: RecordSet): FoundRecord {
  const { idIn } = set;
  const subject = idIn === undefined ? file.subject : withFile(file.path, (open) => idOf(file, open, idIn));
  return { path: file.path, subject, set };
}

/** The records that a database holds; with `like` at least those. Throws where they cannot be told. */
export const recordsInDatabase = (
  file: FoundFile,
  set: RecordSet,
  databases: Databases,
  like: LikeNames | null,
): FoundRecord[] =>
  withReader(
    file.path,
    "database",
    (reader) => [...(set.assembled?.sessions?.(reader, like) ?? [])].map((name) => recordNamed(name, file, set)),
    databases,
  );

/** Does each of its files hold many sessions? */
export const isDatabase = ({ assembled }: RecordSet): boolean => assembled?.sessions != null;

/** Visits records that were found before; those of one database together, and first: a writer that ends while we hold it leaves its log behind. */
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
        // Also one of which nothing is wanted.
        databases?.close();
        return group.map(apart);
      }
      try {
        return withReader(
          path,
          "database",
          (reader) => {
            const facts = factsOf(path);
            return group.map((record) =>
              visit(record, (use) => use(assembledFile(record, assembled, reader, facts), facts)),
            );
          },
          databases,
        );
      } catch (error) {
        if (errorCode(error) === "") throw error;
        // Why it cannot be read is then said of each.
        return group.map(apart);
      } finally {
        databases?.close(path);
      }
    })
    .filter((value) => value !== null);
}

/** For each of some records of one database: how young it can be at most; null: only reading it tells. */
export function newestOf(records: readonly FoundRecord[], databases: Databases): Map<string, number | null> {
  const found = new Map<string, number | null>();
  for (const [path, group] of Map.groupBy(records, (record) => record.path)) {
    const newest = group[0]?.set.assembled?.newest;
    if (newest === undefined) continue;
    try {
      withReader(
        path,
        "database",
        (reader) => {
          for (const { subject } of group) found.set(subject, newest(reader, subject));
        },
        databases,
      );
    } catch (error) {
      if (errorCode(error) === "") throw error;
    }
  }
  return found;
}

/** A file without a whole first line is of nobody yet, if that may still become one. */
function idOf(file: FoundFile, open: OpenFile, idIn: (first: unknown) => string | null): string {
  const record = recordFile(file, open);
  const [line] = record.forward();
  const id = line?.ok ? idIn(line.value) : null;
  if (id !== null) return id;
  if (line === undefined && record.startsLikeJson) return "";
  throw Object.assign(new Error("its first line does not say whose record it is"), { code: "EINVAL" });
}

/** The record of a session whose place is known. */
export function recordAt(adapter: Adapter, path: string, id: string): FoundRecord {
  const sets = adapter.records.filter((set) => set.name.test(basename(path)));
  const [set = adapter.records[0]] = sets;
  if (set === undefined) throw new Error(`${adapter.agent} keeps no records`);
  return { path, subject: id, set };
}

export function readRecord<T>(record: FoundRecord, use: (file: RecordFile, facts: FileFacts) => T): T {
  const { assembled } = record.set;
  if (assembled === undefined) return withFile(record.path, (open) => use(recordFile(record, open), open));
  return withReader(record.path, assembled.sessions === null ? "files" : "database", (reader) => {
    const facts = factsOf(record.path);
    return use(assembledFile(record, assembled, reader, facts), facts);
  });
}

/** The whole record as lines; who opens it closes it. */
export function openRecord(record: FoundRecord): OpenFile {
  const { assembled } = record.set;
  if (assembled === undefined) return openFile(record.path);
  return withReader(record.path, assembled.sessions === null ? "files" : "database", (reader) => {
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

/** Not by opening it: whoever closes a file of a database drops all locks that this process has on it. */
function factsOf(path: string): FileFacts {
  const { size, mtimeMs, uid } = statSync(path);
  return { size, writtenAt: mtimeMs, uid };
}

function* asLines(values: Iterable<unknown>): Generator<Line> {
  for (const value of values) yield { ok: true, value };
}

const documentLimit = 64 * 1024 * 1024;

function withReader<T>(path: string, kind: "database" | "files", use: (reader: Reader) => T, databases?: Databases): T {
  const near = (name: string): string => join(dirname(path), name);
  const reader = (database: Database | null): Reader => ({
    rows: (sql, ...values) => database?.rows(sql, ...values) ?? [],
    each: (sql, ...values) => database?.each(sql, ...values) ?? [],
    json: (name) => readJson(name === undefined ? path : near(name)),
    names: (folder) => namesIn(near(folder)),
    unpacked: (bytes) => unpack(bytes, documentLimit),
  });
  if (kind === "files") return use(reader(null));
  const withIt = (database: Database): T => use(reader(database));
  return databases === undefined ? withDatabase(path, withIt) : databases.use(path, withIt);
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(withFile(path, (open) => readWhole(open, documentLimit)).toString("utf8"));
  } catch (error) {
    if (isGone(error)) return undefined;
    if (error instanceof SyntaxError) throw Object.assign(new Error("not JSON", { cause: error }), { code: "EINVAL" });
    throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

const smallFile = 64 * 1024;

function smallText(path: string): string | null {
  try {
    return withFile(path, (open) => readWhole(open, smallFile)).toString("utf8");
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

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

/** More lines than any turn has; a file of millions of tiny ones would hold everybody up. What is left counts as broken. */
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
  // Every record line is an object; a failed parse costs a hundred times as much as this look.
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
