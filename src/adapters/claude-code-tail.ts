// How far the last turn of a Claude Code transcript got. File order is not time order (2.1.197's interface writes an answer in
// front of its prompt now and then), so the lines are followed from the one that is nobody's parent.
import type { Background, Turn, Waiting } from "../core/evidence.ts";
import type { RecordFile } from "./adapter.ts";
import { callText, isClaudeType, isInterruption, isMachinery, questionsOf } from "./claude-code-lines.ts";
import { type Fields, fieldsOf, listIn, textIn, timeIn } from "./fields.ts";

export interface ClaudeTail {
  lines: number;
  empty: boolean;
  skipped: number;
  unknown: number;
  /** Read to the start of the file. */
  whole: boolean;
  turn: Turn;
  pending: Waiting | null;
  background: Background;
  model: string | null;
  title: string | null;
  permission: string | null;
  branch: string | null;
  version: string | null;
  cwd: string | null;
  lastAt: number | null;
}

/** After the newest prompt in the file, so many more lines: its answer may stand in front of it. */
const extraLines = 40;

/** A line of the conversation. */
interface Entry {
  fields: Fields;
  kind: Kind;
  at: number | null;
  id: string | null;
  parent: string | null;
  /** Also across a compaction. */
  above: string | null;
}

export function readClaudeTail(file: RecordFile): ClaudeTail {
  const tail: ClaudeTail = {
    ...{ lines: 0, empty: true, skipped: 0, unknown: 0, whole: true },
    ...{ turn: { state: "none" }, pending: null, background: { shells: 0, subagents: 0 } },
    ...{ model: null, title: null, permission: null, branch: null, version: null, cwd: null, lastAt: null },
  };
  const collected: Entry[] = [];
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
    const fields = line.ok ? fieldsOf(line.value) : null;
    const type = fields === null ? null : textIn(fields, "type");
    if (fields === null || type === null) {
      if (extra < 0) tail.skipped += 1;
      continue;
    }
    tail.lines += 1;
    if (!isClaudeType(type)) tail.unknown += 1;
    if (type === "ai-title" || type === "custom-title" || type === "summary")
      tail.title ??=
        textIn(fields, "aiTitle") ??
        textIn(fields, "customTitle") ??
        textIn(fields, "title") ??
        textIn(fields, "summary");
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
  // Of several calls in one message the oldest is the one that is asked about.
  const call = calls.at(-1);
  if (tail.turn.state === "open" && call !== undefined) {
    tail.pending = pendingOf(call);
    // Where every tool is allowed beforehand, only these two still ask.
    const asks = tail.permission !== "bypassPermissions" || ["question", "plan"].includes(tail.pending.kind);
    tail.turn = { ...tail.turn, doubt: asks ? "tool call pending" : null };
  }
  tail.background = backgroundOf(collected, calls);
  return tail;
}

