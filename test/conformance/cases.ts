// The golden folders: test/fixtures/<agent>/<case>/ with case.json and home/, the agent's files as they were captured.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Adapter, ServerProtocol } from "../../src/agents/adapter.ts";
import { deriveSessions } from "../../src/core/derive.ts";
import type { Evidence, ServedSession, ServerAnswer, StartDialog, Store } from "../../src/core/evidence.ts";
import { type Reading, read } from "../../src/core/problem.ts";
import type { ProcessRow, ProcessTable } from "../../src/core/process.ts";
import type { Session, SessionList } from "../../src/core/session.ts";
import { deadlineIn } from "../../src/lib/deadline.ts";
import { readStore } from "../../src/observe/stores.ts";
import { type CapturedProcess, claimedProcesses, tableOf } from "./process-table.ts";

const fixtures = join(import.meta.dir, "..", "fixtures");
const patienceMs = 60_000;

/** Only what a case names is compared. */
export interface Expected {
  /** null: a live process without a session. */
  id: string | null;
  [key: string]: unknown;
}

export interface CapturedCase {
  name: string;
  folder: string;
  moment: "live" | "dead";
  /** The live processes of that moment; by default, every process that announces itself in the files. */
  processes: CapturedProcess[] | null;
  cwd: string | null;
  /** What a server answered at that moment, by method. */
  server: Record<string, unknown> | null;
  servers: CapturedServer[];
  expected: Expected[];
}

/** A conversation with one process: what it said, one text after the other. */
export interface CapturedServer {
  pid: number;
  directories: string[];
  /** JSON; of an HTTP answer the body, too. */
  heard: unknown[];
}

/** The shape of case.json. A case with several sessions lists them. */
interface CaseFile {
  agent: string;
  version: string;
  command: string[];
  date: string;
  moment: "live" | "dead";
  processes?: CapturedProcess[];
  cwd?: string;
  server?: Record<string, unknown>;
  servers?: CapturedServer[];
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
  const several = (file.sessions ?? []).map(({ id, expected }) => ({ ...expected, id: id || null }));
  const expected = file.expected === undefined ? several : [file.expected];
  if (expected.length === 0) throw new Error(`${agent}/${name}: case.json expects nothing`);
  const { moment, processes = null, cwd = null, server = null, servers = [] } = file;
  return { name, folder, moment, processes, cwd, server, servers, expected };
}

/** Puts the files where the agent has them by default below this HOME. */
export function placeCase(adapter: Adapter, captured: CapturedCase, userHome: string): string {
  const home = adapter.home({ HOME: userHome });
  if (home === null) throw new Error(`${adapter.agent} has no default home`);
  const files = join(captured.folder, "home");
  mkdirSync(home, { recursive: true });
  if (existsSync(files)) cpSync(files, home, { recursive: true, preserveTimestamps: true });
  return home;
}

export function storeAt(adapter: Adapter, home: string): Store {
  const store = readStore(adapter, home, deadlineIn(patienceMs));
  if (store === null) throw new Error(`no store at ${home}`);
  return store;
}

export function tableAt(
  { moment, processes, cwd }: CapturedCase,
  adapter: Adapter,
  store: Store,
  userHome: string,
): ProcessTable {
  const seen = processes?.map((each) => (cwd === null ? each : { cwd, ...each }));
  const alive = moment === "dead" ? [] : (seen ?? claimedProcesses(adapter, store));
  return tableOf(alive, store, userHome);
}

/** The clock stands still, so that two answers can be compared whole. */
const at = Date.parse("2027-01-01T00:00:00Z");

export function derive(adapter: Adapter, store: Store, table: ProcessTable, heard: Heard = silence): SessionList {
  return deriveSessions({ at, processes: read(table), stores: [store], ...heard, problems: [], directories: {} }, [
    adapter,
  ]);
}

type Heard = Pick<Evidence, "servers" | "dialogs">;

const silence: Heard = { servers: [], dialogs: [] };

