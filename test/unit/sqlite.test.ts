// Reading a database that another program owns: everything that it wrote, and no trace of us beside it.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { withDatabase } from "../../src/sys/sqlite.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;

function fresh(name = "opencode.db"): string {
  count += 1;
  const own = join(folder, String(count));
  mkdirSync(own);
  return join(own, name);
}

const beside = (path: string): string[] => readdirSync(join(path, "..")).sort();

/** A database in the state in which its writer has it: rows that are in the log alone. */
function written(path: string, mode: "WAL" | "DELETE" = "WAL"): Database {
  const database = new Database(path);
  database.run(`PRAGMA journal_mode = ${mode}`);
  database.run("PRAGMA wal_autocheckpoint = 0");
  database.run("CREATE TABLE t (x)");
  database.run("INSERT INTO t VALUES (1)");
  return database;
}

const numbers = (path: string): unknown[] =>
  withDatabase(path, (database) => database.rows("SELECT x FROM t ORDER BY x").map(({ x }) => x));

/** The files of the folder, to the letter. The log's index is memory that readers and writers share. */
const contents = (path: string): string[] =>
  beside(path).map((name) => {
    const file = join(path, "..", name);
    const { mtimeMs, size } = statSync(file);
    return name.endsWith("-shm") ? name : `${name} ${size} ${mtimeMs} ${Bun.hash(readFileSync(file))}`;
  });

test("rows that are only in the log of a live writer are read", () => {
  const path = fresh();
  using database = written(path);
  expect(statSync(path).size).toBeLessThanOrEqual(4096);
  const before = contents(path);
  expect(numbers(path)).toEqual([1]);
  database.run("INSERT INTO t VALUES (2)");
  expect(numbers(path)).toEqual([1, 2]);
  expect(contents(path)[0]).toBe(before[0] ?? "");
});

test("rows that a live writer adds during the reading are seen", () => {
  const path = fresh();
  using database = written(path);
  const seen = withDatabase(path, (reader) => {
    const count = (): number => reader.rows("SELECT x FROM t").length;
    const before = count();
    database.run("INSERT INTO t VALUES (2)");
    return [before, count()];
  });
  expect(seen).toEqual([1, 2]);
});

test("a file in the place of the index that is not an index does not prevent the reading", () => {
  const path = fresh();
  const left = fresh();
  using _database = written(path);
  for (const extra of ["", "-wal"]) copyFileSync(`${path}${extra}`, `${left}${extra}`);
  spawnSync("mkfifo", [`${left}-shm`]);
  expect(numbers(left)).toEqual([1]);
});

test("a database that no process has open is read in place, and no file is left beside it", () => {
  const path = fresh();
  written(path).close();
  const before = contents(path);
  expect(before).toHaveLength(1);
  expect(numbers(path)).toEqual([1]);
  expect(contents(path)).toEqual(before);
});

test("the files of a killed writer are read completely and not changed, so that a new writer can start", () => {
  const path = fresh();
  const copy = fresh();
  using _database = written(path);
  for (const extra of ["", "-wal", "-shm"]) copyFileSync(`${path}${extra}`, `${copy}${extra}`);
  const exactly = (): string[] => ["", "-wal", "-shm"].map((extra) => String(Bun.hash(readFileSync(copy + extra))));
  const before = [...contents(copy), ...exactly()];
  const seen = withDatabase(copy, (database) => {
    // A writer that does not wait for locks, at this moment.
    using starting = new Database(copy);
    starting.run("PRAGMA busy_timeout = 0");
    starting.run("PRAGMA journal_mode = WAL");
    return database.rows("SELECT x FROM t").length;
  });
  expect(seen).toBe(1);
  for (const extra of ["", "-wal", "-shm"]) copyFileSync(`${path}${extra}`, `${copy}${extra}`);
  expect(numbers(copy)).toEqual([1]);
  expect(exactly()).toEqual(before.slice(-3));
});

test("a log without its index is read completely, and no index is created", () => {
  const path = fresh();
  const copy = fresh();
  using _database = written(path);
  for (const extra of ["", "-wal"]) copyFileSync(`${path}${extra}`, `${copy}${extra}`);
  const before = contents(copy);
  expect(numbers(copy)).toEqual([1]);
  expect(contents(copy)).toEqual(before);
});

