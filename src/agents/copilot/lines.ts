// Reads the events.jsonl of a Copilot session: its first lines, its last turn, its conversation.
import type { NativeRecord, Turn, Waiting } from "../../core/evidence.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, lookUp, textIn, textsIn, timeIn, words } from "../fields.ts";
import { callText, messageAt, needsOf, noLineFacts, typedLine } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { type TokenKeys, tokensWithoutCache } from "../tokens.ts";

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

/** Messages that a person did not write have another source. */
const isFromPerson = ({ data, isSub }: CopilotEvent): boolean =>
  !isSub && (textIn(data, "source") ?? "user") === "user";

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

/** Reads from the end back to the last prompt. */
export const parseRecord = recordParser<CopilotEvent>({
  agent: "copilot",
  parse: rowOf,
  isKnown: ({ type }) => isKnown(type),
  headLines: 20,
  open(record, file) {
    const { facts } = record;
    const turn: LastTurn = {
      ...{ prompt: null, begun: null, answer: null, ended: null, aborted: null, error: null },
      ...{ calls: [], typed: null, asks: null },
    };
    const settled = new Set<unknown>();
    let subagents = 0;
    return {
      isTurnFound: () => turn.prompt !== null,
      hasAllFacts: () => true,
      add(row) {
        if (isMessage(row.type)) record.lastMessageAt ??= row.at;
        facts.model ??= modelIn(row);
        subagents += subagentsIn(row, settled);
        addToTurn(row, turn, settled);
      },
      turn: () => turn.prompt && turnOf(turn, turn.prompt),
      missing: () => (record.lastMessageAt === null ? null : { code: "no-prompt-found" }),
      first(row, index) {
        if (row.type === "session.start" && index === 0) {
          record.createdAt = timeIn(row.data, "startTime") ?? row.at;
          record.cwd = textIn(fieldsIn(row.data, "context"), "cwd");
          facts.model ??= textIn(row.data, "selectedModel");
          facts.agentVersion = textIn(row.data, "copilotVersion");
        }
        if (row.type === "user.message" && isFromPerson(row)) facts.prompt = textIn(row.data, "content");
      },
      finish() {
        const { asks } = turn;
        // A subagent in the background may ask although the turn is over.
        if (asks !== null && record.turn.state === "closed")
          record.turn = { state: "open", since: asks.at, doubt: null };
        if (record.turn.state === "open") record.waiting = waitingFor(turn);
        if (record.turn.state === "closed" && subagents > 0) record.background = { shells: 0, subagents };
        const workspace = flatYaml(file.beside("workspace.yaml") ?? "");
        record.cwd = workspace["cwd"] ?? record.cwd;
        facts.title = workspace["name"] ?? null;
        facts.branch = workspace["branch"] ?? null;
        return null;
      },
    };
  },
});

/** The `key: text` lines of a small YAML file, with or without simple quotes. Other lines are left out. */
function flatYaml(text: string): Record<string, string> {
  const found: [string, string][] = [];
  for (const line of text.split("\n")) {
    const [, key, value = ""] = /^([a-z_]+): +(\S.*?)\s*$/.exec(line) ?? [];
    const [, single] = /^'(.*)'$/.exec(value) ?? [];
    const [, double] = /^"([^"\\]*)"$/.exec(value) ?? [];
    if (key === undefined || (/^["'|>&*!{[]/.test(value) && (single ?? double) === undefined)) continue;
    found.push([key, single?.replaceAll("''", "'") ?? double ?? value]);
  }
  return Object.fromEntries(found);
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

function turnOf({ begun, answer, ended, aborted, error, calls, typed }: LastTurn, prompt: CopilotEvent): Turn {
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

const kinds = words`abort assistant external_tool hook human_response mcp permission session skill subagent system tool tool_search user`;

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

const tokenKeys: TokenKeys = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];

const contentIn = (data: Fields): string => textIn(data, "content") ?? "";

const messages: Readonly<Record<string, { role: Message["role"]; text(data: Fields): string }>> = {
  "user.message": { role: "user", text: contentIn },
  "assistant.message": { role: "agent", text: contentIn },
  "tool.execution_start": { role: "tool", text: (data) => callText(fieldsIn(data, "arguments"), ["command", "path"]) },
  "tool.execution_complete": { role: "result", text: resultIn },
  abort: { role: "note", text: (data) => textIn(data, "reason") ?? "aborted" },
  "session.error": { role: "note", text: (data) => `failed: ${textIn(data, "message") ?? ""}` },
  "session.compaction_complete": { role: "note", text: () => "earlier messages were summed up" },
};

function resultIn(data: Fields): string {
  return textIn(fieldsIn(data, "result"), "content") ?? textIn(fieldsIn(data, "error"), "message") ?? "";
}

function messagesOf({ type, data, at, isSub }: CopilotEvent): Message[] {
  const known = isSub ? undefined : lookUp(messages, type);
  if (known === undefined) return [];
  const text = known.text(data);
  const tool = type.startsWith("tool.") ? textIn(data, "toolName") : null;
  return known.role === "agent" && text === "" ? [] : [messageAt(at)(known.role, text, tool)];
}
