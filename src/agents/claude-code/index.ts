// Claude Code. Its README describes what it writes and how that was tested.
import type { Announcement, Succession, Waiting } from "../../core/evidence.ts";
import type { ProcessRow } from "../../core/process.ts";
import type { Adapter } from "../adapter.ts";
import { announcementFiles } from "../announcements.ts";
import { flagValue } from "../argv.ts";
import {
  type Fields,
  fieldsIn,
  fieldsOf,
  isUuid,
  lookUp,
  millisIn,
  parsedFields,
  textIn,
  uuidIn,
  uuidOrNull,
  words,
} from "../fields.ts";
import { claudeInvocation } from "./invocation.ts";
import { parseClaudeLine } from "./lines.ts";
import { parseRecord } from "./record.ts";

export const claudeCode: Adapter = {
  agent: "claude-code",
  title: "Claude Code",
  aliases: ["claude"],
  command: "claude",
  install: "npm install -g @anthropic-ai/claude-code",
  verified: ["2.1.197", "2.1.325"],
  ties: "Its file sessions/<pid>.json names the process and its session. agentctl chooses the id of a launched session.",
  knows: "Working, waiting with the question, idle, background work; how a turn ended.",
  unknowable: [
    "Headless sessions of 2.1.197 do not say what they are doing: while a tool call is pending they are unclear, unless all tools are allowed.",
    "A headless session of 2.1.197 that SIGINT ended while it was answering looks cut off.",
    "An interface started with CLAUDE_CODE_CHILD_SESSION=1 (from inside another session) leaves no trace but its process.",
    "A fork names no parent.",
  ],
  isId: isUuid,
  processNames: ["claude", "claude.exe"],
  environment: ["CLAUDE_CONFIG_DIR", "HOME"],
  records: [{ folder: "projects/*", name: /^(?<id>[0-9a-f-]{36})\.jsonl$/ }],
  announcements: announcementFiles("claude-code", "sessions", "sessionId", announced),
  countsDenied: true,
  // Most results contain `"is_error":false`: the key alone would be in nearly every line.
  countedIn: ['"usage"', '"totalCostUSD"', '"reject"', '"is_error":true'],
  role(name, { argv, exe }) {
    const program = exe ?? "";
    const isClaude = /\/claude(\.exe)?$|\/claude\/versions\/[^/]+$/.test(program) || /^claude(\.exe)?$/.test(name);
    if (!isClaude) return null;
    const [zeroth = "", first = ""] = argv ?? [];
    const isHelper =
      zeroth.startsWith("claude bg-") || /^--bg-(pty-host|spare)$/.test(first) || helperCommands.includes(first);
    return isHelper ? "helper" : "agent";
  },
  announces: () => true,
  argvId(argv) {
    const resumed = argv.includes("--fork-session") ? null : flagValue(argv, "--resume", "-r");
    return uuidOrNull(flagValue(argv, "--session-id") ?? resumed);
  },
  home: (env) => env["CLAUDE_CONFIG_DIR"] || (env["HOME"] ? `${env["HOME"]}/.claude` : null),
  parseRecord,
  parseLine: parseClaudeLine,
  subagentRecords: { folder: "subagents", name: /^(?<id>agent-[^/]+)\.jsonl$/ },
  successions: { file: "history.jsonl", words: ["/clear", "/resume"], parse: parseSuccession },
  invocation: claudeInvocation,
  // With CLAUDE_CONFIG_DIR the settings are inside the home, else beside it: ~/.claude and ~/.claude.json.
  trust: { files: (home) => [`${home}/.claude.json`, `${home}.json`], mustAsk },
};

/** Commands of the same binary that never have a session. */
const helperCommands = words`daemon mcp agents stop logs attach config doctor update upgrade install plugin setup-token auth migrate-installer`;

function announced(fields: Fields, session: string): Partial<Announcement> {
  const start = textIn(fields, "procStart");
  const domain = textIn(fields, "pidDomain") ?? "";
  const host = /^linux:([0-9a-f]{32}):/.exec(domain)?.[1];
  const status = textIn(fields, "status");
  const waitingFor = textIn(fields, "waitingFor");
  return {
    // Ticks on Linux. On macOS it is a date in words, which cannot be compared exactly.
    start: start !== null && /^\d+$/.test(start) ? start : null,
    namespace: /(pid:\[\d+\])$/.exec(domain)?.[1] ?? null,
    // /etc/machine-id; empty or all zeros if the host has none.
    host: host === undefined || /^0+$/.test(host) ? null : host,
    cwd: textIn(fields, "cwd"),
    says: status === null ? null : { ...saying(status, waitingFor), since: millisIn(fields, "statusUpdatedAt") },
    waiting: status === "waiting" ? waitingOf(waitingFor) : null,
    background: status === "shell" ? { shells: 1, subagents: 0 } : null,
    job: fields["kind"] === "bg" ? (textIn(fields, "jobId") ?? session.slice(0, 8)) : null,
  };
}

function saying(status: string, waitingFor: string | null): Omit<NonNullable<Announcement["says"]>, "since"> {
  if (status === "busy") return { activity: "working", reason: null };
  if (status === "idle") return { activity: "idle", reason: null };
  if (status === "shell") return { activity: "idle", reason: { code: "background-shell" } };
  if (status !== "waiting") return { activity: "unclear", reason: { code: "agent-says", text: status } };
  return { activity: "waiting", reason: waitingFor === null ? null : { code: "agent-says", text: waitingFor } };
}

/** The record describes a dialog about a tool call. Other dialogs are described only by this text. */
function waitingOf(waitingFor: string | null): Waiting {
  const kinds: Record<string, Waiting["kind"]> = {
    "permission prompt": "permission",
    "sandbox request": "permission",
    "worker request": "permission",
    "input needed": "question",
    "goal proposal": "plan",
  };
  const kind = lookUp(kinds, waitingFor ?? "") ?? "other";
  return { kind, text: kind === "other" ? waitingFor : null, tool: null, options: [] };
}

/** The history records `/clear` and `/resume <id>` with the session that the person leaves. */
function parseSuccession(value: unknown): Succession | null {
  const fields = fieldsOf(value);
  const [, command, id] = /^\/(clear|resume)(?:\s+(\S+))?\s*$/.exec((fields && textIn(fields, "display")) ?? "") ?? [];
  if (fields === null || command === undefined) return null;
  const to = command === "resume" && id !== undefined && isUuid(id) ? id : null;
  const [from, at] = [uuidIn(fields, "sessionId"), millisIn(fields, "timestamp")];
  if (from === null || at === null || (command === "resume" && to === null)) return null;
  return { from, to, at, cwd: textIn(fields, "project") };
}

/** Only an interface asks, and only about a directory that no person has accepted yet. */
function mustAsk(text: string, { detail }: ProcessRow): boolean {
  const { argv, cwd } = detail ?? { argv: null, cwd: null };
  if (cwd === null || argv === null || argv.includes("-p") || argv.includes("--print")) return false;
  const settings = parsedFields(text);
  if (settings === null) return false;
  const projects = fieldsIn(settings, "projects");
  const above = Object.keys(projects).filter((path) => cwd === path || cwd.startsWith(`${path}/`));
  return !above.some((path) => fieldsIn(projects, path)["hasTrustDialogAccepted"] === true);
}
