// agentctl peek: the last messages of a session.
import type { Message } from "../adapters/adapter.ts";
import { jsonLine } from "../lib/width.ts";
import { entriesBackward, type RecordPlace, readHistory } from "../observe/conversation.ts";
import { type Arguments, usage } from "./arguments.ts";
import type { Command } from "./command.ts";
import { messageJson, messageText } from "./message-text.ts";
import { passedOver, readingOf, recordOf } from "./record-of.ts";
import { sessionJson } from "./session-json.ts";
import { oneRow } from "./status.ts";

const usual = 10;
const longestMessage = 40;

export const peek: Command = {
  usage: "agentctl peek <ref> [-n N] [--json]",
  summary: "Shows the last messages of a session, newest at the bottom.",
  notes:
    "Read from the end of the record, however long it is. Tool calls and results are cut to one line each, what was said\nto 40; agentctl logs shows all of it.",
  flags: [
    { flag: "--number", short: "-n", value: "N", help: `how many messages (${usual})` },
    { flag: "--json", help: "print JSON" },
  ],
  examples: [
    ["agentctl peek 3f2a1b9c", "what is it doing?"],
    ["agentctl peek . -n 3", "the last three messages of the session of this directory"],
    ["agentctl peek @last --json | jq -r '.messages[-1].text'", "for scripts"],
  ],
  async run(args, context) {
    const count = numberOf(args, "peek") ?? usual;
    const { row } = await oneRow(args.words, "peek", context);
    const place = recordOf(row);
    const { messages, broken, unknown, missing } = readingOf(row, () => lastMessages(place, count));
    if (args.has("--json")) {
      const { id, ref, agent, status } = sessionJson(row);
      const answer = { id, ref, agent, status, messages: messages.map(messageJson), broken, unknown };
      context.out(jsonLine(answer));
    } else context.out(messages.map(messageText(context, longestMessage)).join(""));
    if (messages.length === 0) context.err("agentctl: no messages yet\n");
    context.err(passedOver({ broken, unknown }, missing));
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

/** So many more are read: an answer may stand in front of its prompt (Claude Code 2.1.197). */
const extra = 4;

const byTime = (messages: Message[]): Message[] =>
  messages.every(({ at }) => at !== null) ? messages.toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0)) : messages;

/** Oldest first. Lines before the first of them were not looked at, and are not counted. */
export function lastMessages(place: RecordPlace, count: number) {
  const { own, earlier, missing } = readHistory(place);
  const messages: Message[] = [];
  const passed = { broken: 0, unknown: 0 };
  for (const entry of entriesBackward(place.adapter, [own, ...earlier])) {
    if (entry.kind === "known") messages.push(...entry.facts.messages.toReversed());
    else passed[entry.kind] += 1;
    if (messages.length >= count + extra) break;
  }
  const reached = messages.length < count;
  return {
    messages: byTime(messages.toReversed()).slice(-count),
    ...passed,
    missing: reached ? missing : null,
    mark: own.mark,
  };
}
