// Reads the events.jsonl of a Copilot session: its first lines, its last turn, its conversation.
import type { NativeRecord, Turn, Waiting } from "../../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, textIn, textsIn, timeIn } from "../fields.ts";
import {
  callText,
  emptyTail,
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

interface CopilotEvent {
  type: string;
  data: Fields;
  at: number | null;
  /** A line of a subagent, among the lines of its session. */
  isSub: boolean;
}

function rowOf(value: unknown): CopilotEvent | null {
  const line = typedLine(value);
  if (line === null) return null;
  const { type, fields } = line;
  return { type, data: fieldsIn(fields, "data"), at: timeIn(fields, "timestamp"), isSub: fields["agentId"] != null };
}

const headLines = 20;

interface CopilotHead {
  at: number | null;
  cwd: string | null;
  model: string | null;
  version: string | null;
  prompt: string | null;
}

export function readHead(lines: Iterable<Line>): CopilotHead {
  const head: CopilotHead = { at: null, cwd: null, model: null, version: null, prompt: null };
  for (const { row, index } of firstRows(lines, headLines, rowOf)) {
    if (row?.type === "session.start" && index === 0) {
      head.at = timeIn(row.data, "startTime") ?? row.at;
      head.cwd = textIn(fieldsIn(row.data, "context"), "cwd");
      head.model = textIn(row.data, "selectedModel");
      head.version = textIn(row.data, "copilotVersion");
    }
    if (row?.type === "user.message" && isFromPerson(row)) head.prompt ??= textIn(row.data, "content");
    if (head.prompt !== null) break;
  }
  return head;
}

/** Messages that a person did not write have another source. */
const isFromPerson = ({ data, isSub }: CopilotEvent): boolean =>
  !isSub && (textIn(data, "source") ?? "user") === "user";

interface CopilotTail extends RecordTail {
  waiting: NativeRecord["waiting"];
  /** The subagents that began in the last turn and have not ended. */
  subagents: number;
  model: string | null;
}

/** The lines after the last prompt. Answers and ends count only after the last request to the model. */
interface LastTurn {
  prompt: CopilotEvent | null;
  begun: CopilotEvent | null;
  answer: CopilotEvent | null;
  ended: CopilotEvent | null;
  aborted: CopilotEvent | null;
  error: CopilotEvent | null;
  /** Calls without a result, newest first. */
  calls: CopilotEvent[];
  /** A command that a person typed (`!…`) and that is still running. */
  typed: CopilotEvent | null;
  asks: CopilotEvent | null;
}

/** Reads from the end back to the last prompt. A broken line on the way makes the turn unclear. */
export function readTail(file: RecordFile): CopilotTail {
  const tail: CopilotTail = { ...emptyTail, waiting: null, subagents: 0, model: null };
  const turn: LastTurn = {
    ...{ prompt: null, begun: null, answer: null, ended: null, aborted: null, error: null },
    ...{ calls: [], typed: null, asks: null },
  };
  const settled = new Set<unknown>();
  const search = { parse: rowOf, isTurnFound: () => turn.prompt !== null, hasAllFacts: () => true };
  for (const row of lastRows(file, tail, search)) {
    if (!isKnown(row.type)) tail.unknown += 1;
    if (isMessage(row.type)) tail.lastAt ??= row.at;
    tail.model ??= modelIn(row);
    tail.subagents += subagentsIn(row, settled);
    addToTurn(row, turn, settled);
  }
  tail.turn = unreadTurn(file, tail, turn.prompt !== null) ?? turnOf(turn, tail);
  const { asks } = turn;
  // A subagent in the background may ask although the turn is over.
  if (asks !== null && tail.turn.state === "closed") tail.turn = { state: "open", since: asks.at, doubt: null };
  if (tail.turn.state === "open") tail.waiting = waitingFor(turn);
  if (tail.turn.state !== "closed") tail.subagents = 0;
  return tail;
}

function addToTurn(row: CopilotEvent, turn: LastTurn, settled: Set<unknown>): void {
  const { type, data, isSub } = row;
  if (type === "permission.completed") settled.add(data["requestId"]);
  // A hook may have answered the request already.
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

function turnOf(turn: LastTurn, { lastAt }: CopilotTail): Turn {
  const { prompt, begun, answer, ended, aborted, error, calls, typed } = turn;
  if (prompt === null)
    return lastAt === null ? { state: "none" } : { state: "unclear", why: { code: "no-prompt-found" } };
  if (typed !== null) return { state: "open", since: typed.at, doubt: null };
  if (aborted !== null) return { state: "closed", at: aborted.at, outcome: "interrupted" };
  if (error !== null && (ended !== null || begun === null)) {
    const needs = needsOf(needsByError, textIn(error.data, "errorType"), textIn(error.data, "message"));
    return { state: "closed", at: error.at, outcome: "failed", ...needs };
  }
  // Each request to the model has its own end: the turn continues if the model called tools.
  const isOver = ended !== null && answer !== null && listIn(answer.data, "toolRequests").length === 0;
  if (isOver) return { state: "closed", at: ended.at, outcome: "completed" };
  // Questions of Copilot's own tools are recorded as lines; questions of MCP servers are not recorded.
  const isDoubtful = calls.some(({ data }) => data["mcpServerName"] !== undefined);
  return { state: "open", since: prompt.at, doubt: isDoubtful ? { code: "tool-call-pending" } : null };
}

/** The first was seen; the others are from Copilot's own schema. */
const needsByError = { authentication: "login", quota: "limit", rate_limit: "limit" } as const;

function waitingFor({ asks, calls }: LastTurn): NativeRecord["waiting"] {
  if (asks !== null) return { ...permissionOf(asks.data), since: asks.at };
  for (const { data, at } of calls) {
    const question = questionOf(textIn(data, "toolName"), fieldsIn(data, "arguments"));
    if (question !== null) return { ...question, since: at };
  }
  return null;
}

/** The text that the dialog shows. */
function permissionOf(data: Fields): Waiting {
  const request = fieldsIn(data, "permissionRequest");
  const prompt = { ...request, ...fieldsIn(data, "promptRequest") };
  const keys = ["fullCommandText", "fileName", "path", "url", "toolName", "hookMessage", "intention", "name"];
  const [text = null] = keys.flatMap((key) => textIn(prompt, key) ?? []);
  const [path = null] = textsIn(prompt, "paths");
  return { kind: "permission", text: path ?? text, tool: textIn(request, "kind"), options: [] };
}

function questionOf(tool: string | null, input: Fields): Waiting | null {
  if (tool === "exit_plan_mode") return { kind: "plan", text: textIn(input, "summary"), tool, options: [] };
  if (tool !== "ask_user") return null;
  const fields = Object.values(fieldsIn(fieldsIn(input, "requestedSchema"), "properties"));
  const field = fields.map(fieldsOf).find((value) => value !== null);
  const options = field == null ? textsIn(input, "choices") : textsIn(field, "enum");
  return { kind: "question", text: textIn(input, "message") ?? textIn(input, "question"), tool, options };
}

/** 1 for a line that begins a subagent that has not ended, else 0. */
function subagentsIn({ type, data }: CopilotEvent, settled: Set<unknown>): number {
  const key = `subagent ${textIn(data, "toolCallId")}`;
  if (type === "subagent.completed" || type === "subagent.failed") settled.add(key);
  return type === "subagent.started" && !settled.has(key) ? 1 : 0;
}

const modelIn = ({ type, data, isSub }: CopilotEvent): string | null => {
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

/** Leaves out the lines that every start and end of the process adds. */
const isMessage = (type: string): boolean => /^(user|assistant|tool|permission|abort|session\.error)/.test(type);

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !isKnown(row.type)) return null;
  const isDenied = row.type === "tool.execution_complete" && fieldsIn(row.data, "error")["code"] === "denied";
  return { ...noLineFacts, messages: messagesOf(row), usage: usageIn(row), denied: isDenied ? 1 : 0 };
}

/** Copilot writes one such line for each request to a model, also for requests of subagents. */
function usageIn({ type, data }: CopilotEvent): LineFacts["usage"] {
  const usage = fieldsIn(type === "session.usage_record" ? data : {}, "usage");
  const tokens = tokensWithoutCache(usage, tokenKeys);
  if (tokens === null) return null;
  const { sourceSessionId, sequence } = fieldsIn(usage, "accounting");
  return { key: `${String(sourceSessionId)} ${String(sequence)}`, tokens, model: textIn(usage, "model") };
}

const tokenKeys = {
  ...{ input: "inputTokens", output: "outputTokens" },
  ...{ cacheRead: "cacheReadTokens", cacheWrite: "cacheWriteTokens" },
};

function messagesOf({ type, data, at, isSub }: CopilotEvent): Message[] {
  if (isSub) return [];
  const say = messageAt(at);
  const tool = textIn(data, "toolName");
  const content = textIn(data, "content") ?? "";
  switch (type) {
    case "user.message":
      return [say("user", content)];
    case "assistant.message":
      return content === "" ? [] : [say("agent", content)];
    case "tool.execution_start":
      return [say("tool", callText(fieldsIn(data, "arguments"), ["command", "path"]), tool)];
    case "tool.execution_complete": {
      const result = textIn(fieldsIn(data, "result"), "content") ?? textIn(fieldsIn(data, "error"), "message");
      return [say("result", result ?? "", tool)];
    }
    case "abort":
      return [say("note", textIn(data, "reason") ?? "aborted")];
    case "session.error":
      return [say("note", `failed: ${textIn(data, "message") ?? ""}`)];
    case "session.compaction_complete":
      return [say("note", "earlier messages were summed up")];
    default:
      return [];
  }
}
