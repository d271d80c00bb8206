// Cline. Its README describes what it writes and how that was tested.
import {
  type Announcement,
  emptyAnnouncement,
  emptyRecord,
  type NativeRecord,
  noFacts,
  type Outcome,
  type Turn,
  type Waiting,
} from "../../core/evidence.ts";
import { type Reading, read } from "../../core/problem.ts";
import type { ProcessDetail } from "../../core/process.ts";
import type { TurnReason } from "../../core/reason.ts";
import type { Role } from "../../core/rules.ts";
import type { Adapter, AnnouncementFile, RecordFile } from "../adapter.ts";
import { unknownAnnouncement } from "../announcements.ts";
import {
  countIn,
  type Fields,
  fieldsIn,
  fieldsOf,
  idOrNull,
  lookUp,
  millisIn,
  textIn,
  textsIn,
  timeIn,
  words,
} from "../fields.ts";
import { baseName, flagValue } from "../process-argv.ts";
import { blocksIn } from "../record-lines.ts";
import { unknownRecord } from "../record-parser.ts";
import { clineInvocation } from "./invocation.ts";
import { documents, inputText, isErrorNote, parseLine, promptIn, unwrapped } from "./lines.ts";

const sessionFile = { folder: "sessions/*", name: /^(?<id>\d{10,16}_[A-Za-z0-9]{1,32})\.json$/ };

export const cline: Adapter = {
  agent: "cline",
  title: "Cline",
  aliases: [],
  command: "cline",
  install: "npm install -g cline",
  verified: ["3.0.65"],
  ties: "The record of a session names the process that began it; the arguments name a session that was reopened. Cline chooses the id, which is known once the record exists.",
  knows: "Working, waiting with the call or the question, idle; how each turn ended.",
  unknowable: [
    "If Cline's hub is running, a session that was started by hand runs in the hub, not in the program on the screen. The hub does not record when that program exits: during a turn such a session is unclear.",
    "While the hub is running, a session that was cut off since the start of the hub is unknown until Cline is started again: the hub may have reopened it, and does not record that.",
    "A session in the hub can be interrupted, stopped and sent messages only in Cline's own interface.",
    "An interface has no session before its first prompt. If it opens an old session, the record keeps naming the old process: the session is known by the arguments (cline --id), or not at all.",
    "An interface that shows a session of the hub is listed as well, by its pid: it looks like one that has a session of its own.",
    "Sessions that an editor starts with cline --acp were not tested.",
  ],
  isId: (text) => /^\d{10,16}_[A-Za-z0-9]{1,32}$/.test(text),
  // The binary is a hidden file next to npm's starter, or is in a separate package.
  processNames: [".cline", "cline", "node", "MainThread", "node-MainThread"],
  environment: ["CLINE_DATA_DIR", "CLINE_DIR", "HOME", "CLINE_RUN_AS_HUB_DAEMON"],
  records: [{ ...sessionFile, assembled: documents }],
  announcements: { ...sessionFile, parse: parseAnnouncement },
  // agentctl does not ask the hub, because the hub would write files to answer. Records name the pid of the hub for sessions that
  // it began. The hub may have reopened any session that has not ended.
  serversNameBy: "answer",
  countsDenied: true,
  role,
  announces: () => true,
  argvId,
  home: (env) => env["CLINE_DATA_DIR"] || dataIn(env["CLINE_DIR"]) || dataIn(env["HOME"] && `${env["HOME"]}/.cline`),
  heldHome,
  parseRecord,
  parseLine,
  invocation: clineInvocation,
};

const dataIn = (folder: string | undefined): string | null => (folder ? `${folder}/data` : null);

/** Arguments take precedence over the environment. */
function heldHome({ argv }: ProcessDetail): string | null {
  const own = argv === null ? [] : (ownArguments(argv) ?? []);
  return flagValue(own, "--data-dir") ?? dataIn(flagValue(own, "--config") ?? undefined);
}

const commands = words`auth config plugin skill connect mcp doctor history h hook schedule hub dashboard update version kanban`;
const infoFlags = /^(-V|--version|-h|--help|--update|--kanban)$/;

