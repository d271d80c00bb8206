// Steps for stores that are a database: rows that nobody would write, a log that is lost, moved or locked, something else in the
// place of the file; and what older versions left beside it.
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expectNow, lessCertain } from "./allowances.ts";
import { freeNumber, numbersOf } from "./arrivals.ts";
import type { DatabaseFormat } from "./format.ts";
import { askNow } from "./product.ts";
import type { Dice } from "./random.ts";
import type { Action } from "./schedule.ts";
import type { Session, Store, World } from "./world.ts";

export const databaseSteps: Record<string, Action> = {
  "broken-row": {
    weight: 2,
    targets: (world) => numbersOf(world, (session) => isInDatabase(world, session)),
    async run(world, target, dice) {
      const session = world.session(target);
      const { table, column, order: columns } = dice.pick(formatOf(session).texts);
      const text = dice.pick(["", "not json", "null", "[1]", '{"role":']);
      // Mostly the newest: the others say nothing of the turn.
      const direction = dice.chance(0.7) ? "desc" : "asc";
      const order = columns.map((name) => `${name} ${direction}`).join(", ");
      const one = `select rowid from ${table} where session_id = ? order by ${order} limit 1`;
      const sql = `update ${table} set ${column} = ? where rowid = (${one})`;
      world.databases.run(world.recordPath(session), formatOf(session), sql, text, session.id);
    },
  },
  "row-removed": {
    weight: 1,
    targets: (world) => numbersOf(world, (session) => isInDatabase(world, session)),
    async run(world, target) {
      const session = world.session(target);
      world.databases.run(world.recordPath(session), formatOf(session), formatOf(session).removal, session.id);
    },
  },
  "log-lost": onStore(1, (world, { recordsFolder }) => world.databases.loseLog(recordsFolder)),
  "log-moved": onStore(2, (world, { recordsFolder }) => world.databases.tidy(recordsFolder)),
  // Nobody has it open: there is no log.
  "database-closed": onStore(2, (world, { recordsFolder }) => world.databases.close(recordsFolder)),
  "database-removed": onStore(0.5, (world, { recordsFolder }) => world.databases.remove(recordsFolder)),
  "database-locked": onStore(2, askLocked),
  "break-database": onStore(1, breakDatabase),
  "mend-database": {
    weight: 8,
    targets: (world) => (brokenStores(world).length > 0 ? [0] : []),
    async run(world, _target, dice) {
      const store = dice.pick(brokenStores(world));
      rmSync(store.recordsFolder, { recursive: true, force: true });
      for (const part of parts)
        if (existsSync(`${asideOf(world, store)}${part}`))
          renameSync(`${asideOf(world, store)}${part}`, `${store.recordsFolder}${part}`);
      store.recordsBroken = false;
    },
  },
  "old-store": {
    weight: 2,
    targets: (world) => (storesWithPast(world).length > 0 ? [0] : []),
    run: leaveOldSession,
  },
};

const parts = ["", "-wal", "-shm"];

function stores(world: World): Store[] {
  return world.stores.filter(({ format, recordsBroken }) => format.database !== null && !recordsBroken);
}

/** Of agents whose older versions kept their sessions elsewhere. */
function storesWithPast(world: World): Store[] {
  return stores(world).filter(({ format }) => format.database?.oldLines !== undefined);
}

function brokenStores(world: World): Store[] {
  return world.stores.filter(({ format, recordsBroken }) => format.database !== null && recordsBroken);
}

function onStore(weight: number, act: (world: World, store: Store, dice: Dice) => void | Promise<void>): Action {
  const there = (world: World) => stores(world).filter(({ recordsFolder }) => existsSync(recordsFolder));
  return {
    weight,
    targets: (world) => (there(world).length > 0 ? [0] : []),
    run: async (world, _target, dice) => await act(world, dice.pick(there(world)), dice),
  };
}

function formatOf({ format }: Session): DatabaseFormat {
  if (format.database === null) throw new Error(`harness: ${format.agent} has no database`);
  return format.database;
}

function isInDatabase(world: World, session: Session): boolean {
  if (session.format.database === null || session.scratch["old"] === true) return false;
  return existsSync(world.recordPath(session)) && world.recordKind(session) === "record";
}

/** While somebody writes, others may read; while somebody has it for himself, they may be told to wait. */
async function askLocked(world: World, { format, recordsFolder }: Store, dice: Dice): Promise<void> {
  const isWhole = dice.chance(0.5);
  if (isWhole) world.databases.close(recordsFolder);
  const own = [...world.sessions.values()].filter((session) => session.format === format);
  const expected = own.reduce(lessCertain, expectNow(world));
  const sessions = expected.sessions.map((each) =>
    isWhole && own.includes(each.session) && each.row === "required" ? { ...each, row: "optional" as const } : each,
  );
  const writer = new Database(recordsFolder);
  try {
    if (isWhole) writer.run("pragma locking_mode = exclusive");
    writer.run(isWhole ? "begin exclusive" : "begin immediate");
    await askNow(world, isWhole ? { ...expected, sessions } : expected);
  } finally {
    writer.run("rollback");
    writer.close();
  }
}

async function breakDatabase(world: World, store: Store, dice: Dice): Promise<void> {
  const { recordsFolder: path } = store;
  world.databases.close(path);
  for (const part of parts)
    if (existsSync(`${path}${part}`)) renameSync(`${path}${part}`, `${asideOf(world, store)}${part}`);
  const manner = dice.pick(["garbage", "folder", "fifo", "loop", "half"] as const);
  if (manner === "folder") mkdirSync(path);
  else if (manner === "fifo") await world.makeFifo(path);
  else if (manner === "loop") symlinkSync(path, path);
  else writeFileSync(path, manner === "garbage" ? dice.bytes(2000) : `SQLite format 3\0${"x".repeat(500)}`);
  store.recordsBroken = true;
}

const asideOf = (world: World, { format }: Store): string => join(world.root, `aside-${format.agent}-database`);

/** Of a session that the database has, too, and then does not count; or of one that only the older version knew. */
async function leaveOldSession(world: World, _target: number, dice: Dice): Promise<void> {
  const { format, home } = dice.pick(storesWithPast(world));
  const known = [...world.sessions.values()].filter((session) => session.format === format);
  const other = known.length > 0 && dice.chance(0.5) ? dice.pick(known) : null;
  const session =
    other ?? world.addSession(freeNumber(world, dice), format.newId(dice), dice.pick(world.places), format);
  if (other === null) session.scratch["old"] = true;
  const { id, cwd: directory } = session;
  const created = Date.now() - 3_600_000;
  const message = { id: "msg_000000000001", sessionID: id, role: "assistant", parentID: "msg_0" };
  const time = dice.chance(0.5) ? { created, completed: created + 10 } : { created };
  const files = {
    [join("session", "global", `${id}.json`)]: {
      id,
      directory,
      title: "old",
      version: "0.9.0",
      time: { created, updated: created },
    },
    [join("message", id, `${message.id}.json`)]: {
      ...message,
      time,
      ...("completed" in time ? { finish: "stop" } : {}),
    },
  };
  for (const [name, value] of Object.entries(files)) {
    const path = join(home, "storage", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(value));
  }
}
