// OpenCode. Its README describes what it writes and how that was tested.
import { emptyRecord, type NativeRecord, noFacts, type Tokens } from "../../core/evidence.ts";
import { type Reading, read } from "../../core/problem.ts";
import type { ProcessDetail } from "../../core/process.ts";
import type { Adapter, RecordFile } from "../adapter.ts";
import { baseName, flagValue, plainWords } from "../argv.ts";
import { countIn, type Fields, fieldsOf, idOrNull, jsonIn, millisIn, textIn, words } from "../fields.ts";
import { unknownRecord } from "../record-parser.ts";
import { costIn, tokensIn } from "../tokens.ts";
import { opencodeInvocation } from "./invocation.ts";
import { parseLine } from "./lines.ts";
import { isSessionId, server } from "./server.ts";
import { databaseLines, fileLines, type MessageLine, messageIn } from "./store.ts";
import { stateOf } from "./turn.ts";

/** The last one is the server of its desktop program. */
const processNames = ["opencode", "opencode.exe", "opencode-cli"];

export const opencode: Adapter = {
  agent: "opencode",
  title: "OpenCode",
  aliases: ["oc"],
  command: "opencode",
  install: "npm install -g opencode-ai",
  verified: ["1.18.33"],
  ties: "agentctl chooses the id of a launched session: OpenCode's own importer creates the session, and the arguments name it. Servers name the sessions that they work on; other processes are found by their arguments or, weakly, by their directory.",
  knows:
    "Working, idle, questions, how a turn ended; approvals if a server runs the session, else only that a tool call is pending.",
  unknowable: [
    "An interface does not say which session it shows: it is found by its arguments or, weakly, by its directory. After /new or /sessions in it, its session is unknown.",
    "Without a server, a tool that waits for approval and one that runs look the same (unclear, tool call pending), except commands and subagents that have begun.",
    "If the model is unknown, the failure of a prompt is not recorded: unclear while its process lives, cut off afterwards.",
    "A session of a server is running only while the server works on it, or waits for an answer; between turns it is stopped.",
    "A server is asked only about directories with an open turn in the records: asking about a directory makes the server open it.",
    "A database that is kept in memory (OPENCODE_DB=:memory:) cannot be read.",
  ],
  isId: isSessionId,
  processNames,
  environment: ["HOME", "XDG_DATA_HOME", "OPENCODE_DB", "BUN_BE_BUN"],
  records: [
    { folder: "", name: /^(?<id>[^.].*)\.(?:db|sqlite3?)$/, assembled: databaseLines },
    { folder: "storage/session/*", name: /^(?<id>ses_[0-9A-Za-z]+)\.json$/, assembled: fileLines, isOld: true },
  ],
  serversNameBy: "answer",
  server: { ...server, at: { listens } },
  tokensInTail: true,
  countsDenied: true,
  role(name, { argv, env }) {
    if (!processNames.includes(name)) return null;
    if (argv === null) return "agent";
    // OpenCode runs its own binary as Bun for plugins and language servers.
    if (env?.["BUN_BE_BUN"] === "1" || !/^opencode/.test(baseName(argv[0] ?? ""))) return "helper";
    const command = commandIn(argv);
    if (command === null)
      return argv.some((argument) => /^(-h|--help|-v|--version)$/.test(argument)) ? "helper" : "agent";
    if (servers.includes(command)) return "server";
    // With --attach it is a client: the server runs the turn.
    return command === "run" && !argv.some((argument) => /^--attach(=|$)/.test(argument)) ? "agent" : "helper";
  },
  announces: () => false,
  mayMoveOn: ({ argv }) => commandIn(argv ?? []) === null,
  argvId(argv) {
    if (argv.some((argument) => /^--fork(=true)?$/.test(argument))) return null;
    const command = commandIn(argv);
    return command === null || command === "run" ? idOrNull(flagValue(argv, "--session", "-s"), isSessionId) : null;
  },
  home(env) {
    const data = env["XDG_DATA_HOME"] || (env["HOME"] ? `${env["HOME"]}/.local/share` : null);
    const database = env["OPENCODE_DB"];
    if (!database || database === ":memory:") return data === null ? null : `${data}/opencode`;
    if (database.startsWith("/")) return folderOf(database);
    return data === null ? null : folderOf(`${data}/opencode/${database}`);
  },
  parseRecord,
  parseLine,
  invocation: opencodeInvocation,
};

