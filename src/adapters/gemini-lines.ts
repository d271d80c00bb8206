// What the lines of a Gemini record say: its head, and what each holds for people.
import type { Tokens } from "../core/evidence.ts";
import type { Line, LineFacts, Message } from "./adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, jsonText, listIn, textIn, timeIn } from "./fields.ts";

/** A line is the header, a patch of what was said before, a way back, or a message. */
export type Row =
  | { kind: "header"; fields: Fields }
  | { kind: "patch"; set: Fields }
  | { kind: "rewind" }
  | { kind: "message"; id: string; type: string; at: number | null; fields: Fields };

export function rowOf(value: unknown): Row | null {
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

/** Texts that Gemini itself puts under the user's name, without beginning a turn. */
const ownTexts =
  /^(<session_context>|<hook_context>|I ran the following shell command:|User has manually exited Plan Mode\.|Plan approved\. Switching)/;

/** What a person said; null: not a prompt. */
export function promptIn({ type, fields }: { type: string; fields: Fields }): string | null {
  if (type !== "user" || isToolAnswer(fields)) return null;
  const text = textOf(fields["displayContent"] ?? fields["content"]);
  return text === "" || ownTexts.test(text) ? null : text;
}

export const isToolAnswer = (fields: Fields): boolean =>
  listIn(fields, "content").some((part) => part["functionResponse"] !== undefined);

/** The text of a message: a string, or a list of parts. */
const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : listIn({ content }, "content")
        .flatMap((part) => textIn(part, "text") ?? [])
        .join("\n");

const headLines = 40;

export function readHead(lines: Iterable<Line>): { header: Fields | null; at: number | null; prompt: string | null } {
  const head: ReturnType<typeof readHead> = { header: null, at: null, prompt: null };
  let seen = 0;
  for (const line of lines) {
    const row = line.ok ? rowOf(line.value) : null;
    seen += 1;
    if (row?.kind === "header" && seen === 1) head.header = row.fields;
    if (row?.kind === "header") head.at ??= timeIn(row.fields, "startTime");
    if (row?.kind === "message") head.prompt ??= promptIn(row);
    if (head.prompt !== null || seen >= headLines) break;
  }
  return head;
}

export function parseLine(value: unknown): LineFacts | null {
  const row = rowOf(value);
  if (row === null || (row.kind === "message" && !messageTypes.includes(row.type))) return null;
  const tokens = row.kind === "message" ? tokensIn(fieldsIn(row.fields, "tokens")) : null;
  return {
    messages: row.kind === "message" ? messagesOf(row) : [],
    // A message is written again when its tools are done.
    usage:
      tokens === null || row.kind !== "message" ? null : { key: row.id, tokens, model: textIn(row.fields, "model") },
    costUsd: null,
    denied: 0,
  };
}

const messageTypes = ["user", "gemini", "info", "warning", "error"];

/** The prompt contains what came from the cache. */
function tokensIn(counted: Fields): Tokens | null {
  const [all, output] = [countIn(counted, "input"), countIn(counted, "output")];
  if (all === null || output === null) return null;
  const cacheRead = countIn(counted, "cached") ?? 0;
  return {
    input: Math.max(0, all - cacheRead) + (countIn(counted, "tool") ?? 0),
    output: output + (countIn(counted, "thoughts") ?? 0),
    cacheRead,
    cacheWrite: 0,
  };
}

function messagesOf(row: Extract<Row, { kind: "message" }>): Message[] {
  const { type, at, fields } = row;
  const say = (role: Message["role"], text: string, tool: string | null = null): Message => ({ at, role, text, tool });
  if (type === "user") {
    const prompt = promptIn(row);
    return prompt === null ? [] : [say("user", prompt)];
  }
  if (type !== "gemini") return [say("note", textOf(fields["content"]))];
  const calls = listIn(fields, "toolCalls");
  // The text stood in the same message's first line.
  if (calls.length > 0)
    return calls.flatMap((call) => {
      const name = textIn(call, "name");
      return [say("tool", argumentsOf(call), name), say("result", resultOf(call), name)];
    });
  // A list of parts is history that was written anew.
  const text = textIn(fields, "content") ?? "";
  return text === "" ? [] : [say("agent", text)];
}

const argumentsOf = (call: Fields): string => {
  const given = fieldsIn(call, "args");
  return textIn(given, "command") ?? textIn(given, "file_path") ?? jsonText(given);
};

function resultOf(call: Fields): string {
  if (typeof call["result"] === "string") return call["result"];
  return listIn(call, "result")
    .map((part) => {
      const response = fieldsIn(fieldsIn(part, "functionResponse"), "response");
      return textIn(response, "output") ?? textIn(response, "error") ?? jsonText(response);
    })
    .join("\n");
}
