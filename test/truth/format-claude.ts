// Claude Code 2.1.197 and 2.1.325, as src/agents/claude-code/README.md and its captured files show them.
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import type { Fields, Format, Word } from "./format.ts";
import { pidNamespace } from "./proc.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, parseObject, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const claudeFormat: Format = {
  agent: "claude-code",
  command: "claude",
  program: "script",
  home: "claude-home",
  environment: (home) => ({ CLAUDE_CONFIG_DIR: home }),
  records: "projects",
  announcements: {
    folder: "sessions",
    inPlace: true,
    hasBoot: false,
    fileOf: ({ pid }) => `${pid}.json`,
    pattern: /^(?<pid>\d+)\.json$/,
    hasNamespace: ({ argv }) => !isOld(argv),
    write: writeAnnouncement,
    parse: (text, pid) => parseAnnouncement(parseObject(text) ?? {}, pid),
  },
  database: null,
  idInside: false,
  lock: null,
  newId: (dice) => dice.uuid(),
  recordPath: ({ home, id, cwd }) => join(home, "projects", cwd.replace(/[^A-Za-z0-9]/g, "-"), `${id}.jsonl`),
  argv(manner, id, dice) {
    // An option that both versions accept gives the version; it decides what the process reports.
    const style = dice.pick([[], [], ["-p", "go"], ["-p", "go", "--model", oldModel], ["--model", oldModel]]);
    if (manner === "resume") return [...style, dice.pick(["--resume", "-r"]), id];
    if (manner === "nameless") return style;
    return manner === "argv" || dice.chance(0.5) ? [...style, "--session-id", id] : style;
  },
  mayMoveOn: () => false,
  argvNames: (argv, id) => argv.includes(id),
  nestedArgv: (id) => ["--session-id", id],
  hidesArguments: false,
  tidiesOnTerm: true,
  writesLate: true,
  announces: () => true,
  manyWriters: true,
  can(_session, event, actor) {
    if (event === "question" || event === "answer" || event === "background")
      return actor !== null && !isHeadless(actor.argv);
    return true;
  },
  begin,
  lines,
  wordAfter,
  firstWord(argv, { turnOpen, asking }) {
    if (isOld(argv) && isHeadless(argv)) return { status: null, waitingFor: null };
    if (asking) return { status: "waiting", waitingFor: "permission prompt" };
    return { status: turnOpen || isHeadless(argv) ? "busy" : "idle", waitingFor: null };
  },
  reader: {
    accept(line) {
      const { type, timestamp, cwd } = line;
      if (typeof type !== "string") return null;
      const atMs = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
      return { ...line, type, atMs, cwd: typeof cwd === "string" ? cwd : null };
    },
    isHeader: () => true,
    isMark: (line) => meaningOf(line)?.kind === "prompt",
    turnOf,
  },
};

const oldModel = "claude-opus-4-8";
const isOld = (argv: readonly string[]): boolean => argv.includes(oldModel);
const isHeadless = (argv: readonly string[]): boolean => argv.includes("-p");

function writeAnnouncement(
  announcement: Parameters<NonNullable<Format["announcements"]>["write"]>[0],
  fake: Pick<FakeAgent, "cwd" | "argv" | "bornMs">,
): string {
  const old = isOld(fake.argv);
  const now = Date.now();
  const domain = `linux:${"0".repeat(32)}:${announcement.namespace ?? pidNamespace}`;
  return JSON.stringify({
    pid: announcement.pid,
    sessionId: announcement.session,
    cwd: fake.cwd,
    startedAt: fake.bornMs,
    procStart: announcement.start,
    version: old ? "2.1.197" : "2.1.325",
    peerProtocol: 1,
    kind: "interactive",
    entrypoint: isHeadless(fake.argv) ? "sdk-cli" : "cli",
    ...(old ? {} : { pidDomain: domain, asksForConvertedSkills: null }),
    name: "project-1f",
    nameSource: "derived",
    ...(announcement.status === null ? {} : { status: announcement.status, updatedAt: now, statusUpdatedAt: now }),
    ...(announcement.waitingFor === null ? {} : { waitingFor: announcement.waitingFor }),
  });
}

function parseAnnouncement(fields: Fields, pid: number): ReturnType<NonNullable<Format["announcements"]>["parse"]> {
  const { sessionId, procStart, pidDomain, status, waitingFor } = fields;
  if (typeof sessionId !== "string" || !uuid.test(sessionId) || fields["pid"] !== pid) return null;
  const text = (value: unknown): string | null => (typeof value === "string" ? value : null);
  return {
    pid,
    start: text(procStart),
    boot: null,
    namespace: /pid:\[\d+\]$/.exec(text(pidDomain) ?? "")?.[0] ?? null,
    session: sessionId,
    status: text(status),
    waitingFor: text(waitingFor),
  };
}

