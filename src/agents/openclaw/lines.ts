// Reads the record of an OpenClaw session: its row in the tables, its last turn, its conversation. The lines have Pi's format, with
// additions.
import type { Outcome, Turn, Waiting } from "../../core/evidence.ts";
import type { TurnReason } from "../../core/reason.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, lookUp, millisIn, numberIn, textIn, timeIn } from "../fields.ts";
import { answerParts, callText, messageAt, noLineFacts, textPartsOf, typedLine } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { tokensIn } from "../tokens.ts";
import { inputType, sessionIn, stateType } from "./store.ts";

/** What the state of the last turn depends on. */
interface GatewayTurn {
  /** The row of the session in its tables; null: it has none. */
  state: Fields | null;
  /** The oldest prompt that was accepted, and whose turn has not begun. */
  queued: { at: number | null; message: Fields } | null;
  promptedAt: number | null;
  /** Why and when the newest answer ended. */
  stopReason: string | null;
  answeredAt: number | null;
  /** The newest message is the result of a failed tool call, without an answer after it. null: there is no message. */
  endsInFailedCall: boolean | null;
}

/** Reads back to the prompt of the last turn. */
export const parseRecord = recordParser<Fields>({
  agent: "openclaw",
  parse: (value) => fieldsOf(value) ?? {},
  isKnown: (fields) => parseLine(fields) !== null,
  headLines: Number.POSITIVE_INFINITY,
  open(record, file) {
    const { facts } = record;
    const noAnswer = { stopReason: null, answeredAt: null, endsInFailedCall: null };
    const turn: GatewayTurn = { state: null, queued: null, promptedAt: null, ...noAnswer };
    const answered = new Set<string>();
    let isPrompted = false;
    return {
      isTurnFound: () => isPrompted,
      hasAllFacts: () => true,
      add(fields) {
        if (fields["type"] === stateType) turn.state = fields;
        if (fields["type"] === inputType && fields["state"] === "queued") {
          const at = millisIn(fields, "at");
          record.lastMessageAt ??= at;
          turn.queued = { at, message: fieldsIn(fields, "message") };
        }
        if (fields["customType"] === "model-snapshot") facts.model ??= textIn(fieldsIn(fields, "data"), "modelId");
        if (fields["type"] !== "message") return;
        const at = timeIn(fields, "timestamp");
        record.lastMessageAt ??= at;
        const message = fieldsIn(fields, "message");
        if (isGatewaysOwn(message)) return;
        turn.endsInFailedCall ??= message["role"] === "toolResult" && message["isError"] === true;
        if (message["role"] === "toolResult") answered.add(textIn(message, "toolCallId") ?? "");
        if (message["role"] === "assistant") {
          turn.stopReason ??= textIn(message, "stopReason");
          turn.answeredAt ??= at;
          facts.model ??= textIn(message, "model");
          record.pending ??= pendingIn(message, answered);
        }
        if (message["role"] !== "user") return;
        turn.promptedAt = at;
        isPrompted = true;
      },
      turn: () => turn.state && turnOf(turn.state, turn, record.pending),
      first({ type, cwd, message }) {
        if (type === "session") record.cwd = textIn({ cwd }, "cwd");
        const { role, content } = fieldsOf(type === "message" ? message : null) ?? {};
        if (role === "user") facts.prompt = textPartsOf({ content });
      },
      finish() {
        const { state, queued } = turn;
        if (state === null) return "record-unknown-shape";
        const times = [record.lastMessageAt, millisIn(state, "transcript_updated_at"), millisIn(state, "updated_at")];
        // The time of the file does not count: it contains many sessions, and new data is in its write-ahead log.
        record.writtenAt = Math.max(...times.map((time) => time ?? 0)) || file.writtenAt;
        record.cwd = textIn(state, "cwd") ?? record.cwd;
        record.createdAt = millisIn(state, "created_at");
        record.parent = sessionIn(state, "forked_from");
        record.continuedBy = sessionIn(state, "successor");
        record.subagentOf = sessionIn(state, "spawner");
        // The table has the model only after the end of a run.
        facts.model ??= textIn(state, "model");
        facts.title = textIn(state, "label") ?? textIn(state, "display_name");
        facts.prompt ??= queued && textPartsOf(queued.message);
        facts.permission = textIn(state, "permission");
        const key = textIn(state, "session_key");
        // The key becomes an argument, and must not look like an option.
        if (key !== null && !key.startsWith("-")) record.opensAs = key;
        return null;
      },
    };
  },
});

