// Codex CLI. Its note codex.md says what it writes, and what of it was seen with the real tool.
import type { NativeRecord } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, RecordFile, Repository } from "./adapter.ts";
import { daemon } from "./codex-daemon.ts";
import { codexInvocation } from "./codex-invocation.ts";
import { parseLine, readHead, readTail } from "./codex-rollout.ts";
import { baseName, type Fields, fieldsIn, fieldsOf, isUuid, textIn, timeIn, uuidIn } from "./fields.ts";

/** After a rewind in its interface a thread goes on in a second file, `…-<id>_<uuid>.jsonl`; `.zst`: see unknowable. */
const rollout = /^rollout-.*?-(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[0-9a-f-]{36})?\.jsonl(?:\.zst)?$/;
const writerLock = /\/thread-writer-locks\/([0-9a-f-]{36})\.lock$/;

/** The second and third: the files of its releases, started under their own names. */
const processNames = ["codex", "codex-x86_64-un", "codex-aarch64-u"];

export const codex: Adapter = {
  agent: "codex",
  title: "Codex CLI",
  aliases: [],
  command: "codex",
  install: "npm install -g @openai/codex",
  verified: ["0.166.0"],
  ties: "A live codex holds the kernel lock of its session's file; its daemon answers for the sessions in it. The id is Codex's own, told in its first line of output.",
  knows:
    "Working, idle, how a turn ended; waiting with the question where its daemon has the session, else only that a tool call is pending.",
  unknowable: [
    "Without its daemon, a tool that runs and a tool that waits for approval look the same (unclear, tool call pending), unless its policy is never to ask.",
    "Without its daemon, an interface before its first prompt has written nothing: unclear, nothing recorded yet.",
    "An interface that shows a list of sessions to choose from looks like one that just starts: it names no session.",
    "After /new its process keeps the old session, too: both are running, the old one idle.",
    "A record that Codex has compressed (an option that is off by default) is not read: unknown.",
    "Codex does not record what a session cost, nor which calls were refused.",
  ],
  isId: isUuid,
  processNames,
  environment: ["CODEX_HOME", "HOME"],
  records: [
    { folder: "sessions/*/*/*", name: rollout },
    { folder: "archived_sessions", name: rollout },
  ],
  claims: null,
  lockedFiles: writerLock,
  hostsNameBy: "lock",
  host: daemon,
  tokensInTail: true,
  countsDenied: false,
  countedIn: ['"thread_token_usage"'],
  subagentRecords: null,
  historyOf: (file) => uuidIn(readHead(file.forward()).meta, "forked_from_id"),
  successions: null,
  trust: { files: (home) => [`${home}/config.toml`], mustAsk },
  role,
  announces: () => true,
  announcedIds: ({ lockedFiles }) => lockedFiles.flatMap((path) => writerLock.exec(path)?.[1] ?? []).filter(isUuid),
  argvId,
  home: (env) => env["CODEX_HOME"] || (env["HOME"] ? `${env["HOME"]}/.codex` : null),
  parseRecord,
  parseClaim: ({ path }) =>
    unread({ code: "claim-unreadable", agent: "codex", source: path, message: "Codex writes no announcements" }),
  parseLine,
  invocation: codexInvocation,
};

const helpers =
  "agents login logout mcp plugin remote-control completion update doctor sandbox debug apply a queue archive unarchive delete migrate-rollouts migrate-nfs-db cloud exec-server features help".split(
    " ",
  );

function role(name: string, { argv }: ProcessDetail): Role | null {
  if (!processNames.includes(name)) return null;
  if (argv === null) return "agent";
  // Codex starts itself under other names, inside of its sandbox and to patch files.
  if (!/^codex(-x86_64-|-aarch64-|$)/.test(baseName(argv[0] ?? "")) || argv[1]?.startsWith("--codex-run-as-"))
    return "helper";
  const [command = "", more] = words(argv);
  if (command === "app-server" || command === "mcp-server") return more === undefined ? "host" : "helper";
  return helpers.includes(command) ? "helper" : "agent";
}

