// Messages as people read them: what was said in full, what tools did on one line each.
import type { Message } from "../adapters/adapter.ts";
import { cut, oneLine, plainText, wrap } from "../lib/width.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Context } from "./command.ts";
import { type Colour, paint, terminalOf } from "./render.ts";
import { time } from "./session-json.ts";

const colours: Record<Message["role"], Colour> = {
  user: "cyan",
  agent: "green",
  tool: "yellow",
  result: "dim",
  note: "red",
};

/** `most`: lines of one message; the rest is counted. */
export function messageText(context: Context, most = Number.POSITIVE_INFINITY): (message: Message) => string {
  const terminal = terminalOf(context);
  // Who reads a pipe wants the lines as they were said.
  const columns = isTerminal(1) || context.env["COLUMNS"] ? terminal.columns : Number.POSITIVE_INFINITY;
  return ({ at, role, text, tool }) => {
    const when = localTime(at);
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

/** As the clock on the wall shows it. */
function localTime(at: number | null): string {
  if (at === null || time(at) === null) return "";
  const date = new Date(at);
  const two = (part: number): string => String(part).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export const messageJson = ({ at, role, text, tool }: Message) => ({ at: time(at), role, text, tool });