test("the copy of a killed reader is removed by the next reader; the copy of a live reader stays", () => {
  const path = fresh();
  const copy = fresh();
  const temporary = join(folder, "temporary");
  mkdirSync(temporary);
  using _database = written(path);
  for (const extra of ["", "-wal"]) copyFileSync(`${path}${extra}`, `${copy}${extra}`);
  const copies = (): string[] => {
    const found = readdirSync(temporary);
    for (const name of found)
      expect([name, statSync(join(temporary, name)).mode & 0o777]).toEqual([
        expect.stringMatching(new RegExp(`^agentctl-${userInfo().uid}-\\w{6}$`)),
        0o700,
      ]);
    return found;
  };
  const script = `import { withDatabase } from ${JSON.stringify(join(import.meta.dir, "../../src/sys/sqlite.ts"))};
    withDatabase(process.argv[2], () => process.kill(process.pid, "SIGKILL"));`;
  writeFileSync(join(folder, "reader.ts"), script);
  const env = { ...process.env, TMPDIR: temporary };
  expect(spawnSync(process.execPath, [join(folder, "reader.ts"), copy], { env }).signal).toBe("SIGKILL");
  const left = copies();
  expect(left).toHaveLength(1);
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = temporary;
  try {
    withDatabase(copy, () => {
      const [mine] = copies();
      expect([copies(), left.includes(mine ?? "")]).toEqual([[mine ?? ""], false]);
      expect(numbers(copy)).toEqual([1]);
      expect(copies()).toEqual([mine ?? ""]);
    });
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
  expect(copies()).toEqual([]);
});

test("a log that is too large to be copied is read, also without an index", () => {
  const path = fresh();
  const copy = fresh();
  using _database = written(path);
  for (const extra of ["", "-wal"]) copyFileSync(`${path}${extra}`, `${copy}${extra}`);
  truncateSync(`${copy}-wal`, 300 * 1024 * 1024);
  expect(codeOf(() => numbers(copy))).toBe("EFBIG");
  expect(beside(copy)).toEqual(["opencode.db", "opencode.db-wal"]);
});

test("a writer that starts during the reading is noticed", () => {
  const path = fresh();
  written(path).close();
  let writer: Database | null = null;
  const seen: unknown[][] = [];
  const last = withDatabase(path, (database) => {
    const rows = database.rows("SELECT x FROM t ORDER BY x").map(({ x }) => x);
    seen.push(rows);
    if (writer === null) {
      writer = new Database(path);
      writer.run("INSERT INTO t VALUES (2)");
    }
    return rows;
  });
  expect(seen).toEqual([[1], [1, 2]]);
  expect(last).toEqual([1, 2]);
  (writer as Database | null)?.close();
});

test("after a failure because of an exiting writer the present files are read", () => {
  const path = fresh();
  written(path).close();
  let tries = 0;
  const rows = withDatabase(path, (database) => {
    tries += 1;
    if (tries === 1) {
      using writer = new Database(path);
      writer.run("INSERT INTO t VALUES (2)");
      throw new Error("torn");
    }
    return database.rows("SELECT x FROM t ORDER BY x").map(({ x }) => x);
  });
  expect(rows).toEqual([1, 2]);
});

test("with a rollback journal uncommitted rows are not seen and the database is not changed", () => {
  const path = fresh();
  using database = written(path, "DELETE");
  database.run("BEGIN IMMEDIATE");
  database.run("INSERT INTO t VALUES (2)");
  expect(numbers(path)).toEqual([1]);
  database.run("COMMIT");
  expect(numbers(path)).toEqual([1, 2]);
  expect(beside(path)).toEqual(["opencode.db"]);
});

test("a database that stays locked gives an error with a code within its limit", () => {
  const path = fresh();
  using database = written(path, "DELETE");
  database.run("BEGIN EXCLUSIVE");
  database.run("INSERT INTO t VALUES (2)");
  database.run("PRAGMA cache_size = 1");
  const begun = performance.now();
  expect(codeOf(() => numbers(path))).toBe("ERR_SQLITE_ERROR");
  expect(performance.now() - begun).toBeLessThan(2_000);
  database.run("ROLLBACK");
});

test("a file that is not a database gives an error with a code and is not changed", () => {
  const make: Record<string, (path: string) => void> = {
    "ENOENT nothing": () => {},
    "ERR_SQLITE_ERROR empty": (path) => writeFileSync(path, ""),
    "ERR_SQLITE_ERROR text": (path) => writeFileSync(path, "SELECT ".repeat(1000)),
    "ERR_SQLITE_ERROR cut": (path) => {
      using database = written(path, "DELETE");
      database.run("CREATE TABLE u (y)");
      database.close();
      writeFileSync(path, readFileSync(path).subarray(0, 5000));
    },
    "ERR_SQLITE_ERROR foreign": (path) => {
      using database = new Database(path);
      database.run("CREATE TABLE other (y)");
    },
    "EISDIR folder": (path) => mkdirSync(path),
    "ENXIO FIFO": (path) => spawnSync("mkfifo", [path]),
  };
  for (const [name, prepare] of Object.entries(make)) {
    const path = fresh();
    prepare(path);
    const before = beside(path);
    expect([name, codeOf(() => numbers(path))]).toEqual([name, name.split(" ")[0] ?? ""]);
    expect([name, beside(path)]).toEqual([name, before]);
  }
});

test("a path with characters that are special in a URI is read", () => {
  for (const name of ["a b.db", "a?b#c.db", "100%25.db", "ö.db"]) {
    const path = fresh(name);
    written(path).close();
    expect([name, numbers(path), beside(path)]).toEqual([name, [1], [name]]);
  }
});

test("a database in a read-only folder is read", () => {
  const path = fresh();
  written(path).close();
  chmodSync(join(path, ".."), 0o500);
  expect(numbers(path)).toEqual([1]);
  chmodSync(join(path, ".."), 0o700);
});

function codeOf(act: () => unknown): string {
  try {
    act();
    return "none";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : `no code: ${String(error)}`;
  }
}

test.each(["-wal", "-journal"])("a pipe in place of its %s gives an error without waiting", (extra) => {
  const path = fresh();
  new Database(path).run("CREATE TABLE t (x)");
  spawnSync("mkfifo", [`${path}${extra}`]);
  const script = `const { withDatabase } = await import("${join(import.meta.dir, "../../src/sys/sqlite.ts")}");
    try { withDatabase(process.argv[1], (database) => database.rows("SELECT * FROM t")); } catch (error) { process.exit(7); }`;
  // In a separate process, because waiting for a pipe would block this one.
  const { status } = spawnSync(process.execPath, ["-e", script, path], { timeout: 5_000, killSignal: "SIGKILL" });
  expect(status).toBe(7);
});
