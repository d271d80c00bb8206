// OpenClaw 2026.9.6, as src/agents/openclaw/README.md and its captured files show it: all sessions live in its gateway, which says what
// it works on; how a turn ended stands in its database.
import type { Database } from "bun:sqlite";
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type DatabaseFormat, type Fields, type Format, wordsOf } from "./format.ts";
import type { GatewayFormat } from "./gateway.ts";
import { acceptRow, closed, fieldsOf, type Line, noTurn, openedAt, parseObject, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const schema = `
create table if not exists session_nodes (session_key text not null primary key, current_session_id text not null,
  entry_json text not null, updated_at integer not null, status text, created_at integer, spawned_by text,
  fork_source_session_id text, label text, display_name text) strict;
create table if not exists session_windows (session_id text not null primary key, session_key text not null,
  previous_session_id text, created_at integer not null, updated_at integer not null, transcript_updated_at integer,
  started_at integer, ended_at integer, status text, model_provider text, model text, spawned_by text, display_name text) strict;
create table if not exists transcript_events (session_id text not null, seq integer not null, event_json text,
  created_at integer not null, event_zstd blob, event_utf8_bytes integer, navigation_json text, primary key (session_id, seq)) strict;
create table if not exists session_pending_inputs (seq integer primary key autoincrement, session_id text not null,
  session_key text not null, message_json text not null, state text not null, accepted_at integer not null) strict`;

const database: DatabaseFormat = {
  schema,
  table: "session_windows",
  put,
  lines: linesIn,
  texts: [{ table: "transcript_events", column: "event_json", order: ["seq"] }],
  removal: "delete from session_windows where session_id = ?",
};

const isLocal = (argv: readonly string[]): boolean => argv[0] === "agent";

const gateway: GatewayFormat = {
  name: (argv) => (isLocal(argv) ? "openclaw-agent" : "openclaw-gatewa"),
  title: (argv) => (isLocal(argv) ? "openclaw-agent" : "openclaw-gateway"),
  lock: "tmp/openclaw-0/gateway.state.lock.sqlite",
  settings: "openclaw.json",
  tokenVariable: "OPENCLAW_GATEWAY_TOKEN",
  runAfter(event, fields) {
    if (event === "end") return null;
    if (event === "title" || event === "background") return undefined;
    if (event !== "question") return { asks: null };
    return { asks: { kind: fields["kind"] === "question" ? "question" : "permission", text: String(fields["text"]) } };
  },
};

export const openclawFormat: Format = {
  agent: "openclaw",
  command: "openclaw",
  program: {
    agent: { exe: "node", name: "openclaw", commandLine: (argv) => wordsOf(["openclaw", ...argv]) },
    wrapper: null,
  },
  home: "user/.openclaw",
  environment: () => ({}),
  records: "agents/main/agent/openclaw-agent.sqlite",
  announcements: null,
  database,
  gateway,
  choosesId: false,
  idInside: false,
  lock: null,
  newId: (dice) => dice.uuid(),
  recordPath: ({ home }) => join(home, "agents/main/agent/openclaw-agent.sqlite"),
  argv(_manner, _id, dice) {
    const run = ["gateway", "run"];
    const settings = [...run, "token in its settings"];
    return dice.pick([run, run, run, settings, settings, [...run, "not yet"], ["agent", "--local"]]);
  },
  mayMoveOn: () => false,
  argvNames: () => false,
  nestedArgv: () => [],
  hidesArguments: false,
  tidiesOnTerm: false,
  writesLate: true,
  announces: () => true,
  manyWriters: false,
  can: (_session, event) => event !== "background",
  begin({ id, cwd, scratch }) {
    const now = Date.now();
    scratch["seq"] = 0;
    const entry_json = JSON.stringify({ sessionId: id, spawnedCwd: cwd, permissionMode: "full" });
    const node = { session_key: keyOf(id), current_session_id: id, entry_json, updated_at: now, created_at: now };
    const window = { session_id: id, session_key: keyOf(id), created_at: now, updated_at: now };
    return (
      row("session_nodes", node) + row("session_windows", window) + event_({ id, scratch }, "session", { id, cwd })
    );
  },
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept: acceptRow,
    isHeader: ({ type }) => type === "window",
    isMark: () => true,
    isMessage: ({ type }) => type === "message" || type === "queued",
    turnOf,
  },
};

