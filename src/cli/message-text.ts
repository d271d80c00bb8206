// Messages as people read them: prompts and answers in full, tool calls and results on one line each.
import { cut, oneLine, plainText, wrap } from "../lib/width.ts";
import type { ConversationMessage } from "../service/conversation.ts";
import { time } from "../service/session-json.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Context } from "./command.ts";
import { type Colour, localTime, paint, terminalOf } from "./render.ts";

const colours: Record<ConversationMessage["role"], Colour> = {
  user: "cyan",
  agent: "green",
  tool: "yellow",
  result: "dim",
  note: "red",
};

/** `most`: lines of one message to show; the rest is counted. */
export function messageText(
  context: Context,
  most = Number.POSITIVE_INFINITY,
): (message: ConversationMessage) => string {
  const terminal = terminalOf(context);
  // A pipe gets the lines as they were written.
  const columns = isTerminal(1) || context.env["COLUMNS"] ? terminal.columns : Number.POSITIVE_INFINITY;
  return ({ at, role, text, tool }) => {
    const when = localTime(at) ?? "";
    const head = [when, role, tool === null ? "" : oneLine(tool)].filter((word) => word !== "").join(" ");
    const painted = `${paint(when, "dim", terminal)} ${paint(head.slice(when.length).trim(), colours[role], terminal)}`;
    if (role !== "user" && role !== "agent") {
      const rest = cut(oneLine(text), Math.max(8, terminal.columns - head.length - 2));
      return `${painted.trim()}${rest === "" ? "" : `  ${rest}`}\n`;
    }
    const lines = wrap(plainText(text).trim(), Math.max(8, columns - 2));
    const more = lines.length > most ? [`… ${lines.length - most} more lines (agentctl logs shows them)`] : [];
    return `${painted.trim()}\n${[...lines.slice(0, most), ...more].map((line) => `  ${line}`.trimEnd()).join("\n")}\n`;
  };
}

export const messageJson = ({ at, role, text, tool }: ConversationMessage) => ({ at: time(at), role, text, tool });

/** The note on skipped lines; "" if there are none. `missing`: the continued session, if its record is gone. */
export function skippedText({
  broken,
  unknown,
  missing,
}: {
  broken: number;
  unknown: number;
  missing: string | null;
}): string {
  const notes = [
    broken > 0 ? `${broken} broken ${broken === 1 ? "line" : "lines"} skipped` : null,
    unknown > 0 ? `${unknown} ${unknown === 1 ? "line" : "lines"} of an unknown kind skipped` : null,
    missing === null ? null : `it continues ${missing}, but the record of that session is gone`,
  ];
  return notes.map((note) => (note === null ? "" : `agentctl: ${note}\n`)).join("");
}
