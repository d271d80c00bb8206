// Reads a Codex rollout: its first lines, its last turn, its conversation.
import type { NativeRecord, Tokens, Turn, Waiting } from "../../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, textIn, textsIn, timeIn, uuidIn } from "../fields.ts";
import {
  contentText,
  emptyTail,
  firstQuestion,
  firstRows,
  lastRows,
  messageAt,
  needsOf,
  noLineFacts,
  type RecordTail,
  tokensWithoutCache,
  typedLine,
  unreadTurn,
} from "../record-lines.ts";

interface RolloutLine {
  type: string;
  /** The payload's own type; "" if it has none. */
  kind: string;
  payload: Fields;
  at: number | null;
}

function rowOf(value: unknown): RolloutLine | null {
  const line = typedLine(value);
  if (line === null) return null;
  const payload = fieldsIn(line.fields, "payload");
  return { type: line.type, kind: textIn(payload, "type") ?? "", payload, at: timeIn(line.fields, "timestamp") };
}

const headLines = 40;

interface CodexHead {
  /** `meta` and `context` are empty if their line is broken or not among the first lines. */
  meta: Fields;
  context: Fields;
  prompt: string | null;
  at: number | null;
}

export function readHead(lines: Iterable<Line>): CodexHead {
  const head: CodexHead = { meta: {}, context: {}, prompt: null, at: null };
  for (const { row, index } of firstRows(lines, headLines, rowOf)) {
    head.at ??= row?.at ?? null;
    if (row?.type === "session_meta" && index === 0) head.meta = row.payload;
    if (row?.type === "turn_context") head.context = row.payload;
    if (row !== null && isUserMessage(row)) head.prompt ??= contentText(row.payload);
    if (head.prompt !== null) break;
  }
  return head;
}

interface CodexTail extends RecordTail {
  waiting: NativeRecord["waiting"];
  pending: Waiting | null;
  context: Fields | null;
  tokens: Tokens | null;
  /** The session that the tokens are counted for; for a subagent, the session that its own session belongs to. */
  root: string | null;
}

/** Before the last mark of a turn, only lines of these types are parsed. */
const factTypes = ['"turn_context"', '"token_usage_record"'].map((type) => Buffer.from(type));

/** Lines and events without a message. */
const notMessages = ["session_meta", "world_state", "turn_context", "thread_settings_applied", "token_count"];

/** Reads from the end back to the last mark of a turn. A broken line on the way makes the turn unclear. */
export function readTail(file: RecordFile): CodexTail {
  const tail: CodexTail = { ...emptyTail, context: null, tokens: null, root: null, waiting: null, pending: null };
  const answered = new Set<string>();
  let oldestPending: RolloutLine | null = null;
  let mark: RolloutLine | null = null;
  const search = {
    parse: rowOf,
    isTurnFound: () => mark !== null,
    hasAllFacts: () => tail.context !== null && tail.tokens !== null,
    mayMatter: (bytes: Buffer) => mark === null || factTypes.some((type) => bytes.includes(type)),
  };
  for (const row of lastRows(file, tail, search)) {
    if (row.type === "turn_context") tail.context ??= row.payload;
    tail.tokens ??= tokensIn(row);
    if (row.type === "token_usage_record") tail.root ??= uuidIn(row.payload, "session_id");
    if (mark !== null) continue;
    if (!isKnown(row)) tail.unknown += 1;
    if (!notMessages.includes(row.type) && !notMessages.includes(row.kind)) tail.lastAt ??= row.at;
    const call = row.type === "response_item" ? textIn(row.payload, "call_id") : null;
    if (call !== null && row.kind.endsWith("_output")) answered.add(call);
    else if (call !== null && row.kind.endsWith("_call") && !answered.has(call)) oldestPending = row;
    if (row.type === "event_msg" && turnMarks.includes(row.kind)) mark = row;
  }
  tail.turn = unreadTurn(file, tail, mark !== null) ?? turnOf(mark, oldestPending, tail);
  if (tail.turn.state === "open" && oldestPending !== null) {
    tail.pending = callOf(oldestPending.payload);
    // Codex asks a person only in plan mode. Otherwise it answers such a call itself, with an error.
    const asks = tail.pending.kind === "question" && mark?.payload["collaboration_mode_kind"] === "plan";
    if (asks) tail.waiting = { ...tail.pending, since: oldestPending.at };
  }
  return tail;
}

const turnMarks = ["task_started", "task_complete", "turn_aborted"];

