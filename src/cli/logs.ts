// agentctl logs: the whole conversation, or the record as the agent wrote it; with -f also what comes next.
import type { Message } from "../adapters/adapter.ts";
import { launchFiles } from "../control/notes.ts";
import { eachChunk } from "../control/output.ts";
import { waitFor } from "../control/wait.ts";
import { AgentctlError } from "../core/problem.ts";
import { jsonLine } from "../lib/width.ts";
import {
  type Entry,
  entriesBackward,
  entriesForward,
  type Mark,
  type RecordPlace,
  readHistory,
} from "../observe/conversation.ts";
import { errorCode, failureText } from "../observe/failure.ts";
import { follow } from "../observe/follow.ts";
import { type Arguments, parseDuration, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { messageJson, messageText } from "./message-text.ts";
import { lastMessages, numberOf } from "./peek.ts";
import { passedOver, readingOf, recordOf } from "./record-of.ts";
import type { Row } from "./sessions.ts";
import { oneRow } from "./status.ts";

export const logs: Command = {
  usage: "agentctl logs <ref> [-f] [-n N] [--since T] [--raw | --output | --json]",
  summary: "Shows the conversation of a session from its start; with -f also what is said from now on.",
  notes:
    "A fork that has no copy of its history is shown with that of the session it came from. --raw prints the session's own\nrecord, line by line as the agent wrote it (on a terminal without escape sequences). --output prints what an agent that agentctl launched wrote to its\nstandard output and its standard error, in that order.",
  flags: [
    { flag: "--follow", short: "-f", help: "go on until Ctrl-C, also when the record is cut, replaced or removed" },
    { flag: "--number", short: "-n", value: "N", help: "only the last N messages (with --raw: lines)" },
    {
      flag: "--since",
      value: "T",
      help: "only what is younger: 90s, 10m, 2h, 7d, or a time like 2026-11-15T21:00:00Z",
    },
    { flag: "--raw", help: "the lines of the record instead of messages" },
    { flag: "--output", help: "what it wrote to stdout and stderr, if agentctl launched it" },
    { flag: "--json", help: "one JSON value per message: at, role, text, tool" },
  ],
  examples: [
    ["agentctl logs 3f2a1b9c", "all of it"],
    ["agentctl logs . -f -n 5", "watch the session of this directory"],
    ["agentctl logs @last --since 10m --json | jq -r 'select(.role == \"agent\").text'", "for scripts"],
    ["agentctl logs 3f2a1b9c --raw | tail -1", "the last line that the agent wrote"],
  ],
  async run(args, context) {
    if (args.has("--raw") && args.has("--json"))
      throw usage("--raw prints what the agent wrote, which --json cannot change", "logs");
    if (args.has("--output")) return await showOutput(args, context);
    const count = numberOf(args, "logs");
    const { row, at } = await oneRow(args.words, "logs", context);
    const show = args.has("--raw") ? rawLines(sinceOf(args, at), context) : messages(sinceOf(args, at), args, context);
    const place = args.has("--follow") ? await recordWhenThere(row, args.words, context) : recordOf(row);
    const mark = readingOf(row, () => show.until(place, count));
    return args.has("--follow") ? await showMore(place, row, mark, show, context) : 0;
  },
};

async function showOutput(args: Arguments, context: Context): Promise<number> {
  for (const flag of ["--raw", "--json", "--follow", "--number", "--since"])
    if (args.has(flag)) throw usage(`--output shows all that was captured; ${flag} does not go with it`, "logs");
  const { row } = await oneRow(args.words, "logs", context);
  if (row.launch === null)
    throw new AgentctlError("not-found", `${row.ref} was not launched by agentctl: its output was not captured`);
  const { out, err } = launchFiles(context.env, row.launch.id);
  for (const path of [out, err])
    try {
      eachChunk(path, context.out);
    } catch (error) {
      if (errorCode(error) === "") throw error;
      throw new AgentctlError("failed", `cannot read ${path}: ${failureText(error)}`, { cause: error });
    }
  return 0;
}

/** A live session has no record before its first prompt. Whoever follows it waits for that, as long as it lives. */
async function recordWhenThere(row: Row, words: readonly string[], context: Context): Promise<RecordPlace> {
  let first: Row | null = row;
  const look = async (): Promise<Row> => {
    const seen = first ?? (await oneRow(words, "logs", context)).row;
    first = null;
    return seen;
  };
  const { value } = await waitFor({
    look,
    isEnough: (now) => now.session.status.state !== "running" || placeIfThere(now) !== null,
    sessions: ({ session }) => [session],
    timeoutMs: null,
  });
  return recordOf(value);
}

function placeIfThere(row: Row): RecordPlace | null {
  try {
    return recordOf(row);
  } catch (error) {
    if (error instanceof AgentctlError && error.code === "not-found") return null;
    throw error;
  }
}

function sinceOf(args: Arguments, now: number): number {
  const text = args.one("--since");
  if (text === null) return Number.NEGATIVE_INFINITY;
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? now - parseDuration(text, "logs") : time;
}

interface Show {
  /** Everything that was there, or the last of it; then how far that was. */
  until(place: RecordPlace, count: number | null): Mark;
  entry(entry: Entry): void;
}

function messages(since: number, args: Arguments, context: Context): Show {
  const text = args.has("--json") ? (message: Message) => jsonLine(messageJson(message)) : messageText(context);
  const isYoung = youngerThan(since);
  const show = (message: Message): void => {
    if (isYoung(message.at)) context.out(text(message));
  };
  return {
    until(place, count) {
      if (count !== null) {
        const { messages: last, mark, missing, ...passed } = lastMessages(place, count);
        last.forEach(show);
        context.err(passedOver(passed, missing));
        return mark;
      }
      const { own, earlier, missing } = readHistory(place);
      const passed = { broken: 0, unknown: 0 };
      for (const entry of entriesForward(place.adapter, [own, ...earlier])) {
        if (entry.kind === "known") entry.facts.messages.forEach(show);
        else passed[entry.kind] += 1;
      }
      context.err(passedOver(passed, missing));
      return own.mark;
    },
    entry(entry) {
      if (entry.kind === "known") entry.facts.messages.forEach(show);
      else if (entry.kind === "broken") context.err(passedOver({ broken: 1, unknown: 0 }, null));
    },
  };
}

function rawLines(since: number, context: Context): Show {
  const isYoung = youngerThan(since);
  const show = (entry: Entry): void => {
    const at =
      entry.kind === "known" ? (entry.facts.messages.find((message) => message.at !== null)?.at ?? null) : null;
    if (!isYoung(at)) return;
    if (entry.raw === null) context.err("agentctl: a line that is too long was skipped\n");
    else context.out(Buffer.concat([entry.raw, newline]));
  };
  return {
    until({ adapter, home, file }, count) {
      const { own } = readHistory({ adapter, home, file });
      if (count === null) for (const entry of entriesForward(adapter, [own])) show(entry);
      else entriesBackward(adapter, [own]).take(count).toArray().reverse().forEach(show);
      return own.mark;
    },
    entry: show,
  };
}

const newline = Buffer.from("\n");

/** What carries no time of its own is as old as what stands before it. */
function youngerThan(since: number): (at: number | null) => boolean {
  let last = since === Number.NEGATIVE_INFINITY ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  return (at) => {
    last = at ?? last;
    return last >= since;
  };
}

async function showMore(place: RecordPlace, row: Row, from: Mark, show: Show, context: Context): Promise<number> {
  for await (const change of follow(place.adapter, place.file, from)) {
    if (change.kind === "rewritten")
      context.err(`agentctl: the record of ${row.ref} was cut or replaced; from its start:\n`);
    else if (change.kind === "gone") context.err(`agentctl: the record of ${row.ref} is gone; waiting for it\n`);
    else show.entry(change);
  }
  return 0;
}
