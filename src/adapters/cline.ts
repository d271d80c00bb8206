// Cline. Its note cline.md says what it writes, and what of it was seen with the real tool.
import type { NativeRecord, Outcome, PidClaim, Turn, Waiting } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, ClaimFile, RecordFile } from "./adapter.ts";
import { clineInvocation } from "./cline-invocation.ts";
import { blocksIn, documents, inputText, isErrorNote, parseLine, promptIn, unwrapped } from "./cline-lines.ts";
import {
  baseName,
  countIn,
  type Fields,
  fieldsIn,
  fieldsOf,
  flagValue,
  lookUp,
  millisIn,
  textIn,
  textsIn,
  timeIn,
} from "./fields.ts";

const sessionFile = { folder: "sessions/*", name: /^(?<id>\d{10,16}_[A-Za-z0-9]{1,32})\.json$/ };

export const cline: Adapter = {
  agent: "cline",
  title: "Cline",
  aliases: [],
  command: "cline",
  install: "npm install -g cline",
  verified: ["3.0.65"],
  ties: "The record of a session names the process that began it; an old one that was opened again stands in the arguments. The id is Cline's own, known as soon as the record is there.",
  knows: "Working, waiting with the call or the question, idle; how each turn ended.",
  unknowable: [
    "Where its hub runs, a session that is begun by hand lives in the hub, not in the program on the screen. The hub does not record when that program is gone: inside of a turn such a session is unclear.",
    "While the hub lives, a session that was cut off since its start is unknown until Cline is started again: the hub may have opened it, and does not record that.",
    "A session in the hub can be interrupted, ended and written to only in Cline's own interface.",
    "An interface has a session only from its first prompt on. One that opens an old session leaves the record's process as it was: it is known by its arguments (cline --id), or not at all.",
    "An interface that shows a session of the hub is listed beside it, by its pid: nobody can tell it from one that has a session of its own.",
    "What an editor runs through cline --acp was not looked at.",
  ],
  isId: (text) => /^\d{10,16}_[A-Za-z0-9]{1,32}$/.test(text),
  // The binary is a hidden file beside npm's starter, or stands in a package of its own.
  processNames: [".cline", "cline", "node", "MainThread", "node-MainThread"],
  environment: ["CLINE_DATA_DIR", "CLINE_DIR", "HOME", "CLINE_RUN_AS_HUB_DAEMON"],
  records: [{ ...sessionFile, assembled: documents }],
  claims: sessionFile,
  lockedFiles: null,
  // Its hub is not asked: to answer it would write. What it began stands under its pid; what it opened again may be any session
  // that is not over.
  hostsNameBy: "answer",
  host: null,
  tokensInTail: false,
  countsDenied: true,
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  announces: () => true,
  announcedIds: () => [],
  argvId,
  home: (env) => env["CLINE_DATA_DIR"] || dataIn(env["CLINE_DIR"]) || dataIn(env["HOME"] && `${env["HOME"]}/.cline`),
  heldHome,
  parseRecord,
  parseClaim,
  parseLine,
  invocation: clineInvocation,
};

const dataIn = (folder: string | undefined): string | null => (folder ? `${folder}/data` : null);

/** Its own words for it win over the environment. */
function heldHome({ argv }: ProcessDetail): string | null {
  const own = argv === null ? [] : (ownArguments(argv) ?? []);
  return flagValue(own, "--data-dir") ?? dataIn(flagValue(own, "--config") ?? undefined);
}

const commands =
  "auth config plugin skill connect mcp doctor history h hook schedule hub dashboard update version kanban".split(" ");
const errands = /^(-V|--version|-h|--help|--update|--kanban)$/;

function role(_name: string, { argv, exe, env }: ProcessDetail): Role | null {
  if (argv === null) return isBinary(exe ?? "") ? "agent" : null;
  if (isStarter(argv)) return "helper";
  const own = ownArguments(argv);
  if (own === null) return null;
  if (own[0] === "--cline-hub-daemon" || env?.["CLINE_RUN_AS_HUB_DAEMON"] === "1") return "host";
  // One process for all sessions of an editor.
  if (own.includes("--acp")) return "host";
  return commands.includes(own[0] ?? "") || own.some((argument) => errands.test(argument)) ? "helper" : "agent";
}

const isBinary = (path: string): boolean => /^\.?cline(\.exe)?$/.test(baseName(path.replace(/ \(deleted\)$/, "")));

/** npm's starter stays as the parent of the binary. */
const isStarter = (argv: readonly string[]): boolean =>
  /^(node|nodejs)$/.test(baseName(argv[0] ?? "")) && argv.slice(1).some((word) => /\/cline$/.test(word));

const ownArguments = (argv: readonly string[]): readonly string[] | null =>
  isBinary(argv[0] ?? "") ? argv.slice(1) : null;

/** Only with an interface: otherwise it refuses to go on with a session. */
function argvId(argv: readonly string[]): string | null {
  const id = flagValue(ownArguments(argv) ?? [], "--id");
  return id !== null && cline.isId(id) ? id : null;
}

const endings: Readonly<Record<string, Outcome>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "interrupted",
};

const isEnded = (state: Fields): boolean => lookUp(endings, textIn(state, "status") ?? "") !== undefined;

