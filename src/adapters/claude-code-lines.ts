// One line of a Claude Code transcript as messages, tokens, cost and refusals.
import type { LineFacts, Message } from "./adapter.ts";
import { countIn, type Fields, fieldsOf, jsonText, listIn, numberIn, textIn, timeIn } from "./fields.ts";

/** Lines about the session or the request, without a message. */
const silentTypes =
  "queue-operation attachment system file-history-snapshot mode permission-mode last-prompt ai-title agent-name summary custom-title api-request api-request-shape api-request-blob atis-latch tools-used cost-state tag progress".split(
    " ",
  );

/** Does `parseClaudeLine` know lines of this type? */
export const isClaudeType = (type: string): boolean =>
  type === "user" || type === "assistant" || type === "cost-state" || silentTypes.includes(type);

export function parseClaudeLine(value: unknown, wanted?: "counts"): LineFacts | null {
  const line = fieldsOf(value);
  const type = line === null ? null : textIn(line, "type");
  if (line === null || type === null || !isClaudeType(type)) return null;
  const message = fieldsOf(line["message"]) ?? {};
  // A subagent's lines are not this conversation, but they cost.
  const isOurs = line["isSidechain"] !== true;
  const isSummary = isOurs && line["isCompactSummary"] === true;
  return {
    messages: wanted === "counts" || !isOurs ? [] : messagesIn(line, type, message),
    usage: type === "assistant" && !isSummary ? usageOf(message) : null,
    costUsd: type === "cost-state" ? costOf(line) : null,
    denied: type === "user" && isOurs && !isSummary && isDenied(line, message) ? 1 : 0,
  };
}

function messagesIn(line: Fields, type: string, message: Fields): Message[] {
  if (type !== "user" && type !== "assistant") return [];
  const at = timeIn(line, "timestamp");
  if (line["isCompactSummary"] === true)
    return [{ at, role: "note", text: "the conversation so far was compacted", tool: null }];
  if (type === "assistant") return spoken(message, at);
  return line["isMeta"] === true ? [] : heard(message, at);
}

const blocksOf = (message: Fields): Fields[] => {
  const { content } = message;
  return typeof content === "string" ? [{ type: "text", text: content }] : listIn(message, "content");
};

function spoken(message: Fields, at: number | null): Message[] {
  return blocksOf(message).flatMap((block): Message[] => {
    if (block["type"] === "text") return [{ at, role: "agent", text: textIn(block, "text") ?? "", tool: null }];
    if (block["type"] !== "tool_use") return [];
    return [{ at, role: "tool", text: callText(block), tool: textIn(block, "name") }];
  });
}

function heard(message: Fields, at: number | null): Message[] {
  return blocksOf(message).flatMap((block): Message[] => {
    if (block["type"] === "tool_result") return [{ at, role: "result", text: resultText(block), tool: null }];
    const text = block["type"] === "text" ? (textIn(block, "text") ?? "") : "";
    if (text === "" || isMachinery(text)) return [];
    return [{ at, role: isInterruption(text) ? "note" : "user", text: typedText(text), tool: null }];
  });
}

/** What the interface writes on a person's behalf. */
export const isMachinery = (text: string): boolean =>
  /^\s*<(command-(?!message)|local-command-|task-notification|bash-)/.test(text);

/** A person's own slash command is written out with its name and arguments; `/compact` and its like begin with their name. */
function typedText(text: string): string {
  if (!/^\s*<command-message>/.test(text)) return text;
  const part = (name: string): string => {
    const from = text.indexOf(`<command-${name}>`);
    const to = from === -1 ? -1 : text.indexOf(`</command-${name}>`, from);
    return to === -1 ? "" : text.slice(from + name.length + "<command->".length, to).trim();
  };
  return `${part("name")} ${part("args")}`.trim();
}

export const isInterruption = (text: string): boolean => text.startsWith("[Request interrupted");

/** The one field of a tool call that says what it is about. */
export function callText(block: Fields): string {
  const input = fieldsOf(block["input"]) ?? {};
  const [question] = questionsOf(input);
  const known = ["command", "file_path", "pattern", "url", "query", "plan", "description", "prompt"];
  const field = known.find((key) => textIn(input, key) !== null);
  return question?.text ?? (field === undefined ? jsonText(input) : (textIn(input, field) ?? ""));
}

export const questionsOf = (input: Fields): { text: string; options: string[] }[] =>
  listIn(input, "questions").flatMap((question) => {
    const text = textIn(question, "question");
    if (text === null) return [];
    return [{ text, options: listIn(question, "options").flatMap((option) => textIn(option, "label") ?? []) }];
  });

function resultText(block: Fields): string {
  const { content } = block;
  if (typeof content === "string") return content;
  return listIn(block, "content")
    .flatMap((part) => textIn(part, "text") ?? [])
    .join("\n");
}

const costOf = (line: Fields): number | null => {
  const cost = numberIn(line, "totalCostUSD");
  return cost !== null && cost >= 0 ? cost : null;
};

/** A message of several blocks is several lines with one id and one usage. What the agent made up itself costs nothing. */
function usageOf(message: Fields): LineFacts["usage"] {
  const usage = fieldsOf(message["usage"]);
  const key = textIn(message, "id");
  const model = textIn(message, "model");
  if (usage === null || key === null || model === "<synthetic>") return null;
  const count = (name: string): number => countIn(usage, name) ?? 0;
  const tokens = {
    input: count("input_tokens"),
    output: count("output_tokens"),
    cacheRead: count("cache_read_input_tokens"),
    cacheWrite: count("cache_creation_input_tokens"),
  };
  return { key, tokens, model };
}

/** 2.1.325 marks a refusal; 2.1.197 only says it, in these words. Esc is an interruption, not a refusal. */
function isDenied(line: Fields, message: Fields): boolean {
  if (fieldsOf(line["permissionDecision"])?.["decision"] === "reject") return true;
  if (line["toolDenialKind"] !== undefined) return false;
  return blocksOf(message).some((block) => block["is_error"] === true && denials.test(resultText(block)));
}

/** A tool that `--tools` took away is refused, too. */
const denials =
  /^(<tool_use_error>)?(Error: )?(This command requires approval|Claude requested permissions? to |Permission to use .* has been denied|Cannot write to .* while in plan mode|sed command requires approval|This Bash command contains multiple operations|No such tool available)|^.{0,400} was blocked\. For security/;