function wordAfter(session: Session, event: string, fields: Fields, actor: FakeAgent): Word | null {
  if (actor.word.status === null) return null;
  const say = (status: string, waitingFor: string | null = null): Word => ({ status, waitingFor });
  if (event === "end") return say("idle");
  if (event === "background") return session.turnOpen ? null : say(fields["shells"] === 0 ? "idle" : "shell");
  if (event === "title") return null;
  if (event !== "question") return say("busy");
  if (fields["kind"] === "other") return say("waiting", String(fields["text"]));
  const asks = fields["kind"] === "question" && !isOld(actor.argv) ? "input needed" : "permission prompt";
  return say("waiting", asks);
}

// --- lines

function begin(session: Session, actor: FakeAgent | null): string {
  const { id } = session;
  const at = new Date().toISOString();
  const rows = isHeadless(actor?.argv ?? [])
    ? [
        { type: "queue-operation", operation: "enqueue", timestamp: at, sessionId: id, content: "go" },
        { type: "queue-operation", operation: "dequeue", timestamp: at, sessionId: id },
      ]
    : [
        { type: "mode", mode: "normal", sessionId: id },
        { type: "permission-mode", permissionMode: "default", sessionId: id },
      ];
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

function lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string {
  const pen = penFor(session, actor);
  const text = String(fields["text"] ?? "");
  if (event === "prompt") {
    const permissionMode = fields["mode"] === "bypass" ? "bypassPermissions" : "default";
    pen.turnLine("user", { message: { role: "user", content: text }, promptId: pen.fresh(), permissionMode });
    pen.turnLine("attachment", { attachment: { type: "skill_listing", rest: "x".repeat(600) } });
    session.scratch["call"] = null;
  }
  if (event === "reply") pen.answer([{ type: "text", text }], "tool_use");
  if (event === "tool") pen.call("Bash", { command: "ls" });
  if (event === "tool-result" || event === "answer") pen.result(text);
  if (event === "question") ask(pen, session, fields);
  if (event === "title") pen.plain({ type: "ai-title", aiTitle: text, sessionId: session.id });
  if (event === "end") finish(pen, session, fields, text);
  return pen.text;
}

function ask(pen: Pen, session: Session, { kind, text }: Fields): void {
  if (kind === "other") return;
  // A permission is asked for the call that is pending already.
  if (kind === "permission") {
    if (session.scratch["call"] == null) pen.call("Bash", { command: text });
    return;
  }
  if (session.scratch["call"] != null) pen.result("ok");
  if (kind === "plan") pen.call("ExitPlanMode", { plan: text });
  else pen.call("AskUserQuestion", { questions: [{ question: text, header: "Q", options: [{ label: "yes" }] }] });
}

function finish(pen: Pen, session: Session, { outcome }: Fields, text: string): void {
  if (session.scratch["call"] != null) pen.result(outcome === "interrupted" ? "User rejected tool use" : "ok");
  if (outcome === "completed") pen.answer([{ type: "text", text }], "end_turn");
  if (outcome === "failed") {
    const error = text.length % 2 === 0 ? "unknown" : "rate_limit";
    const content = [{ type: "text", text: `API Error: ${error}` }];
    const message = { id: pen.fresh(), model: "<synthetic>", role: "assistant", stop_reason: "stop_sequence", content };
    pen.turnLine("assistant", { message, error, isApiErrorMessage: true });
  }
  if (outcome === "interrupted") {
    const content = [{ type: "text", text: "[Request interrupted by user]" }];
    pen.turnLine("user", { message: { role: "user", content } });
  }
  if (!pen.headless) pen.turnLine("system", { subtype: "turn_duration", durationMs: 442, isMeta: false });
  pen.plain({ type: "last-prompt", lastPrompt: "go", leafUuid: pen.leaf(), sessionId: session.id });
}

/** Each process goes on from the line that it wrote or read last: two of them make a tree. */
function penFor(session: Session, actor: FakeAgent | null) {
  const leaves = leavesOf(session);
  const me = actor === null ? "nobody" : `${actor.pid} ${actor.start}`;
  const argv = actor?.argv ?? [];
  const base = {
    isSidechain: false,
    userType: "external",
    entrypoint: isHeadless(argv) ? "sdk-cli" : "cli",
    cwd: session.cwd,
    sessionId: session.id,
    version: isOld(argv) ? "2.1.197" : "2.1.325",
    gitBranch: "main",
  };
  const pen = {
    text: "",
    headless: isHeadless(argv),
    fresh: () => crypto.randomUUID(),
    leaf: () => leaves.get(me) ?? leaves.get("newest") ?? null,
    plain(row: Fields) {
      pen.text += `${JSON.stringify(row)}\n`;
    },
    turnLine(type: string, fields: Fields) {
      const id = pen.fresh();
      pen.plain({
        parentUuid: pen.leaf(),
        ...base,
        type,
        ...fields,
        uuid: id,
        timestamp: new Date().toISOString(),
      });
      leaves.set(me, id).set("newest", id);
    },
    answer(content: Fields[], stop_reason: string) {
      const usage = {
        input_tokens: 1234,
        cache_read_input_tokens: 200,
        cache_creation_input_tokens: 10,
        output_tokens: 5,
      };
      const model = isOld(argv) ? oldModel : "claude-opus-5-5";
      const message = {
        id: `msg_${pen.fresh()}`,
        type: "message",
        role: "assistant",
        model,
        content,
        stop_reason,
        usage,
      };
      pen.turnLine("assistant", { message });
    },
    call(name: string, input: Fields) {
      const id = `toolu_${pen.fresh()}`;
      session.scratch["call"] = id;
      pen.answer([{ type: "tool_use", id, name, input }], "tool_use");
    },
    result(content: string) {
      const id = session.scratch["call"];
      if (id == null) return;
      session.scratch["call"] = null;
      const block = { type: "tool_result", tool_use_id: id, content, is_error: false };
      pen.turnLine("user", { message: { role: "user", content: [block] }, toolUseResult: { stdout: content } });
    },
  };
  return pen;
}

type Pen = ReturnType<typeof penFor>;

const trees = new WeakMap<Session, Map<string, string>>();

function leavesOf(session: Session): Map<string, string> {
  const known = trees.get(session) ?? new Map<string, string>();
  trees.set(session, known);
  return known;
}

// --- reading back

type Meaning =
  | { kind: "prompt"; mode: string | null }
  | { kind: "going on" }
  | { kind: "call"; id: string; name: string; about: string }
  | { kind: "result"; id: string }
  | { kind: "end"; outcome: string; needs: string | null };

/** null: nothing about the turn. `turn_duration` follows what closed it. */
function meaningOf(line: Line): Meaning | null {
  const message = fieldsOf(line["message"]) ?? {};
  const { content } = message;
  const blocks = Array.isArray(content) ? content.map((block) => fieldsOf(block) ?? {}) : [];
  const [block = {}] = blocks;
  if (line.type === "user") {
    if (block["type"] === "tool_result") return { kind: "result", id: String(block["tool_use_id"]) };
    const text = typeof content === "string" ? content : String(block["text"] ?? "");
    if (text.startsWith("[Request interrupted")) return { kind: "end", outcome: "interrupted", needs: null };
    const mode = line["permissionMode"];
    return { kind: "prompt", mode: typeof mode === "string" ? mode : null };
  }
  if (line.type !== "assistant") return null;
  const text = String(block["text"] ?? "");
  if (line["isApiErrorMessage"] === true)
    return { kind: "end", outcome: "failed", needs: line["error"] === "rate_limit" ? text : null };
  if (block["type"] === "tool_use") {
    const input = fieldsOf(block["input"]) ?? {};
    const [asked] = Array.isArray(input["questions"]) ? input["questions"] : [];
    const about = fieldsOf(asked)?.["question"] ?? input["plan"] ?? input["command"];
    return { kind: "call", id: String(block["id"]), name: String(block["name"]), about: String(about) };
  }
  if (message["stop_reason"] === "end_turn") return { kind: "end", outcome: "completed", needs: null };
  return { kind: "going on" };
}

/** By time, not by place: lines of two writers, and those that came late, stand in any order. */
function turnOf(all: readonly Line[]): Turn {
  const ordered = all.filter(({ atMs }) => Number.isFinite(atMs)).toSorted((a, b) => a.atMs - b.atMs);
  let says = noTurn;
  let mode: string | null = null;
  const calls = new Map<string, { name: string; about: string }>();
  for (const line of ordered) {
    const meaning = meaningOf(line);
    if (line.type === "queue-operation" && says.turn === "none" && line["operation"] === "enqueue")
      says = openedAt(line.atMs);
    if (meaning === null) continue;
    if (meaning.kind === "prompt") {
      calls.clear();
      mode = meaning.mode;
    }
    if (meaning.kind === "call") calls.set(meaning.id, meaning);
    if (meaning.kind === "result") calls.delete(meaning.id);
    const goesOn = says.turn === "open" && meaning.kind !== "prompt" ? says.markedAtMs : null;
    says = meaning.kind === "end" ? closed(meaning.outcome, meaning.needs, line.atMs) : openedAt(goesOn ?? line.atMs);
  }
  const [call] = calls.values();
  if (says.turn !== "open" || call === undefined) return says;
  const mayAsk = mode !== "bypassPermissions" || call.name === "AskUserQuestion" || call.name === "ExitPlanMode";
  return { ...says, pending: call.about, doubt: mayAsk };
}
