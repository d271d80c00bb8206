// One line of a demo agent's record as messages, tokens and refusals.
import type { LineFacts, Message } from "./adapter.ts";
import { countIn, fieldsOf, textIn, timeIn } from "./fields.ts";

export const lineTypes = "session prompt reply tool tool-result question answer background end continued title".split(
  " ",
);

export function parseLine(value: unknown): LineFacts | null {
  const fields = fieldsOf(value);
  const type = fields === null ? null : textIn(fields, "type");
  if (fields === null || type === null || !lineTypes.includes(type)) return null;
  const at = timeIn(fields, "at");
  const text = textIn(fields, "text") ?? "";
  const tool = textIn(fields, "name");
  const message = (role: Message["role"], words = text): Message[] => [{ at, role, text: words, tool }];
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
  const count = (key: string): number => (tokens === null ? 0 : (countIn(tokens, key) ?? 0));
  return {
    messages: messages[type]?.() ?? [],
    usage: tokens && {
      // Every reply is its own message; time and text tell it from the others.
      key: `${textIn(fields, "at")} ${text}`,
      tokens: {
        input: count("input"),
        output: count("output"),
        cacheRead: count("cacheRead"),
        cacheWrite: count("cacheWrite"),
      },
      model: null,
    },
    costUsd: null,
    denied: type === "tool-result" && fields["denied"] === true ? 1 : 0,
  };
}
