// Reads a SQLite database of another program: creates no file beside it, and sees what the program has just written.
import { constants, copyFileSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { errorWith, requireRegularFile } from "../lib/errors.ts";
import { hasRecordLock } from "./file-lock.ts";
import { openScratch } from "./scratch.ts";

export interface Database {
  rows(sql: string, ...values: (string | number)[]): Record<string, unknown>[];
  /** One by one, for callers that need only a few of many rows. */
  each(sql: string, ...values: (string | number)[]): Iterable<Record<string, unknown>>;
}

/**
 * Opens each database once for several queries. Only a plain read-only connection sees everything that a writer does, but if no
 * writer has the database open, such a connection locks it for a moment to recover its write-ahead log, and a writer that starts in
 * this moment may give up (OpenCode 1.18.33: "database is locked"). So:
 * - a writer has it open: a plain connection;
 * - only a log is left: a connection to a copy;
 * - no log: an `immutable` connection, because a plain one would create the files of the log and leave them there.
 * If a writer opened the database in the meantime, the query runs again with a plain connection.
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

  /** Closes one or all. The next query opens it again. */
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

/** A writer that starts, or moves its log into the database, locks readers out for a moment. */
const patienceMs = 500;

/** Copying more would take too long. */
const maxCopiedBytes = 256 * 1024 * 1024;

/** A writer has it open: there is a rollback journal, or a lock on the index of the log. */
function isInUse(path: string): boolean {
  if (existsSync(`${path}-journal`)) return true;
  const [index, log] = [`${path}-shm`, `${path}-wal`];
  const isLocked = hasRecordLock(index);
  if (statSync(index, { throwIfNoEntry: false })?.isFile() !== true || !existsSync(log)) return false;
  return sizeOfCopy(path) > maxCopiedBytes || (isLocked ?? true);
}

/** Without the index of the log, which SQLite creates again. */
const copied = ["", "-wal"];

const sizeOfCopy = (path: string): number =>
  copied.reduce((sum, extra) => sum + (statSync(`${path}${extra}`, { throwIfNoEntry: false })?.size ?? 0), 0);

interface OpenDatabase extends Database {
  /** The state of the file when no writer had it open. null: a plain connection, which sees all later writes. */
  stamp: string | null;
  close(): void;
}

const openQuietly = (path: string, stamp: string | null): OpenDatabase =>
  existsSync(`${path}-wal`) ? openCopy(path, stamp) : connect(addressOf(path, "immutable=1"), stamp);

function connect(location: string, stamp: string | null): OpenDatabase {
  const connection = new DatabaseSync(location, { readOnly: true });
  // Preparing a statement costs more than most queries.
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
  // A plain connection would create an index and leave it there.
  if (sizeOfCopy(path) > maxCopiedBytes)
    throw errorWith("EFBIG", "too large to copy, and the index of its log is missing");
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

const addressOf = (path: string, option: string): string =>
  `file:${encodeURI(path).replaceAll("?", "%3f").replaceAll("#", "%23")}?${option}`;

/** Throws if it is not a regular file: opening a pipe would wait for its writer. */
function stampOf(path: string): string {
  const stat = statSync(path, { bigint: true });
  requireRegularFile(stat);
  const log = statSync(`${path}-wal`, { bigint: true, throwIfNoEntry: false });
  for (const extra of [log, statSync(`${path}-journal`, { throwIfNoEntry: false })])
    if (extra !== undefined && !extra.isFile() && !extra.isDirectory())
      throw errorWith("ENXIO", "the log or journal beside it is not a regular file");
  return [stat, log].map((each) => `${each?.ino} ${each?.size} ${each?.mtimeNs}`).join("\n");
}
