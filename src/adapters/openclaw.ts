// OpenClaw: sessions that live in its gateway. Its note openclaw.md says what it writes and answers, and what of it was seen.
import type { NativeRecord, Outcome, Turn, Waiting } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, RecordFile } from "./adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, lookUp, millisIn, textIn, timeIn } from "./fields.ts";
import { gateway, stateLock } from "./openclaw-gateway.ts";
import { openclawInvocation } from "./openclaw-invocation.ts";
import { callText, isGatewaysOwn, parseLine, textOf } from "./openclaw-lines.ts";
import { inputType, isSessionId, sessionIn, stateType, store } from "./openclaw-store.ts";

export const openclaw: Adapter = {
  agent: "openclaw",
  title: "OpenClaw",
  aliases: [],
  command: "openclaw",
  install: "npm install -g openclaw",
  verified: ["2026.9.6"],
  ties: "Its gateway answers which sessions it works on. The id is OpenClaw's own, told when the gateway begins the session.",
  knows:
    "Working, waiting with the question or the command; how each turn ended. Between its turns a session is stopped.",
  unknowable: [
    "A session runs only while its gateway works on it; between its turns it is stopped.",
    "What runs without a gateway (openclaw agent --local, openclaw chat) tells nobody its session: what was written since it began is unknown.",
    "A gateway that wants a token which stands neither in its environment nor in openclaw.json, speaks TLS, or does not listen on this machine's own address cannot be asked: unknown.",
    "A busy gateway may take longer to answer than a look lasts: unknown until it does.",
    "A command that OpenClaw let go on in the background names no session: it is not shown, and stop does not end it.",
    "After its gateway was killed a session is cut off; the next gateway may go on with it by itself.",
    "A gateway that was asked to end lets its turns end first, for some minutes, and answers nobody meanwhile: unknown.",
    "agentctl run that is killed (SIGKILL) leaves its turn going on in the gateway: nothing of ours stands beside it.",
    "Sessions on other machines (cloud workers, paired devices) are what the gateway says of them; their processes are not seen.",
  ],
  isId: isSessionId,
  // Its title is its command, and overwrites its arguments. These may have a data folder, or show a session.
  processNames: ["openclaw-gatewa", "openclaw-agent", "openclaw-tui", "openclaw-chat", "openclaw-termin", "openclaw"],
  environment: ["OPENCLAW_STATE_DIR", "OPENCLAW_HOME", "HOME"],
  records: [{ folder: "agents/*/agent", name: /^(?<id>openclaw-agent)\.sqlite$/, assembled: store }],
  claims: null,
  lockedFiles: stateLock,
  hostsNameBy: "answer",
  host: gateway,
  tokensInTail: false,
  countsDenied: false,
  countedIn: ['"usage"'],
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  announces: () => false,
  announcedIds: () => [],
  argvId: () => null,
  home,
  heldHome: ({ lockedFiles }) => lockedFiles.flatMap((path) => stateLock.exec(path)?.[1] ?? [])[0] ?? null,
  parseRecord,
  parseClaim: ({ path }) =>
    unread({ code: "claim-unreadable", agent: "openclaw", source: path, message: "OpenClaw writes no announcements" }),
  parseLine,
  invocation: openclawInvocation,
};

/** Without a gateway a command has the data folder for itself: a host that answers nobody. Everything else only asks a gateway. */
function role(name: string, { lockedFiles }: ProcessDetail): Role | null {
  if (!openclaw.processNames.includes(name)) return null;
  return name === "openclaw-gatewa" || lockedFiles.some((path) => stateLock.test(path)) ? "host" : "helper";
}

/** 2026.9.6 takes blanks and these two words for nothing. */
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
  if (state === null) {
    const message = "its record is not one of OpenClaw's sessions";
    return unread({ code: "record-unrecognised", agent: "openclaw", source: file.path, message });
  }
  const head = readHead(file);
  const key = textIn(state, "session_key");
  const times = [tail.lastAt, millisIn(state, "transcript_updated_at"), millisIn(state, "updated_at")];
  return read({
    id: file.id,
    source: file.path,
    cwd: textIn(state, "cwd") ?? head.cwd,
    createdAt: millisIn(state, "created_at"),
    lastMessageAt: tail.lastAt,
    // Not the file's: it holds many sessions, and what is new stands in its write-ahead log.
    writtenAt: Math.max(...times.map((time) => time ?? 0)) || file.writtenAt,
    turn: turnOf(state, tail),
    waiting: null,
    pending: tail.pending,
    background: null,
    parent: sessionIn(state, "forked_from"),
    continuedBy: sessionIn(state, "successor"),
    subagentOf: sessionIn(state, "spawner"),
    facts: {
      // The table has it only once a run has ended.
      model: tail.model ?? textIn(state, "model"),
      title: textIn(state, "label") ?? textIn(state, "display_name"),
      prompt: head.prompt ?? (tail.queued === null ? null : textOf(tail.queued.message)),
      branch: null,
      agentVersion: null,
      permission: textIn(state, "permission"),
      denied: null,
      tokens: null,
      costUsd: null,
    },
    skippedLines: 0,
    torn: false,
    unknownLines: tail.unknown,
    // It becomes an argument, and must not look like a flag.
    ...(key === null || key.startsWith("-") ? {} : { opensAs: key }),
  });
}

