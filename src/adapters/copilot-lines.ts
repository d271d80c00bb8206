// What the lines of a Copilot session's events.jsonl say: its first lines, its last turn, its conversation.
import type { NativeRecord, Tokens, Turn, Waiting } from "../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "./adapter.ts";
import {
  countIn,
  type Fields,
  fieldsIn,
  fieldsOf,
  jsonText,
  listIn,
  lookUp,
  textIn,
  textsIn,
  timeIn,
} from "./fields.ts";

interface Row {
  type: string;
  data: Fields;
  at: number | null;
  /** Of a subagent, whose lines stand among those of its session. */
  isSub: boolean;
}

function rowOf(value: unknown): Row | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  if (fields === null || type === null) return null;
  return { type, data: fieldsIn(fields, "data"), at: timeIn(fields, "timestamp"), isSub: fields["agentId"] != null };
}

const headLines = 20;

export function readHead(lines: Iterable<Line>): {
  at: number | null;
  cwd: string | null;
  model: string | null;
  version: string | null;
  prompt: string | null;
} {
  const head: ReturnType<typeof readHead> = { at: null, cwd: null, model: null, version: null, prompt: null };
  let seen = 0;
  for (const line of lines) {
    const row = line.ok ? rowOf(line.value) : null;
    if (row?.type === "session.start" && seen === 0) {
      head.at = timeIn(row.data, "startTime") ?? row.at;
      head.cwd = textIn(fieldsIn(row.data, "context"), "cwd");
      head.model = textIn(row.data, "selectedModel");
      head.version = textIn(row.data, "copilotVersion");
    }
    if (row?.type === "user.message" && isPersons(row)) head.prompt ??= textIn(row.data, "content");
    seen += 1;
    if (head.prompt !== null || seen >= headLines) break;
  }
  return head;
}

/** A source is named where somebody else than a person wrote it. */
const isPersons = ({ data, isSub }: Row): boolean => !isSub && (textIn(data, "source") ?? "user") === "user";

interface Tail {
  /** Lines that were recognised. */
  lines: number;
  /** Nothing but, at most, the start of a first line. */
  empty: boolean;
  turn: Turn;
  waiting: NativeRecord["waiting"];
  /** Begun in the last turn and not over. */
  subagents: number;
  model: string | null;
  lastAt: number | null;
  skipped: number;
  unknown: number;
}

/** What stands after the last prompt; of answers and ends only what stands after the last call of the model. */
interface LastTurn {
  prompt: Row | null;
  begun: Row | null;
  answer: Row | null;
  ended: Row | null;
  aborted: Row | null;
  error: Row | null;
  /** Calls without a result, newest first. */
  calls: Row[];
  /** A command that a person typed (`!…`) and that still runs. */
  typed: Row | null;
  asks: Row | null;
}

/** From the end back to the last prompt; broken lines on the way leave the turn unclear. */
export function readTail(file: RecordFile): Tail {
  const tail: Tail = {
    lines: 0,
    empty: true,
    turn: { state: "none" },
    waiting: null,
    subagents: 0,
    model: null,
    lastAt: null,
    skipped: 0,
    unknown: 0,
  };
  const turn: LastTurn = {
    prompt: null,
    begun: null,
    answer: null,
    ended: null,
    aborted: null,
    error: null,
    calls: [],
    typed: null,
    asks: null,
  };
  const settled = new Set<unknown>();
  for (const line of file.backward()) {
    tail.empty = false;
    const row = line.ok ? rowOf(line.value) : null;
    if (row === null) {
      tail.skipped += 1;
      continue;
    }
    tail.lines += 1;
    if (!isKnown(row.type)) tail.unknown += 1;
    if (isMessage(row.type)) tail.lastAt ??= row.at;
    tail.model ??= modelIn(row);
    tail.subagents += subagentsIn(row, settled);
    take(row, turn, settled);
    if (turn.prompt !== null) break;
  }
  tail.turn = turnOf(turn, tail, file);
  const { asks } = turn;
  // A subagent in the background may ask although the turn is over.
  if (asks !== null && tail.turn.state === "closed") tail.turn = { state: "open", since: asks.at, doubt: null };
  if (tail.turn.state === "open") tail.waiting = waitingFor(turn);
  if (tail.turn.state !== "closed") tail.subagents = 0;
  return tail;
}

