// OpenCode 1.18.33 without its server, as src/agents/opencode/README.md and its captured files show it.
import type { Database } from "bun:sqlite";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type Fields, type Format, wordsOf } from "./format.ts";
import { acceptRow, closed, fieldsOf, type Line, noTurn, openedAt, parseObject, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const schema = `
create table if not exists session (id text primary key, project_id text, parent_id text, slug text, directory text,
  title text, version text, cost real, tokens_input integer, tokens_output integer, tokens_reasoning integer,
  tokens_cache_read integer, tokens_cache_write integer, permission text, agent text, model text,
  time_created integer, time_updated integer);
create table if not exists message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
create table if not exists part (id text primary key, message_id text, session_id text, time_created integer,
  time_updated integer, data text)`;

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

export const opencodeFormat: Format = {
  agent: "opencode",
  command: "opencode",
  program: {
    agent: {
      exe: "opencode",
      name: "opencode",
      commandLine: (argv) => wordsOf(["/usr/lib/node_modules/opencode-ai/bin/opencode", ...argv]),
    },
    wrapper: null,
  },
  home: "user/.local/share/opencode",
  environment: () => ({}),
  records: "opencode.db",
  announcements: null,
  database: {
    schema,
    table: "session",
    put,
    lines: linesIn,
    oldLines,
    texts: ["message", "part"].map((table) => ({ table, column: "data", order: ["time_created", "id"] })),
    removal: "delete from session where id = ?",
  },
  idInside: false,
  lock: null,
  newId(dice) {
    const hex = Array.from(dice.bytes(6), (byte) => byte.toString(16).padStart(2, "0")).join("");
    return `ses_${hex}${Array.from({ length: 14 }, () => letters[dice.below(letters.length)]).join("")}`;
  },
  recordPath: ({ home }) => join(home, "opencode.db"),
  argv(manner, id, dice) {
    const run = ["run", "--format", "json"];
    if (manner === "resume") return dice.chance(0.6) ? [...run, "--session", id] : ["--session", id];
    if (manner === "nameless") return dice.pick([[], [...run, "go on"], [...run, id]]);
    return dice.pick([[...run, "--session", id, "go"], ["-s", id], [`--session=${id}`]]);
  },
  mayMoveOn: (argv) => argv[0] !== "run",
  argvNames: (argv, id) => argv.some((word, at) => word === `--session=${id}` || isFlagOf(argv, at, id)),
  nestedArgv: (id) => ["run", "--session", id],
  hidesArguments: false,
  tidiesOnTerm: false,
  writesLate: false,
  announces: () => false,
  manyWriters: true,
  can: (_session, event, actor) => event !== "background" && (event !== "question" || !isHeadless(actor)),
  begin({ id, cwd }) {
    const now = Date.now();
    const row = { id, project_id: "global", parent_id: null, slug: "calm-fox", directory: cwd, version: "1.18.33" };
    return row_("session", { ...row, title: "New session", cost: 0, time_created: now, time_updated: now });
  },
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept: acceptRow,
    isHeader: ({ type }) => type === "session",
    // The last message alone says how far the turn got.
    isMark: ({ type }) => type === "message",
    isMessage: ({ type }) => type === "message",
    turnOf,
  },
};

const isFlagOf = (argv: readonly string[], at: number, id: string): boolean =>
  (argv[at] === "--session" || argv[at] === "-s") && argv[at + 1] === id;

const isHeadless = (fake: FakeAgent | null): boolean => fake?.argv[0] === "run";

const row_ = (table: string, row: Fields): string => `${JSON.stringify({ table, ...row })}\n`;

/** Rising with time, as its own are. */
let counter = 0;
function newRowId(kind: string): string {
  counter += 1;
  return `${kind}_${(BigInt(Date.now()) * 0x1000n + BigInt(counter % 0x1000)).toString(16).slice(-12)}${crypto.randomUUID().slice(0, 8)}`;
}

function put(database: Database, { table, ...row }: Fields): void {
  const columns = Object.keys(row);
  const change = columns.map((name) => `${name} = excluded.${name}`).join(", ");
  const sql = `insert into ${table} (${columns}) values (${columns.map(() => "?")}) on conflict (id) do update set ${change}`;
  database.run(sql, Object.values(row) as (string | number | null)[]);
}

