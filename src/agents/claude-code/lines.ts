// Parses one line of a Claude Code transcript into messages, tokens, cost and refusals.
import type { LineFacts, Message } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, numberIn, textIn, timeIn, words } from "../fields.ts";
import { blocksIn, callText, contentText, firstQuestion, messageAt, typedLine } from "../record-lines.ts";
import { type TokenKeys, tokensIn } from "../tokens.ts";

/** Lines about the session or the request, without a message. */
const silentTypes = words`queue-operation attachment system file-history-snapshot mode permission-mode last-prompt ai-title agent-name summary custom-title api-request api-request-shape api-request-blob atis-latch tools-used cost-state tag progress`;

export const isClaudeType = (type: string): boolean =>
  type === "user" || type === "assistant" || silentTypes.includes(type);

export function parseClaudeLine(value: unknown, wanted?: "counts"): LineFacts | null {
  const typed = typedLine(value);
  if (typed === null || !isClaudeType(typed.type)) return null;
  const { type, fields: line } = typed;
  const message = fieldsIn(line, "message");
  // The lines of a subagent are not part of this conversation, but their tokens are counted.
  const isMain = line["isSidechain"] !== true;
  const isSummary = isMain && line["isCompactSummary"] === true;
  return {
    messages: wanted === "counts" || !isMain ? [] : messagesIn(line, type, message),
    usage: type === "assistant" && !isSummary ? usageOf(message) : null,
    costUsd: type === "cost-state" ? costOf(line) : null,
    denied: type === "user" && isMain && !isSummary && isDenied(line, message) ? 1 : 0,
  };
}

function messagesIn(line: Fields, type: string, message: Fields): Message[] {
  const say = messageAt(timeIn(line, "timestamp"));
  if (type === "system" && line["subtype"] === "api_error") return [say("note", retryText(line))];
  if (type !== "user" && type !== "assistant") return [];
  if (line["isCompactSummary"] === true) return [say("note", "the conversation so far was compacted")];
  if (type === "user" && line["isMeta"] === true) return [];
  return blocksIn(message).flatMap((block): Message[] => {
    const text = block["type"] === "text" ? (textIn(block, "text") ?? "") : null;
    if (type === "assistant" && text !== null) return [say("agent", text)];
    if (type === "assistant")
      return block["type"] === "tool_use" ? [say("tool", claudeCallText(block), textIn(block, "name"))] : [];
    if (block["type"] === "tool_result") return [say("result", contentText(block))];
    if (text === null || text === "" || isInterfaceText(text)) return [];
    return [say(isInterruption(text) ? "note" : "user", typedText(text))];
  });
}

/** 2.1.325 writes such a line for each request that failed and is sent again. */
function retryText(line: Fields): string {
  const error = fieldsIn(line, "error");
  const why = numberIn(error, "status") ?? textIn(error, "message") ?? textIn(line, "error");
  const [attempt, most, waitMs] = ["retryAttempt", "maxRetries", "retryInMs"].map((key) => numberIn(line, key));
  const retry = attempt == null ? "retrying" : `retry ${attempt}${most == null ? "" : ` of ${most}`}`;
  const wait = waitMs == null ? "" : ` in ${Math.round(waitMs / 1000)}s`;
  return `request failed${why === null ? "" : ` (${why})`}: ${retry}${wait}`;
}

/** Texts that the interface itself writes as the user. */
export const isInterfaceText = (text: string): boolean =>
  /^\s*<(command-(?!message)|local-command-|task-notification|bash-)/.test(text);

/** A slash command of a person is recorded in tags, with its name and its arguments. Built-in ones such as `/compact` begin with another tag. */
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

const inputKeys = ["command", "file_path", "pattern", "url", "query", "plan", "description", "prompt"];

export function claudeCallText(block: Fields): string {
  const input = fieldsIn(block, "input");
  return firstQuestion(input).text ?? callText(input, inputKeys);
}

const costOf = (line: Fields): number | null => {
  const cost = numberIn(line, "totalCostUSD");
  return cost !== null && cost >= 0 ? cost : null;
};

/** A message with several blocks is several lines with the same id and the same usage. Synthetic messages come from no model. */
function usageOf(message: Fields): LineFacts["usage"] {
  const usage = fieldsOf(message["usage"]);
  const key = textIn(message, "id");
  const model = textIn(message, "model");
  if (usage === null || key === null || model === "<synthetic>") return null;
  return { key, tokens: tokensIn(usage, tokenKeys), model };
}

const tokenKeys: TokenKeys = [
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
];

/** 2.1.325 marks a refusal; 2.1.197 only has these texts. Esc is an interruption, not a refusal. */
function isDenied(line: Fields, message: Fields): boolean {
  if (fieldsOf(line["permissionDecision"])?.["decision"] === "reject") return true;
  if (line["toolDenialKind"] !== undefined) return false;
  return blocksIn(message).some((block) => block["is_error"] === true && denials.test(contentText(block)));
}

/** A call of a tool that `--tools` left out counts as refused, too. */
const denials =
  /^(<tool_use_error>)?(Error: )?(This command requires approval|Claude requested permissions? to |Permission to use .* has been denied|Cannot write to .* while in plan mode|sed command requires approval|This Bash command contains multiple operations|No such tool available)|^.{0,400} was blocked\. For security/;