function take(row: Row, turn: LastTurn, settled: Set<unknown>): void {
  const { type, data, isSub } = row;
  if (type === "permission.completed") settled.add(data["requestId"]);
  // A hook has answered it already.
  if (type === "permission.requested" && !settled.has(data["requestId"]) && data["resolvedByHook"] !== true)
    turn.asks ??= row;
  if (isSub) return;
  if (type === "tool.execution_complete") settled.add(data["toolCallId"]);
  if (type === "tool.execution_start" && !settled.has(data["toolCallId"])) turn.calls.push(row);
  if (type === "tool.user_requested" && !settled.has(data["toolCallId"])) turn.typed ??= row;
  if (type === "user.message") turn.prompt = row;
  if (turn.begun !== null) return;
  if (type === "assistant.turn_start") turn.begun = row;
  if (type === "assistant.turn_end") turn.ended ??= row;
  if (type === "assistant.message") turn.answer ??= row;
  if (type === "abort") turn.aborted ??= row;
  if (type === "session.error") turn.error ??= row;
}

function turnOf(turn: LastTurn, tail: Tail, file: RecordFile): Turn {
  const { prompt, begun, answer, ended, aborted, error, calls, typed } = turn;
  if (file.torn && !tail.empty) return { state: "unclear", why: "the last line of its record is not complete" };
  if (tail.skipped > 0) return { state: "unclear", why: "broken lines after its last prompt" };
  if (prompt === null)
    return tail.lastAt === null
      ? { state: "none" }
      : { state: "unclear", why: "no prompt in what we read of its record" };
  if (typed !== null) return { state: "open", since: typed.at, doubt: null };
  if (aborted !== null) return { state: "closed", at: aborted.at, outcome: "interrupted" };
  if (error !== null && (ended !== null || begun === null))
    return { state: "closed", at: error.at, outcome: "failed", ...needsOf(error.data) };
  // Each call of the model has an end of its own: the turn goes on, if tools were asked for.
  const isOver = ended !== null && answer !== null && listIn(answer.data, "toolRequests").length === 0;
  if (isOver) return { state: "closed", at: ended.at, outcome: "completed" };
  // Its own tools ask by a line of their own. What an MCP server asks is not recorded.
  const isDoubtful = calls.some(({ data }) => data["mcpServerName"] !== undefined);
  return { state: "open", since: prompt.at, doubt: isDoubtful ? "tool call pending" : null };
}

/** Failures that only a person can mend; the first was seen, the others' words are from its own schema. */
function needsOf(data: Fields): { needs?: { kind: "login" | "limit"; text: string } } {
  const kinds: Record<string, "login" | "limit"> = { authentication: "login", quota: "limit", rate_limit: "limit" };
  const kind = lookUp(kinds, textIn(data, "errorType") ?? "");
  return kind === undefined ? {} : { needs: { kind, text: textIn(data, "message") ?? kind } };
}

function waitingFor({ asks, calls }: LastTurn): NativeRecord["waiting"] {
  if (asks !== null) return { ...permissionOf(asks.data), since: asks.at };
  for (const { data, at } of calls) {
    const question = questionOf(textIn(data, "toolName"), fieldsIn(data, "arguments"));
    if (question !== null) return { ...question, since: at };
  }
  return null;
}

/** What is asked for, in the words of the dialog. */
function permissionOf(data: Fields): Waiting {
  const request = fieldsIn(data, "permissionRequest");
  const prompt = { ...request, ...fieldsIn(data, "promptRequest") };
  const keys = ["fullCommandText", "fileName", "path", "url", "toolName", "hookMessage", "intention", "name"];
  const [text = null] = keys.flatMap((key) => textIn(prompt, key) ?? []);
  const [place = null] = textsIn(prompt, "paths");
  return { kind: "permission", text: place ?? text, tool: textIn(request, "kind"), options: [] };
}

