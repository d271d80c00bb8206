// OpenClaw, whose sessions run in its gateway. Its README describes what it writes and answers, and how that was tested.
import { emptyRecord, type NativeRecord, noFacts, type Outcome, type Turn, type Waiting } from "../../core/evidence.ts";
import { type Reading, read } from "../../core/problem.ts";
import type { ProcessDetail } from "../../core/process.ts";
import type { TurnReason } from "../../core/reason.ts";
import type { Role } from "../../core/rules.ts";
import type { Adapter, RecordFile } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, lookUp, millisIn, textIn, timeIn } from "../fields.ts";
import { textPartsOf } from "../record-lines.ts";
import { unknownRecord } from "../record-parser.ts";
import { openclawInvocation } from "./invocation.ts";
import { commandOf, isGatewaysOwn, parseLine } from "./lines.ts";
import { gateway, stateLock } from "./server.ts";
import { inputType, isSessionId, sessionIn, stateType, store } from "./store.ts";

export const openclaw: Adapter = {
  agent: "openclaw",
  title: "OpenClaw",
  aliases: [],
  command: "openclaw",
  install: "npm install -g openclaw",
  verified: ["2026.9.6"],
  ties: "Its gateway names the sessions that it works on. OpenClaw chooses the id, and the gateway returns it when a session begins.",
  knows:
    "Working, waiting with the question or the command; how each turn ended. Between its turns a session is stopped.",
  unknowable: [
    "A session runs only while its gateway works on it; between its turns it is stopped.",
    "A process without a gateway (openclaw agent --local, openclaw chat) does not say which session it has: sessions written since it started are unknown.",
    "A gateway cannot be asked if its token is neither in its environment nor in openclaw.json, if it uses TLS, or if it does not listen on the loopback address: unknown.",
    "A busy gateway may answer too late: unknown until it answers in time.",
    "A command that OpenClaw runs in the background names no session: it is not shown, and stop does not end it.",
    "If its gateway was killed, a session is cut off; the next gateway may continue it by itself.",
    "A gateway that is shutting down first finishes its turns, for some minutes, and does not answer meanwhile: unknown.",
    "If agentctl run is killed (SIGKILL), its turn continues in the gateway, because no process of agentctl watches the turn.",
    "Sessions on other hosts (cloud workers, paired devices) are shown as the gateway describes them; their processes are not visible.",
  ],
  isId: isSessionId,
  // OpenClaw overwrites its arguments with its command as a title. Processes with these titles may use a data folder or show a session.
  processNames: ["openclaw-gatewa", "openclaw-agent", "openclaw-tui", "openclaw-chat", "openclaw-termin", "openclaw"],
  environment: ["OPENCLAW_STATE_DIR", "OPENCLAW_HOME", "HOME"],
  records: [{ folder: "agents/*/agent", name: /^(?<id>openclaw-agent)\.sqlite$/, assembled: store }],
  lockedFiles: stateLock,
  serversNameBy: "answer",
  server: gateway,
  countsDenied: false,
  countedIn: ['"usage"'],
  role,
  announces: () => false,
  argvId: () => null,
  home,
  heldHome: ({ lockedFiles }) => lockedFiles.flatMap((path) => stateLock.exec(path)?.[1] ?? [])[0] ?? null,
  parseRecord,
  parseLine,
  invocation: openclawInvocation,
};

/** A command without a gateway locks the data folder: it is a server that does not answer. All other commands are clients of a gateway. */
function role(name: string, { lockedFiles }: ProcessDetail): Role | null {
  if (!openclaw.processNames.includes(name)) return null;
  return name === "openclaw-gatewa" || lockedFiles.some((path) => stateLock.test(path)) ? "server" : "helper";
}

/** 2026.9.6 treats blanks and these two words as unset. */
function home(env: Readonly<Record<string, string>>): string | null {
  const given = (key: string): string | null => {
    const value = env[key]?.trim() ?? "";
    return value === "" || value === "undefined" || value === "null" ? null : value;
  };
  const own = given("HOME");
  const whole = (path: string): string => (own === null ? path : path.replace(/^~(?=\/|$)/, own));
  const state = env["OPENCLAW_STATE_DIR"]?.trim() || null;
  const base = given("OPENCLAW_HOME") ?? own;
  return state !== null ? whole(state) : base === null ? null : `${whole(base)}/.openclaw`;
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const tail = readTail(file);
  const { state } = tail;
  if (state === null) return unknownRecord("openclaw", file);
  const head = readHead(file);
  const key = textIn(state, "session_key");
  const times = [tail.lastAt, millisIn(state, "transcript_updated_at"), millisIn(state, "updated_at")];
  return read({
    ...emptyRecord(file),
    cwd: textIn(state, "cwd") ?? head.cwd,
    createdAt: millisIn(state, "created_at"),
    lastMessageAt: tail.lastAt,
    // The time of the file does not count: it contains many sessions, and new data is in its write-ahead log.
    writtenAt: Math.max(...times.map((time) => time ?? 0)) || file.writtenAt,
    turn: turnOf(state, tail),
    pending: tail.pending,
    parent: sessionIn(state, "forked_from"),
    continuedBy: sessionIn(state, "successor"),
    subagentOf: sessionIn(state, "spawner"),
    facts: {
      ...noFacts,
      // The table has the model only after the end of a run.
      model: tail.model ?? textIn(state, "model"),
      title: textIn(state, "label") ?? textIn(state, "display_name"),
      prompt: head.prompt ?? (tail.queued === null ? null : textPartsOf(tail.queued.message)),
      permission: textIn(state, "permission"),
    },
    unknownLines: tail.unknown,
    // The key becomes an argument, and must not look like an option.
    ...(key === null || key.startsWith("-") ? {} : { opensAs: key }),
  });
}

