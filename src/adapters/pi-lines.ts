// What the lines of a Pi session file say: entries of a tree, of which the newest one is the leaf.
import type { Tokens, Turn } from "../core/evidence.ts";
import type { Line, LineFacts, Message, RecordFile } from "./adapter.ts";
import { countIn, type Fields, fieldsIn, fieldsOf, jsonText, numberIn, textIn, timeIn } from "./fields.ts";

interface Entry {
  type: string;
  id: string | null;
  /** undefined: files of version 1 have no tree, each line follows the one before. */
  parent: string | null | undefined;
  at: number | null;
  fields: Fields;
  /** Empty where it holds no message. */
  message: Fields;
  role: string;
}

function entryOf(value: unknown): Entry | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  if (fields === null || type === null) return null;
  const message = type === "message" ? fieldsIn(fields, "message") : {};
  return {
    type,
    id: textIn(fields, "id"),
    parent: fields["parentId"] === null ? null : (textIn(fields, "parentId") ?? undefined),
    at: timeIn(fields, "timestamp"),
    fields,
    message,
    role: textIn(message, "role") ?? "",
  };
}

const headLines = 40;

/** 0.73 writes the first line twice where it found it there already. */
export function readHead(lines: Iterable<Line>): { header: Fields; prompt: string | null } {
  const head: ReturnType<typeof readHead> = { header: {}, prompt: null };
  let seen = 0;
  for (const line of lines) {
    const entry = line.ok ? entryOf(line.value) : null;
    if (entry?.type === "session" && seen === 0) head.header = entry.fields;
    if (entry?.role === "user") head.prompt = textOf(entry.message);
    seen += 1;
    if (head.prompt !== null || seen >= headLines) break;
  }
  return head;
}

interface Tail {
  /** Lines that were recognised. */
  lines: number;
  /** Nothing but, at most, the start of a first line. */
  empty: boolean;
  turn: Turn;
  model: string | null;
  title: string | null;
  lastAt: number | null;
  skipped: number;
  unknown: number;
}

/** How far beyond the last turn its name is looked for. */
const factLines = 200;

/** From the leaf back along its branch to the message that says how far the last turn got, and to the prompt that began it. */
export function readTail(file: RecordFile): Tail {
  const tail: Tail = {
    ...{ lines: 0, empty: true, turn: { state: "none" }, model: null, title: null, lastAt: null },
    ...{ skipped: 0, unknown: 0 },
  };
  const branch = new Branch();
  let beyond = 0;
  for (const line of file.backward()) {
    tail.empty = false;
    if (branch.isRead) beyond += 1;
    if (beyond > factLines || (branch.isRead && tail.title !== null && tail.model !== null)) break;
    const entry = line.ok ? entryOf(line.value) : null;
    if (entry === null) {
      if (!branch.isRead) tail.skipped += 1;
      continue;
    }
    // A name that was taken back is an empty one.
    if (entry.type === "session_info") tail.title ??= textIn(entry.fields, "name") ?? "";
    tail.model ??= modelOf(entry);
    if (branch.isRead) continue;
    tail.lines += 1;
    if (!line.ok || parseLine(line.value) === null) tail.unknown += 1;
    if (entry.type === "message" && entry.role !== "system") tail.lastAt ??= entry.at;
    branch.add(entry);
  }
  tail.title ||= null;
  tail.turn = turnOf(branch, tail, file);
  return tail;
}

function turnOf(branch: Branch, tail: Tail, file: RecordFile): Turn {
  if (file.torn && !tail.empty) return { state: "unclear", why: "the last line of its record is not complete" };
  if (tail.skipped > 0) return { state: "unclear", why: "broken lines after the last mark of a turn" };
  if (branch.turn === null && file.size > file.tailBytes)
    return { state: "unclear", why: "its last turn is longer than we read" };
  if (branch.turn === null && branch.isLost)
    return { state: "unclear", why: "its newest entry follows one that is missing" };
  return branch.turn ?? { state: "none" };
}

/** Reads a branch from its leaf on; entries of other branches are passed over. */
class Branch {
  turn: Turn | null = null;
  /** The turn is known, and when it began. */
  isRead = false;
  /** The entry that the next older one of this branch must be; undefined: whichever comes. */
  private wanted: string | null | undefined;
  private isCompacted = false;
  private edited = new Set<string>();

  get isLost(): boolean {
    return typeof this.wanted === "string";
  }

  add(entry: Entry): void {
    if (entry.type === "session" || this.isRead) return;
    if (this.wanted !== undefined && entry.id !== this.wanted) {
      // Somebody went back to an earlier entry, and no message says yet what for.
      if (this.turn === null) this.close({ state: "unclear", why: "its newest entry goes back to an earlier one" });
      return;
    }
    this.wanted = entry.parent;
    if (this.turn === null) this.judge(entry);
    else if (entry.role === "user" && this.turn.state === "open") this.close({ ...this.turn, since: entry.at });
    if (entry.parent === null) this.isRead = true;
  }

  private judge(entry: Entry): void {
    const { type, role, at } = entry;
    if (type === "compaction") this.isCompacted = true;
    else if (type === "context_edit") this.edited.add(textIn(entry.fields, "targetId") ?? "");
    else if (type === "branch_summary") this.close({ state: "closed", at, outcome: null });
    else if (type === "custom_message" || role === "custom")
      this.close({ state: "unclear", why: "an extension added a message: whether a turn follows is not recorded" });
    else if (type !== "message" || passive.includes(role)) return;
    else if (role === "user") this.close({ state: "open", since: at, doubt: null });
    else if (role === "toolResult") this.turn = { state: "open", since: null, doubt: null };
    else if (role === "assistant") this.answered(entry);
    else this.close({ state: "unclear", why: `a message of an unknown kind in its record: "${role}"` });
  }

