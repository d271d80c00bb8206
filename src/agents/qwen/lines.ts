// Reads a Qwen record: its head, its last turn, its conversation.
import type { NativeRecord, Turn } from "../../core/evidence.ts";
import type { TurnReason } from "../../core/reason.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, numberIn, textIn, timeIn, uuidIn } from "../fields.ts";
import { callText, messageAt, noLineFacts, responseText, typedLine } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { type TokenKeys, tokensWithoutCache } from "../tokens.ts";

interface QwenLine {
  type: string;
  /** Only system lines have one; "" in other lines. */
  subtype: string;
  fields: Fields;
  payload: Fields;
  /** The parts of the message. */
  parts: Fields[];
  at: number | null;
}

function rowOf(value: unknown): QwenLine | null {
  const typed = typedLine(value);
  if (typed === null || textIn(typed.fields, "sessionId") === null) return null;
  const { fields } = typed;
  return {
    ...{ ...typed, subtype: textIn(fields, "subtype") ?? "", payload: fieldsIn(fields, "systemPayload") },
    parts: listIn(fieldsIn(fields, "message"), "parts"),
    at: timeIn(fields, "timestamp"),
  };
}

const lineTypes = ["user", "assistant", "tool_result", "system"];

/** Reads from the end back to the last prompt. */
export const parseRecord = recordParser<QwenLine>({
  agent: "qwen",
  parse: rowOf,
  isKnown: ({ type }) => lineTypes.includes(type),
  headLines: 40,
  open(record) {
    const { facts } = record;
    const since: QwenLine[] = [];
    let prompt: QwenLine | null = null;
    return {
      isTurnFound: () => prompt !== null,
      hasAllFacts: () => facts.model !== null && facts.title !== null,
      fact({ subtype, fields, payload }) {
        facts.model ??= textIn(fields, "model");
        if (subtype === "custom_title") facts.title ??= textIn(payload, "customTitle");
      },
      add(row) {
        record.cwd ??= textIn(row.fields, "cwd");
        facts.branch ??= textIn(row.fields, "gitBranch");
        if (row.type !== "system") record.lastMessageAt ??= row.at;
        if (isPrompt(row)) prompt = row;
        else since.push(row);
      },
      turn: () => prompt && turnOf(prompt, since.toReversed()),
      missing: () => (record.lastMessageAt === null ? null : { code: "no-prompt-found" }),
      first(row) {
        record.createdAt ??= row.at;
        record.cwd ??= textIn(row.fields, "cwd");
        facts.agentVersion ??= textIn(row.fields, "version");
        if (row.subtype === "parent_session") record.parent ??= uuidIn(row.payload, "sessionId");
        if (isPrompt(row)) facts.prompt = textOf(row);
      },
      finish() {
        const isPending = record.turn.state === "open" && record.turn.doubt?.code === pendingCall.code;
        if (isPending) record.pending = callOf(since);
        return null;
      },
    };
  },
});

const pendingCall: TurnReason = { code: "tool-call-pending" };

function turnOf({ at: begun }: QwenLine, since: readonly QwenLine[]): Turn {
  const started: Turn = { state: "open", since: begun, doubt: since.some(isOfInterface) ? maybeCancelled : null };
  let turn: Turn = started;
  let isAnswered = false;
  for (const row of since) {
    if (isEvent(row, "qwen-code.api_response")) isAnswered = true;
    else if (isEvent(row, "qwen-code.api_error")) turn = afterError(row);
    else if (row.subtype === "rewind") turn = { state: "closed", at: row.at, outcome: null };
    else if (row.type === "assistant") {
      turn = afterAnswer(row, isAnswered, begun);
      isAnswered = false;
    } else if (row.type === "tool_result") turn = afterTool(row, turn, started);
  }
  return turn;
}

/** Esc before the first word of an answer is not recorded. Only an interface has that key, and only it records file snapshots. */
const isOfInterface = ({ subtype }: QwenLine): boolean => subtype === "file_history_snapshot";
const maybeCancelled: TurnReason = { code: "may-be-cancelled" };

/** An event of the main conversation; Qwen's side questions have other prompt ids. */
function isEvent({ subtype, payload, fields }: QwenLine, name: string): boolean {
  const event = fieldsIn(payload, "uiEvent");
  const session = textIn(fields, "sessionId") ?? "";
  return (
    subtype === "ui_telemetry" &&
    event["event.name"] === name &&
    textIn(event, "prompt_id")?.startsWith(`${session}########`) === true
  );
}