interface Message extends Fields {
  id: string;
  session_id: string;
  time_created: number;
  time_updated: number;
  data: Fields;
}

function lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string {
  const { scratch, cwd } = session;
  const now = Date.now();
  const text = String(fields["text"] ?? "");
  let written = "";
  const write = (table: string, { data, ...row }: Fields & { data: Fields }) => {
    written += row_(table, { ...row, data: JSON.stringify(data) });
  };
  const part = (message: Message, data: Fields, id = newRowId("prt")) => {
    const times = { time_created: now, time_updated: now };
    write("part", { id, message_id: message.id, session_id: session.id, ...times, data });
    return id;
  };
  const say = (data: Fields): Message => {
    const message = { id: newRowId("msg"), session_id: session.id, time_created: now, time_updated: now, data };
    write("message", message);
    return message;
  };
  const open = scratch["open"] as Message | null | undefined;
  const current = (): Message => {
    const message = scratch["open"] as Message | null | undefined;
    if (message != null) return message;
    const data = { role: "assistant", parentID: scratch["prompt"], path: { cwd, root: cwd }, time: { created: now } };
    const begun = say({ ...data, mode: "build", modelID: "fake-1", providerID: "fake", cost: 0 });
    scratch["open"] = begun;
    return begun;
  };
  const finish = (rest: Fields) => {
    const message = current();
    const time = { ...fieldsOf(message.data["time"]), completed: now };
    write("message", { ...message, time_updated: now, data: { ...message.data, time, ...rest } });
    scratch["open"] = null;
  };
  const call = (tool: string, input: Fields, hasBegun: boolean) => {
    const state = { status: "running", input, time: { start: now }, ...(hasBegun ? { metadata: { output: "" } } : {}) };
    const data = { type: "tool", tool, callID: newRowId("call"), state };
    scratch["call"] = { id: part(current(), data), data };
  };
  const result = (output: string, status: string) => {
    const pending = scratch["call"] as { id: string; data: Fields } | null | undefined;
    if (pending == null || scratch["open"] == null) return;
    const state = {
      ...fieldsOf(pending.data["state"]),
      status,
      output,
      metadata: { output },
      time: { start: now, end: now },
    };
    part(current(), { ...pending.data, state }, pending.id);
    scratch["call"] = null;
    finish({ finish: "tool-calls" });
  };

  if (event === "title") return row_("session", { id: session.id, title: text, time_updated: now });
  if (event === "prompt") {
    // What a dead process left open stays so.
    Object.assign(scratch, { open: null, call: null, bypass: fields["mode"] === "bypass" || isHeadless(actor) });
    const message = say({ role: "user", time: { created: now }, agent: "build", model: { modelID: "fake-1" } });
    part(message, { type: "text", text });
    scratch["prompt"] = message.id;
  }
  if (event === "reply") part(current(), { type: "text", text, time: { start: now, end: now } });
  if (event === "tool") call("bash", { command: "ls" }, scratch["bypass"] === true);
  if (event === "tool-result" || event === "answer") result(text, "completed");
  if (event === "question") {
    result("ok", "completed");
    if (fields["kind"] === "question")
      call("question", { questions: [{ question: text, options: [{ label: "yes" }] }] }, false);
    else if (fields["kind"] === "plan") call("plan_exit", {}, false);
    else call("bash", { command: text }, false);
  }
  if (event !== "end") return written;
  if (fields["outcome"] === "completed") {
    if (open != null && scratch["call"] != null) result("ok", "completed");
    part(current(), { type: "text", text, time: { start: now, end: now } });
    finish({ finish: "stop" });
  }
  if (fields["outcome"] === "interrupted")
    finish({ error: { name: "MessageAbortedError", data: { message: "Aborted" } } });
  const statusCode = [400, 401, 429][text.length % 3];
  if (fields["outcome"] === "failed")
    finish({ error: { name: "APIError", data: { message: `failed with ${statusCode}`, statusCode } } });
  return written;
}