  private answered({ id, at, message }: Entry): void {
    const reason = textIn(message, "stopReason") ?? "";
    const error = textIn(message, "errorMessage") ?? "";
    if (reason === "aborted" || (reason === "error" && abortedWords.test(error)))
      this.close({ state: "closed", at, outcome: "interrupted" });
    // 0.87 takes a failure out of what the model sees, and tries again.
    else if (reason === "error" && id !== null && this.edited.has(id))
      this.turn = { state: "open", since: null, doubt: null };
    else if (reason === "error" && (this.isCompacted || !finalWords.test(error) || overflowWords.test(error)))
      this.close({
        state: "closed",
        at,
        outcome: "failed",
        doubt: "its last request failed; it may try again by itself",
      });
    else if (reason === "error")
      this.close({ state: "closed", at, outcome: "failed", ...(error.startsWith("401") ? login(error) : {}) });
    else if (partsOf(message).some((part) => part["type"] === "toolCall"))
      this.turn = { state: "open", since: null, doubt: null };
    else if (reason === "stop") this.close({ state: "closed", at, outcome: "completed" });
    else if (reason === "length")
      this.close({
        state: "closed",
        at,
        outcome: null,
        doubt: "its answer was cut at a limit; it may go on by itself",
      });
    else this.close({ state: "unclear", why: `its last answer ended in an unknown way: "${reason}"` });
  }

  private close(turn: Turn): void {
    this.turn = turn;
    this.isRead = true;
  }
}

/** Messages that belong to no turn. */
const passive = ["system", "bashExecution"];

/** 0.87, when it is interrupted inside of a tool. */
const abortedWords = /^(This operation|Operation|Request) was aborted/;

/** After a failure that may pass Pi tries again, three times unless its settings say otherwise; after these it does not. */
const finalWords = /^(400|401|403|404|422)\b/;
/** Then it sums up what came before, and goes on. */
const overflowWords = /context|token|length|limit|too (long|large)|exceed/i;

const login = (text: string) => ({ needs: { kind: "login" as const, text } });

function modelOf({ type, role, fields, message }: Entry): string | null {
  if (type === "model_change") return textIn(fields, "modelId");
  return role === "assistant" ? textIn(message, "model") : null;
}

const lineTypes =
  "session message model_change thinking_level_change usage compaction context_edit branch_summary custom custom_message label session_info".split(
    " ",
  );
const roles = ["user", "assistant", "toolResult", "custom", ...passive];

export function parseLine(value: unknown): LineFacts | null {
  const entry = entryOf(value);
  if (entry === null || !lineTypes.includes(entry.type)) return null;
  if (entry.type === "message" && !roles.includes(entry.role)) return null;
  return { messages: messagesOf(entry), usage: usageOf(entry), costUsd: null, denied: 0 };
}

/** Of answers, and of what tools, summaries and the like asked a model besides. */
function usageOf({ id, at, fields, message }: Entry): LineFacts["usage"] {
  const usage = fieldsOf(message["usage"]) ?? fieldsOf(fields["usage"]);
  const [input, output] = usage === null ? [null, null] : [countIn(usage, "input"), countIn(usage, "output")];
  if (usage === null || input === null || output === null) return null;
  const [cacheRead, cacheWrite] = [countIn(usage, "cacheRead") ?? 0, countIn(usage, "cacheWrite") ?? 0];
  const tokens: Tokens = { input, output, cacheRead, cacheWrite };
  const model = textIn(message, "model") ?? textIn(fields, "model");
  return { key: id ?? String(at), tokens, model, costUsd: numberIn(fieldsIn(usage, "cost"), "total") };
}

function messagesOf({ type, role, at, fields, message }: Entry): Message[] {
  const say = (as: Message["role"], text: string, tool: string | null = null): Message => ({
    at,
    role: as,
    text,
    tool,
  });
  if (type === "compaction") return [say("note", "earlier messages were summed up")];
  if (type === "branch_summary") return [say("note", "went back to an earlier message")];
  if (type === "custom_message") return fields["display"] === false ? [] : [say("note", textOf(fields))];
  if (role === "user") return [say("user", textOf(message))];
  if (role === "custom") return message["display"] === false ? [] : [say("note", textOf(message))];
  if (role === "toolResult") return [say("result", textOf(message), textIn(message, "toolName"))];
  if (role === "bashExecution")
    return [
      say("tool", textIn(message, "command") ?? "", "bash"),
      say("result", textIn(message, "output") ?? "", "bash"),
    ];
  if (role !== "assistant") return [];
  const said = partsOf(message).flatMap((part) => {
    if (part["type"] === "toolCall") return [say("tool", callText(part), textIn(part, "name"))];
    const text = part["type"] === "text" ? textIn(part, "text") : null;
    return text === null || text === "" ? [] : [say("agent", text)];
  });
  const reason = textIn(message, "stopReason");
  if (reason !== "error" && reason !== "aborted") return said;
  const error = textIn(message, "errorMessage") ?? "";
  return [...said, say("note", reason === "error" ? `failed: ${error}` : "interrupted")];
}

function callText(part: Fields): string {
  const input = fieldsIn(part, "arguments");
  return textIn(input, "command") ?? textIn(input, "path") ?? jsonText(input);
}

const partsOf = (message: Fields): Fields[] => {
  const content = message["content"];
  return Array.isArray(content) ? content.map(fieldsOf).filter((part) => part !== null) : [];
};

/** Content is a text, or parts of which some are text. */
const textOf = (message: Fields): string =>
  textIn(message, "content") ??
  partsOf(message)
    .flatMap((part) => (part["type"] === "text" ? (textIn(part, "text") ?? []) : []))
    .join("\n");
