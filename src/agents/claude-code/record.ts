// Reads how far the last turn of a Claude Code transcript got. The interface of 2.1.197 sometimes writes an answer before its
// prompt. So the order of the file does not count: the chain of parents does, from the newest line that is no other line's parent.
import type { Background, NativeRecord, Turn, Waiting } from "../../core/evidence.ts";
import { type Reading, read } from "../../core/problem.ts";
import type { RecordFile } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, textIn, timeIn } from "../fields.ts";
import { firstQuestion, needsOf, typedLine } from "../record-lines.ts";
import { firstRows, isForeign, openRecord, readableTurn, unknownRecord } from "../record-parser.ts";
import { claudeCallText, isClaudeType, isInterfaceText, isInterruption, parseClaudeLine } from "./lines.ts";

interface ChatLine {
  fields: Fields;
  kind: Kind;
  at: number | null;
  id: string | null;
  parent: string | null;
  /** The parent, also across a compaction. */
  above: string | null;
}

export function parseRecord(file: RecordFile): Reading<NativeRecord> {
  const record = openRecord(file);
  const { collected, queued, lines, isEmpty, isWhole } = readEnd(file, record);
  const chain = chainOf(collected);
  const calls = pendingCalls(chain);
  const turn = judge(chain, queued);
  // Claude asks about the oldest of several calls in one message.
  const call = calls.at(-1);
  if (turn.state === "open" && call !== undefined) {
    record.pending = pendingOf(call);
    // If all tools are allowed, only these two still ask.
    const asks = record.facts.permission !== "bypassPermissions" || ["question", "plan"].includes(record.pending.kind);
    turn.doubt = asks ? { code: "tool-call-pending" } : null;
  }
  record.turn = readableTurn(file, record, isEmpty, turn.state === "none" ? null : turn) ?? turn;
  if (readHead(file, record) === 0 && isForeign(file, lines, isEmpty)) return unknownRecord("claude-code", file);
  record.lastMessageAt ??= record.createdAt;
  const background = backgroundOf(collected, calls);
  if (isWhole || background.shells > 0 || background.subagents > 0) record.background = background;
  return read(record);
}

const headLines = 60;

/** Returns the number of lines that were understood. */
function readHead(file: RecordFile, record: NativeRecord): number {
  let lines = 0;
  let directory: string | null = null;
  for (const { row } of firstRows(file.forward(), headLines, typedLine)) {
    if (row !== null) {
      lines += 1;
      record.createdAt ??= timeIn(row.fields, "timestamp");
      directory ??= textIn(row.fields, "cwd");
      record.facts.permission ??= textIn(row.fields, "permissionMode");
      const [message] = parseClaudeLine(row.fields)?.messages ?? [];
      if (message?.role === "user") record.facts.prompt = message.text;
    }
    if (record.facts.prompt !== null && directory !== null) break;
  }
  record.cwd = directory ?? record.cwd;
  return lines;
}

/** The number of lines to read before the newest prompt: its answer may be among them. */
const extraLines = 40;

interface RecordEnd {
  collected: ChatLine[];
  /** The time of the newest prompt in the queue. */
  queued: number | null;
  /** The number of lines that were understood. */
  lines: number;
  isEmpty: boolean;
  /** The file was read to its start. */
  isWhole: boolean;
}

function readEnd(file: RecordFile, record: NativeRecord): RecordEnd {
  const end: RecordEnd = { collected: [], queued: null, lines: 0, isEmpty: true, isWhole: true };
  const { facts } = record;
  let extra = -1;
  let mayMatter = (_line: Buffer): boolean => true;
  for (const line of file.backward((bytes) => mayMatter(bytes))) {
    end.isEmpty = false;
    if (extra >= 0) extra += 1;
    if (extra > extraLines && facts.model !== null) {
      end.isWhole = false;
      break;
    }
    const typed = line.ok ? typedLine(line.value) : null;
    if (typed === null) {
      if (extra < 0) record.skippedLines += 1;
      continue;
    }
    const { type, fields } = typed;
    end.lines += 1;
    if (!isClaudeType(type)) record.unknownLines += 1;
    if (type === "ai-title" || type === "custom-title" || type === "summary")
      facts.title ??= titleKeys.flatMap((key) => textIn(fields, key) ?? [])[0] ?? null;
    if (type === "queue-operation" && fields["operation"] === "enqueue") end.queued ??= timeIn(fields, "timestamp");
    facts.permission ??= textIn(fields, "permissionMode");
    if (textIn(fields, "uuid") === null || fields["isSidechain"] === true) continue;
    const entry = entryOf(fields, type);
    end.collected.push(entry);
    noteFacts(record, entry, type);
    if (extra >= 0 || entry.kind !== "prompt") continue;
    extra = 0;
    if (isRooted(end.collected, entry)) mayMatter = (bytes) => mattersBefore(entry, bytes, record);
  }
  return end;
}