function turnOf(mark: RolloutLine | null, pending: RolloutLine | null, tail: CodexTail): Turn {
  if (mark === null)
    return tail.lastAt === null ? { state: "none" } : { state: "unclear", why: { code: "no-turn-mark" } };
  const { kind, payload, at } = mark;
  if (kind === "task_started") {
    // With this policy Codex never waits for an approval: a pending call is a running tool.
    const neverAsks = tail.context?.["approval_policy"] === "never";
    return { state: "open", since: at, doubt: pending === null || neverAsks ? null : { code: "tool-call-pending" } };
  }
  if (kind === "turn_aborted")
    return { state: "closed", at, outcome: payload["reason"] === "interrupted" ? "interrupted" : null };
  if (payload["error"] == null) return { state: "closed", at, outcome: "completed" };
  const error = fieldsIn(payload, "error");
  const needs = needsOf(needsByError, textIn(error, "codex_error_info"), textIn(error, "message"));
  return { state: "closed", at, outcome: "failed", ...needs };
}

/** These names are from Codex's program. No record with such a failure was seen. */
const needsByError = { usage_limit_exceeded: "limit", unauthorized: "login" } as const;

/** A question to a person, or a command with the reason that the model gave. */
function callOf(payload: Fields): Waiting {
  const tool = textIn(payload, "name") ?? textIn(payload, "type");
  const input = fieldsOf(jsonIn(payload, "arguments")) ?? {};
  if (tool === "request_user_input") return { kind: "question", tool, ...firstQuestion(input) };
  const reason = textIn(input, "justification");
  const text = commandOf(payload) + (reason === null ? "" : ` (${reason})`);
  return { kind: "permission", text, tool, options: [] };
}

function commandOf(payload: Fields): string {
  const input = fieldsOf(jsonIn(payload, "arguments"));
  const command = input?.["cmd"] ?? input?.["command"] ?? fieldsIn(payload, "action")["command"];
  if (Array.isArray(command)) return textsIn({ command }, "command").join(" ");
  return typeof command === "string" ? command : (textIn(payload, "arguments") ?? textIn(payload, "input") ?? "");
}

/** The thread's totals so far. The `token_count` lines are not used: they leave out a turn that was killed. */
const tokensIn = ({ type, payload }: RolloutLine): Tokens | null =>
  tokensWithoutCache(fieldsIn(type === "token_usage_record" ? payload : {}, "thread_token_usage"), tokenKeys);

const tokenKeys = {
  ...{ input: "input_tokens", output: "output_tokens" },
  ...{ cacheRead: "cached_input_tokens", cacheWrite: "cache_write_input_tokens" },
};

const lineTypes = "session_meta event_msg response_item world_state turn_context token_usage_record compacted".split(
  " ",
);
const itemKinds = "message reasoning function_call custom_tool_call function_call_output custom_tool_call_output".split(
  " ",
);
const eventKinds = [...turnMarks, "item_completed", "token_count", "thread_settings_applied"];

const isKnown = ({ type, kind }: RolloutLine): boolean =>
  lineTypes.includes(type) &&
  (type !== "response_item" || itemKinds.includes(kind)) &&
  (type !== "event_msg" || eventKinds.includes(kind));

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !isKnown(row)) return null;
  const tokens = tokensIn(row);
  // Each line has the totals so far; in a fork they include the totals of its parent.
  const usage = tokens && { key: "total", tokens, model: null };
  return { ...noLineFacts, messages: messagesOf(row), usage };
}

function messagesOf(row: RolloutLine): Message[] {
  const { type, kind, payload, at } = row;
  const say = messageAt(at);
  if (type === "compacted") return [say("note", "earlier messages were summed up")];
  if (kind === "turn_aborted") return [say("note", textIn(payload, "reason") ?? "aborted")];
  if (kind === "task_complete") {
    const error = fieldsOf(payload["error"]);
    return error === null ? [] : [say("note", `failed: ${textIn(error, "message") ?? ""}`)];
  }
  if (type !== "response_item") return [];
  if (isUserMessage(row)) return [say("user", contentText(payload))];
  if (kind === "message") return payload["role"] === "assistant" ? [say("agent", contentText(payload))] : [];
  if (kind.endsWith("_call")) return [say("tool", commandOf(payload), textIn(payload, "name"))];
  return kind.endsWith("_output") ? [say("result", contentText(payload, "output"))] : [];
}

/** Codex writes its own texts with the same role. It marks them; older versions begin them with a tag. */
function isUserMessage({ type, kind, payload }: RolloutLine): boolean {
  if (type !== "response_item" || kind !== "message" || payload["role"] !== "user") return false;
  const kinds = fieldsIn(payload, "internal_chat_message_metadata_passthrough")["content_item_kinds"];
  return Array.isArray(kinds) ? kinds.includes("user.text") : !/^(<|# AGENTS\.md)/.test(contentText(payload));
}
