// Claude Code. Its note claude-code.md says what it writes and how that was seen.
import type { Background, Facts, NativeRecord, PidClaim, Succession, Turn, Waiting } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, ClaimFile, RecordFile } from "./adapter.ts";
import { claudeInvocation } from "./claude-code-invocation.ts";
import { parseClaudeLine } from "./claude-code-lines.ts";
import { type ClaudeTail, readClaudeTail } from "./claude-code-tail.ts";
import { fieldsOf, flagValue, isUuid, lookUp, millisIn, textIn, timeIn } from "./fields.ts";

export const claudeCode: Adapter = {
  agent: "claude-code",
  title: "Claude Code",
  aliases: ["claude"],
  command: "claude",
  install: "npm install -g @anthropic-ai/claude-code",
  verified: ["2.1.197", "2.1.325"],
  ties: "Its own file sessions/<pid>.json names pid, start and session; launched ones are given their id.",
  knows: "Working, waiting with the question, idle, background work; how a turn ended.",
  unknowable: [
    "Headless sessions of 2.1.197 do not say what they are doing: while a tool call is pending they are unclear, unless all tools are allowed.",
    "A headless session of 2.1.197 that was ended by SIGINT while answering looks cut off.",
    "An interface started with CLAUDE_CODE_CHILD_SESSION=1 (from inside another session) leaves no trace but its process.",
    "A fork names no parent.",
  ],
  isId: isUuid,
  processNames: ["claude", "claude.exe"],
  environment: ["CLAUDE_CONFIG_DIR", "HOME"],
  records: [{ folder: "projects/*", name: /^(?<id>[0-9a-f-]{36})\.jsonl$/ }],
  claims: { folder: "sessions", name: /^(?<pid>[1-9][0-9]{0,9})\.json$/ },
  lockedFiles: null,
  hostsNameBy: null,
  host: null,
  tokensInTail: false,
  countsDenied: true,
  // Most results say `"is_error":false`: the key alone would find nearly every line.
  countedIn: ['"usage"', '"totalCostUSD"', '"reject"', '"is_error":true'],
  role,
  announces: () => true,
  announcedIds: () => [],
  argvId,
  home: (env) => env["CLAUDE_CONFIG_DIR"] || (env["HOME"] ? `${env["HOME"]}/.claude` : null),
  parseRecord,
  parseClaim,
  parseLine: parseClaudeLine,
  subagentRecords: { folder: "subagents", name: /^(?<id>agent-[^/]+)\.jsonl$/ },
  historyOf: () => null,
  successions: { file: "history.jsonl", words: ["/clear", "/resume"], parse: parseSuccession },
  invocation: claudeInvocation,
  // With CLAUDE_CONFIG_DIR the settings are inside the home, else beside it: ~/.claude and ~/.claude.json.
  trust: { files: (home) => [`${home}/.claude.json`, `${home}.json`], mustAsk },
};

/** Commands of the same binary that never are a conversation. */
const helperCommands =
  "daemon mcp agents stop logs attach config doctor update upgrade install plugin setup-token auth migrate-installer".split(
    " ",
  );

function role(name: string, { argv, exe }: ProcessDetail): Role | null {
  const program = exe ?? "";
  const isClaude = /\/claude(\.exe)?$|\/claude\/versions\/[^/]+$/.test(program) || /^claude(\.exe)?$/.test(name);
  if (!isClaude) return null;
  const [zeroth = "", first = ""] = argv ?? [];
  const isHelper =
    zeroth.startsWith("claude bg-") || /^--bg-(pty-host|spare)$/.test(first) || helperCommands.includes(first);
  return isHelper ? "helper" : "agent";
}

function argvId(argv: readonly string[]): string | null {
  const chosen = flagValue(argv, "--session-id");
  const resumed = argv.includes("--fork-session") ? null : flagValue(argv, "--resume", "-r");
  const id = chosen ?? resumed;
  return id !== null && isUuid(id) ? id : null;
}

function parseClaim(file: ClaimFile): Reading<PidClaim> {
  const fields = fieldsOf(file.value);
  const session = fields === null ? null : textIn(fields, "sessionId");
  if (fields === null || session === null || !isUuid(session) || file.pid === null || fields["pid"] !== file.pid) {
    const message = "its announcement has an unknown shape";
    return unread({ code: "claim-unreadable", agent: "claude-code", source: file.path, message });
  }
  const start = textIn(fields, "procStart");
  const domain = textIn(fields, "pidDomain") ?? "";
  const host = /^linux:([0-9a-f]{32}):/.exec(domain)?.[1];
  const status = textIn(fields, "status");
  const waitingFor = textIn(fields, "waitingFor");
  return read({
    session,
    pid: file.pid,
    // Ticks on Linux. On macOS it is a date in words, which cannot be compared exactly: then the process itself must fit.
    start: start !== null && /^\d+$/.test(start) ? start : null,
    boot: null,
    namespace: /(pid:\[\d+\])$/.exec(domain)?.[1] ?? null,
    // /etc/machine-id, empty where there is none. All zeros are no machine's.
    host: host === undefined || /^0+$/.test(host) ? null : host,
    source: file.path,
    writtenAt: file.writtenAt,
    cwd: textIn(fields, "cwd"),
    says: status === null ? null : { ...saying(status, waitingFor), since: millisIn(fields, "statusUpdatedAt") },
    waiting: status === "waiting" ? waitingOf(waitingFor) : null,
    background: status === "shell" ? { shells: 1, subagents: 0 } : null,
    job: fields["kind"] === "bg" ? (textIn(fields, "jobId") ?? session.slice(0, 8)) : null,
  });
}

