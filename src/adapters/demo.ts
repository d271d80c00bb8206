// The built-in scripted agent. Its note demo.md says what it writes; src/demo/agent.ts is the agent itself.
import type { HostedSession, NativeRecord, PidClaim, Turn, Waiting } from "../core/evidence.ts";
import { type Problem, type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail } from "../core/process.ts";
import type { Role } from "../core/rules.ts";
import type { Adapter, ClaimFile, Line, RecordFile } from "./adapter.ts";
import { demoInvocation } from "./demo-invocation.ts";
import { lineTypes, parseLine } from "./demo-lines.ts";
import {
  baseName,
  countIn,
  type Fields,
  fieldsOf,
  flagValue,
  isUuid,
  numberIn,
  textIn,
  textsIn,
  timeIn,
  uuidIn,
} from "./fields.ts";

export const demo: Adapter = {
  agent: "demo",
  title: "Demo agent (built in)",
  aliases: [],
  command: "agentctl",
  install: "it is part of agentctl: try `agentctl demo`",
  verified: ["1"],
  ties: "Its own file live/<pid>.json names pid, start, boot and session; with --no-announce its arguments, or weakly its directory.",
  knows: "Working, waiting with the question, idle; how each turn ended.",
  unknowable: [
    "Started with --no-announce it says nothing about itself: then its session is found by its arguments or, weakly, by its directory.",
  ],
  isId: isUuid,
  processNames: ["demo-agent", "agentctl"],
  environment: ["DEMO_AGENT_HOME", "HOME"],
  records: [{ folder: "sessions", name: /^(?<id>[0-9a-f-]{36})\.jsonl$/ }],
  claims: { folder: "live", name: /^(?<pid>[1-9][0-9]{0,9})\.json$/ },
  lockedFiles: null,
  hostsNameBy: "answer",
  host: {
    at: { folder: "hosts", name: /^(?<pid>[1-9][0-9]{0,9})\.sock$/ },
    transport: "plain",
    sessions: () => ({ opening: ["?\n"], next: (heard) => ({ answer: parseHostAnswer(heard.join("")) }) }),
    send: (id, text) => ({
      opening: [`message ${id} ${JSON.stringify(text)}\n`],
      next: (heard) => ({ answer: wordOf(heard.join("")) }),
    }),
    interrupt: (id) => ({ opening: [`interrupt ${id}\n`], next: (heard) => ({ answer: read(heard.join("").trim()) }) }),
  },
  tokensInTail: false,
  countsDenied: true,
  countedIn: ['"tokens"', '"denied"'],
  subagentRecords: null,
  historyOf: () => null,
  successions: null,
  trust: null,
  role,
  announces: ({ argv }) => argv === null || !ownArguments(argv)?.includes("--no-announce"),
  announcedIds: () => [],
  argvId,
  home: (env) => env["DEMO_AGENT_HOME"] || (env["HOME"] ? `${env["HOME"]}/.demo-agent` : null),
  parseRecord,
  parseClaim,
  parseLine,
  invocation: demoInvocation,
};

function role(name: string, { argv }: ProcessDetail): Role | null {
  const own = argv === null ? null : ownArguments(argv);
  if (own === null) return name === "demo-agent" ? "agent" : null;
  return own[0] === "serve" ? "host" : "agent";
}

/** What follows `demo-agent`: behind a link to the binary, `agentctl demo-agent`, or an interpreter and a script. */
function ownArguments(argv: readonly string[]): readonly string[] | null {
  for (const index of [0, 1]) if (baseName(argv[index] ?? "") === "demo-agent") return argv.slice(index + 1);
  return null;
}

function argvId(argv: readonly string[]): string | null {
  const id = flagValue(ownArguments(argv) ?? [], "--session-id", "--resume");
  return id !== null && isUuid(id) ? id : null;
}

function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const { header, prompt, title } = readHead(file.forward());
  const tail = readTail(file);
  if (tail.lines === 0 && !(tail.empty && file.startsLikeJson)) {
    const message = "its record is not a demo agent's record";
    return unread({ code: "record-unrecognised", agent: "demo", source: file.path, message });
  }
  return read({
    id: file.id,
    source: file.path,
    cwd: textIn(header, "cwd"),
    createdAt: timeIn(header, "at"),
    lastMessageAt: tail.lastAt,
    writtenAt: file.writtenAt,
    turn: tail.turn,
    waiting: tail.waiting,
    pending: null,
    subagentOf: null,
    background: tail.background,
    parent: uuidIn(header, "parent"),
    continuedBy: tail.continuedBy,
    facts: {
      model: textIn(header, "model"),
      title: tail.title ?? title,
      prompt,
      branch: null,
      agentVersion: numberIn(header, "version")?.toString() ?? null,
      permission: textIn(header, "permission"),
      denied: null,
      tokens: null,
      costUsd: null,
    },
    skippedLines: tail.skipped,
    torn: file.torn,
    unknownLines: tail.unknown,
  });
}

interface Head {
  /** Empty where the first line is broken or something else. */
  header: Fields;
  prompt: string | null;
  title: string | null;
}

const headLines = 20;

function readHead(lines: Iterable<Line>): Head {
  const head: Head = { header: {}, prompt: null, title: null };
  let seen = 0;
  for (const line of lines) {
    const fields = line.ok ? fieldsOf(line.value) : null;
    if (fields?.["type"] === "session" && seen === 0) head.header = fields;
    if (fields?.["type"] === "prompt") head.prompt ??= textIn(fields, "text");
    if (fields?.["type"] === "title") head.title = textIn(fields, "text");
    seen += 1;
    if (seen >= headLines) break;
  }
  return head;
}

