// Gemini CLI. Its README describes what it writes and how that was tested.
import type { Adapter } from "../adapter.ts";
import { baseName, flagValue, nodeScript } from "../argv.ts";
import { fieldsOf, textIn, uuidOrNull, words } from "../fields.ts";
import { geminiInvocation } from "./invocation.ts";
import { parseLine, parseRecord } from "./lines.ts";

export const gemini: Adapter = {
  agent: "gemini",
  title: "Gemini CLI",
  aliases: ["gemini-cli"],
  command: "gemini",
  install: "npm install -g @google/gemini-cli",
  verified: ["0.61.0"],
  ties: "agentctl chooses the id of a launched session; without an interface the arguments name it. An interface is found, weakly, by its directory.",
  knows:
    "Working, until the first answer of a turn and after each tool; idle after a turn that failed or was cancelled in its interface. It does not know how other turns ended.",
  unknowable: [
    "Gemini records a tool call only when it is done. An answer with text and an answer with text that calls a tool leave the same record: after it a live session is unclear, and a stopped one has no outcome.",
    "A tool that runs and a tool that waits for approval look the same (unclear, tool call pending).",
    "A failed or cancelled turn is taken out of its record: a headless session that failed is stopped, without an outcome.",
    "An interface does not name its session: it is found by its directory, and only while exactly one session there was written to since it started (after /clear there are two).",
    "Its dialogs about trust, login and quota are not recorded.",
    "Tokens of its subagents are not counted.",
  ],
  // --session-id accepts more than UUIDs.
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
  countsDenied: false,
  countedIn: ['"tokens"'],
  role(_name, { argv, env }) {
    const own = argv === null ? null : ownArguments(argv);
    if (own === null) return null;
    if (helpers.includes(own[0] ?? "") || own.some((argument) => infoFlags.test(argument))) return "helper";
    // The first process starts a second one with GEMINI_CLI_NO_RELAUNCH, and waits for it.
    const isAgent = env === null || !!env["GEMINI_CLI_NO_RELAUNCH"] || !!env["SANDBOX"];
    return isAgent ? "agent" : "helper";
  },
  announces: () => false,
  /** Only of runs without an interface: an interface may have switched to another session (/clear, /resume). */
  argvId(argv) {
    const own = ownArguments(argv) ?? [];
    if (flagValue(own, "-p", "--prompt") === null) return null;
    const chosen = flagValue(own, "--session-id");
    if (chosen !== null) return gemini.isId(chosen) ? chosen : null;
    return uuidOrNull(flagValue(own, "-r", "--resume"));
  },
  home: (env) => homeIn(env["GEMINI_CLI_HOME"]) ?? homeIn(env["HOME"]),
  parseRecord,
  parseLine,
  invocation: geminiInvocation,
};

const homeIn = (folder: string | undefined): string | null => (folder ? `${folder}/.gemini` : null);

const helpers = words`mcp extensions extension skills skill hooks hook gemma`;
const infoFlags = /^(-v|--version|-h|--help|-l|--list-extensions|--list-sessions|--delete-session)(=|$)/;

/** The arguments after its script, or after its own binary. */
function ownArguments(argv: readonly string[]): readonly string[] | null {
  if (baseName(argv[0] ?? "") === "gemini") return argv.slice(1);
  const { script, own } = nodeScript(argv, /^(node|nodejs|bun)$/) ?? { script: "", own: [] };
  return /(^|\/)(gemini|gemini\.js|gemini-cli\/dist\/index\.js)$/.test(script) ? own : null;
}
