// Cline's two documents about a session as lines, and what each message holds for people.
import type { Assembly, LineFacts, Message } from "./adapter.ts";
import {
  countIn,
  type Fields,
  fieldsIn,
  fieldsOf,
  jsonText,
  listIn,
  millisIn,
  numberIn,
  textIn,
  textsIn,
} from "./fields.ts";

/** First, for the status, what its own document says of the session; then its messages. */
export const documents: Assembly = {
  sessions: null,
  forward: (reader, id) => messagesIn(reader.json(`${id}.messages.json`)),
  *backward(reader, id) {
    // Its state is read first: messages that came in between are then newer than it, never older.
    const state = reader.json();
    yield { type: "state", state };
    yield* messagesIn(reader.json(`${id}.messages.json`)).reverse();
  },
};

const messagesIn = (document: unknown): unknown[] =>
  listIn(fieldsOf(document) ?? {}, "messages").map((message) => ({ ...message, type: "message" }));

export const blocksIn = (message: Fields): Fields[] =>
  typeof message["content"] === "string" ? [{ type: "text", text: message["content"] }] : listIn(message, "content");

/** What a person said; null: not a prompt. Cline wraps it, and puts notices of its own beside it. */
export function promptIn(message: Fields): string | null {
  if (message["role"] !== "user") return null;
  const text = blocksIn(message)
    .flatMap((block) => (block["type"] === "text" ? (textIn(block, "text") ?? []) : []))
    .join("\n");
  return text === "" ? null : unwrapped(text);
}

export function unwrapped(text: string): string {
  const inner = /<user_input\b[^>]*>([\s\S]*)<\/user_input>/.exec(text)?.[1];
  return (inner ?? text).trim();
}

/** Its own word about what went wrong, put among the messages for people. */
export const isErrorNote = (message: Fields): boolean => fieldsIn(message, "metadata")["displayRole"] === "error";

export function parseLine(value: unknown): LineFacts | null {
  const message = fieldsOf(value);
  if (message === null) return null;
  if (message["type"] === "state") return { messages: [], usage: null, costUsd: null, denied: 0 };
  if (message["type"] !== "message" || !["user", "assistant"].includes(textIn(message, "role") ?? "")) return null;
  return {
    messages: entriesOf(message),
    usage: usageOf(message),
    costUsd: null,
    denied: blocksIn(message).filter(isDenied).length,
  };
}

function entriesOf(message: Fields): Message[] {
  const at = millisIn(message, "ts");
  const prompt = promptIn(message);
  const entries = blocksIn(message).flatMap((block): Message[] => {
    const tool = textIn(block, "name");
    switch (block["type"]) {
      case "tool_use":
        return [{ at, role: "tool", text: inputText(fieldsIn(block, "input")), tool }];
      case "tool_result":
        return [{ at, role: "result", text: resultText(block), tool }];
      case "text": {
        const text = textIn(block, "text") ?? "";
        if (message["role"] === "user" || text === "") return [];
        return [{ at, role: isErrorNote(message) ? "note" : "agent", text, tool: null }];
      }
      default:
        return [];
    }
  });
  return prompt === null ? entries : [{ at, role: "user", text: prompt, tool: null }, ...entries];
}

/** Its input holds what came from the cache, and what went into it. */
function usageOf(message: Fields): LineFacts["usage"] {
  const metrics = fieldsOf(message["metrics"]);
  const id = textIn(message, "id");
  if (metrics === null || id === null) return null;
  const [cacheRead, cacheWrite] = [countIn(metrics, "cacheReadTokens") ?? 0, countIn(metrics, "cacheWriteTokens") ?? 0];
  const cost = numberIn(metrics, "cost");
  return {
    key: id,
    tokens: {
      input: Math.max(0, (countIn(metrics, "inputTokens") ?? 0) - cacheRead - cacheWrite),
      output: countIn(metrics, "outputTokens") ?? 0,
      cacheRead,
      cacheWrite,
    },
    model: textIn(fieldsIn(message, "modelInfo"), "id"),
    // Zero is what it writes for models whose price it does not know.
    costUsd: cost === null || cost <= 0 ? null : cost,
  };
}

/** What a call is about, in the one word of its input that says so. */
export function inputText(input: Fields): string {
  const commands = textsIn(input, "commands");
  if (commands.length > 0) return commands.join("\n");
  for (const key of ["command", "path", "question", "query", "url", "task"]) {
    const text = textIn(input, key);
    if (text !== null) return text;
  }
  return jsonText(input);
}

function resultText(block: Fields): string {
  if (typeof block["content"] === "string") return block["content"];
  return listIn(block, "content")
    .map((part) => textIn(part, "error") ?? textIn(part, "result") ?? textIn(part, "text") ?? jsonText(part))
    .join("\n");
}

/** Without an interface nobody can be asked; a tool that was taken away is not there. What a person's no looks like was not seen. */
const isDenied = (block: Fields): boolean =>
  block["type"] === "tool_result" &&
  block["is_error"] === true &&
  /requires approval in a TTY|was rejected before execution/i.test(resultText(block));
