// agentctl logs: the whole conversation, or the record as the agent wrote it; with -f also new messages.

import { jsonLine } from "../lib/width.ts";
import {
  type ConversationMessage,
  eachLine,
  eachMessage,
  eachOutputChunk,
  lastMessages,
  linesAfter,
  type RecordLine,
  whenRecorded,
} from "../service/conversation.ts";
import type { SessionRow } from "../service/look.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { messageJson, messageText, skippedText } from "./message-text.ts";
import { numberOf } from "./peek.ts";
import { oneRow } from "./status.ts";

export const logs: Command = {
  usage: "agentctl logs REF [-f] [-n N] [--since T] [--raw | --output | --json]",
  summary: "Show the conversation of a session from its start; with -f also new messages as they come.",
  notes:
    "A fork that has no copy of its history is shown with the history of the session that it came from. --raw prints the lines\nof the session's own record as the agent wrote them (on a terminal without escape sequences). --output prints what a\nlaunched agent wrote to its standard output, then what it wrote to its standard error.",
  flags: [
    {
      flag: "--follow",
      short: "-f",
      help: "show new messages until Ctrl-C, even if the record is truncated, replaced or removed",
    },
    { flag: "--number", short: "-n", value: "N", help: "only the last N messages (with --raw: lines)" },
    {
      flag: "--since",
      value: "T",
      help: "only messages after T: 90s, 10m, 2h, 7d ago, or a time like 2026-11-15T21:00:00Z",
    },
    { flag: "--raw", help: "lines of the record instead of messages" },
    { flag: "--output", help: "captured stdout and stderr of a launched agent" },
    { flag: "--json", help: "one JSON value per message: at, role, text, tool" },
  ],
  examples: [
    ["agentctl logs 3f2a1b9c", "the whole conversation"],
    ["agentctl logs . -f -n 5", "watch the session in this directory"],
    ["agentctl logs @last --since 10m --json | jq -r 'select(.role == \"agent\").text'", "for scripts"],
    ["agentctl logs 3f2a1b9c --raw | tail -1", "the last line that the agent wrote"],
  ],
  async run(args, context) {
    if (args.has("--raw") && args.has("--json")) throw usage("--raw cannot be combined with --json", "logs");
    if (args.has("--output")) return await showOutput(args, context);
    const count = numberOf(args, "logs");
    const { row: seen, at } = await oneRow(args.words, "logs", context);
    const since = sinceOf(args, at);
    const show = args.has("--raw") ? rawLines(since, context) : messages(since, args, context);
    if (!args.has("--follow")) {
      show.before(seen, count);
      return 0;
    }
    const row = await whenRecorded(seen, async () => (await oneRow(args.words, "logs", context)).row);
    const mark = show.before(row, count);
    for await (const change of linesAfter(row, mark)) {
      if (change.kind === "rewritten")
        context.err(`agentctl: the record of ${row.ref} was cut or replaced; showing it from its start:\n`);
      else if (change.kind === "gone") context.err(`agentctl: the record of ${row.ref} is gone; waiting for it\n`);
      else show.line(change);
    }
    return 0;
  },
};

async function showOutput(args: Arguments, context: Context): Promise<number> {
  for (const flag of ["--raw", "--json", "--follow", "--number", "--since"])
    if (args.has(flag)) throw usage(`--output cannot be combined with ${flag}`, "logs");
  const { row } = await oneRow(args.words, "logs", context);
  eachOutputChunk(row, context.env, context.out);
  return 0;
}

function sinceOf(args: Arguments, now: number): number {
  const text = args.one("--since");
  if (text === null) return Number.NEGATIVE_INFINITY;
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? now - parseDuration(text, "logs") : time;
}

interface Show {
  /** Shows all lines, or the last `count`, and returns its position in the record. */
  before(row: SessionRow, count: number | null): Parameters<typeof linesAfter>[1];
  line(line: RecordLine): void;
}

function messages(since: number, args: Arguments, context: Context): Show {
  const text = args.has("--json")
    ? (message: ConversationMessage) => jsonLine(messageJson(message))
    : messageText(context);
  const isAfter = newerThan(since);
  const show = (message: ConversationMessage): void => {
    if (isAfter(message.at)) context.out(text(message));
  };
  return {
    before(row, count) {
      const last = count === null ? null : lastMessages(row, count);
      last?.messages.forEach(show);
      const { mark, ...skipped } = last ?? eachMessage(row, show);
      context.err(skippedText(skipped));
      return mark;
    },
    line(line) {
      if (line.kind === "known") line.facts.messages.forEach(show);
      else if (line.kind === "broken") context.err(skippedText({ broken: 1, unknown: 0, missing: null }));
    },
  };
}

function rawLines(since: number, context: Context): Show {
  const isAfter = newerThan(since);
  const show = (line: RecordLine): void => {
    const at = line.kind === "known" ? (line.facts.messages.find((message) => message.at !== null)?.at ?? null) : null;
    if (!isAfter(at)) return;
    if (line.raw === null) context.err("agentctl: a line that is too long was skipped\n");
    else context.out(Buffer.concat([line.raw, newline]));
  };
  return { before: (row, count) => eachLine(row, count, show), line: show };
}

const newline = Buffer.from("\n");

/** A line without a time has the time of the line before it. */
function newerThan(since: number): (at: number | null) => boolean {
  let last = since === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return (at) => {
    last = at ?? last;
    return last >= since;
  };
}
