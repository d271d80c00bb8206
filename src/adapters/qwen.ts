// Qwen Code. Its note qwen.md says what it writes, and what of it was seen with the real tool.
import type { NativeRecord, PidClaim } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, ClaimFile, RecordFile } from "./adapter.ts";
import { baseName, countIn, fieldsOf, flagValue, isUuid, textIn } from "./fields.ts";
import { qwenInvocation } from "./qwen-invocation.ts";
import { parseLine, readHead, readTail } from "./qwen-lines.ts";

export const qwen: Adapter = {
  agent: "qwen",
  title: "Qwen Code",
  aliases: ["qwen-code"],
  command: "qwen",
  install: "npm install -g @qwen-code/qwen-code",
  verified: ["0.24.4"],
  ties: "An interface names pid, start, boot and session in its own file sessions/<pid>.json. Launched ones are given their id; without an interface it stands in their arguments, else they are found, weakly, by their directory.",
  knows: "Working, idle, and how each turn ended. Not whether a pending tool call waits for a person.",
  unknowable: [
    "A tool that runs and a tool that waits for approval look the same (unclear, tool call pending).",
    "After an error that it may try again (429, 500 and the like), a live session is unclear.",
    "In an interface, a turn that was cancelled before the first word of its answer looks like one that goes on: unclear until then.",
    "It does not wait for its record to be written: for a moment after a prompt (1.5 s were seen on a busy machine) a session still looks idle.",
    "Its dialogs about trust and login are not recorded. An interface before its first prompt has written nothing: unclear.",
    "Sessions of its daemon (qwen serve) and of editors (--acp) are tied to no process: unknown while one lives.",
    "Tokens of its subagents and of its own side questions are not counted.",
  ],
  isId: isUuid,
  // Node 20, 24 and 26 give their main thread different names.
  processNames: ["node", "MainThread", "node-MainThread"],
  environment: ["QWEN_HOME", "HOME", "QWEN_CODE_NO_RELAUNCH"],
  records: [{ folder: "projects/*/chats", name: /^(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/ }],
  claims: { folder: "sessions", name: /^(?<pid>[1-9][0-9]{0,9})\.json$/ },
  lockedFiles: null,
  hostsNameBy: null,
  host: null,
  tokensInTail: false,
  countsDenied: true,
  countedIn: ['"usageMetadata"', "was declined", "User did not allow tool call"],
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  announces,
  announcedIds: () => [],
  argvId,
  home: (env) => homeOf(env["QWEN_HOME"], env["HOME"]),
  parseRecord,
  parseClaim,
  parseLine,
  invocation: qwenInvocation,
};

function homeOf(chosen: string | undefined, home: string | undefined): string | null {
  if (chosen?.startsWith("~/") && home) return `${home}/${chosen.slice(2)}`;
  return chosen || (home ? `${home}/.qwen` : null);
}

const helpers = "auth board channel extensions hooks mcp review sandbox sessions update".split(" ");
const errands = /^(-v|--version|-h|--help|-l|--list-extensions)(=|$)/;

/** `qwen` is a starter, which waits for `node --expose-gc …/cli.js`; that may start itself once more. */
function role(_name: string, { argv }: ProcessDetail): Role | null {
  const program = argv === null ? null : programIn(argv);
  if (program === null) return null;
  const { script, own } = program;
  if (own[0] === "serve") return "agent";
  if (helpers.includes(own[0] ?? "") || own.some((argument) => errands.test(argument))) return "helper";
  return baseName(script) === "cli.js" ? "agent" : "helper";
}

/** Only its interface does. The first of its processes has nothing to say. */
function announces({ argv, env }: ProcessDetail): boolean {
  const own = argv === null ? null : (programIn(argv)?.own ?? null);
  return own !== null && !isHeadless(own) && !!env?.["QWEN_CODE_NO_RELAUNCH"];
}

/** The script behind Node and its options, and what follows it; null: not Qwen's. */
function programIn(argv: readonly string[]): { script: string; own: readonly string[] } | null {
  if (!/^(node|nodejs)$/.test(baseName(argv[0] ?? ""))) return null;
  let index = 1;
  while (argv[index]?.startsWith("-")) index += /^(-r|--require|--import|--loader)$/.test(argv[index] ?? "") ? 2 : 1;
  const script = argv[index] ?? "";
  const isOwn = /(^|\/)qwen$|(^|\/)qwen(-code)?\/(dist\/)?(cli|cli-entry)\.js$/.test(script);
  return isOwn ? { script, own: argv.slice(index + 1) } : null;
}

const flagsWithValue =
  "-m --model --fallback-model -i --prompt-interactive --system-prompt --append-system-prompt --output-style --approval-mode --channel --allowed-mcp-server-names --mcp-config --allowed-tools -e --extensions --include-directories --add-dir --openai-api-key --openai-base-url -r --resume --session-id --worktree --max-session-turns --core-tools --exclude-tools --auth-type --json-file --input-file --proxy".split(
    " ",
  );

/** A prompt in its arguments, or an output for programs: then it has no interface, and stays with its session. */
function isHeadless(own: readonly string[]): boolean {
  for (let index = 0; index < own.length; index += 1) {
    const argument = own[index] ?? "";
    if (/^(-p|--prompt|-o|--output-format)(=|$)/.test(argument)) return true;
    if (flagsWithValue.includes(argument)) index += 1;
    else if (!argument.startsWith("-")) return true;
  }
  return false;
}

function argvId(argv: readonly string[]): string | null {
  const own = programIn(argv)?.own ?? [];
  // An interface counts, too, until it has announced itself: then its word is the stronger one.
  if (own.includes("--fork-session")) return null;
  const id = flagValue(own, "--session-id", "-r", "--resume");
  return id !== null && isUuid(id) ? id : null;
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const head = readHead(file.forward());
  const tail = readTail(file);
  if (tail.lines === 0 && !(tail.empty && file.startsLikeJson)) {
    const message = "its record is not one of Qwen Code's";
    return unread({ code: "record-unrecognised", agent: "qwen", source: file.path, message });
  }
  return read({
    id: file.id,
    source: file.path,
    cwd: tail.cwd ?? head.cwd,
    createdAt: head.at,
    lastMessageAt: tail.lastAt,
    writtenAt: file.writtenAt,
    turn: tail.turn,
    waiting: null,
    pending: tail.pending,
    background: null,
    parent: head.parent,
    continuedBy: null,
    subagentOf: null,
    facts: {
      model: tail.model,
      title: tail.title,
      prompt: head.prompt,
      branch: tail.branch,
      agentVersion: head.version,
      permission: null,
      denied: null,
      tokens: null,
      costUsd: null,
    },
    skippedLines: tail.skipped,
    torn: file.torn,
    unknownLines: tail.unknown,
  });
}

function parseClaim(file: ClaimFile): Reading<PidClaim> {
  const fields = fieldsOf(file.value) ?? {};
  const session = textIn(fields, "sessionId");
  if (session === null || !isUuid(session) || file.pid === null || fields["pid"] !== file.pid) {
    const message = "its announcement has an unknown shape";
    return unread({ code: "claim-unreadable", agent: "qwen", source: file.path, message });
  }
  // "<boot id>:<ticks>" on Linux.
  const start = /^([0-9a-f-]{36}):(\d+)$/.exec(textIn(fields, "procStart") ?? "");
  const namespace = countIn(fields, "pidNs");
  return read({
    session,
    pid: file.pid,
    start: start?.[2] ?? null,
    boot: start?.[1] ?? null,
    namespace: namespace === null ? null : `pid:[${namespace}]`,
    source: file.path,
    writtenAt: file.writtenAt,
    cwd: textIn(fields, "cwd"),
    says: null,
    waiting: null,
    background: null,
    job: null,
  });
}
