// Reads a Gemini record: its last turn, its facts, its conversation.
import type { Tokens, Turn } from "../../core/evidence.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, listIn, textIn, timeIn } from "../fields.ts";
import { callText, contentText, messageAt, noLineFacts, responseText } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { tokensWithoutCache } from "../tokens.ts";

/** A patch changes what earlier lines set. */
type GeminiLine =
  | { kind: "header"; fields: Fields }
  | { kind: "patch"; set: Fields }
  | { kind: "rewind" }
  | { kind: "message"; id: string; type: string; at: number | null; fields: Fields };

function rowOf(value: unknown): GeminiLine | null {
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
function promptIn({ type, fields }: { type: string; fields: Fields }): string | null {
  if (type !== "user" || isToolAnswer(fields)) return null;
  const text = contentText(fields, fields["displayContent"] == null ? "content" : "displayContent");
  return text === "" || ownTexts.test(text) ? null : text;
}

const isToolAnswer = (fields: Fields): boolean =>
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

const isKnown = (row: GeminiLine): boolean => row.kind !== "message" || messageTypes.includes(row.type);

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

/** Reads from the end back to the last prompt. */
export const parseRecord = recordParser<GeminiLine>({
  agent: "gemini",
  parse: rowOf,
  isKnown,
  headLines: 40,
  open(record, file) {
    const { facts } = record;
    const since: GeminiLine[] = [];
    const rewritten = new Set<string>();
    let prompt: GeminiMessage | null = null;
    let hasHeader = false;
    return {
      isTurnFound: () => prompt !== null,
      hasAllFacts: () => facts.model !== null && facts.title !== null,
      fact(row) {
        if (row.kind === "patch") facts.title ??= textIn(row.set, "summary");
        if (row.kind === "message") facts.model ??= textIn(row.fields, "model");
      },
      add(row) {
        record.lastMessageAt ??= timeOf(row);
        // Skips messages that a newer patch with the whole history contains.
        if (row.kind === "patch") for (const { id } of listIn(row.set, "messages")) rewritten.add(String(id));
        if (row.kind === "message" && rewritten.has(row.id) && since.some(isRewriting)) return;
        if (row.kind === "message" && promptIn(row) !== null) prompt = row;
        else since.push(row);
      },
      turn: () => prompt && turnOf(prompt, since.toReversed()),
      first(row, index) {
        if (row.kind === "header" && index === 0) hasHeader = true;
        if (row.kind === "header") record.createdAt ??= timeIn(row.fields, "startTime");
        if (row.kind === "message") facts.prompt = promptIn(row);
      },
      finish() {
        // A file without a turn must not count as the newest file of its session.
        if (record.turn.state === "none") record.lastMessageAt = null;
        record.cwd = file.beside("../.project_root")?.trim() || null;
        // Each resume of a session begins another file with the same id.
        record.isSegment = true;
        return hasHeader || (prompt === null && since.length === 0) ? null : "record-unknown-shape";
      },
    };
  },
});

type GeminiMessage = Extract<GeminiLine, { kind: "message" }>;

const isRewriting = (row: GeminiLine): boolean => row.kind === "patch" && Array.isArray(row.set["messages"]);

function timeOf(row: GeminiLine): number | null {
  if (row.kind === "message") return row.at;
  if (row.kind === "header") return timeIn(row.fields, "startTime");
  return row.kind === "patch" && isRewriting(row) ? timeIn(row.set, "lastUpdated") : null;
}

function turnOf(prompt: GeminiMessage, since: readonly GeminiLine[]): Turn {
  const seen: Seen = { turn: { state: "open", since: prompt.at, doubt: null }, isCancelled: false, isOpening: false };
  for (const row of since) {
    if (row.kind === "message") seeMessage(row, prompt.at, seen);
    else seeChange(row, seen);
  }
  return seen.turn;
}

interface Seen {
  turn: Turn;
  isCancelled: boolean;
  /** A process has just opened the session: it writes the whole history again, which changes nothing. */
  isOpening: boolean;
}

function seeMessage({ type, at, fields }: GeminiMessage, since: number | null, seen: Seen): void {
  const { turn } = seen;
  if (type === "gemini") seen.turn = afterAnswer(at, fields, since);
  else if (type === "user" && isToolAnswer(fields) && turn.state === "open") seen.turn = { ...turn, doubt: null };
  else if (type === "info" && fields["content"] === "Request cancelled.") {
    // Gemini ends the tool and corrects the history only after this line.
    seen.isCancelled = true;
    if (turn.state === "open" || (turn.state === "closed" && turn.doubt !== undefined))
      seen.turn = { state: "open", since, doubt: { code: "being-cancelled" } };
  } else if (type === "error" && textIn(fields, "content")?.startsWith("[API Error") === true)
    seen.turn = { state: "closed", at, outcome: "failed" };
}

/** Calls are recorded when they are done. Until then an answer without text has called a tool, and an answer with text may have. */
function afterAnswer(at: number | null, fields: Fields, since: number | null): Turn {
  const calls = listIn(fields, "toolCalls").map((call) => textIn(call, "status"));
  const cancelled = calls.filter((status) => status === "cancelled").length;
  if (calls.length > 0 && cancelled === calls.length) return { state: "closed", at, outcome: "interrupted" };
  if (cancelled > 0) return { state: "unclear", why: { code: "calls-partly-cancelled" } };
  if (calls.length > 0) return { state: "open", since, doubt: { code: "after-tools-unknown" } };
  if (fields["content"] === "") return { state: "open", since, doubt: { code: "tool-call-pending" } };
  return { state: "closed", at, outcome: null, doubt: { code: "may-call-tool" } };
}

function seeChange(row: Exclude<GeminiLine, GeminiMessage>, seen: Seen): void {
  if (row.kind === "rewind") seen.turn = { state: "closed", at: null, outcome: null };
  else if (row.kind === "header" || textIn(row.set, "sessionId") !== null) seen.isOpening = true;
  else if (isRewriting(row)) {
    const isSettled = seen.isOpening || (seen.turn.state === "closed" && seen.turn.outcome !== null);
    seen.isOpening = false;
    if (isSettled) return;
    // Gemini removes a cancelled prompt from the history. Without a cancellation, a turn may continue with a shortened history.
    seen.turn = seen.isCancelled
      ? { state: "closed", at: timeIn(row.set, "lastUpdated"), outcome: "interrupted" }
      : { state: "unclear", why: { code: "history-rewritten" } };
  }
}
