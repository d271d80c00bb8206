// What the lines of a Codex rollout say: its first lines, its last turn, its conversation.
import type { NativeRecord, Tokens, Turn, Waiting } from "../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "./adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, jsonIn, lookUp, textIn, timeIn, uuidIn } from "./fields.ts";

interface Row {
  type: string;
  /** The payload's own type; "" where it has none. */
  kind: string;
  payload: Fields;
  at: number | null;
}

function rowOf(value: unknown): Row | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  if (fields === null || type === null) return null;
  const payload = fieldsIn(fields, "payload");
  return { type, kind: textIn(payload, "type") ?? "", payload, at: timeIn(fields, "timestamp") };
}

const headLines = 40;

/** `meta` and `context` are empty where their line is broken or far away. */
export function readHead(lines: Iterable<Line>): {
  meta: Fields;
  context: Fields;
  prompt: string | null;
  at: number | null;
} {
  const head: ReturnType<typeof readHead> = { meta: {}, context: {}, prompt: null, at: null };
  let seen = 0;
  for (const line of lines) {
    const row = line.ok ? rowOf(line.value) : null;
    seen += 1;
    head.at ??= row?.at ?? null;
    if (row?.type === "session_meta" && seen === 1) head.meta = row.payload;
    if (row?.type === "turn_context") head.context = row.payload;
    if (row !== null && isUserMessage(row)) head.prompt ??= textOf(row.payload);
    if (head.prompt !== null || seen >= headLines) break;
  }
  return head;
}

interface Tail {
  /** Lines that were recognised. */
  lines: number;
  /** Nothing but, at most, the start of a first line. */
  empty: boolean;
  turn: Turn;
  waiting: NativeRecord["waiting"];
  pending: Waiting | null;
  context: Fields | null;
  tokens: Tokens | null;
  /** The session that its tokens are counted for: of a subagent, another one. */
  root: string | null;
  lastAt: number | null;
  skipped: number;
  unknown: number;
}

/** How far beyond the last mark of a turn its model and its tokens are looked for. */
const factLines = 200;

/** Behind the last mark only lines of these types are parsed. */
const factTypes = ['"turn_context"', '"token_usage_record"'].map((type) => Buffer.from(type));

/** Lines that other things than messages add. */
const notMessages = ["session_meta", "world_state", "turn_context", "thread_settings_applied", "token_count"];

/** From the end back to the last mark of a turn; broken lines on the way leave the turn unclear. */
export function readTail(file: RecordFile): Tail {
  const none = { context: null, tokens: null, root: null, lastAt: null, waiting: null, pending: null };
  const tail: Tail = { lines: 0, empty: true, turn: { state: "none" }, skipped: 0, unknown: 0, ...none };
  const answered = new Set<string>();
  let oldestPending: Row | null = null;
  let mark: Row | null = null;
  let beyond = 0;
  const mayMatter = (bytes: Buffer): boolean => mark === null || factTypes.some((type) => bytes.includes(type));
  for (const line of file.backward(mayMatter)) {
    tail.empty = false;
    if (mark !== null) beyond += 1;
    if (beyond > factLines || (mark !== null && tail.context !== null && tail.tokens !== null)) break;
    const row = line.ok ? rowOf(line.value) : null;
    if (row === null) {
      if (mark === null) tail.skipped += 1;
      continue;
    }
    if (row.type === "turn_context") tail.context ??= row.payload;
    tail.tokens ??= tokensIn(row);
    if (row.type === "token_usage_record") tail.root ??= uuidIn(row.payload, "session_id");
    if (mark !== null) continue;
    tail.lines += 1;
    if (!isKnown(row)) tail.unknown += 1;
    if (!notMessages.includes(row.type) && !notMessages.includes(row.kind)) tail.lastAt ??= row.at;
    const call = row.type === "response_item" ? textIn(row.payload, "call_id") : null;
    if (call !== null && row.kind.endsWith("_output")) answered.add(call);
    else if (call !== null && row.kind.endsWith("_call") && !answered.has(call)) oldestPending = row;
    if (row.type === "event_msg" && turnMarks.includes(row.kind)) mark = row;
  }
  tail.turn = turnOf(mark, oldestPending, tail, file);
  if (tail.turn.state === "open" && oldestPending !== null) {
    tail.pending = callOf(oldestPending.payload);
    // In other modes Codex answers such a call itself, with an error.
    const asks = tail.pending.kind === "question" && mark?.payload["collaboration_mode_kind"] === "plan";
    if (asks) tail.waiting = { ...tail.pending, since: oldestPending.at };
  }
  return tail;
}

const turnMarks = ["task_started", "task_complete", "turn_aborted"];

function turnOf(mark: Row | null, pending: Row | null, tail: Tail, file: RecordFile): Turn {
  if (file.torn && !tail.empty) return { state: "unclear", why: "the last line of its record is not complete" };
  if (tail.skipped > 0) return { state: "unclear", why: "broken lines after the last mark of a turn" };
  if (mark === null)
    return tail.lastAt === null ? { state: "none" } : { state: "unclear", why: "no mark of a turn in its record" };
  if (mark.kind === "task_started") {
    // With this policy Codex refuses what would need an approval, at once: a pending call is a running tool.
    const neverAsks = tail.context?.["approval_policy"] === "never";
    return { state: "open", since: mark.at, doubt: pending === null || neverAsks ? null : "tool call pending" };
  }
  if (mark.kind === "task_complete")
    return mark.payload["error"] == null
      ? { state: "closed", at: mark.at, outcome: "completed" }
      : { state: "closed", at: mark.at, outcome: "failed", ...needsOf(fieldsIn(mark.payload, "error")) };
  return { state: "closed", at: mark.at, outcome: mark.payload["reason"] === "interrupted" ? "interrupted" : null };
}

