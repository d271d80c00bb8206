// One line of an OpenCode record as messages, tokens and refusals.
import type { LineFacts, Message } from "./adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, jsonText, millisIn, numberIn, textIn } from "./fields.ts";

const quietParts = "step-start step-finish snapshot patch reasoning agent subtask compaction retry file".split(" ");

export function parseLine(value: unknown): LineFacts | null {
  const line = fieldsOf(value);
  if (line === null) return null;
  const nothing: LineFacts = { messages: [], usage: null, costUsd: null, denied: 0 };
  const at = millisIn(line, "at");
  const data = fieldsIn(line, "data");
  const say = (role: Message["role"], text: string): Message[] => [{ at, role, text, tool: textIn(data, "tool") }];
  switch (line["type"]) {
    case "session":
      return nothing;
    case "call":
      return { ...nothing, messages: say("tool", inputText(fieldsIn(data, "input"))) };
    case "result": {
      const state = fieldsIn(data, "state");
      const text = textIn(state, "output") ?? textIn(state, "error") ?? "";
      return { ...nothing, messages: say("result", text), denied: isDenied(data) ? 1 : 0 };
    }
    case "error":
      return { ...nothing, messages: say("note", errorText(fieldsIn(line, "error"))) };
    case "part":
      return partFacts(line, data, nothing, say);
    default:
      return null;
  }
}

function partFacts(
  line: Fields,
  data: Fields,
  nothing: LineFacts,
  say: (role: Message["role"], text: string) => Message[],
): LineFacts | null {
  const type = textIn(data, "type") ?? "";
  if (type === "text") {
    const text = textIn(data, "text") ?? "";
    // What OpenCode itself says in a person's place.
    const isOwn = data["synthetic"] === true || data["ignored"] === true;
    const role = line["role"] !== "user" ? "agent" : isOwn ? "note" : "user";
    return text === "" ? nothing : { ...nothing, messages: say(role, text) };
  }
  if (type === "step-finish") {
    const tokens = tokensIn(fieldsIn(data, "tokens"));
    const cost = numberIn(data, "cost");
    // Zero is what it writes for models whose price it does not know.
    const costUsd = cost === null || cost <= 0 ? null : cost;
    return { ...nothing, usage: { key: textIn(line, "id") ?? "", tokens, model: textIn(line, "model"), costUsd } };
  }
  return quietParts.includes(type) ? nothing : null;
}

const tokensIn = (tokens: Fields) => {
  const cache = fieldsIn(tokens, "cache");
  return {
    input: countIn(tokens, "input") ?? 0,
    output: (countIn(tokens, "output") ?? 0) + (countIn(tokens, "reasoning") ?? 0),
    cacheRead: countIn(cache, "read") ?? 0,
    cacheWrite: countIn(cache, "write") ?? 0,
  };
};

/** What a call is about, in the one word of its input that says so. */
export function inputText(input: Fields): string {
  for (const key of ["command", "filePath", "path", "pattern", "url", "query", "description"]) {
    const text = textIn(input, key);
    if (text !== null) return text;
  }
  return jsonText(input);
}

/** A person said no, a rule did, or the rules left no such tool. */
function isDenied(tool: Fields): boolean {
  const state = fieldsIn(tool, "state");
  const error = state["status"] === "error" ? (textIn(state, "error") ?? "") : "";
  const isGone = tool["tool"] === "invalid" && /unavailable tool/.test(textIn(state, "output") ?? error);
  return isRejected(tool) || isGone || /^The user (rejected permission|has specified a rule)/.test(error);
}

/** A person's no ends the turn; not so one with a word about what to do instead. */
export function isRejected(tool: Fields): boolean {
  const state = fieldsIn(tool, "state");
  const said = state["status"] === "error" ? (textIn(state, "error") ?? "") : "";
  return /^The user (rejected permission to use this specific tool call\.$|dismissed this question)/.test(said);
}

export const errorText = (error: Fields): string => {
  const text = textIn(fieldsIn(error, "data"), "message");
  const name = textIn(error, "name") ?? "error";
  return text === null ? name : `${name}: ${text}`;
};
