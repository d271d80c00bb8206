// What the lines of a Qwen record say: its head, its last turn, its conversation.
import type { NativeRecord, Tokens, Turn } from "../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "./adapter.ts";
import {
  countIn,
  type Fields,
  fieldsIn,
  fieldsOf,
  jsonText,
  listIn,
  numberIn,
  textIn,
  timeIn,
  uuidIn,
} from "./fields.ts";

interface Row {
  type: string;
  /** Of system lines; "" elsewhere. */
  subtype: string;
  fields: Fields;
  payload: Fields;
  /** Of the message. */
  parts: Fields[];
  at: number | null;
}

function rowOf(value: unknown): Row | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  if (fields === null || type === null || textIn(fields, "sessionId") === null) return null;
  return {
    ...{ type, subtype: textIn(fields, "subtype") ?? "", fields, payload: fieldsIn(fields, "systemPayload") },
    parts: listIn(fieldsIn(fields, "message"), "parts"),
    at: timeIn(fields, "timestamp"),
  };
}

/** Lines that others than the conversation add. */
const lineTypes = ["user", "assistant", "tool_result", "system"];

const headLines = 40;

interface Head {
  at: number | null;
  cwd: string | null;
  version: string | null;
  prompt: string | null;
  parent: string | null;
}

export function readHead(lines: Iterable<Line>): Head {
  const head: Head = { at: null, cwd: null, version: null, prompt: null, parent: null };
  let seen = 0;
  for (const line of lines) {
    const row = line.ok ? rowOf(line.value) : null;
    seen += 1;
    if (row !== null) {
      head.at ??= row.at;
      head.cwd ??= textIn(row.fields, "cwd");
      head.version ??= textIn(row.fields, "version");
      if (row.subtype === "parent_session") head.parent ??= uuidIn(row.payload, "sessionId");
      if (isPrompt(row)) head.prompt ??= textOf(row);
    }
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
  pending: NativeRecord["pending"];
  model: string | null;
  title: string | null;
  cwd: string | null;
  branch: string | null;
  lastAt: number | null;
  skipped: number;
  unknown: number;
}

/** How far beyond the last prompt its model and its title are looked for. */
const factLines = 200;

/** From the end back to the last prompt; broken lines on the way leave the turn unclear. */
export function readTail(file: RecordFile): Tail {
  const none = { pending: null, model: null, title: null, cwd: null, branch: null, lastAt: null };
  const tail: Tail = { lines: 0, empty: true, turn: { state: "none" }, skipped: 0, unknown: 0, ...none };
  const since: Row[] = [];
  let prompt: Row | null = null;
  let beyond = 0;
  for (const line of file.backward()) {
    tail.empty = false;
    if (prompt !== null) beyond += 1;
    if (beyond > factLines || (prompt !== null && tail.model !== null && tail.title !== null)) break;
    const row = line.ok ? rowOf(line.value) : null;
    if (row === null) {
      if (prompt === null) tail.skipped += 1;
      continue;
    }
    tail.model ??= textIn(row.fields, "model");
    if (row.subtype === "custom_title") tail.title ??= textIn(row.payload, "customTitle");
    if (prompt !== null) continue;
    tail.lines += 1;
    if (!lineTypes.includes(row.type)) tail.unknown += 1;
    tail.cwd ??= textIn(row.fields, "cwd");
    tail.branch ??= textIn(row.fields, "gitBranch");
    if (row.type !== "system") tail.lastAt ??= row.at;
    if (isPrompt(row)) prompt = row;
    else since.push(row);
  }
  tail.turn = turnOf(prompt, since.reverse(), tail, file);
  if (tail.turn.state === "open" && tail.turn.doubt === pendingCall) tail.pending = callOf(since);
  return tail;
}

const pendingCall = "tool call pending";

function turnOf(prompt: Row | null, since: readonly Row[], tail: Tail, file: RecordFile): Turn {
  if (file.torn && !tail.empty) return { state: "unclear", why: "the last line of its record is not complete" };
  if (tail.skipped > 0) return { state: "unclear", why: "broken lines after the last prompt" };
  if (prompt === null) {
    if (file.size > file.tailBytes) return { state: "unclear", why: "its last turn is longer than we read" };
    return tail.lastAt === null ? { state: "none" } : { state: "unclear", why: "no prompt in its record" };
  }
  const begun = prompt.at;
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

/** Esc before the first word of an answer leaves no trace. Only an interface takes snapshots of files, and has such a key. */
const isOfInterface = ({ subtype }: Row): boolean => subtype === "file_history_snapshot";
const maybeCancelled = "no answer yet: it works, or was cancelled";

/** What it counts of the main conversation; its side questions have other prompt ids. */
function isEvent({ subtype, payload, fields }: Row, name: string): boolean {
  const event = fieldsIn(payload, "uiEvent");
  const session = textIn(fields, "sessionId") ?? "";
  return (
    subtype === "ui_telemetry" &&
    event["event.name"] === name &&
    textIn(event, "prompt_id")?.startsWith(`${session}########`) === true
  );
}

function afterError({ payload, at }: Row): Turn {
  const code = numberIn(fieldsIn(payload, "uiEvent"), "status_code");
  const isFinal = code !== null && code >= 400 && code < 500 && ![408, 409, 429].includes(code);
  return { state: "closed", at, outcome: "failed", ...(isFinal ? {} : { doubt: "it may try again" }) };
}

/** An answer that was broken off has no response counted before it. */
function afterAnswer(row: Row, isAnswered: boolean, since: number | null): Turn {
  if (callsOf(row).length > 0) return { state: "open", since, doubt: pendingCall };
  const isWhole = isAnswered || row.fields["usageMetadata"] !== undefined;
  return { state: "closed", at: row.at, outcome: isWhole ? "completed" : "interrupted" };
}

function afterTool({ fields, at }: Row, before: Turn, goesOn: Turn): Turn {
  const isCancelled = fieldsIn(fields, "toolCallResult")["status"] === "cancelled";
  if (isCancelled) return { state: "closed", at, outcome: "interrupted" };
  // Others of the same answer were cancelled.
  if (before.state === "closed") return { state: "unclear", why: "a part of its tool calls was cancelled" };
  return before.state === "unclear" ? before : goesOn;
}

const callsOf = ({ parts }: Row): Fields[] =>
  parts.map((part) => fieldsOf(part["functionCall"])).filter((call) => call !== null);

const answersOf = ({ parts }: Row): Fields[] =>
  parts.map((part) => fieldsOf(part["functionResponse"])).filter((answer) => answer !== null);

/** The oldest call of the last answer that has no result. */
function callOf(since: readonly Row[]): NativeRecord["pending"] {
  const answered = since.flatMap((row) => answersOf(row).map((answer) => textIn(answer, "id")));
  const call = since.findLast((row) => row.type === "assistant" && callsOf(row).length > 0);
  const [open] = (call === undefined ? [] : callsOf(call)).filter(({ id }) => !answered.includes(String(id)));
  return open === undefined
    ? null
    : { kind: "permission", text: commandOf(open), tool: textIn(open, "name"), options: [] };
}

const commandOf = (call: Fields): string => {
  const given = fieldsIn(call, "args");
  return textIn(given, "command") ?? textIn(given, "file_path") ?? jsonText(given);
};

/** What a person said; also what was said into a turn that goes on. */
const isPrompt = (row: Row): boolean =>
  row.type === "user" && row.subtype === "" && answersOf(row).length === 0 && textOf(row) !== "";

const textOf = ({ parts }: Row): string =>
  parts
    .flatMap((part) => (part["thought"] === true ? [] : (textIn(part, "text") ?? [])))
    .join("\n")
    .trim();

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !lineTypes.includes(row.type)) return null;
  const tokens = row.type === "assistant" ? tokensIn(fieldsIn(row.fields, "usageMetadata")) : null;
  const isDenied = row.type === "tool_result" && deniedWords.test(resultOf(row));
  return {
    messages: messagesOf(row),
    usage: tokens && { key: textIn(row.fields, "uuid") ?? "", tokens, model: textIn(row.fields, "model") },
    costUsd: null,
    denied: isDenied ? 1 : 0,
  };
}

const deniedWords = /requires permission to use .* was declined|User did not allow tool call/;

/** The prompt contains what came from the cache; the answer does not contain the thoughts. */
function tokensIn(usage: Fields): Tokens | null {
  const [all, answer] = [countIn(usage, "promptTokenCount"), countIn(usage, "candidatesTokenCount")];
  if (all === null || answer === null) return null;
  const cacheRead = countIn(usage, "cachedContentTokenCount") ?? 0;
  return { input: Math.max(0, all - cacheRead), output: answer, cacheRead, cacheWrite: 0 };
}

function messagesOf(row: Row): Message[] {
  const { type, at, subtype, payload } = row;
  const say = (role: Message["role"], text: string, tool: string | null = null): Message => ({ at, role, text, tool });
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

const resultOf = (row: Row): string =>
  answersOf(row)
    .map((answer) => {
      const response = fieldsIn(answer, "response");
      return textIn(response, "output") ?? textIn(response, "error") ?? jsonText(response);
    })
    .join("\n");
