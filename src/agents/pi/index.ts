// Pi. Its README describes what it writes and how that was tested.
import type { Adapter } from "../adapter.ts";
import { baseName, flagValue } from "../argv.ts";
import { uuidOrNull } from "../fields.ts";
import { piInvocation } from "./invocation.ts";
import { idInName, parseLine, parseRecord, recordName } from "./lines.ts";

/** Usually a UUID; since 0.87 a person may choose another id (--session-id). */
const idShape = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;

/** Its process is called `pi` once its program is loaded; until then it has the name of Node. */
const processNames = ["pi", "pi-rpc", "node", "nodejs", "MainThread", "node-MainThread", "bun"];

export const pi: Adapter = {
  agent: "pi",
  title: "Pi",
  aliases: [],
  command: "pi",
  install: "npm install -g @earendil-works/pi-coding-agent",
  verified: ["0.73.1", "0.87.1"],
  ties: "agentctl chooses the id of a launched session, and its tag names it. A session that was started by hand is found by its directory, once its record has grown.",
  knows:
    "Working, also inside a tool; idle; how a turn ended. In 0.73 a launched session is unclear until its first answer is complete.",
  unknowable: [
    "Pi does not say which session a process has, and hides its arguments. A launched session is known by its tag; one that was started by hand is found, weakly, by its directory, once it has written something.",
    "A session that was started by hand has no record until its first answer is complete: it is shown by its pid. Until then older sessions of the same directory are unknown, because one of them may have been reopened.",
    "Two processes in one directory, or two sessions of one process (/new), look the same: unknown.",
    "A process that was started with --session-dir, with --no-session, or as `pi config` looks like any other: its session is not found.",
    "Pi itself never asks for permission. If an extension asks, the session is shown as working.",
    "After a failed request it may be trying again: 0.73 does not record that, so it is unclear.",
    "Another program with the name pi is mistaken for it.",
    "Pi does not record its version.",
  ],
  isId: (text) => idShape.test(text),
  processNames,
  environment: ["PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "HOME"],
  records: [{ folder: "sessions/*", name: recordName }],
  countsDenied: false,
  countedIn: ['"usage"'],
  role(name, { argv, exe }) {
    if (!processNames.includes(name)) return null;
    const isOwnName = name === "pi" || name === "pi-rpc";
    if (argv === null || argv.length === 0) return isOwnName ? "agent" : null;
    if (isTitle(argv)) return exe === null || runtimes.test(baseName(exe)) ? "agent" : null;
    const own = ownArguments(argv, exe);
    if (own === null) return null;
    return commands.includes(own[0] ?? "") || own.some((word) => questions.includes(word)) ? "helper" : "agent";
  },
  // Such a process keeps its records elsewhere: the records of its directory belong to other processes.
  announces: ({ env }) => Boolean(env?.["PI_CODING_AGENT_SESSION_DIR"]),
  hidesArguments: ({ argv }) => argv !== null && isTitle(argv),
  /** The arguments are visible only until Pi overwrites them. A part of an id does not count. */
  argvId(argv) {
    const own = ownArguments(argv, null) ?? [];
    const chosen = flagValue(own, "--session-id");
    if (chosen !== null) return idShape.test(chosen) ? chosen : null;
    const given = flagValue(own, "--session") ?? "";
    return uuidOrNull(idInName(given) ?? given);
  },
  home(env) {
    const own = env["HOME"] || null;
    const named = env["PI_CODING_AGENT_DIR"] || null;
    if (named === null) return own === null ? null : `${own}/.pi/agent`;
    return named === "~" || named.startsWith("~/") ? own && `${own}${named.slice(1)}` : named;
  },
  parseRecord,
  parseLine,
  invocation: piInvocation,
};

/** The binary of its own release is called pi; the npm package runs in Node. */
const runtimes = /^(node|nodejs|bun|pi)$/;

/** True if Pi has overwritten its arguments: its name is left, then empty strings. */
const isTitle = ([first, ...rest]: readonly string[]): boolean =>
  (first === "pi" || first === "pi-rpc") && rest.every((word) => word === "");

const script = /(^|\/)pi$|\/pi-coding-agent\/dist\/(bundle\/)?(cli|rpc-entry)\.js$/;
const commands = ["install", "remove", "uninstall", "update", "list", "config", "auth"];
const questions = ["--help", "-h", "--version", "-v", "--export", "--list-models"];

/** Pi's arguments before it overwrites them: the words after Node, its options and the script, or after Pi's own binary. */
function ownArguments(argv: readonly string[], exe: string | null): readonly string[] | null {
  const first = baseName(argv[0] ?? "");
  if (first === "pi" && (exe === null || baseName(exe) === "pi")) return argv.slice(1);
  if (!runtimes.test(first)) return null;
  const at = argv.findIndex((word, index) => index > 0 && !word.startsWith("-"));
  return at !== -1 && script.test(argv[at] ?? "") ? argv.slice(at + 1) : null;
}
