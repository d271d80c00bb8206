// The parts of a line that several agents write alike: contents, tool calls, questions, token counts.
import type { LineFacts, Message } from "./adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonText, listIn, lookUp, textIn } from "./fields.ts";

export interface TypedLine {
  type: string;
  fields: Fields;
}

export function typedLine(value: unknown): TypedLine | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  return fields === null || type === null ? null : { type, fields };
}

export const noLineFacts: LineFacts = { messages: [], usage: null, costUsd: null, denied: 0 };

export const messageAt =
  (at: number | null) =>
  (role: Message["role"], text: string, tool: string | null = null): Message => ({ at, role, text, tool });

/** The content is a text, or a list of parts, some of which have a text. */
export const contentText = (message: Fields, key = "content", isText = (_part: Fields): boolean => true): string =>
  textIn(message, key) ??
  listIn(message, key)
    .flatMap((part) => (isText(part) ? (textIn(part, "text") ?? []) : []))
    .join("\n");

export const textPartsOf = (message: Fields): string => contentText(message, "content", ({ type }) => type === "text");

/** The blocks of a message. A text alone counts as one block. */
export const blocksIn = (message: Fields): Fields[] =>
  typeof message["content"] === "string" ? [{ type: "text", text: message["content"] }] : listIn(message, "content");

/** The texts and the tool calls of an answer in the format of Pi. */
export const answerParts = (message: Fields, at: number | null, inputKeys: readonly string[]): Message[] =>
  listIn(message, "content").flatMap((part) => {
    const say = messageAt(at);
    if (part["type"] === "toolCall")
      return [say("tool", callText(fieldsIn(part, "arguments"), inputKeys), textIn(part, "name"))];
    const text = part["type"] === "text" ? textIn(part, "text") : null;
    return text === null || text === "" ? [] : [say("agent", text)];
  });

/** The field of a tool call's input that describes the call best; without such a field, the whole input. */
export function callText(input: Fields, keys: readonly string[]): string {
  const [text] = keys.flatMap((key) => textIn(input, key) ?? []);
  return text ?? jsonText(input);
}

/** The first of the questions in a tool call, and the labels of its answers. */
export function firstQuestion(input: Fields): { text: string | null; options: string[] } {
  const [question = {}] = listIn(input, "questions");
  const options = listIn(question, "options").flatMap((option) => textIn(option, "label") ?? []);
  return { text: textIn(question, "question"), options };
}

/** The output or the error in a `functionResponse` of the Gemini API. */
export function responseText(functionResponse: Fields): string {
  const response = fieldsIn(functionResponse, "response");
  return textIn(response, "output") ?? textIn(response, "error") ?? jsonText(response);
}

/** Failures that only a person can fix, by the agent's own name of the error. */
export function needsOf(
  kinds: Readonly<Record<string, "login" | "limit">>,
  error: string | null,
  text: string | null,
): { needs?: { kind: "login" | "limit"; text: string } } {
  const kind = lookUp(kinds, error ?? "");
  return kind === undefined ? {} : { needs: { kind, text: text ?? kind } };
}