const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/")) || "/";

const commands = words`acp agent attach auth completion console db debug export generate github import login logout mcp models orgs plug plugin pr providers run serve session stats switch uninstall upgrade web`;
const servers = ["serve", "web", "acp"];

const flagsWithValue = words`-m --model -s --session --prompt --agent --port --hostname --mdns-domain --cors --replay-limit --log-level --command --format -f --file --title --attach -p --password -u --username --dir --variant --cwd`;

/** null: an interface, with or without the path of a project. */
function commandIn(argv: readonly string[]): string | null {
  const [first = ""] = plainWords(argv, flagsWithValue);
  return commands.includes(first) ? first : null;
}

/** `run` accepts a port, too, but does not listen on it. */
function listens({ argv }: ProcessDetail): boolean {
  const command = commandIn(argv ?? []);
  if (command !== null) return servers.includes(command);
  return argv?.some((argument) => /^--(port|hostname|mdns)(=|$)/.test(argument)) ?? false;
}

/** The title before OpenCode replaces it. */
const noTitle = /^(New session|Child session) - \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  let session: Fields | null = null;
  const messages = new Map<string, MessageLine>();
  for (const line of file.backward()) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    if (fields?.["type"] === "session") session = fields;
    else if (fields !== null) messages.set(textIn(fields, "type") ?? "", messageIn(fields));
  }
  if (session === null || textIn(session, "id") !== file.id) return unknownRecord("opencode", file);
  const last = messages.get("last") ?? null;
  const state = stateOf(last, messages.get("prompt") ?? null);
  const lastMessageAt = newestOf(last);
  const model = fieldsOf(jsonIn(session, "model"));
  const title = textIn(session, "title");
  return read({
    ...emptyRecord(file),
    cwd: textIn(session, "directory"),
    createdAt: millisIn(session, "time_created"),
    lastMessageAt,
    writtenAt: Math.max(millisIn(session, "time_updated") ?? 0, lastMessageAt ?? 0) || file.writtenAt,
    ...state,
    subagentOf: idOrNull(textIn(session, "parent_id"), isSessionId),
    facts: {
      ...noFacts,
      model: textIn(model ?? {}, "id") ?? textIn(last?.data ?? {}, "modelID"),
      title: title === null || noTitle.test(title) ? null : title,
      prompt: promptIn(messages.get("first") ?? null),
      agentVersion: textIn(session, "version"),
      permission: textIn(session, "agent"),
      tokens: totalsIn(session),
      costUsd: costIn(session),
    },
    skippedLines: last?.parts.filter(({ data }) => data === null).length ?? 0,
  });
}

function newestOf(last: MessageLine | null): number | null {
  if (last === null) return null;
  const times = [last, ...last.parts].flatMap(({ createdAt, updatedAt }) => updatedAt ?? createdAt ?? []);
  return times.length === 0 ? null : Math.max(...times);
}

function promptIn(first: MessageLine | null): string | null {
  if (first?.data?.["role"] !== "user") return null;
  const own = first.parts.find(({ data }) => data?.["type"] === "text" && data["synthetic"] !== true);
  return textIn(own?.data ?? {}, "text")?.trim() ?? null;
}

/** OpenCode's own totals; null before the first answer. Databases of older versions have no such columns. */
function totalsIn(session: Fields): Tokens | null {
  const tokens = tokensIn(session, ["tokens_input", "tokens_output", "tokens_cache_read", "tokens_cache_write"]);
  tokens.output += countIn(session, "tokens_reasoning") ?? 0;
  return Object.values(tokens).every((value) => value === 0) ? null : tokens;
}
