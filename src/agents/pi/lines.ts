// Reads a Pi session file. Its lines are entries of a tree; the newest entry is the current leaf.
import type { Turn } from "../../core/evidence.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { baseName } from "../argv.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, listIn, numberIn, textIn, timeIn, words } from "../fields.ts";
import { answerParts, messageAt, noLineFacts, textPartsOf, typedLine } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { tokensIn } from "../tokens.ts";

interface PiEntry {
  type: string;
  id: string | null;
  /** undefined: files of version 1 have no tree; the parent is the line before. */
  parent: string | null | undefined;
  at: number | null;
  fields: Fields;
  /** Empty if the entry has no message. */
  message: Fields;
  role: string;
}

function entryOf(value: unknown): PiEntry | null {
  const typed = typedLine(value);
  if (typed === null) return null;
  const { type, fields } = typed;
  const message = type === "message" ? fieldsIn(fields, "message") : {};
  return {
    ...typed,
    id: textIn(fields, "id"),
    parent: fields["parentId"] === null ? null : (textIn(fields, "parentId") ?? undefined),
    at: timeIn(fields, "timestamp"),
    message,
    role: textIn(message, "role") ?? "",
  };
}

/** Reads from the leaf back along its branch to the message that shows the state of the last turn, and to the prompt that began it. */
export const parseRecord = recordParser<PiEntry>({
  agent: "pi",
  parse: entryOf,
  isKnown,
  headLines: 40,
  open(record, file) {
    const { facts } = record;
    const branch = new Branch();
    let header: Fields = {};
    return {
      isTurnFound: () => branch.isRead,
      hasAllFacts: () => facts.title !== null && facts.model !== null,
      fact(entry) {
        // An empty name means that a person removed the name.
        if (entry.type === "session_info") facts.title ??= textIn(entry.fields, "name") ?? "";
        facts.model ??= modelOf(entry);
      },
      add(entry) {
        if (entry.type === "message" && entry.role !== "system") record.lastMessageAt ??= entry.at;
        branch.add(entry);
      },
      turn: () => branch.turn,
      missing: () => (branch.isLost ? { code: "parent-entry-missing" } : null),
      first(entry, index) {
        // 0.73 writes a second header into a record that already has one. Only the first line counts.
        if (entry.type === "session" && index === 0) header = entry.fields;
        if (entry.role === "user") facts.prompt = textPartsOf(entry.message);
      },
      finish() {
        facts.title ||= null;
        record.cwd = textIn(header, "cwd");
        record.createdAt = timeIn(header, "timestamp");
        record.parent = idInName(textIn(header, "parentSession") ?? "");
        return (textIn(header, "id") ?? file.id) === file.id ? null : "another-id-inside";
      },
    };
  },
});

export const recordName = /^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_(?<id>[A-Za-z0-9._-]+)\.jsonl$/;

/** The session of a record with this path; null: not the path of a record. */
export const idInName = (path: string): string | null => recordName.exec(baseName(path))?.groups?.["id"] ?? null;

/** Reads one branch back from its leaf. Ignores entries of other branches. */
class Branch {
  turn: Turn | null = null;
  /** The turn and its start are known. */
  isRead = false;
  /** The id of the next older entry of this branch; undefined: any entry. */
  private wanted: string | null | undefined;
  private readonly newer: NewerEntries = { isCompacted: false, edited: new Set() };

  get isLost(): boolean {
    return typeof this.wanted === "string";
  }

  add(entry: PiEntry): void {
    if (entry.type === "session" || this.isRead) return;
    if (this.wanted !== undefined && entry.id !== this.wanted) {
      // A person went back to an earlier entry, and there is no message after it yet.
      if (this.turn === null) this.close({ state: "unclear", why: { code: "went-back" } });
      return;
    }
    this.wanted = entry.parent;
    if (this.turn === null) this.close(turnAfter(entry, this.newer));
    else if (entry.role === "user") this.close({ state: "open", since: entry.at, doubt: null });
    if (entry.parent === null) this.isRead = true;
  }

  private close(turn: Turn | null): void {
    this.turn = turn;
    this.isRead = turn !== null && turn !== inTurn;
  }
}

/** What newer entries of the branch say about an older one. */
interface NewerEntries {
  isCompacted: boolean;
  edited: Set<string>;
}

/** The turn continues; its prompt is further back. */
const inTurn: Turn = { state: "open", since: null, doubt: null };