// --- reading back

interface Row {
  id: string;
  time_created: number;
  time_updated: number;
  data: string;
}

function linesIn(database: Database, id: string): Fields[] | null {
  const session = database.query("select * from session where id = ?").get(id) as Fields | null;
  if (session === null) return null;
  const messages = database
    .query("select * from message where session_id = ? order by time_created, id")
    .all(id) as Row[];
  const partsOf = (message: string) =>
    database.query("select * from part where message_id = ? order by id").all(message) as Row[];
  return [headerOf(session), ...messages.map((message) => messageOf(message, partsOf(message.id)))];
}

const headerOf = ({ time_created, directory }: Fields): Fields => ({
  type: "session",
  at: time_created,
  cwd: directory,
});

/** Whatever of it is broken breaks it. */
function messageOf(message: Row, parts: readonly Row[]): Fields {
  const at = Math.max(...[message, ...parts].map((row) => row.time_updated));
  const data = parseObject(message.data);
  const inside = parts.map((part) => parseObject(part.data));
  return data === null || inside.includes(null)
    ? { broken: true }
    : { type: "message", at, id: message.id, data, parts: inside };
}

/** `storage/session/<project>/<id>.json`, `storage/message/<session>/<id>.json`. */
function oldLines(home: string, id: string): Fields[] | null {
  const folder = join(home, "storage", "session", "global");
  const path = join(folder, `${id}.json`);
  if (!existsSync(path)) return null;
  const json = (file: string) => parseObject(readFileSync(file, "utf8")) ?? {};
  const { directory, time } = json(path);
  const header = headerOf({ directory, time_created: fieldsOf(time)?.["created"] });
  const messages = join(home, "storage", "message", id);
  const names = existsSync(messages) ? readdirSync(messages).sort() : [];
  const rows = names.map((name) => {
    const data = json(join(messages, name));
    const { created, completed } = fieldsOf(data["time"]) ?? {};
    return { type: "message", at: completed ?? created, id: data["id"], data, parts: [] };
  });
  return [header, ...rows];
}

function turnOf(all: readonly Line[]): Turn {
  const last = all.findLast(({ type }) => type === "message");
  const data = fieldsOf(last?.["data"]);
  if (last === undefined || data === null) return noTurn;
  const { created, completed } = fieldsOf(data["time"]) ?? {};
  const asked = all.find((line) => line["id"] === data["parentID"]);
  const since = fieldsOf(fieldsOf(asked?.["data"])?.["time"])?.["created"] ?? created;
  // A prompt that no model takes up leaves no trace.
  if (data["role"] === "user") return { ...openedAt(Number(created)), doubt: true };
  const parts = Array.isArray(last["parts"]) ? last["parts"].map((part) => fieldsOf(part) ?? {}) : [];
  if (completed === undefined) return { ...openedAt(Number(since)), ...waitsFor(parts) };
  const error = fieldsOf(data["error"]);
  const { message, statusCode } = fieldsOf(error?.["data"]) ?? {};
  if (error?.["name"] === "MessageAbortedError") return closed("interrupted", null, Number(completed));
  if (error !== null)
    return closed(
      "failed",
      statusCode === 401 || statusCode === 429 ? `${error["name"]}: ${message}` : null,
      Number(completed),
    );
  return data["finish"] === "tool-calls" ? openedAt(Number(since)) : closed("completed", null, Number(completed));
}

/** A call that has not said anything of itself may wait for approval. */
function waitsFor(parts: Fields[]): Partial<Turn> {
  const running = parts.filter((part) => fieldsOf(part["state"])?.["status"] === "running");
  const asks = running.find(({ tool }) => tool === "question" || tool === "plan_exit");
  const [asked] = (fieldsOf(fieldsOf(asks?.["state"])?.["input"])?.["questions"] as unknown[] | undefined) ?? [];
  if (asks !== undefined) return { question: String(fieldsOf(asked)?.["question"] ?? "") };
  const silent = running.find((part) => fieldsOf(part["state"])?.["metadata"] === undefined);
  return silent === undefined ? {} : { pending: "", doubt: true };
}
