// Reads Cline's two documents about a session as lines, and parses each message.
import type { Assembly, LineFacts, Message } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, millisIn, textIn, textsIn } from "../fields.ts";
import { blocksIn, callText, messageAt, noLineFacts, textPartsOf } from "../record-lines.ts";
import { costIn, type TokenKeys, tokensWithoutCache } from "../tokens.ts";

export const documents: Assembly = {
  sessions: null,
  forward: (reader, id) => messagesIn(reader.json(`${id}.messages.json`)),
  *backward(reader, id) {
    // The state is read first, so that the messages are never older than the state.
    yield { type: "state", state: reader.json() };
    yield* messagesIn(reader.json(`${id}.messages.json`)).reverse();
  },
};

const messagesIn = (document: unknown): unknown[] =>
  listIn(fieldsOf(document) ?? {}, "messages").map((message) => ({ ...message, type: "message" }));

/** The prompt of a person; null: another kind of message. Cline wraps it in a tag, and adds its own notices. */
export function promptIn(message: Fields): string | null {
  if (message["role"] !== "user") return null;
  const text = textPartsOf(message);
  return text === "" ? null : unwrapped(text);
}

export function unwrapped(text: string): string {
  const inner = /<user_input\b[^>]*>([\s\S]*)<\/user_input>/.exec(text)?.[1];
  return (inner ?? text).trim();
}

/** An error that Cline writes as a message. */
export const isErrorNote = (message: Fields): boolean => fieldsIn(message, "metadata")["displayRole"] === "error";

export function parseLine(value: unknown): LineFacts | null {
  const message = fieldsOf(value);
  if (message === null) return null;
  if (message["type"] === "state") return noLineFacts;
  if (message["type"] !== "message" || !["user", "assistant"].includes(textIn(message, "role") ?? "")) return null;
  const denied = blocksIn(message).filter(isDenied).length;
  return { ...noLineFacts, messages: entriesOf(message), usage: usageOf(message), denied };
}

function entriesOf(message: Fields): Message[] {
  const say = messageAt(millisIn(message, "ts"));
  const prompt = promptIn(message);
  const entries = blocksIn(message).flatMap((block): Message[] => {
    const tool = textIn(block, "name");
    const text = textIn(block, "text") ?? "";
    if (block["type"] === "tool_use") return [say("tool", inputText(fieldsIn(block, "input")), tool)];
    if (block["type"] === "tool_result") return [say("result", resultText(block), tool)];
    if (block["type"] !== "text" || message["role"] === "user" || text === "") return [];
    return [say(isErrorNote(message) ? "note" : "agent", text)];
  });
  return prompt === null ? entries : [say("user", prompt), ...entries];
}

function usageOf(message: Fields): LineFacts["usage"] {
  const metrics = fieldsIn(message, "metrics");
  const tokens = tokensWithoutCache(metrics, tokenKeys);
  const id = textIn(message, "id");
  if (tokens === null || id === null) return null;
  const model = textIn(fieldsIn(message, "modelInfo"), "id");
  return { key: id, tokens, model, costUsd: costIn(metrics) };
}

const tokenKeys: TokenKeys = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];

export function inputText(input: Fields): string {
  const commands = textsIn(input, "commands").join("\n");
  return commands || callText(input, ["command", "path", "question", "query", "url", "task"]);
}

const resultText = (block: Fields): string =>
  textIn(block, "content") ??
  listIn(block, "content")
    .map((part) => callText(part, ["error", "result", "text"]))
    .join("\n");

/** Without an interface Cline denies calls that need an approval, and calls of tools that were removed. A refusal by a person was not seen. */
const isDenied = (block: Fields): boolean =>
  block["type"] === "tool_result" &&
  block["is_error"] === true &&
  /requires approval in a TTY|was rejected before execution/i.test(resultText(block));