const titleKeys = ["aiTitle", "customTitle", "title", "summary"];

function entryOf(fields: Fields, type: string): ChatLine {
  const parent = textIn(fields, "parentUuid");
  return {
    fields,
    kind: kindOf(fields, type),
    at: timeIn(fields, "timestamp"),
    id: textIn(fields, "uuid"),
    parent,
    above: parent ?? textIn(fields, "logicalParentUuid"),
  };
}

/** True if no collected line has a parent before this prompt. Then older lines cannot change the state of the turn. */
function isRooted(collected: readonly ChatLine[], prompt: ChatLine): boolean {
  const ids = new Set(collected.map(({ id }) => id));
  return collected.every((entry) => entry === prompt || entry.above === null || ids.has(entry.above));
}

const needles = (...texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));
const always = needles('"backgroundTaskId"', '"isAsync"', "<task-id>");
const inCwd = needles('"cwd"');
const inFacts = [
  { fact: "title", texts: needles('"ai-title"', '"custom-title"', '"summary"') },
  { fact: "permission", texts: needles('"permissionMode"') },
  { fact: "branch", texts: needles('"gitBranch"') },
  { fact: "agentVersion", texts: needles('"version"') },
] as const;

/** A line before the newest prompt matters if its time is later, if it is about background work, or if it has a missing fact. */
function mattersBefore({ fields }: ChatLine, bytes: Buffer, { cwd, facts }: NativeRecord): boolean {
  const has = (texts: readonly Buffer[]): boolean => texts.some((text) => bytes.includes(text));
  const hasFact = inFacts.some(({ fact, texts }) => facts[fact] === null && has(texts));
  const isNeeded = facts.model === null || hasFact || (cwd === null && has(inCwd)) || has(always);
  return isNeeded || mayBeSince(textIn(fields, "timestamp") ?? "", bytes);
}

const timestamp = Buffer.from('"timestamp"');
const isoLength = "2026-01-01T00:00:00.000Z".length;

/** ISO times of equal length sort as texts do. */
function mayBeSince(time: string, bytes: Buffer): boolean {
  if (time.length !== isoLength || !time.endsWith("Z")) return true;
  for (let at = bytes.indexOf(timestamp); at !== -1; at = bytes.indexOf(timestamp, at + 1)) {
    const from = at + timestamp.length;
    const text = bytes.toString("latin1", from, from + isoLength + 3);
    const other = text.slice(2, -1);
    if (!text.startsWith(':"') || !text.endsWith('Z"') || other >= time) return true;
  }
  return false;
}

function noteFacts(record: NativeRecord, { fields, at }: ChatLine, type: string): void {
  const { facts } = record;
  const model = type === "assistant" ? textIn(fieldsIn(fields, "message"), "model") : null;
  if (model !== null && model !== "<synthetic>") facts.model ??= model;
  facts.branch ??= textIn(fields, "gitBranch");
  facts.agentVersion ??= textIn(fields, "version");
  record.cwd ??= textIn(fields, "cwd");
  if (type !== "attachment" && at !== null) record.lastMessageAt = Math.max(record.lastMessageAt ?? at, at);
}

/** Follows the parents from the newest line that is no other line's parent to the oldest line that was read. */
function chainOf(newestFirst: readonly ChatLine[]): ChatLine[] {
  const byId = new Map(newestFirst.map((entry) => [entry.id, entry]));
  const parents = new Set(newestFirst.map(({ parent }) => parent));
  const leaves = newestFirst.filter(({ id }) => !parents.has(id));
  const [leaf] = leaves.toSorted(byTime);
  const chain = new Set<ChatLine>();
  for (let entry = leaf; entry !== undefined && !chain.has(entry); entry = byId.get(entry.above)) chain.add(entry);
  // A compaction cuts the chain; the lines before it follow in order of time.
  const rest = newestFirst.filter((entry) => !chain.has(entry));
  return [...chain, ...rest.toSorted(byTime)];
}

const byTime = (a: ChatLine, b: ChatLine): number => (b.at ?? 0) - (a.at ?? 0);

type Kind = AnswerKind | "prompt" | "notice" | "interrupted" | "result" | "closed";
type AnswerKind = "answer" | "call" | "partial" | "failed" | "other";