/**
 * Only of `exec resume`, until it has its lock. An interface that was started with an id may show it out of the daemon,
 * still be at a dialog, or have gone on to another one: there the lock alone counts.
 */
function argvId(argv: readonly string[]): string | null {
  const [command, more, id] = words(argv);
  return (command === "exec" || command === "e") && more === "resume" && id !== undefined && isUuid(id) ? id : null;
}

const flagsWithValue =
  "-c --config --enable --disable --remote --remote-auth-token-env -i --image -m --model --local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval --thread-source --cyber-access-program --output-schema --color -o --output-last-message --listen".split(
    " ",
  );

/** Its arguments without options and their values. */
function words(argv: readonly string[]): string[] {
  const found: string[] = [];
  for (let index = 1; index < argv.length; index += 1) {
    const argument = argv[index] ?? "";
    if (argument === "--") return [...found, ...argv.slice(index + 1)];
    if (flagsWithValue.includes(argument)) index += 1;
    else if (!argument.startsWith("-") || argument === "-") found.push(argument);
  }
  return found;
}

/** Asked only inside of a repository, by an interface, about the directory it is in. */
function mustAsk(config: string, { detail }: ProcessRow, repository: Repository | null): boolean {
  const argv = detail?.argv ?? null;
  if (argv === null || repository === null) return false;
  const elsewhere = /^(-C|--cd|--worktree|--remote)(=|$)/;
  if (argv.some((argument) => elsewhere.test(argument))) return false;
  if (["exec", "e", "review"].includes(words(argv)[0] ?? "")) return false;
  const places = [detail?.cwd, repository.root, repository.main];
  return !places.some((place) => place != null && (config.includes(`"${place}"`) || config.includes(`'${place}'`)));
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  if (file.path.endsWith(".zst")) {
    const message = "its record is compressed, which agentctl does not read";
    return unread({ code: "record-unrecognised", agent: "codex", source: file.path, message });
  }
  const { meta, prompt, ...head } = readHead(file.forward());
  const tail = readTail(file);
  if (tail.lines === 0 && !(tail.empty && file.startsLikeJson)) {
    const message = "its record is not a Codex rollout";
    return unread({ code: "record-unrecognised", agent: "codex", source: file.path, message });
  }
  const context = tail.context ?? head.context;
  const [approval, sandbox] = [textIn(context, "approval_policy"), textIn(fieldsIn(context, "sandbox_policy"), "type")];
  return read({
    id: file.id,
    source: file.path,
    cwd: textIn(context, "cwd") ?? textIn(meta, "cwd"),
    createdAt: timeIn(meta, "timestamp") ?? head.at,
    lastMessageAt: tail.lastAt,
    writtenAt: file.writtenAt,
    turn: tail.turn,
    waiting: tail.waiting,
    pending: tail.pending,
    background: null,
    parent: uuidIn(meta, "forked_from_id"),
    continuedBy: null,
    subagentOf: subagentOf(file.id, meta, tail.root),
    facts: {
      model: textIn(context, "model"),
      title: null,
      prompt,
      branch: textIn(fieldsIn(meta, "git"), "branch"),
      agentVersion: textIn(meta, "cli_version"),
      permission: [approval, sandbox].filter((word) => word !== null).join(", ") || null,
      denied: null,
      tokens: tail.tokens,
      costUsd: null,
    },
    skippedLines: tail.skipped,
    torn: file.torn,
    unknownLines: tail.unknown,
    ...(/_[0-9a-f-]{36}\.jsonl$/.test(file.path) ? { isSegment: true } : {}),
  });
}

/** The root of a tree of subagents, by its first line; where that is broken, by whom its tokens are counted for. */
function subagentOf(id: string, meta: Fields, counted: string | null): string | null {
  const subagent = fieldsIn(meta, "source")["subagent"];
  const isOne = meta["thread_source"] === "subagent" || subagent !== undefined || meta["id"] === undefined;
  const spawner = uuidIn(fieldsIn(fieldsOf(subagent) ?? {}, "thread_spawn"), "parent_thread_id");
  const root = [uuidIn(meta, "session_id"), spawner, counted].find((other) => other !== null && other !== id);
  return isOne ? (root ?? null) : null;
}
