// Parses one line of an OpenClaw conversation. The format is that of Pi, with additions.
import type { LineFacts, Message } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, numberIn, textIn, timeIn } from "../fields.ts";
import { answerParts, callText, messageAt, noLineFacts, textPartsOf, typedLine } from "../record-lines.ts";
import { tokensIn } from "../tokens.ts";
import { inputType, stateType } from "./store.ts";

const silentTypes = [
  ...["session", "thinking_level_change", "model_change", "custom", "custom_message", "label", "session_info", "leaf"],
  ...[stateType, inputType],
];

export function parseLine(value: unknown): LineFacts | null {
  const line = typedLine(value);
  if (line === null) return null;
  const { type, fields } = line;
  if (type === "compaction" || type === "branch_summary") {
    const note = messageAt(timeIn(fields, "timestamp"))("note", textIn(fields, "summary") ?? type);
    return { ...noLineFacts, messages: [note] };
  }
  if (type !== "message") return silentTypes.includes(type) ? noLineFacts : null;
  const message = fieldsIn(fields, "message");
  const messages = messagesOf(message, timeIn(fields, "timestamp"));
  return messages === null ? null : { ...noLineFacts, messages, usage: usageOf(fields, message) };
}

/** null: a kind of message that these rules do not know. */
function messagesOf(message: Fields, at: number | null): Message[] | null {
  const say = messageAt(at);
  const role = textIn(message, "role");
  if (role === "user") return [say("user", textPartsOf(message))];
  if (role === "toolResult") return [say("result", textPartsOf(message), textIn(message, "toolName"))];
  if (role !== "assistant") return null;
  const said = answerParts(message, at, inputKeys);
  const failure = textIn(message, "errorMessage");
  return failure === null ? said : [...said, say("note", failure)];
}

/** The gateway itself wrote the message (the answer to one of its commands, "Exec failed"), not a model. */
export const isGatewaysOwn = (message: Fields): boolean =>
  message["provider"] === "openclaw" &&
  ["gateway-injected", "delivery-mirror"].includes(textIn(message, "model") ?? "");

const inputKeys = ["command"];

export const commandOf = (call: Fields): string => callText(fieldsIn(call, "arguments"), inputKeys);

function usageOf(line: Fields, message: Fields): LineFacts["usage"] {
  const key = textIn(line, "id");
  const used = fieldsOf(message["usage"]);
  if (key === null || used === null || isGatewaysOwn(message)) return null;
  const costUsd = numberIn(fieldsIn(used, "cost"), "total");
  return { key, tokens: tokensIn(used), model: textIn(message, "model"), costUsd };
}