interface OpenclawTail {
  /** The row of the session in its tables; null: it has none. */
  state: Fields | null;
  /** The oldest prompt that was accepted, and whose turn has not begun. */
  queued: { at: number | null; message: Fields } | null;
  /** The time of the newest message, or of the newest queued prompt. */
  lastAt: number | null;
  /** The start of the last turn. */
  promptedAt: number | null;
  /** Why and when the newest answer ended. */
  stopReason: string | null;
  answeredAt: number | null;
  /** The newest message is the result of a failed tool call, without an answer after it. null: there is no message. */
  endsInFailedCall: boolean | null;
  pending: Waiting | null;
  model: string | null;
  unknown: number;
}

/** Reads back to the prompt of the last turn. */
function readTail(file: RecordFile): OpenclawTail {
  const tail: OpenclawTail = {
    ...{ state: null, queued: null, lastAt: null, promptedAt: null, stopReason: null, answeredAt: null },
    ...{ endsInFailedCall: null, pending: null, model: null, unknown: 0 },
  };
  const answered = new Set<string>();
  for (const line of file.backward()) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    if (fields === null || parseLine(fields) === null) tail.unknown += 1;
    if (fields === null) continue;
    if (fields["type"] === stateType) tail.state = fields;
    if (fields["type"] === inputType && fields["state"] === "queued") {
      const at = millisIn(fields, "at");
      tail.lastAt ??= at;
      tail.queued = { at, message: fieldsIn(fields, "message") };
    }
    if (fields["customType"] === "model-snapshot") tail.model ??= textIn(fieldsIn(fields, "data"), "modelId");
    if (fields["type"] !== "message") continue;
    const at = timeIn(fields, "timestamp");
    tail.lastAt ??= at;
    const message = fieldsIn(fields, "message");
    if (isGatewaysOwn(message)) continue;
    tail.endsInFailedCall ??= message["role"] === "toolResult" && message["isError"] === true;
    if (message["role"] === "toolResult") answered.add(textIn(message, "toolCallId") ?? "");
    if (message["role"] === "assistant") {
      tail.stopReason ??= textIn(message, "stopReason");
      tail.answeredAt ??= at;
      tail.model ??= textIn(message, "model");
      tail.pending ??= pendingIn(message, answered);
    }
    if (message["role"] === "user") {
      tail.promptedAt = at;
      break;
    }
  }
  return tail;
}

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
function turnOf(state: Fields, tail: OpenclawTail): Turn {
  const { queued, promptedAt, pending, stopReason, endsInFailedCall } = tail;
  const status = textIn(state, "status");
  const endedAt = millisIn(state, "ended_at");
  const doubt: TurnReason | null = pending === null ? null : { code: "tool-call-pending" };
  if (queued !== null) return { state: "open", since: queued.at, doubt: null };
  if (status === "running") return { state: "open", since: millisIn(state, "started_at") ?? promptedAt, doubt };
  if (status === null) return promptedAt === null ? { state: "none" } : turnWithoutRun(tail, promptedAt, doubt);
  const outcome = lookUp(outcomes, status);
  if (outcome === undefined) return { state: "unclear", why: { code: "unknown-status", text: status } };
  if (endedAt === null) return { state: "unclear", why: { code: "no-end-time" } };
  if (promptedAt !== null && promptedAt > endedAt) return turnWithoutRun(tail, promptedAt, doubt);
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
function turnWithoutRun({ stopReason, answeredAt }: OpenclawTail, since: number, doubt: TurnReason | null): Turn {
  if (stopReason === null || stopReason === "toolUse") return { state: "open", since, doubt };
  const outcome = lookUp(answers, stopReason);
  if (outcome === undefined) return { state: "unclear", why: { code: "unknown-ending", text: stopReason } };
  return { state: "closed", at: answeredAt, outcome };
}

/** The directory and the first prompt of the session. */
function readHead(file: RecordFile): { cwd: string | null; prompt: string | null } {
  let cwd: string | null = null;
  for (const line of file.forward()) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    if (fields?.["type"] === "session") cwd = textIn(fields, "cwd");
    const message = fields?.["type"] === "message" ? fieldsIn(fields, "message") : {};
    if (message["role"] === "user") return { cwd, prompt: textPartsOf(message) };
  }
  return { cwd, prompt: null };
}
