// Copies a captured SQLite database, small and redacted. If the agent had a -wal file, the newest rows are only in the -wal.
import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Redaction, redactLines } from "./redact-fixture.ts";

const extras = ["-wal", "-shm"];

export function keepDatabase(from: string, to: string, redaction: Redaction): void {
  const folder = mkdtempSync(join(tmpdir(), "database-"));
  try {
    const raw = join(folder, "raw.db");
    for (const extra of ["", ...extras]) if (existsSync(from + extra)) copyFileSync(from + extra, raw + extra);
    const clean = join(folder, "clean.db");
    const isOpen = existsSync(`${from}-wal`);
    const newest = redactInto(raw, clean, redaction, isOpen ? "without the newest rows" : "whole");
    const database = new Database(clean);
    database.run("PRAGMA journal_mode = WAL");
    database.run("PRAGMA wal_autocheckpoint = 0");
    for (const { sql, values } of newest) database.run(sql, values);
    // Copy before closing: closing would move the -wal into the database.
    for (const extra of isOpen ? ["", ...extras] : [""]) copyFileSync(clean + extra, to + extra);
    database.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Value = string | number | bigint | null | Uint8Array;

interface Insert {
  sql: string;
  values: Value[];
}

/** Writes the redacted database. Returns the rows that were left out: the newest row of each table, or none. */
function redactInto(
  raw: string,
  clean: string,
  redaction: Redaction,
  extent: "whole" | "without the newest rows",
): Insert[] {
  const database = new Database(raw);
  database.run("PRAGMA foreign_keys = OFF");
  dropSearch(database);
  const tables = database
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND sql NOT LIKE 'CREATE VIRTUAL%'",
    )
    .all();
  const left: Insert[] = [];
  for (const { name } of tables) {
    const rows = database.query<Record<string, Value>, []>(`SELECT rowid AS "the row", * FROM "${name}"`).all();
    for (const { "the row": row, ...columns } of rows)
      for (const [column, value] of Object.entries(columns)) {
        if (typeof value !== "string") continue;
        const redacted = redactLines(value, redaction);
        if (redacted !== value)
          database.run(`UPDATE "${name}" SET "${column}" = ? WHERE rowid = ?`, [redacted, row ?? null]);
      }
    if (extent !== "whole" && rows.length > 0) left.push(takeNewest(database, name));
  }
  // Small pages make a small file, because there are many tables with few rows.
  database.run("PRAGMA journal_mode = DELETE");
  database.run("PRAGMA page_size = 512");
  database.run("VACUUM INTO ?", [clean]);
  database.close();
  return left;
}

/** Search tables contain every text a second time and cannot be redacted. */
function dropSearch(database: Database): void {
  const named = (where: string): string[] =>
    database
      .query<{ name: string }, []>(`SELECT name FROM sqlite_schema WHERE ${where}`)
      .all()
      .map(({ name }) => name);
  const searches = named("type = 'table' AND sql LIKE 'CREATE VIRTUAL%'");
  if (searches.length > 0) for (const name of named("type = 'trigger'")) database.run(`DROP TRIGGER "${name}"`);
  for (const name of searches) database.run(`DROP TABLE "${name}"`);
}

function takeNewest(database: Database, table: string): Insert {
  const where = `rowid = (SELECT max(rowid) FROM "${table}")`;
  const row = database.query<Record<string, Value>, []>(`SELECT * FROM "${table}" WHERE ${where}`).get() ?? {};
  database.run(`DELETE FROM "${table}" WHERE ${where}`);
  const columns = Object.keys(row);
  const places = columns.map(() => "?").join(", ");
  const sql = `INSERT INTO "${table}" (${columns.map((column) => `"${column}"`).join(", ")}) VALUES (${places})`;
  return { sql, values: Object.values(row) };
}
