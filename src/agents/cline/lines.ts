// Reads Cline's two documents about a session: the announcement of its process, its last turn, its conversation.
import { type Announcement, emptyAnnouncement, type Outcome, type Turn, type Waiting } from "../../core/evidence.ts";
import { type Reading, read } from "../../core/problem.ts";
import type { TurnReason } from "../../core/reason.ts";
import type { AnnouncementFile, Assembly, LineFacts, Message } from "../adapter.ts";
import { unknownAnnouncement } from "../announcements.ts";
import {
  countIn,
  type Fields,
  fieldsIn,
  fieldsOf,
  listIn,
  lookUp,
  millisIn,
  textIn,
  textsIn,
  timeIn,
} from "../fields.ts";
import { blocksIn, callText, messageAt, noLineFacts, textPartsOf } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { costIn, type TokenKeys, tokensWithoutCache } from "../tokens.ts";

export const isSessionId = (text: string): boolean => /^\d{10,16}_[A-Za-z0-9]{1,32}$/.test(text);

const endings: Readonly<Record<string, Outcome>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "interrupted",
};

const isEnded = (state: Fields): boolean => lookUp(endings, textIn(state, "status") ?? "") !== undefined;

export function parseAnnouncement(file: AnnouncementFile): Reading<Announcement> {
  const state = fieldsOf(file.value) ?? {};
  const [session, pid] = [textIn(state, "session_id"), countIn(state, "pid")];
  if (session === null || !isSessionId(session) || pid === null)
    return unknownAnnouncement("cline", file, "no-owner-recorded");
  return read({
    ...emptyAnnouncement({ ...file, session, pid }),
    cwd: textIn(state, "cwd"),
    // The hub has many sessions at the same time.
    ...(isServed(state) ? {} : { begunAt: timeIn(state, "started_at") }),
    // A run without an interface exits when its session ends; an interface and the hub continue.
    isOver: isEnded(state) && (state["interactive"] !== false || isServed(state)),
  });
}

/** Reads the state, and the messages back to the last prompt, newest first. */
export const parseRecord = recordParser<Fields>({
  agent: "cline",
  parse: fieldsOf,
  isKnown: (fields) => parseLine(fields) !== null,
  open(record, { id, writtenAt }) {
    let state: Fields = {};
    const messages: Fields[] = [];
    let isPrompted = false;
    return {
      isTurnFound: () => isPrompted,
      hasAllFacts: () => true,
      add(fields) {
        if (fields["type"] === "state") {
          state = fieldsIn(fields, "state");
          return;
        }
        messages.push(fields);
        isPrompted = promptIn(fields) !== null;
      },
      turn: () => turnOf(state, messages, writtenAt),
      finish() {
        if (textIn(state, "status") === null || textIn(state, "session_id") !== id) return "record-unknown-shape";
        const metadata = fieldsIn(state, "metadata");
        const prompt = textIn(state, "prompt");
        record.cwd = textIn(state, "cwd");
        record.createdAt = timeIn(state, "started_at");
        record.lastMessageAt = newestAt(messages);
        record.pending = pendingCall(messages);
        record.waiting = isWaiting(state, record.pending)
          ? {
              ...(record.pending ?? { kind: "permission", text: null, tool: null, options: [] }),
              since: newestAt(messages),
            }
          : null;
        record.parent = textIn(fieldsIn(metadata, "fork"), "forkedFromSessionId");
        record.isOver = isEnded(state);
        record.facts.model = textIn(state, "model");
        record.facts.title = textIn(metadata, "title");
        record.facts.prompt = prompt && unwrapped(prompt);
        record.facts.branch = textIn(fieldsIn(metadata, "git"), "branch");
        record.facts.agentVersion = textIn(fieldsIn(metadata, "sessionHistoryOrigin"), "version");
        return null;
      },
    };
  },
});

const newestAt = ([newest = {}]: readonly Fields[]): number | null => millisIn(newest, "ts");

/** A call in the newest message: it has no result yet. */
function pendingCall([newest]: readonly Fields[]): Waiting | null {
  const call = newest === undefined ? undefined : blocksIn(newest).findLast((block) => block["type"] === "tool_use");
  if (call === undefined) return null;
  const [tool, text] = [textIn(call, "name"), inputText(fieldsIn(call, "input"))];
  return tool === "ask_question"
    ? { kind: "question", text, tool, options: textsIn(fieldsIn(call, "input"), "options") }
    : { kind: "permission", text, tool, options: [] };
}

/** Cline records the state of the turn. The messages show its times and its outcome. */
function turnOf(state: Fields, tail: readonly Fields[], writtenAt: number): Turn {
  const status = textIn(state, "status") ?? "";
  const lastAt = newestAt(tail);
  const ended = lookUp(endings, status);
  if (ended !== undefined) {
    // Each start of Cline marks the sessions that were cut off during a turn.
    const outcome = textIn(fieldsIn(state, "metadata"), "terminal_marker") === null ? ended : "cut-off";
    return { state: "closed", at: timeIn(state, "ended_at") ?? lastAt, outcome };
  }
  if (status === "running" || status === "pending")
    return { state: "open", since: openSince(state, tail, writtenAt), doubt: doubtOf(state, tail) };
  if (status !== "idle") return { state: "unclear", why: { code: "unknown-status", text: status } };
  // A new session is also "idle" until the turn of its first prompt begins.
  return tail.length === 0 ? { state: "none" } : { state: "closed", at: lastAt, outcome: outcomeOf(tail) };
}