function saying(status: string, waitingFor: string | null): Omit<NonNullable<PidClaim["says"]>, "since"> {
  switch (status) {
    case "busy":
      return { activity: "working", reason: null };
    case "idle":
      return { activity: "idle", reason: null };
    case "shell":
      return { activity: "idle", reason: "background shell" };
    case "waiting":
      return { activity: "waiting", reason: waitingFor };
    default:
      return { activity: "unclear", reason: `it says "${status}"` };
  }
}

/** Prompts about a tool call are told by the call itself; the rest only by these words. */
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

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const head = readHead(file);
  const tail = readClaudeTail(file);
  if (head.lines === 0 && tail.lines === 0 && !(file.startsLikeJson && tail.empty)) {
    const message = "its record is not a Claude Code transcript";
    return unread({ code: "record-unrecognised", agent: "claude-code", source: file.path, message });
  }
  return read({
    id: file.id,
    source: file.path,
    cwd: head.cwd ?? tail.cwd,
    createdAt: head.createdAt,
    lastMessageAt: tail.lastAt ?? head.createdAt,
    writtenAt: file.writtenAt,
    turn: turnOf(file, tail),
    waiting: null,
    pending: tail.pending,
    background: backgroundOf(tail),
    parent: null,
    continuedBy: null,
    subagentOf: null,
    facts: factsOf(head, tail),
    skippedLines: tail.skipped,
    torn: file.torn,
    unknownLines: tail.unknown,
  });
}

function turnOf(file: RecordFile, tail: ClaudeTail): Turn {
  if (file.torn && !tail.empty) return { state: "unclear", why: "the last line of its record is not complete" };
  if (tail.skipped > 0) return { state: "unclear", why: "broken lines after the last mark of a turn" };
  if (tail.turn.state === "none" && file.size > file.tailBytes)
    return { state: "unclear", why: "its last turn is longer than we read" };
  return tail.turn;
}

const backgroundOf = ({ background, whole }: ClaudeTail): Background | null =>
  whole || background.shells > 0 || background.subagents > 0 ? background : null;

const factsOf = (head: Head, tail: ClaudeTail): Facts => ({
  model: tail.model,
  title: tail.title,
  prompt: head.prompt,
  branch: tail.branch,
  agentVersion: tail.version,
  permission: tail.permission ?? head.permission,
  denied: null,
  tokens: null,
  costUsd: null,
});

interface Head {
  lines: number;
  cwd: string | null;
  createdAt: number | null;
  prompt: string | null;
  permission: string | null;
}

const headLines = 60;

function readHead(file: RecordFile): Head {
  const head: Head = { lines: 0, cwd: null, createdAt: null, prompt: null, permission: null };
  let seen = 0;
  for (const line of file.forward()) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    seen += 1;
    if (fields !== null && textIn(fields, "type") !== null) {
      head.lines += 1;
      head.createdAt ??= timeIn(fields, "timestamp");
      head.cwd ??= textIn(fields, "cwd");
      head.permission ??= textIn(fields, "permissionMode");
      const [message] = parseClaudeLine(fields)?.messages ?? [];
      if (message?.role === "user") head.prompt = message.text;
    }
    if ((head.prompt !== null && head.cwd !== null) || seen >= headLines) break;
  }
  return head;
}

/** `/clear` and `/resume <id>` are written to the history under the session that they leave. */
function parseSuccession(value: unknown): Succession | null {
  const fields = fieldsOf(value);
  const [, command, id] = /^\/(clear|resume)(?:\s+(\S+))?\s*$/.exec((fields && textIn(fields, "display")) ?? "") ?? [];
  if (fields === null || command === undefined) return null;
  const to = command === "resume" && id !== undefined && isUuid(id) ? id : null;
  const from = textIn(fields, "sessionId");
  const at = millisIn(fields, "timestamp");
  if (from === null || !isUuid(from) || at === null || (command === "resume" && to === null)) return null;
  return { from, to, at, cwd: textIn(fields, "project") };
}

/** Only an interface asks, and only about a directory that nobody has accepted. */
function mustAsk(text: string, { detail }: ProcessRow): boolean {
  const { argv, cwd } = detail ?? { argv: null, cwd: null };
  if (cwd === null || argv === null || argv.includes("-p") || argv.includes("--print")) return false;
  try {
    const projects = fieldsOf(fieldsOf(JSON.parse(text))?.["projects"]) ?? {};
    const above = Object.keys(projects).filter((path) => cwd === path || cwd.startsWith(`${path}/`));
    return !above.some((path) => fieldsOf(projects[path])?.["hasTrustDialogAccepted"] === true);
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