function parseClaim(file: ClaimFile): Reading<PidClaim> {
  const state = fieldsOf(file.value) ?? {};
  const [session, pid] = [textIn(state, "session_id"), countIn(state, "pid")];
  if (session === null || !cline.isId(session) || pid === null) {
    const message = "its record does not say which process has it";
    return unread({ code: "claim-unreadable", agent: "cline", source: file.path, message });
  }
  return read({
    session,
    pid,
    start: null,
    boot: null,
    namespace: null,
    source: file.path,
    writtenAt: file.writtenAt,
    cwd: textIn(state, "cwd"),
    says: null,
    waiting: null,
    background: null,
    job: null,
    // The hub has many at a time.
    ...(isHosted(state) ? {} : { begunAt: timeIn(state, "started_at") }),
    // A run without an interface ends with its session; an interface and the hub go on.
    isOver: isEnded(state) && (state["interactive"] !== false || isHosted(state)),
  });
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const { state, tail } = readEnd(file);
  const status = textIn(state, "status");
  if (status === null || textIn(state, "session_id") !== file.id) {
    const message = "its record is not one of Cline's sessions";
    return unread({ code: "record-unrecognised", agent: "cline", source: file.path, message });
  }
  const metadata = fieldsIn(state, "metadata");
  const prompt = textIn(state, "prompt");
  const pending = pendingCall(tail);
  return read({
    id: file.id,
    source: file.path,
    cwd: textIn(state, "cwd"),
    createdAt: timeIn(state, "started_at"),
    lastMessageAt: tail.length === 0 ? null : millisIn(tail[0] ?? {}, "ts"),
    writtenAt: file.writtenAt,
    turn: turnOf(state, tail, file.writtenAt),
    waiting: waitingOf(state, tail, pending),
    pending,
    background: null,
    parent: textIn(fieldsIn(metadata, "fork"), "forkedFromSessionId"),
    continuedBy: null,
    subagentOf: null,
    facts: {
      model: textIn(state, "model"),
      title: textIn(metadata, "title"),
      prompt: prompt === null ? null : unwrapped(prompt),
      branch: textIn(fieldsIn(metadata, "git"), "branch"),
      agentVersion: textIn(fieldsIn(metadata, "sessionHistoryOrigin"), "version"),
      permission: null,
      denied: null,
      tokens: null,
      costUsd: null,
    },
    skippedLines: 0,
    torn: false,
    isOver: isEnded(state),
    unknownLines: tail.filter((message) => parseLine(message) === null).length,
  });
}

/** Its state, and its messages back to the last prompt, newest first. */
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

/** The call that its newest message makes, and that has no result yet. */
function pendingCall([newest]: readonly Fields[]): Waiting | null {
  const call = newest === undefined ? undefined : blocksIn(newest).findLast((block) => block["type"] === "tool_use");
  if (call === undefined) return null;
  const [tool, text] = [textIn(call, "name"), inputText(fieldsIn(call, "input"))];
  return tool === "ask_question"
    ? { kind: "question", text, tool, options: textsIn(fieldsIn(call, "input"), "options") }
    : { kind: "permission", text, tool, options: [] };
}

/** Cline's own word about the session; its messages say only what a turn is at. */
function turnOf(state: Fields, tail: readonly Fields[], writtenAt: number): Turn {
  const status = textIn(state, "status") ?? "";
  const lastAt = millisIn(tail[0] ?? {}, "ts");
  const ended = lookUp(endings, status);
  if (ended !== undefined) {
    // Whoever starts Cline next marks what died in its turn.
    const outcome = textIn(fieldsIn(state, "metadata"), "terminal_marker") === null ? ended : "cut-off";
    return { state: "closed", at: timeIn(state, "ended_at") ?? lastAt, outcome };
  }
  if (status === "running" || status === "pending")
    return { state: "open", since: openSince(state, tail, writtenAt), doubt: doubtOf(state, tail) };
  if (status !== "idle") return { state: "unclear", why: `an unknown status: "${status}"` };
  // A session is begun with its first prompt; until that is taken up it says the same.
  return tail.length === 0 ? { state: "none" } : { state: "closed", at: lastAt, outcome: outcomeOf(tail) };
}

/** A session that was begun without an interface says so for ever, also in one: its question may be answered at once, or wait. */
function doubtOf(state: Fields, tail: readonly Fields[]): string | null {
  if (isHosted(state)) return hubDoubt;
  return pendingCall(tail)?.kind === "question" && state["interactive"] !== true ? "tool call pending" : null;
}

/** It says so while it asks whether a tool may run; a question is a tool of its own. */
function waitingOf(state: Fields, tail: readonly Fields[], pending: Waiting | null): NativeRecord["waiting"] {
  const since = millisIn(tail[0] ?? {}, "ts");
  if (isHosted(state)) return null;
  if (state["status"] === "pending")
    return { ...(pending ?? { kind: "permission", text: null, tool: null, options: [] }), since };
  return state["status"] === "running" && state["interactive"] === true && pending?.kind === "question"
    ? { ...pending, since }
    : null;
}

/** The hub writes more into its sessions' records. When the program that began one is gone, it leaves the rest as it was. */
const isHosted = (state: Fields): boolean => typeof fieldsIn(state, "metadata")["autoApproveTools"] === "boolean";
const hubDoubt = "in Cline's hub: whether somebody still works on it is not recorded";

/**
 * A prompt is recorded with the first answer to it; until then the newest message is of the turn before, and only the state was
 * written since.
 */
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
