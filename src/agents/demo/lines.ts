// Reads a demo agent's record: its first lines, its last turn, its conversation.
import type { NativeRecord, Turn, Waiting } from "../../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "../adapter.ts";
import { countIn, type Fields, fieldsOf, textIn, textsIn, timeIn, uuidIn } from "../fields.ts";
import {
  emptyTail,
  firstRows,
  lastRows,
  messageAt,
  noLineFacts,
  type RecordTail,
  tokensIn,
  typedLine,
  unreadTurn,
} from "../record-lines.ts";

interface DemoHead {
  /** Empty if the first line is not the header. */
  header: Fields;
  prompt: string | null;
  title: string | null;
}

const headLines = 20;

export function readHead(lines: Iterable<Line>): DemoHead {
  const head: DemoHead = { header: {}, prompt: null, title: null };
  for (const { row: fields, index } of firstRows(lines, headLines, fieldsOf)) {
    if (fields?.["type"] === "session" && index === 0) head.header = fields;
    if (fields?.["type"] === "prompt") head.prompt ??= textIn(fields, "text");
    if (fields?.["type"] === "title") head.title = textIn(fields, "text");
  }
  return head;
}

interface DemoTail extends RecordTail {
  waiting: NativeRecord["waiting"];
  background: NativeRecord["background"];
  continuedBy: string | null;
  title: string | null;
}

/** Reads from the end back to the last mark of a turn. A broken line on the way makes the turn unclear. */
export function readTail(file: RecordFile): DemoTail {
  const tail: DemoTail = { ...emptyTail, waiting: null, background: null, continuedBy: null, title: null };
  let newestIsQuestion: boolean | null = null;
  let mark: Turn | null = null;
  const search = {
    parse: typedLine,
    isTurnFound: () => mark !== null,
    // Background work may have begun in an earlier turn.
    hasAllFacts: () => tail.background !== null,
  };
  for (const { type, fields } of lastRows(file, tail, search)) {
    if (type === "background") tail.background ??= backgroundIn(fields);
    if (mark !== null) continue;
    if (!lineTypes.includes(type)) tail.unknown += 1;
    const at = timeIn(fields, "at");
    if (type !== "title" && type !== "background") tail.lastAt ??= at;
    if (type === "question" && newestIsQuestion === null) tail.waiting = questionIn(fields, at);
    if (type === "question" || type === "answer") newestIsQuestion ??= type === "question";
    if (type === "continued") tail.continuedBy ??= uuidIn(fields, "by");
    if (type === "title") tail.title ??= textIn(fields, "text");
    if (type === "prompt") mark = { state: "open", since: at, doubt: null };
    if (type === "end")
      mark = { state: "closed", at, outcome: outcomes.find((known) => known === fields["outcome"]) ?? null };
  }
  tail.turn = unreadTurn(file, tail, mark !== null) ?? mark ?? tail.turn;
  if (tail.turn.state !== "open") tail.waiting = null;
  return tail;
}

const backgroundIn = (fields: Fields): NativeRecord["background"] => ({
  shells: countIn(fields, "shells") ?? 0,
  subagents: countIn(fields, "subagents") ?? 0,
});

const kinds: readonly Waiting["kind"][] = ["permission", "question", "plan", "trust", "login", "limit", "other"];

export function questionIn(fields: Fields, since: number | null): NativeRecord["waiting"] {
  const kind = kinds.find((known) => known === fields["kind"]) ?? "other";
  const [text, tool] = [textIn(fields, "text"), textIn(fields, "tool")];
  return { kind, text, tool, options: textsIn(fields, "options"), since };
}

const outcomes = ["completed", "failed", "interrupted"] as const;

const lineTypes = "session prompt reply tool tool-result question answer background end continued title".split(" ");

export function parseLine(value: unknown): LineFacts | null {
  const line = typedLine(value);
  if (line === null || !lineTypes.includes(line.type)) return null;
  const { type, fields } = line;
  const text = textIn(fields, "text") ?? "";
  const tool = textIn(fields, "name");
  const say = messageAt(timeIn(fields, "at"));
  const message = (role: Message["role"], words = text): Message[] => [say(role, words, tool)];
  const messages: Record<string, () => Message[]> = {
    prompt: () => message("user"),
    answer: () => message("user"),
    reply: () => message("agent"),
    question: () => message("agent"),
    tool: () => message("tool", textIn(fields, "input") ?? ""),
    "tool-result": () => message("result"),
    end: () =>
      fields["outcome"] === "completed" ? [] : message("note", `${textIn(fields, "outcome")} ${text}`.trim()),
  };
  const tokens = fieldsOf(fields["tokens"]);
  // Replies have no id: the key is made from the time and the text.
  const usage = tokens && { key: `${textIn(fields, "at")} ${text}`, tokens: tokensIn(tokens), model: null };
  const denied = type === "tool-result" && fields["denied"] === true ? 1 : 0;
  return { ...noLineFacts, messages: messages[type]?.() ?? [], usage, denied };
}
