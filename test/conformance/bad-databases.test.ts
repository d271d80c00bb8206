// Agents that keep their sessions in databases: a broken row affects only its own session, a broken file never means "stopped".
import { Database, SQLiteError } from "bun:sqlite";
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../../src/agents/adapter.ts";
import { adapters } from "../../src/agents/registry.ts";
import { findFiles } from "../../src/observe/files.ts";
import { casesOf, derive, placeCase, storeAt, tableAt } from "./cases.ts";
import { throwAwayFolder } from "./folder.ts";
import { faultsOf } from "./invariants.ts";
import { oddRecords, removeOdd } from "./odd-files.ts";
import { tableOf } from "./process-table.ts";
import { share } from "./share-of-cases.ts";

setDefaultTimeout(120_000);

const folder = throwAwayFolder();
afterAll(() => folder[Symbol.dispose]());

const extras = ["", "-wal", "-shm"];

interface Kept {
  name: string;
  path: string;
  /** The expectation for the present files: the states of the sessions without live processes, and forbidden answers. */
  look(): { states: Record<string, string>; complete: boolean; faults: string[] };
  mend(): void;
}

/** The databases of the captured cases, each in a separate home. */
function databasesOf(adapter: Adapter): Kept[] {
  const sets = adapter.records.filter(({ assembled }) => assembled?.sessions != null);
  return casesOf(adapter).flatMap((captured) => {
    const userHome = join(folder.path, adapter.agent, captured.name);
    const home = placeCase(adapter, captured, userHome);
    const live = tableAt(captured, adapter, storeAt(adapter, home), userHome);
    const look: Kept["look"] = () => {
      const store = storeAt(adapter, home);
      const dead = derive(adapter, store, tableOf([], store, userHome));
      const faults = [dead, derive(adapter, store, live)].flatMap((list) => faultsOf(adapter, store, list));
      const states = dead.sessions.map(({ id, status }) => [id ?? "", status.state]);
      return { states: Object.fromEntries(states), complete: dead.complete, faults };
    };
    return sets.flatMap((set) =>
      findFiles(home, set).files.map(({ path }): Kept => {
        const before = extras.map((extra) => (existsSync(path + extra) ? readFileSync(path + extra) : null));
        const mend = (): void => {
          for (const [index, extra] of extras.entries()) {
            const bytes = before[index] ?? null;
            if (bytes === null) rmSync(path + extra, { force: true });
            else writeFileSync(path + extra, bytes);
          }
        };
        return { name: captured.name, path, look, mend };
      }),
    );
  });
}

const damages = ["", "{", "null", "[]", "{}", "42", '"text"', '{"time":{"created":"x"},"role":7}', "[".repeat(50_000)];

