// GitHub Copilot CLI. Its note copilot.md says what it writes, and what of it was seen with the real tool.
import type { NativeRecord } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, RecordFile } from "./adapter.ts";
import { copilotInvocation } from "./copilot-invocation.ts";
import { parseLine, readHead, readTail } from "./copilot-lines.ts";
import { baseName, flagValue, isUuid } from "./fields.ts";

const session = /^(?<id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
/** Held with a kernel lock by whoever has the session. */
const hold = /\/session-state\/([0-9a-f-]{36})\/inuse\.[0-9]+\.hold$/;

export const copilot: Adapter = {
  agent: "copilot",
  title: "GitHub Copilot CLI",
  aliases: ["copilot-cli", "github-copilot"],
  command: "copilot",
  install: "npm install -g @github/copilot",
  verified: ["1.0.102"],
  ties: "A live copilot holds the kernel lock of a file in its session's folder. The id is the caller's choice.",
  knows: "Working, waiting with the question (approvals, ask_user, plans), idle; how each turn ended.",
  unknowable: [
    "Before its first prompt an interface has written nothing, also while it asks whether to trust the folder: unclear, nothing recorded yet.",
    "A tool of an MCP server may be asking a person something: unclear, tool call pending.",
    "What it asks outside of its tools (a usage limit, a switch of the model) is not recorded: working.",
    "Its record is written about a tenth of a second late.",
    "Commands that it left running in the background are not counted.",
    "Copilot does not record what a session cost.",
  ],
  isId: isUuid,
  // By the kernel's word: its main thread's name, and the names of the Node that runs npm's starter.
  processNames: ["MainThread", "copilot", "node", "node-MainThread"],
  environment: ["COPILOT_HOME", "HOME"],
  records: [{ folder: "session-state/*", name: /^events\.jsonl$/, inside: session }],
  // The pid files beside the locks say nothing more, and lie after a crash.
  claims: null,
  lockedFiles: hold,
  hostsNameBy: null,
  host: null,
  tokensInTail: false,
  countsDenied: true,
  countedIn: ['"session.usage_record"', '"denied"'],
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  announces: () => true,
  announcedIds: ({ lockedFiles }) => lockedFiles.flatMap((path) => hold.exec(path)?.[1] ?? []).filter(isUuid),
  argvId,
  home: (env) => env["COPILOT_HOME"] || (env["HOME"] ? `${env["HOME"]}/.copilot` : null),
  parseRecord,
  parseClaim: ({ path }) =>
    unread({ code: "claim-unreadable", agent: "copilot", source: path, message: "Copilot announces by a kernel lock" }),
  parseLine,
  invocation: copilotInvocation,
};

const commands =
  "app login help config update version sessions memories plugin mcp skill instruction lsp sandbox completion".split(
    " ",
  );
const servers = ["--acp", "--server", "--headless", "--environment-host", "--ahp-host"];

function role(name: string, { argv, exe }: ProcessDetail): Role | null {
  const program = (exe ?? "").replace(/ \(deleted\)$/, "");
  const [, script = ""] = argv ?? [];
  if (/^(node|bun)$/.test(baseName(program)))
    return /(^|\/)copilot$|\/copilot\/npm-loader\.js$/.test(script) ? "helper" : null;
  if (baseName(program) !== "copilot") return null;
  // AWS has a program of that name, too. Ours is called so only for its first moments.
  if (name !== "MainThread" && !/\bcopilot-(cli|linux|linuxmusl|darwin)\b/.test(program)) return null;
  const words = ownWords(argv ?? []);
  if (words.some((word) => servers.includes(word.replace(/=.*/, "")))) return "host";
  return commands.includes(words[0] ?? "") ? "helper" : "agent";
}

const flagsWithText = ["-p", "--prompt", "-i", "--interactive", "-n", "--name"];

/** Its arguments without a person's own words, which may look like anything. */
const ownWords = (argv: readonly string[]): string[] =>
  argv.slice(1).filter((_, index) => !flagsWithText.includes(argv[index] ?? ""));

/** Also names and the beginning of an id are taken there: only a whole id counts. */
function argvId(argv: readonly string[]): string | null {
  const id = flagValue(ownWords(argv), "--session-id", "--resume", "-r");
  return id !== null && isUuid(id) ? id : null;
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const head = readHead(file.forward());
  const tail = readTail(file);
  if (tail.lines === 0 && !(tail.empty && file.startsLikeJson)) {
    const message = "its record is not a Copilot session's events";
    return unread({ code: "record-unrecognised", agent: "copilot", source: file.path, message });
  }
  const workspace = flatYaml(file.beside("workspace.yaml") ?? "");
  return read({
    id: file.id,
    source: file.path,
    cwd: workspace["cwd"] ?? head.cwd,
    createdAt: head.at,
    lastMessageAt: tail.lastAt,
    writtenAt: file.writtenAt,
    turn: tail.turn,
    waiting: tail.waiting,
    pending: null,
    background: tail.subagents > 0 ? { shells: 0, subagents: tail.subagents } : null,
    parent: null,
    continuedBy: null,
    subagentOf: null,
    facts: {
      model: tail.model ?? head.model,
      title: workspace["name"] ?? null,
      prompt: head.prompt,
      branch: workspace["branch"] ?? null,
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

/** The plain `key: text` lines of a small YAML file; what is quoted is read as far as it is plain, the rest is left out. */
function flatYaml(text: string): Record<string, string> {
  const found: [string, string][] = [];
  for (const line of text.split("\n")) {
    const [, key, value = ""] = /^([a-z_]+): +(\S.*?)\s*$/.exec(line) ?? [];
    const [, single] = /^'(.*)'$/.exec(value) ?? [];
    const [, double] = /^"([^"\\]*)"$/.exec(value) ?? [];
    if (key === undefined || (/^["'|>&*!{[]/.test(value) && (single ?? double) === undefined)) continue;
    found.push([key, single?.replaceAll("''", "'") ?? double ?? value]);
  }
  return Object.fromEntries(found);
}