function role(_name: string, { argv, exe, env }: ProcessDetail): Role | null {
  if (argv === null) return isBinary(exe ?? "") ? "agent" : null;
  if (isStarter(argv)) return "helper";
  const own = ownArguments(argv);
  if (own === null) return null;
  if (own[0] === "--cline-hub-daemon" || env?.["CLINE_RUN_AS_HUB_DAEMON"] === "1") return "server";
  // One process serves all sessions of an editor.
  if (own.includes("--acp")) return "server";
  return commands.includes(own[0] ?? "") || own.some((argument) => infoFlags.test(argument)) ? "helper" : "agent";
}

const isBinary = (path: string): boolean => /^\.?cline(\.exe)?$/.test(baseName(path.replace(/ \(deleted\)$/, "")));

/** npm's starter is the parent of the binary. */
const isStarter = (argv: readonly string[]): boolean =>
  /^(node|nodejs)$/.test(baseName(argv[0] ?? "")) && argv.slice(1).some((word) => /\/cline$/.test(word));

const ownArguments = (argv: readonly string[]): readonly string[] | null =>
  isBinary(argv[0] ?? "") ? argv.slice(1) : null;

/** Only an interface can continue a session. */
function argvId(argv: readonly string[]): string | null {
  return idOrNull(flagValue(ownArguments(argv) ?? [], "--id"), cline.isId);
}

const endings: Readonly<Record<string, Outcome>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "interrupted",
};

const isEnded = (state: Fields): boolean => lookUp(endings, textIn(state, "status") ?? "") !== undefined;

function parseAnnouncement(file: AnnouncementFile): Reading<Announcement> {
  const state = fieldsOf(file.value) ?? {};
  const [session, pid] = [textIn(state, "session_id"), countIn(state, "pid")];
  if (session === null || !cline.isId(session) || pid === null)
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

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const { state, tail } = readEnd(file);
  const status = textIn(state, "status");
  if (status === null || textIn(state, "session_id") !== file.id) return unknownRecord("cline", file);
  const metadata = fieldsIn(state, "metadata");
  const prompt = textIn(state, "prompt");
  const pending = pendingCall(tail);
  return read({
    ...emptyRecord(file),
    cwd: textIn(state, "cwd"),
    createdAt: timeIn(state, "started_at"),
    lastMessageAt: tail.length === 0 ? null : millisIn(tail[0] ?? {}, "ts"),
    turn: turnOf(state, tail, file.writtenAt),
    waiting: waitingOf(state, tail, pending),
    pending,
    parent: textIn(fieldsIn(metadata, "fork"), "forkedFromSessionId"),
    facts: {
      ...noFacts,
      model: textIn(state, "model"),
      title: textIn(metadata, "title"),
      prompt: prompt === null ? null : unwrapped(prompt),
      branch: textIn(fieldsIn(metadata, "git"), "branch"),
      agentVersion: textIn(fieldsIn(metadata, "sessionHistoryOrigin"), "version"),
    },
    isOver: isEnded(state),
    unknownLines: tail.filter((message) => parseLine(message) === null).length,
  });
}

/** Reads the state, and the messages back to the last prompt, newest first. */
function readEnd(file: RecordFile): { state: Fields; tail: Fields[] } {
  let state: Fields = {};
  const tail: Fields[] = [];
  for (const line of file.backward()) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    if (fields === null) continue;
    if (fields["type"] === "state") {
      state = fieldsIn(fields, "state");
      continue;
    }
    tail.push(fields);
    if (promptIn(fields) !== null) break;
  }
  return { state, tail };
}

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
  const lastAt = millisIn(tail[0] ?? {}, "ts");
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
  if (isServed(state)) return hubDoubt;
  return pendingCall(tail)?.kind === "question" && state["interactive"] !== true ? { code: "tool-call-pending" } : null;
}

/** The status is "pending" while Cline asks whether a tool may run. A question is a tool call. */
function waitingOf(state: Fields, tail: readonly Fields[], pending: Waiting | null): NativeRecord["waiting"] {
  const since = millisIn(tail[0] ?? {}, "ts");
  if (isServed(state)) return null;
  if (state["status"] === "pending")
    return { ...(pending ?? { kind: "permission", text: null, tool: null, options: [] }), since };
  return state["status"] === "running" && state["interactive"] === true && pending?.kind === "question"
    ? { ...pending, since }
    : null;
}

/** Only the hub records this setting. It does not record that the program that began a session has exited. */
const isServed = (state: Fields): boolean => typeof fieldsIn(state, "metadata")["autoApproveTools"] === "boolean";
const hubDoubt: TurnReason = { code: "hub-does-not-tell" };

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