/** The record keeps `interactive: false` if an interface reopens the session: a question may be answered at once, or may wait. */
function doubtOf(state: Fields, tail: readonly Fields[]): TurnReason | null {
  if (isServed(state)) return { code: "hub-does-not-tell" };
  return pendingCall(tail)?.kind === "question" && state["interactive"] !== true ? { code: "tool-call-pending" } : null;
}

/** The status is "pending" while Cline asks whether a tool may run. A question is a tool call. */
function isWaiting(state: Fields, pending: Waiting | null): boolean {
  if (isServed(state)) return false;
  const asks = state["status"] === "running" && state["interactive"] === true && pending?.kind === "question";
  return state["status"] === "pending" || asks;
}

/** Only the hub records this setting. It does not record that the program that began a session has exited. */
const isServed = (state: Fields): boolean => typeof fieldsIn(state, "metadata")["autoApproveTools"] === "boolean";

/** A prompt is recorded together with its first answer. Until then the newest message is from the turn before, and only the state was written. */
function openSince(state: Fields, tail: readonly Fields[], writtenAt: number): number | null {
  if (tail.length === 0) return timeIn(state, "started_at");
  const [newest] = tail;
  const isAnswered = newest?.["role"] === "assistant" && pendingCall(tail) === null;
  return isAnswered ? writtenAt : millisIn(tail.at(-1) ?? {}, "ts");
}

function outcomeOf([newest = {}]: readonly Fields[]): Outcome {
  if (newest["role"] !== "assistant") return "interrupted";
  return isErrorNote(newest) ? "failed" : "completed";
}

export const documents: Assembly = {
  sessions: null,
  forward: (reader, id) => messagesIn(reader.json(`${id}.messages.json`)),
  *backward(reader, id) {
    // The state is read first, so that the messages are never older than the state.
    yield { type: "state", state: reader.json() };
    yield* messagesIn(reader.json(`${id}.messages.json`)).reverse();
  },
};

const messagesIn = (document: unknown): unknown[] =>
  listIn(fieldsOf(document) ?? {}, "messages").map((message) => ({ ...message, type: "message" }));

/** The prompt of a person; null: another kind of message. Cline wraps it in a tag, and adds its own notices. */
function promptIn(message: Fields): string | null {
  if (message["role"] !== "user") return null;
  const text = textPartsOf(message);
  return text === "" ? null : unwrapped(text);
}

function unwrapped(text: string): string {
  const inner = /<user_input\b[^>]*>([\s\S]*)<\/user_input>/.exec(text)?.[1];
  return (inner ?? text).trim();
}

/** An error that Cline writes as a message. */
const isErrorNote = (message: Fields): boolean => fieldsIn(message, "metadata")["displayRole"] === "error";

export function parseLine(value: unknown): LineFacts | null {
  const message = fieldsOf(value);
  if (message === null) return null;
  if (message["type"] === "state") return noLineFacts;
  if (message["type"] !== "message" || !["user", "assistant"].includes(textIn(message, "role") ?? "")) return null;
  const denied = blocksIn(message).filter(isDenied).length;
  return { ...noLineFacts, messages: entriesOf(message), usage: usageOf(message), denied };
}

function entriesOf(message: Fields): Message[] {
  const say = messageAt(millisIn(message, "ts"));
  const prompt = promptIn(message);
  const entries = blocksIn(message).flatMap((block): Message[] => {
    const tool = textIn(block, "name");
    const text = textIn(block, "text") ?? "";
    if (block["type"] === "tool_use") return [say("tool", inputText(fieldsIn(block, "input")), tool)];
    if (block["type"] === "tool_result") return [say("result", resultText(block), tool)];
    if (block["type"] !== "text" || message["role"] === "user" || text === "") return [];
    return [say(isErrorNote(message) ? "note" : "agent", text)];
  });
  return prompt === null ? entries : [say("user", prompt), ...entries];
}

function usageOf(message: Fields): LineFacts["usage"] {
  const metrics = fieldsIn(message, "metrics");
  const tokens = tokensWithoutCache(metrics, tokenKeys);
  const id = textIn(message, "id");
  if (tokens === null || id === null) return null;
  const model = textIn(fieldsIn(message, "modelInfo"), "id");
  return { key: id, tokens, model, costUsd: costIn(metrics) };
}

const tokenKeys: TokenKeys = ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"];

function inputText(input: Fields): string {
  const commands = textsIn(input, "commands").join("\n");
  return commands || callText(input, ["command", "path", "question", "query", "url", "task"]);
}

const resultText = (block: Fields): string =>
  textIn(block, "content") ??
  listIn(block, "content")
    .map((part) => callText(part, ["error", "result", "text"]))
    .join("\n");

/** Without an interface Cline denies calls that need an approval, and calls of tools that were removed. A refusal by a person was not seen. */
const isDenied = (block: Fields): boolean =>
  block["type"] === "tool_result" &&
  block["is_error"] === true &&
  /requires approval in a TTY|was rejected before execution/i.test(resultText(block));