function entryOf(fields: Fields, type: string): Entry {
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

/** Everything that was read leads to this prompt, or to nothing: what stands before it decides nothing that it does not. */
function isRooted(collected: readonly Entry[], prompt: Entry): boolean {
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

/** A line in front of the newest prompt matters if it is younger, tells of work in the background, or of what is not known yet. */
function mattersBefore({ fields }: Entry, bytes: Buffer, tail: ClaudeTail): boolean {
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

/** Such times sort as texts do. */
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

function noteFacts(tail: ClaudeTail, { fields, at }: Entry, type: string): void {
  const model = type === "assistant" ? textIn(fieldsOf(fields["message"]) ?? {}, "model") : null;
  if (model !== null && model !== "<synthetic>") tail.model ??= model;
  tail.branch ??= textIn(fields, "gitBranch");
  tail.version ??= textIn(fields, "version");
  tail.cwd ??= textIn(fields, "cwd");
  if (type !== "attachment" && at !== null) tail.lastAt = Math.max(tail.lastAt ?? at, at);
}

/** From the newest line that is nobody's parent back to the oldest that was read. */
function chainOf(newestFirst: readonly Entry[]): Entry[] {
  const byId = new Map(newestFirst.map((entry) => [entry.id, entry]));
  const parents = new Set(newestFirst.map(({ parent }) => parent));
  const leaves = newestFirst.filter(({ id }) => !parents.has(id));
  const [leaf] = leaves.toSorted(byTime);
  const chain = new Set<Entry>();
  for (let entry = leaf; entry !== undefined && !chain.has(entry); entry = byId.get(entry.above)) chain.add(entry);
  // A compaction cuts the chain; what stands before it follows by time.
  const rest = newestFirst.filter((entry) => !chain.has(entry));
  return [...chain, ...rest.toSorted(byTime)];
}

const byTime = (a: Entry, b: Entry): number => (b.at ?? 0) - (a.at ?? 0);

type Kind =
  | "prompt"
  | "notice"
  | "interrupted"
  | "result"
  | "answer"
  | "call"
  | "partial"
  | "failed"
  | "closed"
  | "other";

function kindOf(line: Fields, type: string): Kind {
  if (type === "system") return line["subtype"] === "turn_duration" ? "closed" : "other";
  const message = fieldsOf(line["message"]) ?? {};
  const blocks = listIn(message, "content");
  if (type === "assistant") return kindOfAnswer(line, message, blocks);
  // The one attachment that ends a turn: `--max-turns` was reached.
  if (type === "attachment") return fieldsOf(line["attachment"])?.["type"] === "max_turns_reached" ? "failed" : "other";
  if (type !== "user" || line["isMeta"] === true || line["isCompactSummary"] === true) return "other";
  if (blocks.some((block) => block["type"] === "tool_result")) return "result";
  const text = typeof message["content"] === "string" ? message["content"] : (textIn(blocks[0] ?? {}, "text") ?? "");
  if (isInterruption(text)) return "interrupted";
  if (text.trimStart().startsWith("<task-notification")) return "notice";
  return isMachinery(text) ? "other" : "prompt";
}

function kindOfAnswer(line: Fields, message: Fields, blocks: readonly Fields[]): Kind {
  if (line["isApiErrorMessage"] === true) return "failed";
  if (blocks.some((block) => block["type"] === "tool_use")) return "call";
  // Inserted by a resume after an unfinished turn; what a person cut short ends with the interruption.
  if (message["model"] === "<synthetic>") return "other";
  const reason = textIn(message, "stop_reason");
  return reason === null || reason === "tool_use" ? "partial" : "answer";
}

/** The newest line of the chain that says anything decides. */
function judge(chain: readonly Entry[], queued: number | null): Turn {
  let closedAt: number | null = null;
  let isClosed = false;
  for (const { fields, kind, at } of chain) {
    if (kind === "closed" && !isClosed) {
      isClosed = true;
      closedAt = at;
    }
    if (kind === "other" || kind === "closed") continue;
    const closed = (outcome: "completed" | "failed" | "interrupted" | null): Extract<Turn, { state: "closed" }> => ({
      state: "closed",
      at: closedAt ?? at,
      outcome,
    });
    if (kind === "answer") return closed("completed");
    if (kind === "failed") return { ...closed("failed"), ...needsOf(fields) };
    if (kind === "interrupted") return closed("interrupted");
    return isClosed ? closed(null) : { state: "open", since: startOf(chain) ?? at, doubt: null };
  }
  return queued === null ? { state: "none" } : { state: "open", since: queued, doubt: null };
}

/** Errors that only a person can mend, by the words of 2.1.325's `error` field (197 has them, too). */
function needsOf(line: Fields): { needs?: { kind: "login" | "limit"; text: string } } {
  const error = textIn(line, "error") ?? "";
  const kinds = {
    authentication_failed: "login",
    oauth_org_not_allowed: "login",
    rate_limit: "limit",
    billing_error: "limit",
  } as const;
  const known = Object.keys(kinds).find((key): key is keyof typeof kinds => key === error);
  if (known === undefined) return {};
  const [block] = listIn(fieldsOf(line["message"]) ?? {}, "content");
  return { needs: { kind: kinds[known], text: textIn(block ?? {}, "text") ?? error } };
}

const startOf = (chain: readonly Entry[]): number | null =>
  chain.find(({ kind }) => kind === "prompt" || kind === "notice")?.at ?? null;

/** Calls without a result, newest first. */
function pendingCalls(newestFirst: readonly Entry[]): Fields[] {
  const answered = new Set<string | null>();
  const calls: Fields[] = [];
  for (const { fields, kind } of newestFirst) {
    for (const block of listIn(fieldsOf(fields["message"]) ?? {}, "content")) {
      if (block["type"] === "tool_result") answered.add(textIn(block, "tool_use_id"));
      if (block["type"] === "tool_use") calls.push(block);
    }
    // Calls of an earlier turn that were never answered stay so for ever: they are not pending.
    if (kind === "prompt") break;
  }
  return calls.filter((call) => !answered.has(textIn(call, "id")));
}

function pendingOf(call: Fields): Waiting {
  const tool = textIn(call, "name");
  const input = fieldsOf(call["input"]) ?? {};
  const [question] = questionsOf(input);
  if (tool === "AskUserQuestion")
    return { kind: "question", text: question?.text ?? null, tool, options: question?.options ?? [] };
  if (tool === "ExitPlanMode") return { kind: "plan", text: textIn(input, "plan"), tool, options: [] };
  return { kind: "permission", text: callText(call), tool, options: [] };
}

/** Started and not yet reported as ended. */
function backgroundOf(collected: readonly Entry[], calls: readonly Fields[]): Background {
  const shells = new Set<string>();
  const subagents = new Set<string>();
  const ended = new Set<string>();
  for (const { fields } of collected) {
    const result = fieldsOf(fields["toolUseResult"]) ?? {};
    const shell = textIn(result, "backgroundTaskId");
    const agent = result["isAsync"] === true ? textIn(result, "agentId") : null;
    if (shell !== null) shells.add(shell);
    if (agent !== null) subagents.add(agent);
    const { content } = fieldsOf(fields["message"]) ?? {};
    for (const [, id] of typeof content === "string" ? content.matchAll(/<task-id>([^<]+)<\/task-id>/g) : [])
      if (id !== undefined) ended.add(id.trim());
  }
  const running = (ids: ReadonlySet<string>): number => [...ids].filter((id) => !ended.has(id)).length;
  const delegated = calls.filter((call) => ["Agent", "Task"].includes(textIn(call, "name") ?? "")).length;
  return { shells: running(shells), subagents: running(subagents) + delegated };
}