const keyOf = (id: string): string => `agent:main:dashboard:${id}`;

// --- what it writes: each line is a row

const row = (table: string, fields: Fields): string => `${JSON.stringify({ table, ...fields })}\n`;

function event_({ id, scratch }: Pick<Session, "id" | "scratch">, type: string, rest: Fields): string {
  const [seq, now] = [Number(scratch["seq"] ?? 0), Date.now()];
  scratch["seq"] = seq + 1;
  const event_json = JSON.stringify({ type, timestamp: new Date(now).toISOString(), ...rest });
  return row("transcript_events", { session_id: id, seq, event_json, created_at: now });
}

const keys: Record<string, string> = {
  session_nodes: "session_key",
  session_windows: "session_id",
  transcript_events: "session_id, seq",
};

function put(database: Database, { table, taken, ...fields }: Fields): void {
  if (taken !== undefined) {
    database.run("delete from session_pending_inputs where session_id = ?", [String(taken)]);
    return;
  }
  const columns = Object.keys(fields);
  const values = Object.values(fields) as (string | number | null)[];
  const insert = `insert into ${table} (${columns}) values (${columns.map(() => "?")})`;
  const key = keys[String(table)];
  const change = columns.map((name) => `${name} = excluded.${name}`).join(", ");
  database.run(key === undefined ? insert : `${insert} on conflict (${key}) do update set ${change}`, values);
}

const outcomesOf = { completed: "done", failed: "failed", interrupted: "killed" } as const;

function lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string {
  const { id, scratch } = session;
  const now = Date.now();
  const text = String(fields["text"] ?? "");
  const message = (content: Fields) => event_(session, "message", { message: content });
  const window = (changes: Fields) => {
    const times = { created_at: now, updated_at: now, transcript_updated_at: now };
    // One without a gateway writes no status at all.
    const told = actor !== null && isLocal(actor.argv) ? {} : changes;
    return row("session_windows", { session_id: id, session_key: keyOf(id), ...times, ...told });
  };
  const takeUp = (): string => {
    const prompts = (scratch["queued"] as string[] | undefined) ?? [];
    scratch["queued"] = [];
    if (prompts.length === 0) return "";
    const said = prompts.map((content) => message({ role: "user", content, timestamp: now }));
    return row("", { taken: id }) + said.join("") + window({ status: "running", started_at: now, ended_at: null });
  };
  const model = (content: Fields[], stopReason: string) =>
    message({ role: "assistant", content, provider: "fake", model: "fake-model", stopReason, usage: { input: 1 } });
  const call = (command: string): string => {
    scratch["call"] = crypto.randomUUID();
    return model([{ type: "toolCall", id: scratch["call"], name: "exec", arguments: { command } }], "toolUse");
  };
  const result = (words: string, isError = false): string => {
    const { call: toolCallId } = scratch;
    scratch["call"] = null;
    if (toolCallId == null) return "";
    return message({ role: "toolResult", toolCallId, isError, content: [{ type: "text", text: words }] });
  };

  if (event === "title") return row("session_windows", { ...emptyWindow(id, now), display_name: text });
  if (event === "prompt") {
    scratch["call"] = null;
    const queued = [...((scratch["queued"] as string[] | undefined) ?? []), text];
    scratch["queued"] = queued;
    // Accepted, and not begun with yet.
    if (fields["mode"] !== "plan") return takeUp();
    const message_json = JSON.stringify({ role: "user", content: text });
    const input = { session_id: id, session_key: keyOf(id), message_json, state: "queued", accepted_at: now };
    return row("session_pending_inputs", input);
  }
  const before = takeUp();
  if (event === "reply") return before + result("ok") + call("ls") + result("ok") + window({});
  if (event === "tool") return before + result("ok") + call("ls") + window({});
  if (event === "tool-result" || event === "answer") return before + result(text) + window({});
  if (event === "question") return before + result("ok") + call(text) + window({});
  const outcome = fields["outcome"] as keyof typeof outcomesOf;
  const ended = (status: string) => window({ status, ended_at: Date.now() });
  if (outcome === "completed") return before + result("ok") + model([{ type: "text", text }], "stop") + ended("done");
  if (outcome === "interrupted") return before + model([], "aborted") + ended("killed");
  // Its time was over inside of a tool; while the model answered; or the model refused.
  if (scratch["call"] != null && text.length % 2 === 0) return before + result("Aborted", true) + ended("done");
  const isLate = text.length % 3 === 0;
  return before + result("ok") + model([], isLate ? "aborted" : "error") + ended(isLate ? "timeout" : "failed");
}