interface Tail {
  /** Lines that were recognised. */
  lines: number;
  /** Nothing but, at most, the start of a first line. */
  empty: boolean;
  turn: Turn;
  waiting: NativeRecord["waiting"];
  background: NativeRecord["background"];
  continuedBy: string | null;
  title: string | null;
  lastAt: number | null;
  skipped: number;
  unknown: number;
}

/** How far beyond the last mark of a turn the background work of earlier turns is looked for. */
const backgroundLines = 200;

/** From the end back to the last mark of a turn; broken lines on the way leave the turn unclear. */
function readTail(file: RecordFile): Tail {
  const tail: Tail = {
    lines: 0,
    empty: true,
    turn: { state: "none" },
    waiting: null,
    background: null,
    continuedBy: null,
    title: null,
    lastAt: null,
    skipped: 0,
    unknown: 0,
  };
  let asked: boolean | null = null;
  let mark: Turn | null = null;
  let beyond = 0;
  for (const line of file.backward()) {
    tail.empty = false;
    const fields = line.ok ? fieldsOf(line.value) : null;
    const type = fields === null ? null : textIn(fields, "type");
    if (fields !== null && type === "background") tail.background ??= background(fields);
    if (mark !== null) {
      beyond += 1;
      if (tail.background !== null || beyond > backgroundLines) break;
      continue;
    }
    if (fields === null || type === null) {
      tail.skipped += 1;
      continue;
    }
    tail.lines += 1;
    if (!lineTypes.includes(type)) tail.unknown += 1;
    const at = timeIn(fields, "at");
    if (type !== "title" && type !== "background") tail.lastAt ??= at;
    if (type === "question" && asked === null) tail.waiting = question(fields, at);
    if (type === "question" || type === "answer") asked ??= type === "question";
    if (type === "continued") tail.continuedBy ??= uuidIn(fields, "by");
    if (type === "title") tail.title ??= textIn(fields, "text");
    if (type === "prompt") mark = { state: "open", since: at, doubt: null };
    if (type === "end") mark = { state: "closed", at, outcome: outcome(fields) };
  }
  if (mark !== null) tail.turn = mark;
  else if (file.size > file.tailBytes) tail.turn = { state: "unclear", why: "its last turn is longer than we read" };
  if (file.torn && !tail.empty) tail.turn = { state: "unclear", why: "the last line of its record is not complete" };
  else if (tail.skipped > 0) tail.turn = { state: "unclear", why: "broken lines after the last mark of a turn" };
  if (tail.turn.state !== "open") tail.waiting = null;
  return tail;
}

const background = (fields: Fields): NativeRecord["background"] => ({
  shells: countIn(fields, "shells") ?? 0,
  subagents: countIn(fields, "subagents") ?? 0,
});

const kinds: readonly Waiting["kind"][] = ["permission", "question", "plan", "trust", "login", "limit", "other"];

function question(fields: Fields, since: number | null): NativeRecord["waiting"] {
  const kind = kinds.find((known) => known === fields["kind"]) ?? "other";
  return {
    kind,
    text: textIn(fields, "text"),
    tool: textIn(fields, "tool"),
    options: textsIn(fields, "options"),
    since,
  };
}

function outcome(fields: Fields): "completed" | "failed" | "interrupted" | null {
  const said = fields["outcome"];
  return said === "completed" || said === "failed" || said === "interrupted" ? said : null;
}

function parseClaim(file: ClaimFile): Reading<PidClaim> {
  const fields = fieldsOf(file.value);
  const session = fields === null ? null : textIn(fields, "session");
  const start = fields === null ? null : textIn(fields, "start");
  if (fields === null || session === null || !isUuid(session) || file.pid === null || fields["pid"] !== file.pid)
    return unread(unrecognisedClaim(file.path));
  return read({
    session,
    pid: file.pid,
    start,
    boot: textIn(fields, "boot"),
    namespace: textIn(fields, "namespace"),
    source: file.path,
    writtenAt: file.writtenAt,
    cwd: textIn(fields, "cwd"),
    says: null,
    waiting: null,
    background: null,
    job: null,
  });
}

const unrecognisedClaim = (source: string): Problem => ({
  code: "claim-unreadable",
  agent: "demo",
  source,
  message: "its announcement has an unknown shape",
});

function parseHostAnswer(text: string): Reading<HostedSession[]> {
  const problem: Problem = {
    code: "host-silent",
    agent: "demo",
    source: "",
    message: "the answer has an unknown shape",
  };
  try {
    const sessions = fieldsOf(JSON.parse(text))?.["sessions"];
    if (!Array.isArray(sessions)) return unread(problem);
    return read(
      sessions.flatMap((value) => {
        const fields = fieldsOf(value);
        const id = fields === null ? null : textIn(fields, "id");
        if (fields === null || id === null || !isUuid(id)) return [];
        const activity = (["working", "waiting", "idle"] as const).find((known) => known === fields["activity"]);
        const waiting = fieldsOf(fields["waiting"]);
        return [{ id, activity: activity ?? ("unclear" as const), waiting: waiting && question(waiting, null) }];
      }),
    );
  } catch (error) {
    return unread({ ...problem, message: `the answer is no JSON: ${String(error)}` });
  }
}

function wordOf(text: string): Reading<string> {
  if (text === "taken") return read("it has answered");
  return unread({ code: "host-silent", agent: "demo", source: "", message: text === "" ? "no answer" : text });
}