interface Tail {
  /** What its tables say of the session; null: there is none. */
  state: Fields | null;
  /** The oldest prompt that was accepted and not begun with. */
  queued: { at: number | null; message: Fields } | null;
  /** Of the newest message, or of the newest prompt that waits. */
  lastAt: number | null;
  /** When the last prompt was taken up. */
  promptedAt: number | null;
  /** Of the newest answer: why and when it ended. */
  stopReason: string | null;
  answeredAt: number | null;
  /** The newest message is a tool's that failed: no answer followed. null: there is no message. */
  endsInFailedCall: boolean | null;
  pending: Waiting | null;
  model: string | null;
  unknown: number;
}

/** Back to the prompt of the last turn. */
function readTail(file: RecordFile): Tail {
  const tail: Tail = {
    ...{
      state: null,
      queued: null,
      lastAt: null,
      promptedAt: null,
      stopReason: null,
      answeredAt: null,
      endsInFailedCall: null,
      pending: null,
      model: null,
      unknown: 0,
    },
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
  return { kind: "permission", text: callText(call), tool: textIn(call, "name"), options: [] };
}

const outcomes: Readonly<Record<string, Outcome>> = {
  done: "completed",
  failed: "failed",
  timeout: "failed",
  killed: "interrupted",
};

/**
 * Its status is that of the last run that began in a gateway. A prompt that was accepted or taken up after that run's end
 * is a turn of which the status says nothing.
 */
function turnOf(state: Fields, tail: Tail): Turn {
  const { queued, promptedAt, pending, stopReason, endsInFailedCall } = tail;
  const status = textIn(state, "status");
  const endedAt = millisIn(state, "ended_at");
  const doubt = pending === null ? null : "tool call pending";
  if (queued !== null) return { state: "open", since: queued.at, doubt: null };
  if (status === "running") return { state: "open", since: millisIn(state, "started_at") ?? promptedAt, doubt };
  if (status === null) return promptedAt === null ? { state: "none" } : turnWithoutRun(tail, promptedAt, doubt);
  const outcome = lookUp(outcomes, status);
  if (outcome === undefined) return { state: "unclear", why: `a status that agentctl does not know: ${status}` };
  if (endedAt === null) return { state: "unclear", why: "its last run has ended, but not when" };
  if (promptedAt !== null && promptedAt > endedAt) return turnWithoutRun(tail, promptedAt, doubt);
  // 2026.9.6 calls it done, too, when its time was over inside of a tool.
  const isBroken = stopReason === "error" || endsInFailedCall === true;
  return { state: "closed", at: endedAt, outcome: outcome === "completed" && isBroken ? "failed" : outcome };
}

const answers: Readonly<Record<string, Outcome>> = {
  stop: "completed",
  error: "failed",
  aborted: "interrupted",
};

/** Not begun yet; or `openclaw agent --local`, which writes no status: there the last answer says how it ended. */
function turnWithoutRun({ stopReason, answeredAt }: Tail, since: number, doubt: string | null): Turn {
  if (stopReason === null || stopReason === "toolUse") return { state: "open", since, doubt };
  const outcome = lookUp(answers, stopReason);
  if (outcome === undefined) return { state: "unclear", why: `its last answer ended in an unknown way: ${stopReason}` };
  return { state: "closed", at: answeredAt, outcome };
}

/** Where it was begun, and with what. */
function readHead(file: RecordFile): { cwd: string | null; prompt: string | null } {
  let cwd: string | null = null;
  for (const line of file.forward()) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    if (fields?.["type"] === "session") cwd = textIn(fields, "cwd");
    const message = fields?.["type"] === "message" ? fieldsIn(fields, "message") : {};
    if (message["role"] === "user") return { cwd, prompt: textOf(message) };
  }
  return { cwd, prompt: null };
}
