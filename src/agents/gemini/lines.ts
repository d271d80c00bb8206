// Parses the lines of a Gemini record: its head and its conversation.
import type { Tokens } from "../../core/evidence.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, listIn, textIn, timeIn } from "../fields.ts";
import { callText, contentText, messageAt, noLineFacts, responseText } from "../record-lines.ts";
import { tokensWithoutCache } from "../tokens.ts";

/** A patch changes what earlier lines set. */
export type GeminiLine =
  | { kind: "header"; fields: Fields }
  | { kind: "patch"; set: Fields }
  | { kind: "rewind" }
  | { kind: "message"; id: string; type: string; at: number | null; fields: Fields };

export function rowOf(value: unknown): GeminiLine | null {
  const fields = fieldsOf(value);
  if (fields === null) return null;
  if (textIn(fields, "$rewindTo") !== null) return { kind: "rewind" };
  const [id, type] = [textIn(fields, "id"), textIn(fields, "type")];
  if (id !== null && type !== null) return { kind: "message", id, type, at: timeIn(fields, "timestamp"), fields };
  const set = fieldsOf(fields["$set"]);
  if (set !== null) return { kind: "patch", set };
  return textIn(fields, "sessionId") === null || textIn(fields, "projectHash") === null
    ? null
    : { kind: "header", fields };
}

/** Texts that Gemini itself writes as the user. They begin no turn. */
const ownTexts =
  /^(<session_context>|<hook_context>|I ran the following shell command:|User has manually exited Plan Mode\.|Plan approved\. Switching)/;

/** The prompt of a person; null: another kind of message. */
export function promptIn({ type, fields }: { type: string; fields: Fields }): string | null {
  if (type !== "user" || isToolAnswer(fields)) return null;
  const text = contentText(fields, fields["displayContent"] == null ? "content" : "displayContent");
  return text === "" || ownTexts.test(text) ? null : text;
}

export const isToolAnswer = (fields: Fields): boolean =>
  listIn(fields, "content").some((part) => part["functionResponse"] !== undefined);

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || !isKnown(row)) return null;
  if (row.kind !== "message") return noLineFacts;
  const tokens = tokensIn(fieldsIn(row.fields, "tokens"));
  // Gemini writes a message again when its tools are done, so the key is the id of the message.
  const usage = tokens && { key: row.id, tokens, model: textIn(row.fields, "model") };
  return { ...noLineFacts, messages: messagesOf(row), usage };
}

export const isKnown = (row: GeminiLine): boolean => row.kind !== "message" || messageTypes.includes(row.type);

const messageTypes = ["user", "gemini", "info", "warning", "error"];

function tokensIn(counts: Fields): Tokens | null {
  const tokens = tokensWithoutCache(counts, ["input", "output", "cached"]);
  if (tokens === null) return null;
  const [tool, thoughts] = [countIn(counts, "tool") ?? 0, countIn(counts, "thoughts") ?? 0];
  return { ...tokens, input: tokens.input + tool, output: tokens.output + thoughts };
}

function messagesOf(row: Extract<GeminiLine, { kind: "message" }>): Message[] {
  const { type, at, fields } = row;
  const say = messageAt(at);
  if (type === "user") {
    const prompt = promptIn(row);
    return prompt === null ? [] : [say("user", prompt)];
  }
  if (type !== "gemini") return [say("note", contentText(fields))];
  const calls = listIn(fields, "toolCalls");
  // The text was in the first line of the same message.
  if (calls.length > 0)
    return calls.flatMap((call) => {
      const name = textIn(call, "name");
      const text = callText(fieldsIn(call, "args"), ["command", "file_path"]);
      return [say("tool", text, name), say("result", resultOf(call), name)];
    });
  // Content that is a list of parts repeats earlier messages.
  const text = textIn(fields, "content") ?? "";
  return text === "" ? [] : [say("agent", text)];
}

const resultOf = (call: Fields): string =>
  textIn(call, "result") ??
  listIn(call, "result")
    .map((part) => responseText(fieldsIn(part, "functionResponse")))
    .join("\n");
