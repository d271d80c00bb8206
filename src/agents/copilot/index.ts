// GitHub Copilot CLI. Its README describes what it writes and how that was tested.
import type { Adapter } from "../adapter.ts";
import { baseName, flagValue } from "../argv.ts";
import { isUuid, uuidOrNull, words } from "../fields.ts";
import { copilotInvocation } from "./invocation.ts";
import { parseLine, parseRecord } from "./lines.ts";

const session = /^(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
/** The process that has the session holds a kernel lock on it. */
const hold = /\/session-state\/([0-9a-f-]{36})\/inuse\.[0-9]+\.hold$/;

export const copilot: Adapter = {
  agent: "copilot",
  title: "GitHub Copilot CLI",
  aliases: ["copilot-cli", "github-copilot"],
  command: "copilot",
  install: "npm install -g @github/copilot",
  verified: ["1.0.102"],
  ties: "A live copilot holds a kernel lock on a file in the folder of its session. agentctl chooses the id of a launched session.",
  knows: "Working, waiting with the question (approvals, ask_user, plans), idle; how each turn ended.",
  unknowable: [
    "Before its first prompt an interface has written nothing, also while it asks whether to trust the folder: unclear, nothing recorded yet.",
    "A tool of an MCP server may be asking a question: unclear, tool call pending.",
    "Questions outside of tools (a usage limit, a switch of the model) are not recorded: working.",
    "Its record is written about a tenth of a second late.",
    "Commands that still run in the background are not counted.",
    "Copilot does not record the cost of a session.",
  ],
  isId: isUuid,
  // The kernel shows the name of its main thread, or of the Node that runs npm's starter.
  processNames: ["MainThread", "copilot", "node", "node-MainThread"],
  environment: ["COPILOT_HOME", "HOME"],
  records: [{ folder: "session-state/*", name: /^events\.jsonl$/, inside: session }],
  // The pid files beside the locks add nothing, and are wrong after a crash.
  lockedFiles: hold,
  countsDenied: true,
  countedIn: ['"session.usage_record"', '"denied"'],
  role(name, { argv, exe }) {
    const program = (exe ?? "").replace(/ \(deleted\)$/, "");
    const [, script = ""] = argv ?? [];
    if (/^(node|bun)$/.test(baseName(program)))
      return /(^|\/)copilot$|\/copilot\/npm-loader\.js$/.test(script) ? "helper" : null;
    if (baseName(program) !== "copilot") return null;
    // AWS has a program with the same name. Copilot's thread is called MainThread only at its start; later its path must match.
    if (name !== "MainThread" && !/\bcopilot-(cli|linux|linuxmusl|darwin)\b/.test(program)) return null;
    const words = ownWords(argv ?? []);
    if (words.some((word) => servers.includes(word.replace(/=.*/, "")))) return "server";
    return commands.includes(words[0] ?? "") ? "helper" : "agent";
  },
  announces: () => true,
  announcedIds: ({ lockedFiles }) => lockedFiles.flatMap((path) => hold.exec(path)?.[1] ?? []).filter(isUuid),
  /** These options also accept names and beginnings of ids: only a whole id counts. */
  argvId: (argv) => uuidOrNull(flagValue(ownWords(argv), "--session-id", "--resume", "-r")),
  home: (env) => env["COPILOT_HOME"] || (env["HOME"] ? `${env["HOME"]}/.copilot` : null),
  parseRecord,
  parseLine,
  invocation: copilotInvocation,
};

const commands = words`app login help config update version sessions memories plugin mcp skill instruction lsp sandbox completion`;
const servers = ["--acp", "--server", "--headless", "--environment-host", "--ahp-host"];

const flagsWithText = ["-p", "--prompt", "-i", "--interactive", "-n", "--name"];

/** The arguments without prompts and names, which may look like options. */
const ownWords = (argv: readonly string[]): string[] =>
  argv.slice(1).filter((_, index) => !flagsWithText.includes(argv[index] ?? ""));
