// Qwen Code. Its README describes what it writes and how that was tested.
import type { Announcement } from "../../core/evidence.ts";
import type { Adapter } from "../adapter.ts";
import { announcementFiles } from "../announcements.ts";
import { baseName, flagValue, nodeScript } from "../argv.ts";
import { countIn, type Fields, isUuid, textIn, uuidOrNull, words } from "../fields.ts";
import { qwenInvocation } from "./invocation.ts";
import { parseLine, parseRecord } from "./lines.ts";

export const qwen: Adapter = {
  agent: "qwen",
  title: "Qwen Code",
  aliases: ["qwen-code"],
  command: "qwen",
  install: "npm install -g @qwen-code/qwen-code",
  verified: ["0.24.4"],
  ties: "The file sessions/<pid>.json of an interface names the process and its session. agentctl chooses the id of a launched session; without an interface the arguments name it. Other processes are found, weakly, by their directory.",
  knows: "Working, idle, and how each turn ended; not whether a pending tool call waits for a person.",
  unknowable: [
    "A tool that runs and a tool that waits for approval look the same (unclear, tool call pending).",
    "After an error that it may retry (such as 429 or 500), a live session is unclear.",
    "In an interface, a turn that was cancelled before the first word of its answer looks like one that continues: unclear until that word.",
    "It writes its record late: for a moment after a prompt (up to 1.5 s on a busy host) a session still looks idle.",
    "Its dialogs about trust and login are not recorded. An interface before its first prompt has written nothing: unclear.",
    "Sessions of its daemon (qwen serve) and of editors (--acp) cannot be matched to a process: unknown while such a process lives.",
    "Tokens of its subagents and of its own side questions are not counted.",
  ],
  isId: isUuid,
  // Node 20, 24 and 26 give their main thread different names.
  processNames: ["node", "MainThread", "node-MainThread"],
  environment: ["QWEN_HOME", "HOME", "QWEN_CODE_NO_RELAUNCH"],
  records: [{ folder: "projects/*/chats", name: /^(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/ }],
  announcements: announcementFiles("qwen", "sessions", "sessionId", announced),
  countsDenied: true,
  countedIn: ['"usageMetadata"', "was declined", "User did not allow tool call"],
  /** `qwen` is a starter that waits for `node --expose-gc …/cli.js`, which may start itself a second time. */
  role(_name, { argv }) {
    const program = argv === null ? null : programIn(argv);
    if (program === null) return null;
    const { script, own } = program;
    if (own[0] === "serve") return "agent";
    if (helpers.includes(own[0] ?? "") || own.some((argument) => infoFlags.test(argument))) return "helper";
    return baseName(script) === "cli.js" ? "agent" : "helper";
  },
  /** Only an interface announces its session, and only the last of its processes. */
  announces({ argv, env }) {
    const own = argv === null ? null : (programIn(argv)?.own ?? null);
    return own !== null && !isHeadless(own) && !!env?.["QWEN_CODE_NO_RELAUNCH"];
  },
  argvId(argv) {
    const own = programIn(argv)?.own ?? [];
    // The arguments of an interface count until it announces its session.
    return own.includes("--fork-session") ? null : uuidOrNull(flagValue(own, "--session-id", "-r", "--resume"));
  },
  home: (env) => homeOf(env["QWEN_HOME"], env["HOME"]),
  parseRecord,
  parseLine,
  invocation: qwenInvocation,
};

function homeOf(chosen: string | undefined, home: string | undefined): string | null {
  if (chosen?.startsWith("~/") && home) return `${home}/${chosen.slice(2)}`;
  return chosen || (home ? `${home}/.qwen` : null);
}

const helpers = words`auth board channel extensions hooks mcp review sandbox sessions update`;
const infoFlags = /^(-v|--version|-h|--help|-l|--list-extensions)(=|$)/;

function programIn(argv: readonly string[]): ReturnType<typeof nodeScript> {
  const program = nodeScript(argv);
  return /(^|\/)qwen$|(^|\/)qwen(-code)?\/(dist\/)?(cli|cli-entry)\.js$/.test(program?.script ?? "") ? program : null;
}

const flagsWithValue = words`-m --model --fallback-model -i --prompt-interactive --system-prompt --append-system-prompt --output-style --approval-mode --channel --allowed-mcp-server-names --mcp-config --allowed-tools -e --extensions --include-directories --add-dir --openai-api-key --openai-base-url -r --resume --session-id --worktree --max-session-turns --core-tools --exclude-tools --auth-type --json-file --input-file --proxy`;

/** With a prompt in its arguments, or an output format, it has no interface and keeps its session. */
function isHeadless(own: readonly string[]): boolean {
  for (let index = 0; index < own.length; index += 1) {
    const argument = own[index] ?? "";
    if (/^(-p|--prompt|-o|--output-format)(=|$)/.test(argument)) return true;
    if (flagsWithValue.includes(argument)) index += 1;
    else if (!argument.startsWith("-")) return true;
  }
  return false;
}

function announced(fields: Fields): Partial<Announcement> {
  // "<boot id>:<ticks>" on Linux.
  const [, boot = null, start = null] = /^([0-9a-f-]{36}):(\d+)$/.exec(textIn(fields, "procStart") ?? "") ?? [];
  const namespace = countIn(fields, "pidNs");
  return { start, boot, namespace: namespace === null ? null : `pid:[${namespace}]`, cwd: textIn(fields, "cwd") };
}
