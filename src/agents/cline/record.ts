// Reads Cline's two documents about a session: the announcement of its process, and the state of its last turn.
import { type Announcement, emptyAnnouncement, type Outcome, type Turn, type Waiting } from "../../core/evidence.ts";
import { type Reading, read } from "../../core/problem.ts";
import type { TurnReason } from "../../core/reason.ts";
import type { AnnouncementFile } from "../adapter.ts";
import { unknownAnnouncement } from "../announcements.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, lookUp, millisIn, textIn, textsIn, timeIn } from "../fields.ts";
import { blocksIn } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { inputText, isErrorNote, parseLine, promptIn, unwrapped } from "./lines.ts";

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
