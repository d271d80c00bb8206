// Records that are rows of a database which the agents keep open. It is written as they do: with a write-ahead log that is
// never tidied away. It is read from a copy, so that our own look leaves no trace where agentctl's must not.
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseFormat, Fields, Reader } from "./format.ts";
import { parseObject, type RecordReading, readLines } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const parts = ["", "-wal", "-shm"];

export class Databases {
  readonly #open = new Map<string, Database>();

  constructor(readonly copies: string) {}

  append(path: string, format: DatabaseFormat, text: string): void {
    const database = this.#writer(path, format);
    for (const line of text.split("\n").map(parseObject)) if (line !== null) format.put(database, line);
  }

  /** For faults: what no agent would write. */
  run(path: string, format: DatabaseFormat, sql: string, ...values: string[]): void {
    this.#writer(path, format).run(sql, values);
  }

  read(path: string, format: DatabaseFormat, { id, home }: Session, reader: Reader): RecordReading {
    const found = existsSync(path) ? this.#inCopy(path, (database) => linesIn(database, format, id)) : null;
    const lines = found ?? format.oldLines?.(home, id) ?? null;
    if (lines === "unreadable") return { kind: "unreadable" };
    return lines === null ? { kind: "absent" } : readLines(lines, reader);
  }

  isUnreadable(path: string, format: DatabaseFormat): boolean {
    return existsSync(path) && this.#inCopy(path, (database) => hasTables(database, format)) === "unreadable";
  }

  /** As a crash leaves it whose log was then deleted: what was never moved into the file itself is lost. */
  loseLog(path: string): void {
    const bytes = readFileSync(path);
    this.remove(path);
    writeFileSync(path, bytes);
  }

  /** Moves everything from the log into the file, and leaves the empty log. */
  tidy(path: string): void {
    this.#open.get(path)?.run("pragma wal_checkpoint(truncate)");
  }

  remove(path: string): void {
    this.close(path);
    for (const part of parts) rmSync(`${path}${part}`, { force: true, recursive: true });
  }

  /** The last one to leave moves the log into the file, and removes it. */
  close(path: string): void {
    this.#open.get(path)?.close();
    this.#open.delete(path);
  }

  end(): void {
    for (const path of [...this.#open.keys()]) this.close(path);
    rmSync(this.copies, { recursive: true, force: true });
  }

  #writer(path: string, format: DatabaseFormat): Database {
    const known = this.#open.get(path);
    if (known !== undefined && existsSync(path)) return known;
    this.close(path);
    const database = new Database(path, { create: true });
    database.run("pragma journal_mode = wal");
    database.run("pragma wal_autocheckpoint = 0");
    for (const statement of format.schema.split(";").filter((each) => each.trim() !== "")) database.run(statement);
    this.#open.set(path, database);
    return database;
  }

  #inCopy<T>(path: string, use: (database: Database) => T): T | "unreadable" {
    mkdirSync(this.copies, { recursive: true });
    const copy = join(this.copies, "copy.db");
    for (const part of parts) rmSync(`${copy}${part}`, { force: true });
    // Without the index, which is rebuilt from the log.
    for (const part of ["", "-wal"])
      if (existsSync(`${path}${part}`)) {
        if (!lstatSync(`${path}${part}`).isFile()) return "unreadable";
        copyFileSync(`${path}${part}`, `${copy}${part}`);
      }
    try {
      const database = new Database(copy);
      try {
        return use(database);
      } finally {
        database.close();
      }
    } catch (error) {
      if (error instanceof Error && error.name === "SQLiteError") return "unreadable";
      throw error;
    }
  }
}

/** A database without tables is new and has no sessions. */
const hasTables = (database: Database, { table }: DatabaseFormat): boolean =>
  database.query("select 1 from sqlite_master where name = ?").get(table) !== null;

function linesIn(database: Database, format: DatabaseFormat, id: string): Fields[] | null {
  return hasTables(database, format) ? format.lines(database, id) : null;
}
