// Reads how far the last turn of a Claude Code transcript got. The interface of 2.1.197 sometimes writes an answer before its
// prompt. So the order of the file does not count: the chain of parents does, from the newest line that is no other line's parent.
import type { Background, Turn, Waiting } from "../../core/evidence.ts";
import type { RecordFile } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, textIn, timeIn } from "../fields.ts";
import {
  emptyTail,
  firstQuestion,
  firstRows,
  needsOf,
  type RecordTail,
  typedLine,
  unreadTurn,
} from "../record-lines.ts";
import { claudeCallText, isClaudeType, isInterfaceText, isInterruption, parseClaudeLine } from "./lines.ts";

interface ClaudeHead {
  lines: number;
  cwd: string | null;
  createdAt: number | null;
  prompt: string | null;
  permission: string | null;
}

const headLines = 60;

export function readClaudeHead(file: RecordFile): ClaudeHead {
  const head: ClaudeHead = { lines: 0, cwd: null, createdAt: null, prompt: null, permission: null };
  for (const { row } of firstRows(file.forward(), headLines, typedLine)) {
    if (row !== null) {
      head.lines += 1;
      head.createdAt ??= timeIn(row.fields, "timestamp");
      head.cwd ??= textIn(row.fields, "cwd");
      head.permission ??= textIn(row.fields, "permissionMode");
      const [message] = parseClaudeLine(row.fields)?.messages ?? [];
      if (message?.role === "user") head.prompt = message.text;
    }
    if (head.prompt !== null && head.cwd !== null) break;
  }
  return head;
}

export interface ClaudeTail extends RecordTail {
  /** The file was read to its start. */
  whole: boolean;
  pending: Waiting | null;
  background: Background;
  model: string | null;
  title: string | null;
  permission: string | null;
  branch: string | null;
  version: string | null;
  cwd: string | null;
}

/** The number of lines to read before the newest prompt: its answer may be among them. */
const extraLines = 40;

interface ChatLine {
  fields: Fields;
  kind: Kind;
  at: number | null;
  id: string | null;
  parent: string | null;
  /** The parent, also across a compaction. */
  above: string | null;
}

export function readClaudeTail(file: RecordFile): ClaudeTail {
  const tail: ClaudeTail = {
    ...{ ...emptyTail, whole: true, pending: null, background: { shells: 0, subagents: 0 } },
    ...{ model: null, title: null, permission: null, branch: null, version: null, cwd: null },
  };
  const collected: ChatLine[] = [];
  let extra = -1;
  let queued: number | null = null;
  let mayMatter = (_line: Buffer): boolean => true;
  for (const line of file.backward((bytes) => mayMatter(bytes))) {
    tail.empty = false;
    if (extra >= 0) extra += 1;
    if (extra > extraLines && tail.model !== null) {
      tail.whole = false;
      break;
    }
    const typed = line.ok ? typedLine(line.value) : null;
    if (typed === null) {
      if (extra < 0) tail.skipped += 1;
      continue;
    }
    const { type, fields } = typed;
    tail.lines += 1;
    if (!isClaudeType(type)) tail.unknown += 1;
    if (type === "ai-title" || type === "custom-title" || type === "summary")
      tail.title ??= titleKeys.flatMap((key) => textIn(fields, key) ?? [])[0] ?? null;
    if (type === "queue-operation" && fields["operation"] === "enqueue") queued ??= timeIn(fields, "timestamp");
    tail.permission ??= textIn(fields, "permissionMode");
    if (textIn(fields, "uuid") === null || fields["isSidechain"] === true) continue;
    const entry = entryOf(fields, type);
    collected.push(entry);
    noteFacts(tail, entry, type);
    if (extra >= 0 || entry.kind !== "prompt") continue;
    extra = 0;
    if (isRooted(collected, entry)) mayMatter = (bytes) => mattersBefore(entry, bytes, tail);
  }
  const chain = chainOf(collected);
  tail.turn = judge(chain, queued);
  const calls = pendingCalls(chain);
  // Claude asks about the oldest of several calls in one message.
  const call = calls.at(-1);
  if (tail.turn.state === "open" && call !== undefined) {
    tail.pending = pendingOf(call);
    // If all tools are allowed, only these two still ask.
    const asks = tail.permission !== "bypassPermissions" || ["question", "plan"].includes(tail.pending.kind);
    tail.turn = { ...tail.turn, doubt: asks ? { code: "tool-call-pending" } : null };
  }
  tail.turn = unreadTurn(file, tail, tail.turn.state !== "none") ?? tail.turn;
  tail.background = backgroundOf(collected, calls);
  return tail;
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

const needle = (text: string): Buffer => Buffer.from(text);
const always = ['"backgroundTaskId"', '"isAsync"', "<task-id>"].map(needle);
const timestamp = needle('"timestamp"');
const titles = ['"ai-title"', '"custom-title"', '"summary"'].map(needle);
const [permissionMode, gitBranch, version, cwd] = ["permissionMode", "gitBranch", "version", "cwd"].map((key) =>
  needle(`"${key}"`),
);

/** A line before the newest prompt matters if its time is later, if it is about background work, or if it has a missing fact. */
function mattersBefore({ fields }: ChatLine, bytes: Buffer, tail: ClaudeTail): boolean {
  const has = (text: Buffer | undefined): boolean => text !== undefined && bytes.includes(text);
  return (
    tail.model === null ||
    (tail.title === null && titles.some(has)) ||
    (tail.permission === null && has(permissionMode)) ||
    (tail.branch === null && has(gitBranch)) ||
    (tail.version === null && has(version)) ||
    (tail.cwd === null && has(cwd)) ||
    always.some(has) ||
    mayBeSince(textIn(fields, "timestamp") ?? "", bytes)
  );
}

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

function noteFacts(tail: ClaudeTail, { fields, at }: ChatLine, type: string): void {
  const model = type === "assistant" ? textIn(fieldsIn(fields, "message"), "model") : null;
  if (model !== null && model !== "<synthetic>") tail.model ??= model;
  tail.branch ??= textIn(fields, "gitBranch");
  tail.version ??= textIn(fields, "version");
  tail.cwd ??= textIn(fields, "cwd");
  if (type !== "attachment" && at !== null) tail.lastAt = Math.max(tail.lastAt ?? at, at);
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
