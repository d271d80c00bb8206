// Reads a demo agent's record: its first lines, its last turn, its conversation.
import type { NativeRecord, Turn, Waiting } from "../../core/evidence.ts";
import type { LineFacts, Message } from "../adapter.ts";
import { countIn, type Fields, fieldsOf, numberIn, textIn, textsIn, timeIn, uuidIn, words } from "../fields.ts";
import { messageAt, noLineFacts, type TypedLine, typedLine } from "../record-lines.ts";
import { recordParser } from "../record-parser.ts";
import { tokensIn } from "../tokens.ts";

/** Reads from the end back to the last mark of a turn. */
export const parseRecord = recordParser<TypedLine>({
  agent: "demo",
  parse: typedLine,
  isKnown: ({ type }) => lineTypes.includes(type),
  headLines: 20,
  open(record) {
    const { facts } = record;
    let newestIsQuestion: boolean | null = null;
    let mark: Turn | null = null;
    return {
      isTurnFound: () => mark !== null,
      // Background work may have begun in an earlier turn.
      hasAllFacts: () => record.background !== null && facts.title !== null,
      fact({ type, fields }) {
        if (type === "background") record.background ??= backgroundIn(fields);
        if (type === "title") facts.title ??= textIn(fields, "text");
      },
      add({ type, fields }) {
        const at = timeIn(fields, "at");
        if (type !== "title" && type !== "background") record.lastMessageAt ??= at;
        if (type === "question" && newestIsQuestion === null) record.waiting = questionIn(fields, at);
        if (type === "question" || type === "answer") newestIsQuestion ??= type === "question";
        if (type === "continued") record.continuedBy ??= uuidIn(fields, "by");
        if (type === "prompt") mark = { state: "open", since: at, doubt: null };
        if (type === "end")
          mark = { state: "closed", at, outcome: outcomes.find((known) => known === fields["outcome"]) ?? null };
      },
      turn: () => mark,
      first({ type, fields }, index) {
        if (type === "prompt") facts.prompt = textIn(fields, "text");
        if (type === "title") facts.title ??= textIn(fields, "text");
        if (type !== "session" || index !== 0) return;
        record.cwd = textIn(fields, "cwd");
        record.createdAt = timeIn(fields, "at");
        record.parent = uuidIn(fields, "parent");
        facts.model = textIn(fields, "model");
        facts.agentVersion = numberIn(fields, "version")?.toString() ?? null;
        facts.permission = textIn(fields, "permission");
      },
      finish() {
        if (record.turn.state !== "open") record.waiting = null;
        return null;
      },
    };
  },
});

const backgroundIn = (fields: Fields): NativeRecord["background"] => ({
  shells: countIn(fields, "shells") ?? 0,
  subagents: countIn(fields, "subagents") ?? 0,
});

const kinds: readonly Waiting["kind"][] = ["permission", "question", "plan", "trust", "login", "limit", "other"];

export function questionIn(fields: Fields, since: number | null): NativeRecord["waiting"] {
  const kind = kinds.find((known) => known === fields["kind"]) ?? "other";
  const [text, tool] = [textIn(fields, "text"), textIn(fields, "tool")];
  return { kind, text, tool, options: textsIn(fields, "options"), since };
}

const outcomes = ["completed", "failed", "interrupted"] as const;

const lineTypes = words`session prompt reply tool tool-result question answer background end continued title`;

export function parseLine(value: unknown): LineFacts | null {
  const line = typedLine(value);
  if (line === null || !lineTypes.includes(line.type)) return null;
  const { type, fields } = line;
  const text = textIn(fields, "text") ?? "";
  const tool = textIn(fields, "name");
  const say = messageAt(timeIn(fields, "at"));
  const message = (role: Message["role"], words = text): Message[] => [say(role, words, tool)];
  const messages: Record<string, () => Message[]> = {
    prompt: () => message("user"),
    answer: () => message("user"),
    reply: () => message("agent"),
    question: () => message("agent"),
    tool: () => message("tool", textIn(fields, "input") ?? ""),
    "tool-result": () => message("result"),
    end: () =>
      fields["outcome"] === "completed" ? [] : message("note", `${textIn(fields, "outcome")} ${text}`.trim()),
  };
  const tokens = fieldsOf(fields["tokens"]);
  // Replies have no id: the key is made from the time and the text.
  const usage = tokens && { key: `${textIn(fields, "at")} ${text}`, tokens: tokensIn(tokens), model: null };
  const denied = type === "tool-result" && fields["denied"] === true ? 1 : 0;
  return { ...noLineFacts, messages: messages[type]?.() ?? [], usage, denied };
}
