// Reads a Gemini record from its end: the state of its last turn, its model, its title.
import type { Turn } from "../../core/evidence.ts";
import type { RecordFile } from "../adapter.ts";
import { type Fields, listIn, textIn, timeIn } from "../fields.ts";
import { emptyTail, lastRows, type RecordTail, unreadTurn } from "../record-lines.ts";
import { type GeminiLine, isKnown, isToolAnswer, promptIn, rowOf } from "./lines.ts";

interface GeminiTail extends RecordTail {
  model: string | null;
  title: string | null;
}

/** Reads from the end back to the last prompt. A broken line on the way makes the turn unclear. */
export function readTail(file: RecordFile): GeminiTail {
  const tail: GeminiTail = { ...emptyTail, model: null, title: null };
  const since: GeminiLine[] = [];
  const rewritten = new Set<string>();
  let prompt: GeminiMessage | null = null;
  const search = {
    parse: rowOf,
    isTurnFound: () => prompt !== null,
    hasAllFacts: () => tail.model !== null && tail.title !== null,
  };
  for (const row of lastRows(file, tail, search)) {
    if (row.kind === "patch") tail.title ??= textIn(row.set, "summary");
    if (row.kind === "message") tail.model ??= textIn(row.fields, "model");
    if (prompt !== null) continue;
    if (!isKnown(row)) tail.unknown += 1;
    tail.lastAt ??= timeOf(row);
    // Skips messages that a newer patch with the whole history contains.
    if (row.kind === "patch") for (const { id } of listIn(row.set, "messages")) rewritten.add(String(id));
    if (row.kind === "message" && rewritten.has(row.id) && since.some(isRewriting)) continue;
    if (row.kind === "message" && promptIn(row) !== null) prompt = row;
    else since.push(row);
  }
  tail.turn = unreadTurn(file, tail, prompt !== null) ?? turnOf(prompt, since.reverse());
  // A file without a turn must not count as the newest file of its session.
  if (tail.turn.state === "none") tail.lastAt = null;
  return tail;
}

type GeminiMessage = Extract<GeminiLine, { kind: "message" }>;

const isRewriting = (row: GeminiLine): boolean => row.kind === "patch" && Array.isArray(row.set["messages"]);

function timeOf(row: GeminiLine): number | null {
  if (row.kind === "message") return row.at;
  if (row.kind === "header") return timeIn(row.fields, "startTime");
  return row.kind === "patch" && isRewriting(row) ? timeIn(row.set, "lastUpdated") : null;
}

function turnOf(prompt: GeminiMessage | null, since: readonly GeminiLine[]): Turn {
  if (prompt === null) return { state: "none" };
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
