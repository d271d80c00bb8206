// agentctl peek: the last messages of a session.
import { jsonLine } from "../lib/width.ts";
import { lastMessages } from "../service/conversation.ts";
import { sessionJson } from "../service/session-json.ts";
import { type Arguments, usage } from "./arguments.ts";
import type { Command } from "./command.ts";
import { messageJson, messageText, skippedText } from "./message-text.ts";
import { oneRow } from "./status.ts";

const usualCount = 10;
const longestMessage = 40;

export const peek: Command = {
  usage: "agentctl peek REF [-n N] [--json]",
  summary: "Show the last messages of a session, newest at the bottom.",
  notes:
    "Reads only the end of the record, however long it is. Tool calls and results are cut to one line each, other messages\nto 40 lines; agentctl logs shows everything.",
  flags: [
    { flag: "--number", short: "-n", value: "N", help: `number of messages (default: ${usualCount})` },
    { flag: "--json", help: "JSON output" },
  ],
  examples: [
    ["agentctl peek 3f2a1b9c", "what is it doing?"],
    ["agentctl peek . -n 3", "the last three messages of the session in this directory"],
    ["agentctl peek @last --json | jq -r '.messages[-1].text'", "for scripts"],
  ],
  async run(args, context) {
    const count = numberOf(args, "peek") ?? usualCount;
    const { row } = await oneRow(args.words, "peek", context);
    const { messages, broken, unknown, missing } = lastMessages(row, count);
    if (args.has("--json")) {
      const { id, ref, agent, status } = sessionJson(row);
      const answer = { id, ref, agent, status, messages: messages.map(messageJson), broken, unknown };
      context.out(jsonLine(answer));
    } else context.out(messages.map(messageText(context, longestMessage)).join(""));
    if (messages.length === 0) context.err("agentctl: no messages yet\n");
    context.err(skippedText({ broken, unknown, missing }));
    return 0;
  },
};

export function numberOf(args: Arguments, command: string): number | null {
  const text = args.one("--number");
  if (text === null) return null;
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw usage(`-n takes a whole number from 1, not ${text}`, command);
  return count;
}
