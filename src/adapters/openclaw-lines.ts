// What one line of an OpenClaw conversation holds. The format is Pi's, with additions.
import type { Tokens } from "../core/evidence.ts";
import type { LineFacts, Message } from "./adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, jsonText, listIn, numberIn, textIn, timeIn } from "./fields.ts";
import { inputType, stateType } from "./openclaw-store.ts";

const silent = [
  ...["session", "thinking_level_change", "model_change", "custom", "custom_message", "label", "session_info", "leaf"],
  ...[stateType, inputType],
];

const nothing: LineFacts = { messages: [], usage: null, costUsd: null, denied: 0 };

export function parseLine(value: unknown): LineFacts | null {
  const line = fieldsOf(value);
  const type = line === null ? null : textIn(line, "type");
  if (line === null || type === null) return null;
  const at = timeIn(line, "timestamp");
  if (type === "compaction" || type === "branch_summary")
    return { ...nothing, messages: [{ at, role: "note", text: textIn(line, "summary") ?? type, tool: null }] };
  if (type !== "message") return silent.includes(type) ? nothing : null;
  const message = fieldsIn(line, "message");
  const messages = messagesOf(message, at);
  return messages === null ? null : { ...nothing, messages, usage: usageOf(line, message) };
}

/** null: a kind of message that these rules do not know. */
function messagesOf(message: Fields, at: number | null): Message[] | null {
  switch (textIn(message, "role")) {
    case "user":
      return [{ at, role: "user", text: textOf(message), tool: null }];
    case "toolResult":
      return [{ at, role: "result", text: textOf(message), tool: textIn(message, "toolName") }];
    case "assistant":
      return answerOf(message, at);
    default:
      return null;
  }
}

function answerOf(message: Fields, at: number | null): Message[] {
  const said = listIn(message, "content").flatMap((block): Message[] => {
    const text = textIn(block, "text") ?? "";
    if (block["type"] === "text") return text === "" ? [] : [{ at, role: "agent", text, tool: null }];
    if (block["type"] !== "toolCall") return [];
    return [{ at, role: "tool", text: callText(block), tool: textIn(block, "name") }];
  });
  const failure = textIn(message, "errorMessage");
  return failure === null ? said : [...said, { at, role: "note", text: failure, tool: null }];
}

/** Put there by the gateway (the answer to a command of its own, "Exec failed"): no model has said it. */
export const isGatewaysOwn = (message: Fields): boolean =>
  message["provider"] === "openclaw" &&
  ["gateway-injected", "delivery-mirror"].includes(textIn(message, "model") ?? "");

/** The command of a shell call, else all its arguments. */
export const callText = (call: Fields): string => {
  const given = fieldsIn(call, "arguments");
  return textIn(given, "command") ?? jsonText(given);
};

/** A plain text, or the texts among its blocks. */
export const textOf = (message: Fields): string =>
  textIn(message, "content") ??
  listIn(message, "content")
    .flatMap((block) => (block["type"] === "text" ? (textIn(block, "text") ?? []) : []))
    .join("\n");

function usageOf(line: Fields, message: Fields): LineFacts["usage"] {
  const key = textIn(line, "id");
  const used = fieldsOf(message["usage"]);
  if (key === null || used === null || isGatewaysOwn(message)) return null;
  const count = (name: string): number => countIn(used, name) ?? 0;
  const tokens: Tokens = {
    input: count("input"),
    output: count("output"),
    cacheRead: count("cacheRead"),
    cacheWrite: count("cacheWrite"),
  };
  return { key, tokens, model: textIn(message, "model"), costUsd: numberIn(fieldsIn(used, "cost"), "total") };
}
