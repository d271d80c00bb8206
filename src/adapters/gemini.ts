// Gemini CLI. Its note gemini.md says what it writes, and what of it was seen with the real tool.
import type { NativeRecord } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, RecordFile } from "./adapter.ts";
import { baseName, fieldsOf, flagValue, isUuid, textIn } from "./fields.ts";
import { geminiInvocation } from "./gemini-invocation.ts";
import { parseLine, readHead } from "./gemini-lines.ts";
import { readTail } from "./gemini-tail.ts";

export const gemini: Adapter = {
  agent: "gemini",
  title: "Gemini CLI",
  aliases: ["gemini-cli"],
  command: "gemini",
  install: "npm install -g @google/gemini-cli",
  verified: ["0.61.0"],
  ties: "Launched ones are given their id; without an interface it stands in their arguments, too. An interface is found, weakly, by its directory.",
  knows:
    "Working, until the first answer of a turn and after each tool; idle after a turn that failed or was cancelled in its interface. Not how a turn ended otherwise.",
  unknowable: [
    "Gemini records a tool call only when it is done. An answer with text and an answer with text that calls a tool leave the same record: after it a live session is unclear, and a stopped one has no outcome.",
    "A tool that runs and a tool that waits for approval look the same (unclear, tool call pending).",
    "A failed or cancelled turn is taken out of its record: a headless session that failed is stopped, without an outcome.",
    "An interface names no session: it is found by its directory, and only as long as one session there has been written to since it started (after /clear there are two).",
    "Its dialogs about trust, login and quota are not recorded.",
    "Tokens of its subagents are not counted.",
  ],
  // --session-id takes more than UUIDs.
  isId: (text) => /^[A-Za-z0-9_-]{1,128}$/.test(text),
  // Node 20, 24 and 26 give their main thread different names.
  processNames: ["node", "MainThread", "node-MainThread", "gemini"],
  environment: ["GEMINI_CLI_HOME", "HOME", "GEMINI_CLI_NO_RELAUNCH", "SANDBOX"],
  records: [
    {
      folder: "tmp/*/chats",
      name: /^session-(?<id>[A-Za-z0-9_-]+)\.jsonl$/,
      idIn: (first) => textIn(fieldsOf(first) ?? {}, "sessionId"),
      idBegins: (named) => /^\d{4}-\d\d-\d\dT\d\d-\d\d-(.{1,8})$/.exec(named)?.[1] ?? null,
    },
  ],
  claims: null,
  lockedFiles: null,
  hostsNameBy: null,
  host: null,
  tokensInTail: false,
  countsDenied: false,
  countedIn: ['"tokens"'],
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  announces: () => false,
  announcedIds: () => [],
  argvId,
  home: (env) => homeIn(env["GEMINI_CLI_HOME"]) ?? homeIn(env["HOME"]),
  parseRecord,
  parseClaim: ({ path }) =>
    unread({ code: "claim-unreadable", agent: "gemini", source: path, message: "Gemini writes no announcements" }),
  parseLine,
  invocation: geminiInvocation,
};

const homeIn = (folder: string | undefined): string | null => (folder ? `${folder}/.gemini` : null);

const helpers = "mcp extensions extension skills skill hooks hook gemma".split(" ");
const errands = /^(-v|--version|-h|--help|-l|--list-extensions|--list-sessions|--delete-session)(=|$)/;

function role(_name: string, { argv, env }: ProcessDetail): Role | null {
  const own = argv === null ? null : ownArguments(argv);
  if (own === null) return null;
  if (helpers.includes(own[0] ?? "") || own.some((argument) => errands.test(argument))) return "helper";
  // It starts itself once more, with this variable, and waits for that one.
  const isAgent = env === null || !!env["GEMINI_CLI_NO_RELAUNCH"] || !!env["SANDBOX"];
  return isAgent ? "agent" : "helper";
}

/** What follows the program: behind Node, its options and the script; or behind a binary of its own. */
function ownArguments(argv: readonly string[]): readonly string[] | null {
  if (baseName(argv[0] ?? "") === "gemini") return argv.slice(1);
  if (!/^(node|nodejs|bun)$/.test(baseName(argv[0] ?? ""))) return null;
  let index = 1;
  while (argv[index]?.startsWith("-")) index += /^(-r|--require|--import|--loader)$/.test(argv[index] ?? "") ? 2 : 1;
  const script = argv[index] ?? "";
  return /(^|\/)(gemini|gemini\.js|gemini-cli\/dist\/index\.js)$/.test(script) ? argv.slice(index + 1) : null;
}

/** Only without an interface: with one it may have gone on to another session (/clear, /resume). */
function argvId(argv: readonly string[]): string | null {
  const own = ownArguments(argv) ?? [];
  if (flagValue(own, "-p", "--prompt") === null) return null;
  const chosen = flagValue(own, "--session-id");
  if (chosen !== null) return gemini.isId(chosen) ? chosen : null;
  const resumed = flagValue(own, "-r", "--resume");
  return resumed !== null && isUuid(resumed) ? resumed : null;
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const head = readHead(file.forward());
  const tail = readTail(file);
  if (head.header === null && !(tail.empty && file.startsLikeJson)) {
    const message = "its record is not one of Gemini's";
    return unread({ code: "record-unrecognised", agent: "gemini", source: file.path, message });
  }
  return read({
    id: file.id,
    source: file.path,
    cwd: file.beside("../.project_root")?.trim() || null,
    createdAt: head.at,
    lastMessageAt: tail.lastAt,
    writtenAt: file.writtenAt,
    turn: tail.turn,
    waiting: null,
    pending: null,
    background: null,
    parent: null,
    continuedBy: null,
    subagentOf: null,
    facts: {
      model: tail.model,
      title: tail.title,
      prompt: head.prompt,
      branch: null,
      agentVersion: null,
      permission: null,
      denied: null,
      tokens: null,
      costUsd: null,
    },
    skippedLines: tail.skipped,
    torn: file.torn,
    unknownLines: tail.unknown,
    // To resume a session it begins a second file under the same id, and then leaves it at that.
    isSegment: true,
  });
}
