// Reads a Codex rollout: its first lines, its last turn, its conversation.
import type { Tokens, Turn, Waiting } from "../../core/evidence.ts";
import type { LineFacts, Message, RecordFile } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, textIn, textsIn, timeIn, uuidIn, words } from "../fields.ts";
import { contentText, firstQuestion, messageAt, needsOf, noLineFacts, typedLine } from "../record-lines.ts";
import { firstRows, recordParser } from "../record-parser.ts";
import { type TokenKeys, tokensWithoutCache } from "../tokens.ts";

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

/** Before the last mark of a turn, only lines of these types are parsed. */
const factTypes = ['"turn_context"', '"token_usage_record"'].map((type) => Buffer.from(type));

/** Lines and events without a message. */
const notMessages = ["session_meta", "world_state", "turn_context", "thread_settings_applied", "token_count"];

/** Reads from the end back to the last mark of a turn. */
export const parseRollout = recordParser<RolloutLine>({
  agent: "codex",
  parse: rowOf,
  isKnown,
  headLines: 40,
  open(record, { id, path }) {
    const { facts } = record;
    const answered = new Set<string>();
    let oldestPending: RolloutLine | null = null;
    let mark: RolloutLine | null = null;
    let meta: Fields = {};
    let context: Fields | null = null;
    let root: string | null = null;
    return {
      isTurnFound: () => mark !== null,
      hasAllFacts: () => context !== null && facts.tokens !== null,
      mayMatter: (bytes) => mark === null || factTypes.some((type) => bytes.includes(type)),
      fact(row) {
        if (row.type === "turn_context") context ??= row.payload;
        if (row.type === "token_usage_record") root ??= uuidIn(row.payload, "session_id");
        facts.tokens ??= tokensIn(row);
      },
      add(row) {
        if (!notMessages.includes(row.type) && !notMessages.includes(row.kind)) record.lastMessageAt ??= row.at;
        const call = row.type === "response_item" ? textIn(row.payload, "call_id") : null;
        if (call !== null && row.kind.endsWith("_output")) answered.add(call);
        else if (call !== null && row.kind.endsWith("_call") && !answered.has(call)) oldestPending = row;
        if (row.type === "event_msg" && turnMarks.includes(row.kind)) mark = row;
      },
      turn: () => mark && turnOf(mark, oldestPending, context),
      missing: () => (record.lastMessageAt === null ? null : { code: "no-turn-mark" }),
      first(row, index) {
        record.createdAt ??= row.at;
        if (row.type === "session_meta" && index === 0) meta = row.payload;
        if (row.type === "turn_context") context ??= row.payload;
        if (isUserMessage(row)) facts.prompt = contentText(row.payload);
      },
      finish() {
        const settings = context ?? {};
        if (record.turn.state === "open" && oldestPending !== null) {
          record.pending = callOf(oldestPending.payload);
          // Codex asks a person only in plan mode. Otherwise it answers such a call itself, with an error.
          const asks = record.pending.kind === "question" && mark?.payload["collaboration_mode_kind"] === "plan";
          if (asks) record.waiting = { ...record.pending, since: oldestPending.at };
        }
        record.cwd = textIn(settings, "cwd") ?? textIn(meta, "cwd");
        record.createdAt = timeIn(meta, "timestamp") ?? record.createdAt;
        record.parent = uuidIn(meta, "forked_from_id");
        record.subagentOf = subagentOf(id, meta, root);
        if (/_[0-9a-f-]{36}\.jsonl$/.test(path)) record.isSegment = true;
        facts.model = textIn(settings, "model");
        facts.branch = textIn(fieldsIn(meta, "git"), "branch");
        facts.agentVersion = textIn(meta, "cli_version");
        const sandbox = textIn(fieldsIn(settings, "sandbox_policy"), "type");
        const rules = [textIn(settings, "approval_policy"), sandbox].filter((word) => word !== null);
        facts.permission = rules.join(", ") || null;
        return null;
      },
    };
  },
});

/** The main session of a subagent, from the record's first line; if that line is broken, the session that the tokens count for. */
function subagentOf(id: string, meta: Fields, counted: string | null): string | null {
  const subagent = fieldsIn(meta, "source")["subagent"];
  const isOne = meta["thread_source"] === "subagent" || subagent !== undefined || meta["id"] === undefined;
  const spawner = uuidIn(fieldsIn(fieldsOf(subagent) ?? {}, "thread_spawn"), "parent_thread_id");
  const root = [uuidIn(meta, "session_id"), spawner, counted].find((other) => other !== null && other !== id);
  return isOne ? (root ?? null) : null;
}

/** The session whose history a fork continues. */
export function historyOf(file: RecordFile): string | null {
  const [first] = firstRows(file.forward(), 1, rowOf);
  return first?.row?.type === "session_meta" ? uuidIn(first.row.payload, "forked_from_id") : null;
}

const turnMarks = ["task_started", "task_complete", "turn_aborted"];

function turnOf({ kind, payload, at }: RolloutLine, pending: RolloutLine | null, context: Fields | null): Turn {
  if (kind === "task_started") {
    // With this policy Codex never waits for an approval: a pending call is a running tool.
    const neverAsks = context?.["approval_policy"] === "never";
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

const tokenKeys: TokenKeys = ["input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens"];

const lineTypes = words`session_meta event_msg response_item world_state turn_context token_usage_record compacted`;
const itemKinds = words`message reasoning function_call custom_tool_call function_call_output custom_tool_call_output`;
const eventKinds = [...turnMarks, "item_completed", "token_count", "thread_settings_applied"];

function isKnown({ type, kind }: RolloutLine): boolean {
  if (type === "response_item") return itemKinds.includes(kind);
  return type === "event_msg" ? eventKinds.includes(kind) : lineTypes.includes(type);
}

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
