// Codex CLI 0.166.0 without its daemon, as src/agents/codex/README.md and its captured files show it.
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import type { Fields, Format } from "./format.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, parseObject, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

export const codexFormat: Format = {
  agent: "codex",
  command: "codex",
  program: "shell",
  // Its default place below HOME: nothing in the environment names it.
  home: "user/.codex",
  environment: () => ({}),
  records: "sessions",
  announcements: null,
  database: null,
  idInside: false,
  lock: { path: (id) => join("thread-writer-locks", `${id}.lock`), isExclusive: true },
  newId: (dice) => dice.uuid().replace(/^(.{14})./, "$17"),
  recordPath({ home, id, bornMs }) {
    const [day = "", time = ""] = new Date(bornMs).toISOString().slice(0, 19).split("T");
    const name = `rollout-${day}T${time.replaceAll(":", "-")}-${id}.jsonl`;
    return join(home, "sessions", ...day.split("-"), name);
  },
  argv(manner, id, dice) {
    // A new session cannot be named beforehand.
    if (manner === "resume") return dice.chance(0.7) ? ["exec", "--json", "resume", id, "-"] : ["resume", id];
    // The prompt may be anything, another session's id, too.
    if (dice.chance(0.6)) return ["exec", "--json", dice.pick(["-", "go on", id])];
    return [];
  },
  mayMoveOn: () => false,
  argvNames: (argv, id) => argv[0] === "exec" && argv[2] === "resume" && argv[3] === id,
  nestedArgv: (id) => ["exec", "--json", id],
  hidesArguments: false,
  tidiesOnTerm: false,
  writesLate: true,
  announces: () => true,
  manyWriters: false,
  can(session, event, actor) {
    if (event === "background" || event === "title") return false;
    if (event !== "question") return true;
    // `exec` never asks; nor does an interface with the policy "never", except in plan mode.
    return (
      actor !== null && !isExec(actor) && (session.scratch["mode"] === "plan" || session.scratch["policy"] !== "never")
    );
  },
  begin: (session, actor) =>
    line(session, "session_meta", {
      session_id: session.id,
      id: session.id,
      timestamp: new Date().toISOString(),
      cwd: session.cwd,
      originator: isExec(actor) ? "codex_exec" : "codex-tui",
      cli_version: "0.166.0",
      source: isExec(actor) ? "exec" : "cli",
      thread_source: "user",
      model_provider: "fake",
      base_instructions: "[redacted] ".repeat(2000),
      history_mode: "paginated",
    }),
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(value) {
      const { type, timestamp } = value;
      if (typeof type !== "string") return null;
      const { cwd } = fieldsOf(value["payload"]) ?? {};
      const atMs = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
      return { ...value, type, atMs, cwd: typeof cwd === "string" ? cwd : null };
    },
    isHeader: ({ type }) => type === "session_meta",
    isMark: (value) => ["task_started", "task_complete", "turn_aborted"].includes(eventOf(value)),
    turnOf,
  },
};

const isExec = (fake: FakeAgent | null): boolean => fake?.argv[0] === "exec";

function line(session: Session, type: string, payload: Fields): string {
  const ordinal = Number(session.scratch["ordinal"] ?? 0);
  session.scratch["ordinal"] = ordinal + 1;
  return `${JSON.stringify({ timestamp: new Date().toISOString(), ordinal, type, payload })}\n`;
}

function lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string {
  const { scratch } = session;
  const text = String(fields["text"] ?? "");
  const item = (payload: Fields) => line(session, "response_item", payload);
  const happened = (type: string, payload: Fields) =>
    line(session, "event_msg", { type, turn_id: scratch["turn"], root_turn_id: scratch["turn"], ...payload });
  const output = (words: string): string => {
    if (scratch["call"] == null) return "";
    const call_id = scratch["call"];
    scratch["call"] = null;
    return item({ type: "function_call_output", id: "fco_1", call_id, output: words });
  };
  const call = (name: string, input: Fields): string => {
    scratch["call"] = `call_${crypto.randomUUID()}`;
    const payload = { type: "function_call", status: "completed", name, arguments: JSON.stringify(input) };
    return item({ ...payload, call_id: scratch["call"] });
  };

  if (event === "prompt") {
    const mode = isExec(actor) || fields["mode"] !== "plan" ? "default" : "plan";
    const policy = isExec(actor) || fields["mode"] === "bypass" ? "never" : "on-request";
    Object.assign(scratch, { turn: crypto.randomUUID(), call: null, mode, policy });
    const context = {
      cwd: session.cwd,
      approval_policy: policy,
      sandbox_policy: { type: "read-only" },
      model: "gpt-5",
    };
    return [
      happened("task_started", { model_context_window: 258400, collaboration_mode_kind: mode }),
      item(said("user", "<environment_context>…", "environments.environment_context")),
      line(session, "turn_context", { turn_id: scratch["turn"], ...context }),
      item(said("user", text, "user.text")),
      happened("item_completed", { item: { type: "UserMessage", content: [{ type: "text", text }] } }),
    ].join("");
  }
  if (event === "reply") {
    const usage = { input_tokens: 1234, cached_input_tokens: 200, output_tokens: 56 };
    return [
      happened("item_completed", { item: { type: "AgentMessage", content: [{ type: "Text", text }] } }),
      item({ ...said("assistant", text, "unknown"), status: "completed" }),
      line(session, "token_usage_record", { session_id: session.id, usage, thread_token_usage: usage }),
    ].join("");
  }
  if (event === "tool") return call("exec_command", { cmd: "ls" });
  if (event === "tool-result" || event === "answer") return output(text);
  if (event === "question") {
    const questions = [{ id: "a", header: "A", question: text, options: [{ label: "yes" }, { label: "no" }] }];
    if (scratch["mode"] === "plan") return output("ok") + call("request_user_input", { questions });
    const escalation = { sandbox_permissions: "require_escalated", justification: text };
    return scratch["call"] == null ? call("exec_command", { cmd: "touch made", ...escalation }) : "";
  }
  return finish(text, fields["outcome"], { item, happened, output });
}

interface Pens {
  item(payload: Fields): string;
  happened(type: string, payload: Fields): string;
  output(words: string): string;
}

function finish(text: string, outcome: unknown, { item, happened, output }: Pens): string {
  if (outcome === "interrupted")
    return [
      output("aborted by user"),
      item(said("user", "<turn_aborted>…", "generic.turn_aborted")),
      happened("turn_aborted", { reason: "interrupted", duration_ms: 125 }),
    ].join("");
  const codex_error_info = text.length % 2 === 0 ? "other" : "usage_limit_exceeded";
  const error = { message: `failed: ${codex_error_info}`, codex_error_info };
  const result = outcome === "failed" ? { last_agent_message: null, error } : { last_agent_message: text };
  return [
    output("ok"),
    happened("token_count", { info: { last_token_usage: {} } }),
    happened("task_complete", { ...result, duration_ms: 177 }),
  ].join("");
}

function said(role: string, text: string, kind: string): Fields {
  const content = [{ type: role === "assistant" ? "output_text" : "input_text", text }];
  const internal_chat_message_metadata_passthrough = { content_item_kinds: [kind] };
  return { type: "message", role, content, internal_chat_message_metadata_passthrough };
}

function eventOf(value: Line): string {
  const { type } = value.type === "event_msg" ? (fieldsOf(value["payload"]) ?? {}) : { type: "" };
  return typeof type === "string" ? type : "";
}

function turnOf(all: readonly Line[]): Turn {
  let says = noTurn;
  let mode = "default";
  let policy = "";
  const calls = new Map<string, Fields>();
  for (const value of all) {
    const payload = fieldsOf(value["payload"]) ?? {};
    const event = eventOf(value);
    if (event === "task_started") {
      says = openedAt(value.atMs);
      mode = String(payload["collaboration_mode_kind"]);
      calls.clear();
    }
    if (event === "task_complete") {
      const { message, codex_error_info } = fieldsOf(payload["error"]) ?? {};
      const needs = codex_error_info === "usage_limit_exceeded" ? String(message) : null;
      says = closed(payload["error"] === undefined ? "completed" : "failed", needs, value.atMs);
    }
    if (event === "turn_aborted") says = closed("interrupted", null, value.atMs);
    if (value.type === "turn_context") policy = String(payload["approval_policy"]);
    if (value.type !== "response_item") continue;
    if (payload["type"] === "function_call") calls.set(String(payload["call_id"]), payload);
    if (payload["type"] === "function_call_output") calls.delete(String(payload["call_id"]));
  }
  const [call] = calls.values();
  if (says.turn !== "open" || call === undefined) return says;
  const input = parseObject(String(call["arguments"])) ?? {};
  const [asked] = Array.isArray(input["questions"]) ? input["questions"] : [];
  const question = fieldsOf(asked)?.["question"];
  if (mode === "plan" && question !== undefined) return { ...says, question: String(question) };
  return { ...says, pending: String(input["cmd"]), doubt: policy !== "never" };
}
