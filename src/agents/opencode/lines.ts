// Parses one line of an OpenCode record into messages, tokens and refusals.
import type { Tokens } from "../../core/evidence.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, millisIn, numberIn, textIn, words } from "../fields.ts";
import { callText, messageAt, noLineFacts } from "../record-lines.ts";
import { costIn, tokensIn } from "../tokens.ts";

const quietParts = words`step-start step-finish snapshot patch reasoning agent subtask compaction file`;

export function parseLine(value: unknown): LineFacts | null {
  const line = fieldsOf(value);
  if (line === null) return null;
  const data = fieldsIn(line, "data");
  const say: SayOne = (role, text) => ({
    ...noLineFacts,
    messages: [messageAt(millisIn(line, "at"))(role, text, textIn(data, "tool"))],
  });
  switch (line["type"]) {
    case "session":
      return noLineFacts;
    case "call":
      return say("tool", inputText(fieldsIn(data, "input")));
    case "result": {
      const state = fieldsIn(data, "state");
      const text = textIn(state, "output") ?? textIn(state, "error") ?? "";
      return { ...say("result", text), denied: isDenied(data) ? 1 : 0 };
    }
    case "error":
      return say("note", errorText(fieldsIn(line, "error")));
    case "part":
      return partFacts(line, data, say);
    default:
      return null;
  }
}

type SayOne = (role: Message["role"], text: string) => LineFacts;

function partFacts(line: Fields, data: Fields, say: SayOne): LineFacts | null {
  const type = textIn(data, "type") ?? "";
  if (type === "text") {
    const text = textIn(data, "text") ?? "";
    // OpenCode itself writes such texts as the user.
    const isOwn = data["synthetic"] === true || data["ignored"] === true;
    const role = line["role"] !== "user" ? "agent" : isOwn ? "note" : "user";
    return text === "" ? noLineFacts : say(role, text);
  }
  if (type === "step-finish") {
    const usage = { key: textIn(line, "id") ?? "", tokens: stepTokens(fieldsIn(data, "tokens")) };
    return { ...noLineFacts, usage: { ...usage, model: textIn(line, "model"), costUsd: costIn(data) } };
  }
  if (type === "retry") {
    const error = errorText(fieldsIn(data, "error"));
    return say("note", `request failed: retry ${numberIn(data, "attempt") ?? ""}: ${error}`);
  }
  return quietParts.includes(type) ? noLineFacts : null;
}

function stepTokens(counts: Fields): Tokens {
  const tokens = tokensIn({ ...counts, ...fieldsIn(counts, "cache") }, ["input", "output", "read", "write"]);
  return { ...tokens, output: tokens.output + (countIn(counts, "reasoning") ?? 0) };
}

export const inputText = (input: Fields): string =>
  callText(input, ["command", "filePath", "path", "pattern", "url", "query", "description"]);

/** A person or a rule refused the call, or the rules removed the tool. */
function isDenied(tool: Fields): boolean {
  const state = fieldsIn(tool, "state");
  const error = state["status"] === "error" ? (textIn(state, "error") ?? "") : "";
  const isGone = tool["tool"] === "invalid" && /unavailable tool/.test(textIn(state, "output") ?? error);
  return isRejected(tool) || isGone || /^The user (rejected permission|has specified a rule)/.test(error);
}

/** A refusal by a person ends the turn, unless the person says what to do instead. */
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