/** The state of the turn after this entry; null: the entry does not show it. */
function turnAfter(entry: PiEntry, newer: NewerEntries): Turn | null {
  const { type, role, at, fields } = entry;
  if (type === "compaction") newer.isCompacted = true;
  if (type === "context_edit") newer.edited.add(textIn(fields, "targetId") ?? "");
  if (type === "branch_summary") return { state: "closed", at, outcome: null };
  if (type === "custom_message" || role === "custom")
    return { state: "unclear", why: { code: "message-by-extension" } };
  if (type !== "message" || passive.includes(role)) return null;
  if (role === "user") return { state: "open", since: at, doubt: null };
  if (role === "toolResult") return inTurn;
  return role === "assistant"
    ? turnAfterAnswer(entry, newer)
    : { state: "unclear", why: { code: "unknown-message", kind: role } };
}

function turnAfterAnswer({ id, at, message }: PiEntry, { isCompacted, edited }: NewerEntries): Turn {
  const reason = textIn(message, "stopReason") ?? "";
  const error = textIn(message, "errorMessage") ?? "";
  if (reason === "aborted" || (reason === "error" && abortedWords.test(error)))
    return { state: "closed", at, outcome: "interrupted" };
  if (reason === "error") {
    // 0.87 hides the failure from the model, and tries again.
    if (id !== null && edited.has(id)) return inTurn;
    const failed: Turn = { state: "closed", at, outcome: "failed" };
    if (isCompacted || !finalWords.test(error) || overflowWords.test(error))
      return { ...failed, doubt: { code: "may-retry" } };
    return error.startsWith("401") ? { ...failed, needs: { kind: "login", text: error } } : failed;
  }
  if (listIn(message, "content").some((part) => part["type"] === "toolCall")) return inTurn;
  if (reason === "stop") return { state: "closed", at, outcome: "completed" };
  if (reason === "length") return { state: "closed", at, outcome: null, doubt: { code: "may-continue" } };
  return { state: "unclear", why: { code: "unknown-ending", text: reason } };
}

/** Messages that belong to no turn. */
const passive = ["system", "bashExecution"];

/** 0.87 writes this error if a person interrupts it during a tool call. */
const abortedWords = /^(This operation|Operation|Request) was aborted/;

/** After these failures Pi does not try again. After others it does, by default three times. */
const finalWords = /^(400|401|403|404|422)\b/;
/** After such a failure Pi compacts the conversation and continues. */
const overflowWords = /context|token|length|limit|too (long|large)|exceed/i;

function modelOf({ type, role, fields, message }: PiEntry): string | null {
  if (type === "model_change") return textIn(fields, "modelId");
  return role === "assistant" ? textIn(message, "model") : null;
}

const lineTypes = words`session message model_change thinking_level_change usage compaction context_edit branch_summary custom custom_message label session_info`;
const roles = ["user", "assistant", "toolResult", "custom", ...passive];

function isKnown({ type, role }: PiEntry): boolean {
  return lineTypes.includes(type) && (type !== "message" || roles.includes(role));
}

export function parseLine(value: unknown): LineFacts | null {
  const entry = entryOf(value);
  if (entry === null || !isKnown(entry)) return null;
  return { ...noLineFacts, messages: messagesOf(entry), usage: usageOf(entry) };
}

/** Answers have a usage, and so have other requests to a model, for example by tools and for summaries. */
function usageOf({ id, at, fields, message }: PiEntry): LineFacts["usage"] {
  const usage = fieldsOf(message["usage"]) ?? fieldsIn(fields, "usage");
  if (countIn(usage, "input") === null || countIn(usage, "output") === null) return null;
  const tokens = tokensIn(usage);
  const model = textIn(message, "model") ?? textIn(fields, "model");
  return { key: id ?? String(at), tokens, model, costUsd: numberIn(fieldsIn(usage, "cost"), "total") };
}

function messagesOf({ type, role, at, fields, message }: PiEntry): Message[] {
  const say = messageAt(at);
  if (type === "compaction") return [say("note", "earlier messages were summed up")];
  if (type === "branch_summary") return [say("note", "went back to an earlier message")];
  if (type === "custom_message") return fields["display"] === false ? [] : [say("note", textPartsOf(fields))];
  if (role === "user") return [say("user", textPartsOf(message))];
  if (role === "custom") return message["display"] === false ? [] : [say("note", textPartsOf(message))];
  if (role === "toolResult") return [say("result", textPartsOf(message), textIn(message, "toolName"))];
  if (role === "bashExecution")
    return [
      say("tool", textIn(message, "command") ?? "", "bash"),
      say("result", textIn(message, "output") ?? "", "bash"),
    ];
  if (role !== "assistant") return [];
  const said = answerParts(message, at, ["command", "path"]);
  const reason = textIn(message, "stopReason");
  if (reason !== "error" && reason !== "aborted") return said;
  const error = textIn(message, "errorMessage") ?? "";
  return [...said, say("note", reason === "error" ? `failed: ${error}` : "interrupted")];
}