/** What servers and dialogs said at the captured moment. */
export function heardAt(
  { server, servers, cwd }: CapturedCase,
  adapter: Adapter,
  store: Store,
  table: ProcessTable,
): Heard {
  const { agent, home } = store;
  const row = table.rows.find(({ name, detail }) => detail !== null && adapter.role(name, detail) === "server") ?? null;
  const place = { address: "captured", process: row?.identity ?? null, startedAt: row?.startedAt ?? null };
  const answer = server === null || adapter.server === undefined ? null : replay(adapter.server, server);
  return {
    servers:
      answer === null
        ? servers.flatMap((said) => toldBy(said, adapter, store, table))
        : [{ agent, home, ...place, answer }],
    dialogs: table.rows.flatMap((row) => dialogOf(row, adapter, home, cwd) ?? []),
  };
}

/** Talks with the captured answers as if their server gave them now: one to each request, by its method. */
function replay(protocol: ServerProtocol, answers: Record<string, unknown>): Reading<ServedSession[]> {
  const heard: string[] = [];
  const talk = protocol.sessions({ secret: null, directories: [] });
  let said = talk.opening;
  if (said.length === 0) {
    // A server that speaks first.
    heard.push(JSON.stringify(answers["greeting"]));
    const step = talk.next(heard);
    said = "answer" in step ? [] : step.send;
  }
  for (;;) {
    const requests = said.map((text) => JSON.parse(text) as { id?: unknown; method: string });
    said = [];
    for (const { id, method } of requests) {
      if (id === undefined) continue;
      heard.push(JSON.stringify({ type: "res", id, ok: true, result: answers[method], payload: answers[method] }));
      const step = talk.next(heard);
      if ("answer" in step) return step.answer;
      said = [...said, ...step.send];
    }
    if (said.length === 0) throw new Error("the conversation with the server does not end");
  }
}

/** What one process said, as if it said it now. */
function toldBy(
  { pid, ...said }: CapturedServer,
  { server }: Adapter,
  store: Store,
  table: ProcessTable,
): ServerAnswer[] {
  const row = table.rows.find(({ identity }) => identity.pid === pid);
  if (row === undefined || server === undefined) return [];
  const place = { address: "captured", process: row.identity, startedAt: row.startedAt };
  return [{ agent: store.agent, home: store.home, ...place, answer: replayHeard(server, said) }];
}

/** Hears the same again. */
function replayHeard(
  protocol: ServerProtocol,
  { directories, heard }: Omit<CapturedServer, "pid">,
): Reading<ServedSession[]> {
  const talk = protocol.sessions({ secret: "captured", directories });
  const texts = heard.map((value) => JSON.stringify(protocol.transport === "http" ? withBody(value) : value));
  for (let count = 1; count <= texts.length; count += 1) {
    const step = talk.next(texts.slice(0, count));
    if ("answer" in step) return step.answer;
  }
  throw new Error("the conversation with the server does not end");
}

function withBody(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("body" in value) || typeof value.body === "string") return value;
  return { ...value, body: JSON.stringify(value.body) };
}

/** Captured directories are roots of repositories. */
function dialogOf(row: ProcessRow, { trust, role }: Adapter, home: string, cwd: string | null): StartDialog | null {
  const source = trust?.files(home).find((path) => existsSync(path));
  if (trust === undefined || source === undefined || row.detail === null || role(row.name, row.detail) !== "agent")
    return null;
  const repository = cwd === null ? null : { root: cwd, main: cwd };
  if (!trust.mustAsk(readFileSync(source, "utf8"), row, repository)) return null;
  return { process: row.identity, waiting: { kind: "trust", text: null, tool: null, options: [] }, source };
}

export function sessionNamed(list: SessionList, id: string | null): Session {
  const found = list.sessions.find((session) => session.id === id);
  if (found === undefined) throw new Error(`no session ${id} among ${list.sessions.map((each) => each.id).join(", ")}`);
  return found;
}
