// Pi. Its note pi.md says what it writes, and what of it was seen with the real tool.
import type { NativeRecord } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, RecordFile } from "./adapter.ts";
import { baseName, flagValue, textIn, timeIn } from "./fields.ts";
import { piInvocation } from "./pi-invocation.ts";
import { parseLine, readHead, readTail } from "./pi-lines.ts";

/** Usually a UUID; since 0.87 a person may choose another one (--session-id). */
const idShape = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;
const recordName = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_(?<id>[A-Za-z0-9._-]+)\.jsonl$/;

/** It calls itself `pi` once it has read its own program; until then it is whatever this Node is called. */
const processNames = ["pi", "pi-rpc", "node", "nodejs", "MainThread", "node-MainThread", "bun"];

export const pi: Adapter = {
  agent: "pi",
  title: "Pi",
  aliases: [],
  command: "pi",
  install: "npm install -g @earendil-works/pi-coding-agent",
  verified: ["0.73.1", "0.87.1"],
  ties: "A launched one carries its session in our tag, and begins with an id that agentctl chose. One that was started by hand is found by its directory, once its record has grown.",
  knows:
    "Working, also inside of a tool; idle; how a turn ended. In 0.73 a launched one is unclear until its first answer is complete.",
  unknowable: [
    "Pi says nowhere which session a process has, and hides its arguments. What agentctl launched is known by its tag; what was started by hand is found weakly, by its directory, once it has written something.",
    "Until its first answer is complete a session that was started by hand has no record: it is shown by its pid. Meanwhile older sessions of the same directory are unknown, since it may be one of them that was reopened.",
    "Two of them in one directory, or /new in one, cannot be told apart: unknown.",
    "One that was started with --session-dir, with --no-session, or as `pi config`, looks like any other: its session is not found.",
    "Pi itself never asks for permission. An extension that does is not seen: the session is working then.",
    "After a request that failed it may be trying again: 0.73 does not record that, so it is unclear.",
    "Another program called pi is taken for it.",
    "Pi does not record its version.",
  ],
  isId: (text) => idShape.test(text),
  processNames,
  environment: ["PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "HOME"],
  records: [{ folder: "sessions/*", name: recordName }],
  claims: null,
  lockedFiles: null,
  hostsNameBy: null,
  host: null,
  tokensInTail: false,
  countsDenied: false,
  countedIn: ['"usage"'],
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  // Where its records are elsewhere, those of its directory are none of its own.
  announces: ({ env }) => Boolean(env?.["PI_CODING_AGENT_SESSION_DIR"]),
  announcedIds: () => [],
  hidesArguments: ({ argv }) => argv !== null && isTitle(argv),
  argvId,
  home,
  parseRecord,
  parseClaim: ({ path }) =>
    unread({ code: "claim-unreadable", agent: "pi", source: path, message: "Pi writes no announcements" }),
  parseLine,
  invocation: piInvocation,
};

function home(env: Readonly<Record<string, string>>): string | null {
  const own = env["HOME"] || null;
  const named = env["PI_CODING_AGENT_DIR"] || null;
  if (named === null) return own === null ? null : `${own}/.pi/agent`;
  return named === "~" || named.startsWith("~/") ? own && `${own}${named.slice(1)}` : named;
}

function role(name: string, { argv, exe }: ProcessDetail): Role | null {
  if (!processNames.includes(name)) return null;
  const isOwnName = name === "pi" || name === "pi-rpc";
  if (argv === null || argv.length === 0) return isOwnName ? "agent" : null;
  if (isTitle(argv)) return exe === null || runtimes.test(baseName(exe)) ? "agent" : null;
  const own = ownArguments(argv, exe);
  if (own === null) return null;
  return commands.includes(own[0] ?? "") || own.some((word) => questions.includes(word)) ? "helper" : "agent";
}

/** Its own release is called pi; npm's runs in Node. */
const runtimes = /^(node|nodejs|bun|pi)$/;

/** What it leaves of its arguments: its name, and the room of the others. */
const isTitle = ([first, ...rest]: readonly string[]): boolean =>
  (first === "pi" || first === "pi-rpc") && rest.every((word) => word === "");

const script = /(^|\/)pi$|\/pi-coding-agent\/dist\/(bundle\/)?(cli|rpc-entry)\.js$/;
const commands = ["install", "remove", "uninstall", "update", "list", "config", "auth"];
const questions = ["--help", "-h", "--version", "-v", "--export", "--list-models"];

/** Before it has overwritten them: behind Node and its options, or behind its own program. */
function ownArguments(argv: readonly string[], exe: string | null): readonly string[] | null {
  const first = baseName(argv[0] ?? "");
  if (first === "pi" && (exe === null || baseName(exe) === "pi")) return argv.slice(1);
  if (!runtimes.test(first)) return null;
  const at = argv.findIndex((word, index) => index > 0 && !word.startsWith("-"));
  return at !== -1 && script.test(argv[at] ?? "") ? argv.slice(at + 1) : null;
}

/** Seen only in its first moments. A part of an id is none. */
function argvId(argv: readonly string[]): string | null {
  const own = ownArguments(argv, null) ?? [];
  const chosen = flagValue(own, "--session-id");
  if (chosen !== null) return idShape.test(chosen) ? chosen : null;
  const given = flagValue(own, "--session") ?? "";
  const id = recordName.exec(baseName(given))?.groups?.["id"] ?? given;
  return wholeId.test(id) ? id : null;
}

const wholeId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const { header, prompt } = readHead(file.forward());
  const tail = readTail(file);
  const problem = (message: string) =>
    unread({ code: "record-unrecognised" as const, agent: "pi", source: file.path, message });
  if (tail.lines === 0 && !(tail.empty && file.startsLikeJson)) return problem("its record is not a Pi session");
  const id = textIn(header, "id");
  if (id !== null && id !== file.id) return problem("its record is called by another id than it names");
  return read({
    id: file.id,
    source: file.path,
    cwd: textIn(header, "cwd"),
    createdAt: timeIn(header, "timestamp"),
    lastMessageAt: tail.lastAt,
    writtenAt: file.writtenAt,
    turn: tail.turn,
    waiting: null,
    pending: null,
    background: null,
    parent: recordName.exec(baseName(textIn(header, "parentSession") ?? ""))?.groups?.["id"] ?? null,
    continuedBy: null,
    subagentOf: null,
    facts: {
      model: tail.model,
      title: tail.title,
      prompt,
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
  });
}
