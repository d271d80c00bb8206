// Codex CLI. Its README describes what it writes and how that was tested.
import type { ProcessRow } from "../../core/process.ts";
import type { Adapter, RepositoryRoots } from "../adapter.ts";
import { baseName, plainWords } from "../argv.ts";
import { isUuid, uuidOrNull, words } from "../fields.ts";
import { unknownRecord } from "../record-parser.ts";
import { codexInvocation } from "./invocation.ts";
import { historyOf, parseLine, parseRollout } from "./record.ts";
import { daemon } from "./server.ts";

/** After a rewind in its interface a thread continues in a second file, `…-<id>_<uuid>.jsonl`. `.zst` files are compressed. */
const rollout = /^rollout-.*?-(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[0-9a-f-]{36})?\.jsonl(?:\.zst)?$/;
const writerLock = /\/thread-writer-locks\/([0-9a-f-]{36})\.lock$/;

/** The second and third are the file names of Codex's releases, which the kernel cuts to 15 characters. */
const processNames = ["codex", "codex-x86_64-un", "codex-aarch64-u"];

export const codex: Adapter = {
  agent: "codex",
  title: "Codex CLI",
  aliases: [],
  command: "codex",
  install: "npm install -g @openai/codex",
  verified: ["0.166.0"],
  ties: "A live codex holds a kernel lock on the file of its session; its daemon names the sessions that it runs. Codex chooses the id, and prints it in its first line of output.",
  knows:
    "Working, idle, how a turn ended; waiting with the question if its daemon runs the session, else only that a tool call is pending.",
  unknowable: [
    "Without its daemon, a tool that runs and a tool that waits for approval look the same (unclear, tool call pending), unless its policy is to never ask.",
    "Without its daemon, an interface before its first prompt has written nothing: unclear, nothing recorded yet.",
    "An interface that shows its list of sessions looks like one that is starting: its session is not known yet.",
    "After /new the process keeps the old session as well: both are running, the old one is idle.",
    "A record that Codex has compressed (an option that is off by default) is not read: unknown.",
    "Codex records neither the cost of a session nor which calls were refused.",
  ],
  isId: isUuid,
  processNames,
  environment: ["CODEX_HOME", "HOME"],
  records: [
    { folder: "sessions/*/*/*", name: rollout },
    { folder: "archived_sessions", name: rollout },
  ],
  lockedFiles: writerLock,
  serversNameBy: "lock",
  server: daemon,
  tokensInTail: true,
  countsDenied: false,
  countedIn: ['"thread_token_usage"'],
  historyOf,
  trust: { files: (home) => [`${home}/config.toml`], mustAsk },
  role(name, { argv }) {
    if (!processNames.includes(name)) return null;
    if (argv === null) return "agent";
    // Codex starts itself under other names, inside its sandbox and to patch files.
    if (!/^codex(-x86_64-|-aarch64-|$)/.test(baseName(argv[0] ?? "")) || argv[1]?.startsWith("--codex-run-as-"))
      return "helper";
    const [command = "", more] = plainWords(argv, flagsWithValue);
    if (command === "app-server" || command === "mcp-server") return more === undefined ? "server" : "helper";
    return helpers.includes(command) ? "helper" : "agent";
  },
  announces: () => true,
  announcedIds: ({ lockedFiles }) => lockedFiles.flatMap((path) => writerLock.exec(path)?.[1] ?? []).filter(isUuid),
  /**
   * Only `exec resume` counts, until the process holds its lock. An interface that was started with an id may show a session of the
   * daemon, still be at a dialog, or have switched to another session: there only the lock counts.
   */
  argvId(argv) {
    const [command, more, id = ""] = plainWords(argv, flagsWithValue);
    return (command === "exec" || command === "e") && more === "resume" ? uuidOrNull(id) : null;
  },
  home: (env) => env["CODEX_HOME"] || (env["HOME"] ? `${env["HOME"]}/.codex` : null),
  parseRecord: (file) => (file.path.endsWith(".zst") ? unknownRecord("codex", file, "compressed") : parseRollout(file)),
  parseLine,
  invocation: codexInvocation,
};

const helpers = words`agents login logout mcp plugin remote-control completion update doctor sandbox debug apply a queue archive unarchive delete migrate-rollouts migrate-nfs-db cloud exec-server features help`;

const flagsWithValue = words`-c --config --enable --disable --remote --remote-auth-token-env -i --image -m --model --local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval --thread-source --cyber-access-program --output-schema --color -o --output-last-message --listen`;

/** Codex asks whether to trust a directory only in its interface, inside a repository, and only about its own directory. */
function mustAsk(config: string, { detail }: ProcessRow, repository: RepositoryRoots | null): boolean {
  const argv = detail?.argv ?? null;
  if (argv === null || repository === null) return false;
  const elsewhere = /^(-C|--cd|--worktree|--remote)(=|$)/;
  if (argv.some((argument) => elsewhere.test(argument))) return false;
  if (["exec", "e", "review"].includes(plainWords(argv, flagsWithValue)[0] ?? "")) return false;
  const places = [detail?.cwd, repository.root, repository.main];
  return !places.some((place) => place != null && (config.includes(`"${place}"`) || config.includes(`'${place}'`)));
}