const emptyWindow = (id: string, now: number): Fields => ({
  ...{ session_id: id, session_key: keyOf(id), created_at: now, updated_at: now },
});

// --- reading back

function linesIn(database: Database, id: string): Fields[] | null {
  const all = (sql: string) => database.query(sql).all(id) as Fields[];
  const [window] = all("select * from session_windows where session_id = ?");
  if (window === undefined) return null;
  const [node] = all("select entry_json from session_nodes where current_session_id = ?");
  const inputs = all("select * from session_pending_inputs where session_id = ? order by seq");
  const events = all("select * from transcript_events where session_id = ? order by seq").map(eventOf);
  const queued = inputs.map(({ accepted_at }) => ({ type: "queued", at: accepted_at }));
  const { cwd = null } = events.find(({ type }) => type === "session") ?? {};
  const { spawnedCwd = cwd } = parseObject(String(node?.["entry_json"])) ?? {};
  const told = [...events, ...queued].filter(({ type }) => type === "message" || type === "queued");
  const { updated_at, transcript_updated_at, created_at } = window;
  const times = [updated_at, transcript_updated_at, told.at(-1)?.["at"]].map((time) => Number(time ?? 0));
  const first = { ...window, type: "window", at: created_at, cwd: spawnedCwd, writtenMs: Math.max(...times) };
  return [first, ...events, ...queued];
}

/** What is broken is none of its lines. */
function eventOf({ event_json, created_at }: Fields): Fields {
  const { type = "broken", timestamp, ...rest } = parseObject(String(event_json)) ?? {};
  const at = timestamp === undefined ? created_at : Date.parse(String(timestamp));
  return { ...rest, type, at };
}

const messageOf = (line: Line | undefined): Fields => fieldsOf(line?.["message"]) ?? {};
const ofStatus = new Map([
  ["done", "completed"],
  ["failed", "failed"],
  ["timeout", "failed"],
  ["killed", "interrupted"],
]);
const ofAnswer = new Map([
  ["stop", "completed"],
  ["error", "failed"],
  ["aborted", "interrupted"],
]);

/** Only for sessions without a run: a live gateway reports its runs itself. */
function turnOf([window, ...rest]: readonly Line[]): Turn {
  const queued = rest.find(({ type }) => type === "queued");
  if (window === undefined) return noTurn;
  if (queued !== undefined) return openedAt(queued.atMs);
  const messages = rest.filter(({ type }) => type === "message");
  const at = messages.findLastIndex((line) => messageOf(line)["role"] === "user");
  const [prompt, since] = [messages[at], messages.slice(at + 1)];
  const answer = since.findLast((line) => messageOf(line)["role"] === "assistant");
  const reason = String(messageOf(answer)["stopReason"]);
  const { status, started_at, ended_at } = window;
  if (status === "running") return openedAt(Number(started_at));
  const outcome = ofStatus.get(String(status));
  if (outcome !== undefined && !(prompt !== undefined && prompt.atMs > Number(ended_at))) {
    const { role, isError } = messageOf(messages.at(-1));
    const isBroken = reason === "error" || (role === "toolResult" && isError === true);
    return closed(outcome === "completed" && isBroken ? "failed" : outcome, null, Number(ended_at));
  }
  if (prompt === undefined) return noTurn;
  const said = ofAnswer.get(reason);
  return answer === undefined || said === undefined ? openedAt(prompt.atMs) : closed(said, null, answer.atMs);
}
