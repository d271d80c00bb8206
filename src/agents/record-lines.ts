// The code that parsers of records share: how far to read from either end, what damage means for the last turn, and the parts of
// a line (contents, tool calls, token counts).
import { emptyRecord, type NativeRecord, type Tokens, type Turn } from "../core/evidence.ts";
import { type Reading, unread } from "../core/problem.ts";
import type { AnnouncementFile, Line, LineFacts, Message, RecordFile } from "./adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, isUuid, jsonText, listIn, lookUp, textIn } from "./fields.ts";

export function typedLine(value: unknown): { type: string; fields: Fields } | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  return fields === null || type === null ? null : { type, fields };
}

/** The first lines of a record, with their position. A line that `parse` does not understand becomes null. */
export function* firstRows<T>(
  lines: Iterable<Line>,
  maxLines: number,
  parse: (value: unknown) => T | null,
): Generator<{ row: T | null; index: number }> {
  let index = 0;
  for (const line of lines) {
    yield { row: line.ok ? parse(line.value) : null, index };
    index += 1;
    if (index >= maxLines) return;
  }
}

/** What was read from the end of a record. */
export interface RecordTail {
  /** Lines of the last turn that were understood. */
  lines: number;
  /** The file has no complete line. */
  empty: boolean;
  /** Lines of the last turn that were not understood. */
  skipped: number;
  /** Lines of the last turn whose kind is unknown. */
  unknown: number;
  turn: Turn;
  /** The time of the newest message. */
  lastAt: number | null;
}

export const emptyTail: RecordTail = {
  ...{ lines: 0, empty: true, skipped: 0, unknown: 0 },
  ...{ turn: { state: "none" }, lastAt: null },
};

interface TailSearch<T> {
  parse(value: unknown): T | null;
  /** The beginning or the end of the last turn was found: older lines are only read for facts such as the model. */
  isTurnFound(): boolean;
  hasAllFacts(): boolean;
  mayMatter?: (line: Buffer) => boolean;
}

/** The number of lines before the last turn that are searched for facts. */
const mostFactLines = 200;

/** The lines of a record from its end: all of the last turn, then older ones until every fact is known. Counts them in `tail`. */
export function* lastRows<T>(file: RecordFile, tail: RecordTail, search: TailSearch<T>): Generator<T> {
  let factLines = 0;
  for (const line of file.backward(search.mayMatter)) {
    tail.empty = false;
    const isOlder = search.isTurnFound();
    if (isOlder) factLines += 1;
    if (isOlder && (factLines > mostFactLines || search.hasAllFacts())) return;
    const row = line.ok ? search.parse(line.value) : null;
    if (row !== null && !isOlder) tail.lines += 1;
    if (row !== null) yield row;
    else if (!isOlder) tail.skipped += 1;
  }
}

/** The file contains no line of this agent, nor the start of a first line that is still being written. */
export const isForeign = (file: RecordFile, { lines, empty }: RecordTail): boolean =>
  lines === 0 && !(empty && file.startsLikeJson);

/** Why the record does not show its last turn; null: it does. `isFound`: the line that shows the state of the turn was read. */
export function unreadTurn(file: RecordFile, { empty, skipped }: RecordTail, isFound: boolean): Turn | null {
  if (file.torn && !empty) return { state: "unclear", why: { code: "last-line-incomplete" } };
  if (skipped > 0) return { state: "unclear", why: { code: "broken-lines" } };
  if (!isFound && file.size > file.tailBytes) return { state: "unclear", why: { code: "turn-too-long" } };
  return null;
}

export const recordWithTail = (file: RecordFile, tail: RecordTail): NativeRecord => ({
  ...emptyRecord(file),
  lastMessageAt: tail.lastAt,
  turn: tail.turn,
  skippedLines: tail.skipped,
  unknownLines: tail.unknown,
});

export const unknownRecord = (
  agent: string,
  { path }: RecordFile,
  code: "record-unknown-shape" | "another-id-inside" | "compressed" = "record-unknown-shape",
): Reading<never> => unread({ code: "record-unrecognized", agent, source: path, detail: { code } });

export const unknownAnnouncement = (
  agent: string,
  { path }: AnnouncementFile,
  code: "unknown-shape" | "no-owner-recorded" = "unknown-shape",
): Reading<never> => unread({ code: "announcement-unreadable", agent, source: path, detail: { code } });

/** For announcements that contain a UUID, and the pid that is also the name of the file; null: another shape. */
export function announcedSession(file: AnnouncementFile, key: string): { session: string; pid: number } | null {
  const fields = fieldsOf(file.value) ?? {};
  const session = textIn(fields, key);
  if (session === null || !isUuid(session) || file.pid === null || fields["pid"] !== file.pid) return null;
  return { session, pid: file.pid };
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

type TokenKeys = Readonly<Record<Exclude<keyof Tokens, "cacheWrite">, string>> & { cacheWrite?: string };

const sameKeys = { input: "input", output: "output", cacheRead: "cacheRead", cacheWrite: "cacheWrite" };

/** A missing count is 0. */
export const tokensIn = (counts: Fields, keys: TokenKeys = sameKeys): Tokens => ({
  input: countIn(counts, keys.input) ?? 0,
  output: countIn(counts, keys.output) ?? 0,
  cacheRead: countIn(counts, keys.cacheRead) ?? 0,
  cacheWrite: keys.cacheWrite === undefined ? 0 : (countIn(counts, keys.cacheWrite) ?? 0),
});

/** For agents that count cached tokens as input, too. null: input or output is missing. */
export function tokensWithoutCache(counts: Fields, keys: TokenKeys): Tokens | null {
  if (countIn(counts, keys.input) === null || countIn(counts, keys.output) === null) return null;
  const tokens = tokensIn(counts, keys);
  return { ...tokens, input: Math.max(0, tokens.input - tokens.cacheRead - tokens.cacheWrite) };
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