function pendingIn(message: Fields, answered: ReadonlySet<string>): Waiting | null {
  const call = listIn(message, "content").find(
    (block) => block["type"] === "toolCall" && !answered.has(textIn(block, "id") ?? ""),
  );
  if (call === undefined) return null;
  return { kind: "permission", text: commandOf(call), tool: textIn(call, "name"), options: [] };
}

const outcomes: Readonly<Record<string, Outcome>> = {
  done: "completed",
  failed: "failed",
  timeout: "failed",
  killed: "interrupted",
};

/** The status is that of the last run in a gateway. It does not describe a turn whose prompt came after the end of that run. */
function turnOf(state: Fields, last: GatewayTurn, pending: Waiting | null): Turn {
  const { queued, promptedAt, stopReason, endsInFailedCall } = last;
  const status = textIn(state, "status");
  const endedAt = millisIn(state, "ended_at");
  const doubt: TurnReason | null = pending === null ? null : { code: "tool-call-pending" };
  if (queued !== null) return { state: "open", since: queued.at, doubt: null };
  if (status === "running") return { state: "open", since: millisIn(state, "started_at") ?? promptedAt, doubt };
  if (status === null) return promptedAt === null ? { state: "none" } : turnWithoutRun(last, promptedAt, doubt);
  const outcome = lookUp(outcomes, status);
  if (outcome === undefined) return { state: "unclear", why: { code: "unknown-status", text: status } };
  if (endedAt === null) return { state: "unclear", why: { code: "no-end-time" } };
  if (promptedAt !== null && promptedAt > endedAt) return turnWithoutRun(last, promptedAt, doubt);
  // In 2026.9.6 the status is also "done" if the time limit ended the run during a tool call.
  const isBroken = stopReason === "error" || endsInFailedCall === true;
  return { state: "closed", at: endedAt, outcome: outcome === "completed" && isBroken ? "failed" : outcome };
}

const answers: Readonly<Record<string, Outcome>> = {
  stop: "completed",
  error: "failed",
  aborted: "interrupted",
};

/** The run has not begun; or it is `openclaw agent --local`, which writes no status: the last answer shows how it ended. */
function turnWithoutRun({ stopReason, answeredAt }: GatewayTurn, since: number, doubt: TurnReason | null): Turn {
  if (stopReason === null || stopReason === "toolUse") return { state: "open", since, doubt };
  const outcome = lookUp(answers, stopReason);
  if (outcome === undefined) return { state: "unclear", why: { code: "unknown-ending", text: stopReason } };
  return { state: "closed", at: answeredAt, outcome };
}

const silentTypes = [
  ...["session", "thinking_level_change", "model_change", "custom", "custom_message", "label", "session_info", "leaf"],
  ...[stateType, inputType],
];

export function parseLine(value: unknown): LineFacts | null {
  const line = typedLine(value);
  if (line === null) return null;
  const { type, fields } = line;
  if (type === "compaction" || type === "branch_summary") {
    const note = messageAt(timeIn(fields, "timestamp"))("note", textIn(fields, "summary") ?? type);
    return { ...noLineFacts, messages: [note] };
  }
  if (type !== "message") return silentTypes.includes(type) ? noLineFacts : null;
  const message = fieldsIn(fields, "message");
  const messages = messagesOf(message, timeIn(fields, "timestamp"));
  return messages === null ? null : { ...noLineFacts, messages, usage: usageOf(fields, message) };
}

/** null: a kind of message that these rules do not know. */
function messagesOf(message: Fields, at: number | null): Message[] | null {
  const say = messageAt(at);
  const role = textIn(message, "role");
  if (role === "user") return [say("user", textPartsOf(message))];
  if (role === "toolResult") return [say("result", textPartsOf(message), textIn(message, "toolName"))];
  if (role !== "assistant") return null;
  const said = answerParts(message, at, inputKeys);
  const failure = textIn(message, "errorMessage");
  return failure === null ? said : [...said, say("note", failure)];
}

/** The gateway itself wrote the message (the answer to one of its commands, "Exec failed"), not a model. */
const isGatewaysOwn = (message: Fields): boolean =>
  message["provider"] === "openclaw" &&
  ["gateway-injected", "delivery-mirror"].includes(textIn(message, "model") ?? "");

const inputKeys = ["command"];

const commandOf = (call: Fields): string => callText(fieldsIn(call, "arguments"), inputKeys);

function usageOf(line: Fields, message: Fields): LineFacts["usage"] {
  const key = textIn(line, "id");
  const used = fieldsOf(message["usage"]);
  if (key === null || used === null || isGatewaysOwn(message)) return null;
  const costUsd = numberIn(fieldsIn(used, "cost"), "total");
  return { key, tokens: tokensIn(used), model: textIn(message, "model"), costUsd };
}
