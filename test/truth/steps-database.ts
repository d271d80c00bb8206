// Steps for stores that are a database: impossible rows, a log that is lost, moved or locked, another kind of file in its place, and
// files of older versions beside it.
import { Database } from "bun:sqlite";
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { freeNumber, numbersOf } from "./adopted-agents.ts";
import { expectNow, lessCertain } from "./allowed-answers.ts";
import type { DatabaseFormat } from "./format.ts";
import type { Dice } from "./random.ts";
import { askNow } from "./run-agentctl.ts";
import type { Action } from "./schedule.ts";
import type { Session, SimulatedHost, Store } from "./simulated-host.ts";

export const databaseSteps: Record<string, Action> = {
  "broken-row": {
    weight: 2,
    targets: (host) => numbersOf(host, (session) => isInDatabase(host, session)),
    async run(host, target, dice) {
      const session = host.session(target);
      const { table, column, order: columns } = dice.pick(formatOf(session).texts);
      const text = dice.pick(["", "not json", "null", "[1]", '{"role":']);
      // Mostly the newest: the others say nothing of the turn.
      const direction = dice.chance(0.7) ? "desc" : "asc";
      const order = columns.map((name) => `${name} ${direction}`).join(", ");
      const one = `select rowid from ${table} where session_id = ? order by ${order} limit 1`;
      const sql = `update ${table} set ${column} = ? where rowid = (${one})`;
      host.databases.run(host.recordPath(session), formatOf(session), sql, text, session.id);
    },
  },
  "row-removed": {
    weight: 1,
    targets: (host) => numbersOf(host, (session) => isInDatabase(host, session)),
    async run(host, target) {
      const session = host.session(target);
      host.databases.run(host.recordPath(session), formatOf(session), formatOf(session).removal, session.id);
    },
  },
  "log-lost": onStore(1, (host, { recordsFolder }) => host.databases.loseLog(recordsFolder)),
  "log-moved": onStore(2, (host, { recordsFolder }) => host.databases.tidy(recordsFolder)),
  // No process has it open, so there is no log.
  "database-closed": onStore(2, (host, { recordsFolder }) => host.databases.close(recordsFolder)),
  "database-removed": onStore(0.5, (host, { recordsFolder }) => host.databases.remove(recordsFolder)),
  "database-locked": onStore(2, askLocked),
  "break-database": onStore(1, breakDatabase),
  "mend-database": {
    weight: 8,
    targets: (host) => (brokenStores(host).length > 0 ? [0] : []),
    async run(host, _target, dice) {
      const store = dice.pick(brokenStores(host));
      rmSync(store.recordsFolder, { recursive: true, force: true });
      for (const part of parts)
        if (existsSync(`${asideOf(host, store)}${part}`))
          renameSync(`${asideOf(host, store)}${part}`, `${store.recordsFolder}${part}`);
      store.recordsBroken = false;
    },
  },
  "old-store": {
    weight: 2,
    targets: (host) => (storesWithPast(host).length > 0 ? [0] : []),
    run: leaveOldSession,
  },
};

const parts = ["", "-wal", "-shm"];

function stores(host: SimulatedHost): Store[] {
  return host.stores.filter(({ format, recordsBroken }) => format.database !== null && !recordsBroken);
}

/** For agents whose older versions kept their sessions elsewhere. */
function storesWithPast(host: SimulatedHost): Store[] {
  return stores(host).filter(({ format }) => format.database?.oldLines !== undefined);
}

function brokenStores(host: SimulatedHost): Store[] {
  return host.stores.filter(({ format, recordsBroken }) => format.database !== null && recordsBroken);
}

function onStore(weight: number, act: (host: SimulatedHost, store: Store, dice: Dice) => void | Promise<void>): Action {
  const there = (host: SimulatedHost) => stores(host).filter(({ recordsFolder }) => existsSync(recordsFolder));
  return {
    weight,
    targets: (host) => (there(host).length > 0 ? [0] : []),
    run: async (host, _target, dice) => await act(host, dice.pick(there(host)), dice),
  };
}

function formatOf({ format }: Session): DatabaseFormat {
  if (format.database === null) throw new Error(`harness: ${format.agent} has no database`);
  return format.database;
}

function isInDatabase(host: SimulatedHost, session: Session): boolean {
  if (session.format.database === null || session.scratch["old"] === true) return false;
  return existsSync(host.recordPath(session)) && host.recordKind(session) === "record";
}

/** During a write others may read; during an exclusive lock they may have to wait. */
async function askLocked(host: SimulatedHost, { format, recordsFolder }: Store, dice: Dice): Promise<void> {
  const isWhole = dice.chance(0.5);
  if (isWhole) host.databases.close(recordsFolder);
  const own = [...host.sessions.values()].filter((session) => session.format === format);
  const expected = own.reduce(lessCertain, expectNow(host));
  const sessions = expected.sessions.map((each) =>
    isWhole && own.includes(each.session) && each.row === "required" ? { ...each, row: "optional" as const } : each,
  );
  const writer = new Database(recordsFolder);
  try {
    if (isWhole) writer.run("pragma locking_mode = exclusive");
    writer.run(isWhole ? "begin exclusive" : "begin immediate");
    await askNow(host, isWhole ? { ...expected, sessions } : expected);
  } finally {
    writer.run("rollback");
    writer.close();
  }
}

async function breakDatabase(host: SimulatedHost, store: Store, dice: Dice): Promise<void> {
  const { recordsFolder: path } = store;
  host.databases.close(path);
  for (const part of parts)
    if (existsSync(`${path}${part}`)) renameSync(`${path}${part}`, `${asideOf(host, store)}${part}`);
  const manner = dice.pick(["garbage", "folder", "fifo", "loop", "half"] as const);
  if (manner === "folder") mkdirSync(path);
  else if (manner === "fifo") await host.makeFifo(path);
  else if (manner === "loop") symlinkSync(path, path);
  else writeFileSync(path, manner === "garbage" ? dice.bytes(2000) : `SQLite format 3\0${"x".repeat(500)}`);
  store.recordsBroken = true;
}

const asideOf = (host: SimulatedHost, { format }: Store): string => join(host.root, `aside-${format.agent}-database`);

/** Of a session that the database has, too, and then does not count; or of one that only the older version knew. */
async function leaveOldSession(host: SimulatedHost, _target: number, dice: Dice): Promise<void> {
  const { format, home } = dice.pick(storesWithPast(host));
  const known = [...host.sessions.values()].filter((session) => session.format === format);
  const other = known.length > 0 && dice.chance(0.5) ? dice.pick(known) : null;
  const session = other ?? host.addSession(freeNumber(host, dice), format.newId(dice), dice.pick(host.places), format);
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