function questionOf(tool: string | null, input: Fields): Waiting | null {
  if (tool === "exit_plan_mode") return { kind: "plan", text: textIn(input, "summary"), tool, options: [] };
  if (tool !== "ask_user") return null;
  const [field] = Object.values(fieldsIn(fieldsIn(input, "requestedSchema"), "properties"))
    .map(fieldsOf)
    .filter((value) => value !== null);
  const options = field === undefined ? textsIn(input, "choices") : textsIn(field, "enum");
  return { kind: "question", text: textIn(input, "message") ?? textIn(input, "question"), tool, options };
}

/** +1 where one begins that is not over. */
function subagentsIn({ type, data }: Row, settled: Set<unknown>): number {
  const key = `subagent ${textIn(data, "toolCallId")}`;
  if (type === "subagent.completed" || type === "subagent.failed") settled.add(key);
  return type === "subagent.started" && !settled.has(key) ? 1 : 0;
}

const modelIn = ({ type, data, isSub }: Row): string | null => {
  if (isSub) return null;
  if (type === "assistant.message") return textIn(data, "model");
  if (type === "session.model_change") return textIn(data, "newModel");
  return type === "session.resume" ? textIn(data, "selectedModel") : null;
};

const kinds =
  "abort assistant external_tool hook human_response mcp permission session skill subagent system tool tool_search user".split(
    " ",
  );

const isKnown = (type: string): boolean => kinds.includes(type.replace(/\..*/, ""));

/** Not what a start or an end of the process adds by itself. */
const isMessage = (type: string): boolean => /^(user|assistant|tool|permission|abort|session\.error)/.test(type);

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !isKnown(row.type)) return null;
  const isDenied = row.type === "tool.execution_complete" && fieldsIn(row.data, "error")["code"] === "denied";
  return { messages: messagesOf(row), usage: usageIn(row), costUsd: null, denied: isDenied ? 1 : 0 };
}

/** One line for each call of the model, subagents' too. What was read from the cache counts as input there. */
function usageIn({ type, data }: Row): LineFacts["usage"] {
  const usage = fieldsIn(type === "session.usage_record" ? data : {}, "usage");
  const [all, output] = [countIn(usage, "inputTokens"), countIn(usage, "outputTokens")];
  if (all === null || output === null) return null;
  const { sourceSessionId, sequence } = fieldsIn(usage, "accounting");
  const cacheRead = countIn(usage, "cacheReadTokens") ?? 0;
  const cacheWrite = countIn(usage, "cacheWriteTokens") ?? 0;
  const tokens: Tokens = { input: Math.max(0, all - cacheRead - cacheWrite), output, cacheRead, cacheWrite };
  return { key: `${String(sourceSessionId)} ${String(sequence)}`, tokens, model: textIn(usage, "model") };
}

function messagesOf({ type, data, at, isSub }: Row): Message[] {
  if (isSub) return [];
  const say = (role: Message["role"], text: string, tool: string | null = null): Message[] => [
    { at, role, text, tool },
  ];
  const tool = textIn(data, "toolName");
  switch (type) {
    case "user.message":
      return say("user", textIn(data, "content") ?? "");
    case "assistant.message": {
      const text = textIn(data, "content") ?? "";
      return text === "" ? [] : say("agent", text);
    }
    case "tool.execution_start": {
      const input = fieldsIn(data, "arguments");
      return say("tool", textIn(input, "command") ?? textIn(input, "path") ?? jsonText(input), tool);
    }
    case "tool.execution_complete": {
      const result = textIn(fieldsIn(data, "result"), "content") ?? textIn(fieldsIn(data, "error"), "message");
      return say("result", result ?? "", tool);
    }
    case "abort":
      return say("note", textIn(data, "reason") ?? "aborted");
    case "session.error":
      return say("note", `failed: ${textIn(data, "message") ?? ""}`);
    case "session.compaction_complete":
      return say("note", "earlier messages were summed up");
    default:
      return [];
  }
}
