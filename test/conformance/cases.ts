// The golden folders: test/fixtures/<agent>/<case>/ with case.json and home/, the agent's files as they were captured.
import { cpSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../../src/adapters/adapter.ts";
import { deriveSessions } from "../../src/core/derive.ts";
import type { Store } from "../../src/core/evidence.ts";
import { read } from "../../src/core/problem.ts";
import type { ProcessTable } from "../../src/core/process.ts";
import type { Session, SessionList } from "../../src/core/session.ts";
import { deadlineIn } from "../../src/lib/deadline.ts";
import { readStore } from "../../src/observe/stores.ts";
import { type CapturedProcess, claimedProcesses, tableOf } from "./table.ts";

const fixtures = join(import.meta.dir, "..", "fixtures");
const patienceMs = 60_000;

/** Only what a case names is compared. */
export interface Expected {
  id: string;
  [key: string]: unknown;
}

export interface CapturedCase {
  name: string;
  folder: string;
  moment: "live" | "dead";
  /** Who lived at that moment; without it, every process that announces itself in the files. */
  processes: CapturedProcess[] | null;
  expected: Expected[];
}

/** The shape of case.json. A case with several sessions lists them. */
interface CaseFile {
  agent: string;
  version: string;
  command: string[];
  date: string;
  moment: "live" | "dead";
  processes?: CapturedProcess[];
  expected?: Expected;
  sessions?: { id: string; expected: Record<string, unknown> }[];
}

export function casesOf({ agent }: Adapter): CapturedCase[] {
  const folder = join(fixtures, agent);
  const names = existsSync(folder) ? readdirSync(folder).sort() : [];
  return names.map((name) => readCase(agent, name, join(folder, name)));
}

function readCase(agent: string, name: string, folder: string): CapturedCase {
  const file = JSON.parse(readFileSync(join(folder, "case.json"), "utf8")) as CaseFile;
  for (const key of ["version", "command", "date"] as const)
    if (file[key] === undefined) throw new Error(`${agent}/${name}: case.json has no ${key}`);
  if (file.agent !== agent) throw new Error(`${agent}/${name}: case.json is about ${file.agent}`);
  const several = (file.sessions ?? []).map(({ id, expected }) => ({ ...expected, id }));
  const expected = file.expected === undefined ? several : [file.expected];
  if (expected.length === 0) throw new Error(`${agent}/${name}: case.json expects nothing`);
  return { name, folder, moment: file.moment, processes: file.processes ?? null, expected };
}

/** Puts the files where the agent has them by default below this HOME. */
export function placeCase(adapter: Adapter, captured: CapturedCase, userHome: string): string {
  const home = adapter.home({ HOME: userHome });
  if (home === null) throw new Error(`${adapter.agent} has no default home`);
  cpSync(join(captured.folder, "home"), home, { recursive: true, preserveTimestamps: true });
  return home;
}

export function storeAt(adapter: Adapter, home: string): Store {
  const store = readStore(adapter, home, deadlineIn(patienceMs));
  if (store === null) throw new Error(`no store at ${home}`);
  return store;
}

/** The processes of the captured moment. */
export function tableAt(
  { moment, processes }: CapturedCase,
  adapter: Adapter,
  store: Store,
  userHome: string,
): ProcessTable {
  const alive = moment === "dead" ? [] : (processes ?? claimedProcesses(adapter, store));
  return tableOf(alive, store, userHome);
}

/** The clock stands still, so that two answers can be compared whole. */
const at = Date.parse("2027-01-01T00:00:00Z");

export const derive = (adapter: Adapter, store: Store, table: ProcessTable): SessionList =>
  deriveSessions({ at, processes: read(table), stores: [store], hosts: [], dialogs: [], problems: [] }, [adapter]);

export function sessionNamed(list: SessionList, id: string): Session {
  const found = list.sessions.find((session) => session.id === id);
  if (found === undefined) throw new Error(`no session ${id} among ${list.sessions.map((each) => each.id).join(", ")}`);
  return found;
}
