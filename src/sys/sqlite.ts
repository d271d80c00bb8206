// Reads a SQLite database that another program owns, without leaving a trace beside it and without missing what it just wrote.
import { constants, copyFileSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { hasRecordLock } from "./file-lock.ts";
import { openScratch } from "./scratch.ts";

export interface Database {
  rows(sql: string, ...values: (string | number)[]): Record<string, unknown>[];
  /** One by one, for those who may need a few of very many. */
  each(sql: string, ...values: (string | number)[]): Iterable<Record<string, unknown>>;
}

/**
 * Databases for several questions in one look; each is opened once. Whoever opens a database that nobody has open takes it for a
 * moment, to find out what its write-ahead log holds; a writer that starts in this moment may give up (OpenCode 1.18.33: "database
 * is locked"). So a plain read-only connection, the only one that sees everything a writer does, is for databases that a writer has
 * open. Otherwise the log is read in a copy; and without a log the file as it is, because a plain connection would create the
 * log's files and leave them there. Once more the plain way if somebody began to write meanwhile.
 */
export class Databases {
  private readonly held = new Map<string, OpenDatabase>();

  use<T>(path: string, use: (database: Database) => T): T {
    const held = this.held.get(path);
    const stamp = held === undefined ? stampOf(path) : held.stamp;
    if (held !== undefined && stamp === null) return use(held);
    if (held === undefined && isInUse(path)) return use(this.hold(path, connect(path, null)));
    let value: { read: T } | { failure: unknown };
    try {
      value = { read: use(held ?? this.hold(path, openQuietly(path, stamp))) };
    } catch (failure) {
      value = { failure };
    }
    if (isInUse(path) || stampOf(path) !== stamp) return use(this.hold(path, connect(path, null)));
    if ("failure" in value) throw value.failure;
    return value.read;
  }

  /** One of them, or all; whoever asks again opens it again. */
  close(path?: string): void {
    for (const [each, opened] of this.held) {
      if (path !== undefined && each !== path) continue;
      opened.close();
      this.held.delete(each);
    }
  }

  private hold(path: string, opened: OpenDatabase): OpenDatabase {
    this.held.get(path)?.close();
    this.held.set(path, opened);
    return opened;
  }
}

export function withDatabase<T>(path: string, use: (database: Database) => T): T {
  const databases = new Databases();
  try {
    return databases.use(path, use);
  } finally {
    databases.close();
  }
}

/** A writer that starts, or puts its log into the database, keeps readers out for a moment. */
const patienceMs = 500;

/** Copying more would take longer than anybody wants to wait. */
const mostCopied = 256 * 1024 * 1024;

/** A writer has it open: with a journal to roll back by, or with a lock on the index of its log. */
function isInUse(path: string): boolean {
  if (existsSync(`${path}-journal`)) return true;
  const [index, log] = [`${path}-shm`, `${path}-wal`];
  const isLocked = hasRecordLock(index);
  // What is no file nobody can have as an index.
  if (statSync(index, { throwIfNoEntry: false })?.isFile() !== true || !existsSync(log)) return false;
  return sizeOfCopy(path) > mostCopied || (isLocked ?? true);
}

/** Its index is made anew. */
const copied = ["", "-wal"];

const sizeOfCopy = (path: string): number =>
  copied.reduce((sum, extra) => sum + (statSync(`${path}${extra}`, { throwIfNoEntry: false })?.size ?? 0), 0);

interface OpenDatabase extends Database {
  /** What it was when nobody had it open; null: a plain connection, which sees whatever is written. */
  stamp: string | null;
  close(): void;
}

const openQuietly = (path: string, stamp: string | null): OpenDatabase =>
  existsSync(`${path}-wal`) ? openCopy(path, stamp) : connect(addressOf(path, "immutable=1"), stamp);

function connect(location: string, stamp: string | null): OpenDatabase {
  const connection = new DatabaseSync(location, { readOnly: true });
  // Preparing costs more than most questions.
  const prepared = new Map<string, StatementSync>();
  try {
    connection.exec(`PRAGMA busy_timeout = ${patienceMs}`);
  } catch (error) {
    connection.close();
    throw error;
  }
  return {
    rows(sql, ...values) {
      const statement = prepared.get(sql) ?? connection.prepare(sql);
      prepared.set(sql, statement);
      return statement.all(...values);
    },
    each: (sql, ...values) => connection.prepare(sql).iterate(...values),
    stamp,
    close: () => connection.close(),
  };
}

function openCopy(path: string, stamp: string | null): OpenDatabase {
  // Without its index a plain connection would leave one there.
  if (sizeOfCopy(path) > mostCopied)
    throw Object.assign(new Error("too large to be copied, and the index of its log is missing"), { code: "EFBIG" });
  const scratch = openScratch();
  try {
    const copy = join(scratch.folder, "copy.db");
    for (const extra of copied) copyFileSync(`${path}${extra}`, `${copy}${extra}`, constants.COPYFILE_FICLONE);
    const opened = connect(copy, stamp);
    return {
      ...opened,
      close() {
        opened.close();
        scratch.remove();
      },
    };
  } catch (error) {
    scratch.remove();
    throw error;
  }
}

const addressOf = (path: string, manner: string): string =>
  `file:${encodeURI(path).replaceAll("?", "%3f").replaceAll("#", "%23")}?${manner}`;

/** Throws where there is no regular file: opening a pipe would wait for its writer. */
function stampOf(path: string): string {
  const stat = statSync(path, { bigint: true });
  if (stat.isDirectory()) throw Object.assign(new Error("a folder where a file should be"), { code: "EISDIR" });
  if (!stat.isFile()) throw Object.assign(new Error("not a regular file"), { code: "ENXIO" });
  const log = statSync(`${path}-wal`, { bigint: true, throwIfNoEntry: false });
  for (const extra of [log, statSync(`${path}-journal`, { throwIfNoEntry: false })])
    if (extra !== undefined && !extra.isFile() && !extra.isDirectory())
      throw Object.assign(new Error("not a regular file beside it"), { code: "ENXIO" });
  return [stat, log].map((each) => `${each?.ino} ${each?.size} ${each?.mtimeNs}`).join("\n");
}