/** Failures that only a person can mend. These words are from the program itself; no such failure was seen. */
function needsOf(error: Fields): { needs?: { kind: "login" | "limit"; text: string } } {
  const kinds: Record<string, "login" | "limit"> = { usage_limit_exceeded: "limit", unauthorized: "login" };
  const kind = lookUp(kinds, textIn(error, "codex_error_info") ?? "");
  return kind === undefined ? {} : { needs: { kind, text: textIn(error, "message") ?? kind } };
}

/** What a call is about: a question to a person, or a command with the reason that the model gave. */
function callOf(payload: Fields): Waiting {
  const tool = textIn(payload, "name") ?? textIn(payload, "type");
  const input = fieldsOf(jsonIn(payload, "arguments")) ?? {};
  if (tool === "request_user_input") {
    const [asked] = listOf(input["questions"]);
    const options = listOf(asked?.["options"]).flatMap((option) => textIn(option, "label") ?? []);
    return { kind: "question", text: asked === undefined ? null : textIn(asked, "question"), tool, options };
  }
  const reason = textIn(input, "justification");
  const text = commandOf(payload) + (reason === null ? "" : ` (${reason})`);
  return { kind: "permission", text, tool, options: [] };
}

function commandOf(payload: Fields): string {
  const input = fieldsOf(jsonIn(payload, "arguments"));
  const command = input?.["cmd"] ?? input?.["command"] ?? fieldsIn(payload, "action")["command"];
  if (Array.isArray(command)) return command.filter((word) => typeof word === "string").join(" ");
  return typeof command === "string" ? command : (textIn(payload, "arguments") ?? textIn(payload, "input") ?? "");
}

const listOf = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.map(fieldsOf).filter((fields) => fields !== null) : [];

/**
 * The thread's totals so far. Codex counts what it read from the cache, and wrote to it, as part of the input. Its
 * `token_count` lines forget a turn that was killed.
 */
function tokensIn({ type, payload }: Row): Tokens | null {
  const usage = fieldsIn(type === "token_usage_record" ? payload : {}, "thread_token_usage");
  const [all, output] = [countIn(usage, "input_tokens"), countIn(usage, "output_tokens")];
  if (all === null || output === null) return null;
  const cacheRead = countIn(usage, "cached_input_tokens") ?? 0;
  const cacheWrite = countIn(usage, "cache_write_input_tokens") ?? 0;
  return { input: Math.max(0, all - cacheRead - cacheWrite), output, cacheRead, cacheWrite };
}

const lineTypes = "session_meta event_msg response_item world_state turn_context token_usage_record compacted".split(
  " ",
);
const itemKinds = "message reasoning function_call custom_tool_call function_call_output custom_tool_call_output".split(
  " ",
);
const eventKinds = [...turnMarks, "item_completed", "token_count", "thread_settings_applied"];

const isKnown = ({ type, kind }: Row): boolean =>
  lineTypes.includes(type) &&
  (type !== "response_item" || itemKinds.includes(kind)) &&
  (type !== "event_msg" || eventKinds.includes(kind));

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !isKnown(row)) return null;
  const tokens = tokensIn(row);
  return {
    messages: messagesOf(row),
    // Each line holds the totals so far, those of a fork its parent's, too.
    usage: tokens && { key: "total", tokens, model: null },
    costUsd: null,
    denied: 0,
  };
}

function messagesOf(row: Row): Message[] {
  const { type, kind, payload, at } = row;
  const say = (role: Message["role"], text: string, tool: string | null = null): Message[] => [
    { at, role, text, tool },
  ];
  if (type === "compacted") return say("note", "earlier messages were summed up");
  if (kind === "turn_aborted") return say("note", textIn(payload, "reason") ?? "aborted");
  if (kind === "task_complete") {
    const error = fieldsOf(payload["error"]);
    return error === null ? [] : say("note", `failed: ${textIn(error, "message") ?? ""}`);
  }
  if (type !== "response_item") return [];
  if (isUserMessage(row)) return say("user", textOf(payload));
  if (kind === "message") return payload["role"] === "assistant" ? say("agent", textOf(payload)) : [];
  if (kind.endsWith("_call")) return say("tool", commandOf(payload), textIn(payload, "name"));
  return kind.endsWith("_output") ? say("result", textIn(payload, "output") ?? textOf(payload, "output")) : [];
}

/** Codex puts its own texts under the same role; it says which those are, and older versions begin them with a tag. */
function isUserMessage({ type, kind, payload }: Row): boolean {
  if (type !== "response_item" || kind !== "message" || payload["role"] !== "user") return false;
  const kinds = fieldsIn(payload, "internal_chat_message_metadata_passthrough")["content_item_kinds"];
  return Array.isArray(kinds) ? kinds.includes("user.text") : !/^(<|# AGENTS\.md)/.test(textOf(payload));
}

const textOf = (payload: Fields, key = "content"): string =>
  listOf(payload[key])
    .flatMap((part) => textIn(part, "text") ?? [])
    .join("\n");