for (const adapter of adapters.filter(({ records }) => records.some(({ assembled }) => assembled?.sessions != null)))
  describe(`damaged databases of ${adapter.agent}`, () => {
    const kept = databasesOf(adapter);
    const some = kept.filter((_, index) => index % Math.ceil(kept.length / 4) === 0);

    test("the captured cases have databases to damage", () => {
      expect(kept.length).toBeGreaterThan(0);
      for (const { look } of kept) expect(Object.keys(look().states).length).toBeGreaterThan(0);
    });

    test("reading leaves the database files unchanged", () => {
      for (const { path, look } of kept) {
        const contents = (): (string | null)[] =>
          ["", "-wal"].map((extra) => (existsSync(path + extra) ? String(Bun.hash(readFileSync(path + extra))) : null));
        const before = [existsSync(`${path}-shm`), ...contents()];
        look();
        expect([existsSync(`${path}-shm`), ...contents()]).toEqual(before);
      }
    });

    test("nonsense values cause no exception and hide no session", () => {
      for (const { name, path, look, mend } of some) {
        const before = Object.keys(look().states).sort();
        const isRead = tablesRead({ path, look, mend });
        for (const [index, { table, column, row, isKey }] of cellsOf(path).entries()) {
          if (isKey || !isRead.has(table)) continue;
          for (const damage of share(damages, index)) {
            if (!isTaken(path, `UPDATE "${table}" SET "${column}" = ? WHERE rowid = ?`, damage, row)) continue;
            const { faults, states } = look();
            expect([name, table, column, damage.slice(0, 20), faults]).toEqual([
              name,
              table,
              column,
              damage.slice(0, 20),
              [],
            ]);
            expect(Object.keys(states).sort()).toEqual(before);
            mend();
          }
        }
      }
    });

    test("missing columns and tables cause no exception", () => {
      for (const { path, look, mend } of some) {
        const cells = cellsOf(path);
        for (const table of tablesRead({ path, look, mend })) {
          write(path, `DROP TABLE "${table}"`);
          expect([table, look().faults]).toEqual([table, []]);
          mend();
          for (const column of new Set(cells.filter((cell) => cell.table === table).map((cell) => cell.column))) {
            write(path, `ALTER TABLE "${table}" RENAME COLUMN "${column}" TO "no longer ${column}"`);
            const { faults } = look();
            expect([table, column, faults]).toEqual([table, column, []]);
            mend();
          }
        }
      }
    });

    for (const odd of oddRecords)
      test(`${odd.name} instead of the database is reported as a problem`, () => {
        for (const { path, look, mend } of some) {
          for (const extra of extras) rmSync(path + extra, { force: true });
          odd.make(path);
          try {
            const { complete, states, faults } = look();
            expect([complete, faults, Object.values(states).filter((state) => state === "stopped")]).toEqual([
              false,
              [],
              [],
            ]);
          } finally {
            removeOdd(path);
            mend();
          }
        }
      });

    test(`a cut, zeroed or overwritten file causes no exception and no unproven "stopped"`, () => {
      for (const { name, path, look, mend } of some) {
        const whole = look().states;
        // In one file, so that the damage hits what is read.
        write(path, "PRAGMA wal_checkpoint(TRUNCATE)");
        const one = readFileSync(path);
        for (const extra of ["-wal", "-shm"]) rmSync(path + extra, { force: true });
        for (let part = 0; part < 40; part += 1) {
          const at = Math.floor((one.length * part) / 40);
          for (const bytes of [one.subarray(0, at), zeroed(one, at), noise(one, at)]) {
            writeFileSync(path, bytes);
            const { faults, states, complete } = look();
            expect([name, part, faults]).toEqual([name, part, []]);
            const lost = Object.keys(whole).filter((id) => !(id in states));
            // A file that is cut at its first byte is an empty database; otherwise a missing session causes a problem.
            if (bytes.length > 0 && lost.length === Object.keys(whole).length && part < 2)
              expect([part, complete]).toEqual([part, false]);
          }
        }
        mend();
      }
    });
  });

interface Cell {
  table: string;
  column: string;
  row: number;
  /** What ties rows to each other: with another value it is another row. */
  isKey: boolean;
}

/** Every column of the newest row of each table that has rows. */
function cellsOf(path: string): Cell[] {
  using database = new Database(path, { readonly: true });
  const tables = database
    .query<{ name: string }, []>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'",
    )
    .all()
    .map(({ name }) => name)
    .filter((name) => !name.startsWith("sqlite_"));
  return tables.flatMap((table) => {
    const newest = database
      .query<Record<string, unknown>, []>(`SELECT rowid AS "the row", * FROM "${table}" ORDER BY rowid DESC LIMIT 1`)
      .get();
    if (newest === null) return [];
    const { "the row": row, ...columns } = newest;
    return Object.keys(columns).map((column) => ({
      ...{ table, column, row: Number(row), isKey: /^id$|_id$|key|parent/i.test(column) },
    }));
  });
}

/** The columns that change the answer; damage to other columns changes nothing. */
function tablesRead({ path, look, mend }: Pick<Kept, "path" | "look" | "mend">): Set<string> {
  const whole = JSON.stringify(look());
  const isMissed = (table: string): boolean => {
    write(path, `DROP TABLE "${table}"`);
    const missed = JSON.stringify(look()) !== whole;
    mend();
    return missed;
  };
  return new Set([...new Set(cellsOf(path).map(({ table }) => table))].filter(isMissed));
}

function write(path: string, sql: string, ...values: (string | number)[]): void {
  using database = new Database(path);
  database.run("PRAGMA foreign_keys = OFF");
  database.run("PRAGMA ignore_check_constraints = ON");
  database.run(sql, values);
}

/** A strict table and a row id never accept text for a number. */
function isTaken(path: string, sql: string, ...values: (string | number)[]): boolean {
  try {
    write(path, sql, ...values);
    return true;
  } catch (error) {
    if (error instanceof SQLiteError && /^SQLITE_(?:CONSTRAINT|MISMATCH)/.test(error.code ?? "")) return false;
    throw error;
  }
}

const zeroed = (bytes: Buffer, at: number): Buffer => Buffer.from(bytes).fill(0, at, at + 600);

const noise = (bytes: Buffer, at: number): Buffer => {
  const made = Buffer.from(bytes);
  for (let index = at; index < Math.min(at + 300, made.length); index += 7) made[index] = (index * 31) % 256;
  return made;
};