function kindOf(line: Fields, type: string): Kind {
  if (type === "system") return line["subtype"] === "turn_duration" ? "closed" : "other";
  const message = fieldsIn(line, "message");
  const blocks = listIn(message, "content");
  if (type === "assistant") return kindOfAnswer(line, message, blocks);
  // Only this attachment ends a turn.
  if (type === "attachment") return fieldsOf(line["attachment"])?.["type"] === "max_turns_reached" ? "failed" : "other";
  if (type !== "user" || line["isMeta"] === true || line["isCompactSummary"] === true) return "other";
  if (blocks.some((block) => block["type"] === "tool_result")) return "result";
  const text = textIn(message, "content") ?? textIn(blocks[0] ?? {}, "text") ?? "";
  if (isInterruption(text)) return "interrupted";
  if (text.trimStart().startsWith("<task-notification")) return "notice";
  return isInterfaceText(text) ? "other" : "prompt";
}

function kindOfAnswer(line: Fields, message: Fields, blocks: readonly Fields[]): AnswerKind {
  if (line["isApiErrorMessage"] === true) return "failed";
  if (blocks.some((block) => block["type"] === "tool_use")) return "call";
  // A resume inserts this message after an unfinished turn. A turn that a person interrupted ends with the interruption.
  if (message["model"] === "<synthetic>") return "other";
  const reason = textIn(message, "stop_reason");
  return reason === null || reason === "tool_use" ? "partial" : "answer";
}

/** The newest line of the chain that shows a state decides. */
function judge(chain: readonly ChatLine[], queued: number | null): Turn {
  const last = chain.find(({ kind }) => kind !== "other" && kind !== "closed");
  if (last === undefined) return queued === null ? { state: "none" } : { state: "open", since: queued, doubt: null };
  const { fields, kind } = last;
  const end = chain.slice(0, chain.indexOf(last)).find((entry) => entry.kind === "closed");
  const at = end?.at ?? last.at;
  if (kind === "answer") return { state: "closed", at, outcome: "completed" };
  if (kind === "failed") return { state: "closed", at, outcome: "failed", ...needsIn(fields) };
  if (kind === "interrupted") return { state: "closed", at, outcome: "interrupted" };
  if (end !== undefined) return { state: "closed", at, outcome: null };
  const start = chain.find((entry) => entry.kind === "prompt" || entry.kind === "notice");
  return { state: "open", since: start?.at ?? at, doubt: null };
}

/** Both verified versions have these errors. */
const needsByError: Parameters<typeof needsOf>[0] = {
  ...{ authentication_failed: "login", oauth_org_not_allowed: "login" },
  ...{ rate_limit: "limit", billing_error: "limit" },
};

function needsIn(line: Fields): ReturnType<typeof needsOf> {
  const error = textIn(line, "error");
  const [block = {}] = listIn(fieldsIn(line, "message"), "content");
  return needsOf(needsByError, error, textIn(block, "text") ?? error);
}

/** Calls without a result, newest first. */
function pendingCalls(newestFirst: readonly ChatLine[]): Fields[] {
  const answered = new Set<string | null>();
  const calls: Fields[] = [];
  for (const { fields, kind } of newestFirst) {
    for (const block of listIn(fieldsIn(fields, "message"), "content")) {
      if (block["type"] === "tool_result") answered.add(textIn(block, "tool_use_id"));
      if (block["type"] === "tool_use") calls.push(block);
    }
    // Calls of an earlier turn that have no result never get one: they are not pending.
    if (kind === "prompt") break;
  }
  return calls.filter((call) => !answered.has(textIn(call, "id")));
}

function pendingOf(call: Fields): Waiting {
  const tool = textIn(call, "name");
  const input = fieldsIn(call, "input");
  if (tool === "AskUserQuestion") return { kind: "question", tool, ...firstQuestion(input) };
  if (tool === "ExitPlanMode") return { kind: "plan", text: textIn(input, "plan"), tool, options: [] };
  return { kind: "permission", text: claudeCallText(call), tool, options: [] };
}

/** Background work that was started and not yet reported as ended. */
function backgroundOf(collected: readonly ChatLine[], calls: readonly Fields[]): Background {
  const shells = new Set<string>();
  const subagents = new Set<string>();
  const ended = new Set<string>();
  for (const { fields } of collected) {
    const result = fieldsIn(fields, "toolUseResult");
    const shell = textIn(result, "backgroundTaskId");
    const agent = result["isAsync"] === true ? textIn(result, "agentId") : null;
    if (shell !== null) shells.add(shell);
    if (agent !== null) subagents.add(agent);
    const content = textIn(fieldsIn(fields, "message"), "content") ?? "";
    for (const [, id = ""] of content.matchAll(/<task-id>([^<]+)<\/task-id>/g)) ended.add(id.trim());
  }
  const running = (ids: ReadonlySet<string>): number => [...ids].filter((id) => !ended.has(id)).length;
  const delegated = calls.filter((call) => ["Agent", "Task"].includes(textIn(call, "name") ?? "")).length;
  return { shells: running(shells), subagents: running(subagents) + delegated };
}