function afterError({ payload, at }: QwenLine): Turn {
  const code = numberIn(fieldsIn(payload, "uiEvent"), "status_code");
  const isFinal = code !== null && code >= 400 && code < 500 && ![408, 409, 429].includes(code);
  return { state: "closed", at, outcome: "failed", ...(isFinal ? {} : { doubt: { code: "may-retry" } }) };
}

/** An interrupted answer has no `api_response` event before it. */
function afterAnswer(row: QwenLine, isAnswered: boolean, since: number | null): Turn {
  if (callsOf(row).length > 0) return { state: "open", since, doubt: pendingCall };
  const isWhole = isAnswered || row.fields["usageMetadata"] !== undefined;
  return { state: "closed", at: row.at, outcome: isWhole ? "completed" : "interrupted" };
}

function afterTool({ fields, at }: QwenLine, before: Turn, continued: Turn): Turn {
  const isCancelled = fieldsIn(fields, "toolCallResult")["status"] === "cancelled";
  if (isCancelled) return { state: "closed", at, outcome: "interrupted" };
  // Other calls of the same answer were cancelled.
  if (before.state === "closed") return { state: "unclear", why: { code: "calls-partly-cancelled" } };
  return before.state === "unclear" ? before : continued;
}

const callsOf = (row: QwenLine): Fields[] => objectsIn(row, "functionCall");
const answersOf = (row: QwenLine): Fields[] => objectsIn(row, "functionResponse");

const objectsIn = ({ parts }: QwenLine, key: string): Fields[] =>
  parts.map((part) => fieldsOf(part[key])).filter((found) => found !== null);

/** The oldest call of the last answer that has no result. */
function callOf(newestFirst: readonly QwenLine[]): NativeRecord["pending"] {
  const answered = newestFirst.flatMap((row) => answersOf(row).map((answer) => textIn(answer, "id")));
  const call = newestFirst.find((row) => row.type === "assistant" && callsOf(row).length > 0);
  const [open] = (call === undefined ? [] : callsOf(call)).filter(({ id }) => !answered.includes(String(id)));
  return open === undefined
    ? null
    : { kind: "permission", text: commandOf(open), tool: textIn(open, "name"), options: [] };
}

const commandOf = (call: Fields): string => callText(fieldsIn(call, "args"), ["command", "file_path"]);

/** True also for a message that a person sends during a turn. */
const isPrompt = (row: QwenLine): boolean =>
  row.type === "user" && row.subtype === "" && answersOf(row).length === 0 && textOf(row) !== "";

const textOf = ({ parts }: QwenLine): string =>
  parts
    .flatMap((part) => (part["thought"] === true ? [] : (textIn(part, "text") ?? [])))
    .join("\n")
    .trim();

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !lineTypes.includes(row.type)) return null;
  const tokens = row.type === "assistant" ? tokensWithoutCache(fieldsIn(row.fields, "usageMetadata"), tokenKeys) : null;
  const usage = tokens && { key: textIn(row.fields, "uuid") ?? "", tokens, model: textIn(row.fields, "model") };
  const isDenied = row.type === "tool_result" && deniedWords.test(resultOf(row));
  return { ...noLineFacts, messages: messagesOf(row), usage, denied: isDenied ? 1 : 0 };
}

const deniedWords = /requires permission to use .* was declined|User did not allow tool call/;

const tokenKeys: TokenKeys = ["promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount"];

function messagesOf(row: QwenLine): Message[] {
  const { type, at, subtype, payload } = row;
  const say = messageAt(at);
  if (isPrompt(row)) return [say("user", textOf(row))];
  if (type === "assistant") {
    const text = textOf(row);
    return [
      ...(text === "" ? [] : [say("agent", text)]),
      ...callsOf(row).map((call) => say("tool", commandOf(call), textIn(call, "name"))),
    ];
  }
  if (type === "tool_result") return [say("result", resultOf(row), textIn(answersOf(row)[0] ?? {}, "name"))];
  if (subtype === "chat_compression") return [say("note", "earlier messages were summed up")];
  const event = fieldsIn(payload, "uiEvent");
  return isEvent(row, "qwen-code.api_error") ? [say("note", `failed: ${textIn(event, "error_message") ?? ""}`)] : [];
}

const resultOf = (row: QwenLine): string => answersOf(row).map(responseText).join("\n");
