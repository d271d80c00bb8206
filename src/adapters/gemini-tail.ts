// How far the last turn of a Gemini record got.
import type { Turn } from "../core/evidence.ts";
import type { RecordFile } from "./adapter.ts";
import { type Fields, listIn, textIn, timeIn } from "./fields.ts";
import { isToolAnswer, parseLine, promptIn, type Row, rowOf } from "./gemini-lines.ts";

interface Tail {
  /** Nothing but, at most, the start of a first line. */
  empty: boolean;
  turn: Turn;
  model: string | null;
  title: string | null;
  lastAt: number | null;
  skipped: number;
  unknown: number;
}

/** How far beyond the last prompt its model and its title are looked for. */
const factLines = 200;

/** From the end back to the last prompt; broken lines on the way leave the turn unclear. */
export function readTail(file: RecordFile): Tail {
  const none = { model: null, title: null, lastAt: null };
  const tail: Tail = { empty: true, turn: { state: "none" }, skipped: 0, unknown: 0, ...none };
  const since: Row[] = [];
  const rewritten = new Set<string>();
  let prompt: Message | null = null;
  let beyond = 0;
  for (const line of file.backward()) {
    tail.empty = false;
    if (prompt !== null) beyond += 1;
    if (beyond > factLines || (prompt !== null && tail.model !== null && tail.title !== null)) break;
    const row = line.ok ? rowOf(line.value) : null;
    if (row?.kind === "patch") tail.title ??= textIn(row.set, "summary");
    if (row?.kind === "message") tail.model ??= textIn(row.fields, "model");
    if (prompt !== null) continue;
    if (row === null) {
      tail.skipped += 1;
      continue;
    }
    if (line.ok && parseLine(line.value) === null) tail.unknown += 1;
    tail.lastAt ??= timeOf(row);
    // Messages that were written once more, in front of the whole history that holds them.
    if (row.kind === "patch") for (const { id } of listIn(row.set, "messages")) rewritten.add(String(id));
    if (row.kind === "message" && rewritten.has(row.id) && since.some(isRewriting)) continue;
    if (row.kind === "message" && promptIn(row) !== null) prompt = row;
    else since.push(row);
  }
  tail.turn = turnOf(prompt, since.reverse(), tail, file);
  // What says nothing of a turn never speaks for a session that has another file.
  if (tail.turn.state === "none") tail.lastAt = null;
  return tail;
}

type Message = Extract<Row, { kind: "message" }>;

const isRewriting = (row: Row): boolean => row.kind === "patch" && Array.isArray(row.set["messages"]);

/** Opening a session counts: it is written by whoever has it then. */
function timeOf(row: Row): number | null {
  if (row.kind === "message") return row.at;
  if (row.kind === "header") return timeIn(row.fields, "startTime");
  return row.kind === "patch" && isRewriting(row) ? timeIn(row.set, "lastUpdated") : null;
}

function turnOf(prompt: Message | null, since: readonly Row[], tail: Tail, file: RecordFile): Turn {
  if (file.torn && !tail.empty) return { state: "unclear", why: "the last line of its record is not complete" };
  if (tail.skipped > 0) return { state: "unclear", why: "broken lines after the last prompt" };
  if (prompt === null)
    return file.size > file.tailBytes
      ? { state: "unclear", why: "its last turn is longer than we read" }
      : { state: "none" };
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
  /** A process has just opened the session: it writes the whole history, which says nothing new. */
  isOpening: boolean;
}

function seeMessage({ type, at, fields }: Message, since: number | null, seen: Seen): void {
  const { turn } = seen;
  if (type === "gemini") seen.turn = afterAnswer(at, fields, since);
  else if (type === "user" && isToolAnswer(fields) && turn.state === "open") seen.turn = { ...turn, doubt: null };
  else if (type === "info" && fields["content"] === "Request cancelled.") {
    // The tool is ended after that, and the history mended.
    seen.isCancelled = true;
    if (turn.state === "open" || (turn.state === "closed" && turn.doubt !== undefined))
      seen.turn = { state: "open", since, doubt: "it is being cancelled" };
  } else if (type === "error" && textIn(fields, "content")?.startsWith("[API Error") === true)
    seen.turn = { state: "closed", at, outcome: "failed" };
}

/** Calls are recorded when they are done: until then an answer without a text called a tool, and one with a text may have. */
function afterAnswer(at: number | null, fields: Fields, since: number | null): Turn {
  const calls = listIn(fields, "toolCalls").map((call) => textIn(call, "status"));
  const left = calls.filter((status) => status === "cancelled").length;
  if (calls.length > 0 && left === calls.length) return { state: "closed", at, outcome: "interrupted" };
  if (left > 0) return { state: "unclear", why: "a part of its tool calls was cancelled" };
  if (calls.length > 0) return { state: "open", since, doubt: "what follows its tools is not recorded yet" };
  if (fields["content"] === "") return { state: "open", since, doubt: "tool call pending" };
  return { state: "closed", at, outcome: null, doubt: "its answer may have called a tool" };
}

function seeChange(row: Exclude<Row, Message>, seen: Seen): void {
  if (row.kind === "rewind") seen.turn = { state: "closed", at: null, outcome: null };
  else if (row.kind === "header" || textIn(row.set, "sessionId") !== null) seen.isOpening = true;
  else if (isRewriting(row)) {
    const isKnown = seen.isOpening || (seen.turn.state === "closed" && seen.turn.outcome !== null);
    seen.isOpening = false;
    if (isKnown) return;
    // A prompt that was cancelled is taken out of the history. Else a turn may go on with a history that was made shorter.
    seen.turn = seen.isCancelled
      ? { state: "closed", at: timeIn(row.set, "lastUpdated"), outcome: "interrupted" }
      : { state: "unclear", why: "its history was written anew inside a turn" };
  }
}
