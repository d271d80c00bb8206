// Reads a session's messages, the lines of its record and the output of its process, and follows what is added later.
import type { Message } from "../agents/adapter.ts";
import { eachChunk } from "../control/agent-output.ts";
import { launchFiles } from "../control/notes.ts";
import { waitFor } from "../control/wait.ts";
import { Failure } from "../core/failure.ts";
import { errorCode, failureText } from "../lib/errors.ts";
import {
  type ConversationEntry,
  entriesBackward,
  entriesForward,
  type Mark,
  type RecordPlace,
  readHistory,
} from "../observe/conversation.ts";
import type { Environment } from "../observe/homes.ts";
import type { SessionRow } from "./look.ts";
import { readingOf, recordOf } from "./session-record.ts";

export type ConversationMessage = Message;
export type RecordLine = ConversationEntry;

/** A conversation that was read up to `mark`. */
export interface ReadConversation {
  mark: Mark;
  /** Lines that were skipped. */
  broken: number;
  unknown: number;
  /** The id of a session that this one continues and whose record is gone. */
  missing: string | null;
}

/** More messages are read than are wanted: an answer may come before its prompt in the record (Claude Code 2.1.197). */
const extraMessages = 4;

/** The last messages, oldest first, read from the end of the record. Only skipped lines among them are counted. */
export function lastMessages(row: SessionRow, count: number): ReadConversation & { messages: Message[] } {
  return readingOf(row, () => {
    const place = recordOf(row);
    const { own, earlier, missing } = readHistory(place);
    const messages: Message[] = [];
    const skipped = { broken: 0, unknown: 0 };
    for (const entry of entriesBackward(place.adapter, [own, ...earlier])) {
      if (entry.kind === "known") messages.push(...entry.facts.messages.toReversed());
      else skipped[entry.kind] += 1;
      if (messages.length >= count + extraMessages) break;
    }
    const isWhole = messages.length < count;
    return {
      messages: byTime(messages.toReversed()).slice(-count),
      ...{ ...skipped, missing: isWhole ? missing : null, mark: own.mark },
    };
  });
}

const byTime = (messages: Message[]): Message[] =>
  messages.every(({ at }) => at !== null) ? messages.toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0)) : messages;

/** All messages from the start, with those of the session that this one is a fork of. */
export function eachMessage(row: SessionRow, use: (message: Message) => void): ReadConversation {
  return readingOf(row, () => {
    const place = recordOf(row);
    const { own, earlier, missing } = readHistory(place);
    const skipped = { broken: 0, unknown: 0 };
    for (const entry of entriesForward(place.adapter, [own, ...earlier])) {
      if (entry.kind === "known") entry.facts.messages.forEach(use);
      else skipped[entry.kind] += 1;
    }
    return { ...skipped, missing, mark: own.mark };
  });
}

/** The lines of the session's own record; `count`: only the last ones. */
export function eachLine(row: SessionRow, count: number | null, use: (line: RecordLine) => void): Mark {
  return readingOf(row, () => {
    const place = recordOf(row);
    const { own } = readHistory(place);
    if (count === null) for (const entry of entriesForward(place.adapter, [own])) use(entry);
    else entriesBackward(place.adapter, [own]).take(count).toArray().reverse().forEach(use);
    return own.mark;
  });
}

/** Lines that are written from now on. The iteration never ends: callers leave it. */
export async function* linesAfter(row: SessionRow, mark: Mark) {
  const { follow } = await import("../observe/follow.ts");
  const { adapter, file } = recordOf(row);
  yield* follow(adapter, file, mark);
}

/** A live session has no record before its first prompt: waits for it while the session runs. */
export async function whenRecorded(row: SessionRow, lookAgain: () => Promise<SessionRow>): Promise<SessionRow> {
  let first: SessionRow | null = row;
  const { value } = await waitFor({
    look: async () => {
      const seen = first ?? (await lookAgain());
      first = null;
      return seen;
    },
    isEnough: (now) => now.session.status.state !== "running" || recordIfAny(now) !== null,
    sessions: ({ session }) => [session],
    timeoutMs: null,
  });
  return value;
}

function recordIfAny(row: SessionRow): RecordPlace | null {
  try {
    return recordOf(row);
  } catch (error) {
    if (error instanceof Failure && error.code === "nothing-recorded") return null;
    throw error;
  }
}

/** What a launched agent wrote to its standard output, then what it wrote to its standard error. */
export function eachOutputChunk({ ref, launch }: SessionRow, env: Environment, use: (chunk: Buffer) => void): void {
  if (launch === null || launch.byHand === true) throw new Failure("no-captured-output", { ref });
  const { out, err } = launchFiles(env, launch.id);
  for (const path of [out, err])
    try {
      eachChunk(path, use);
    } catch (error) {
      if (errorCode(error) === "") throw error;
      throw new Failure("read-failed", { path, detail: failureText(error) }, { cause: error });
    }
}

/** The latest prompt, and what the agent said after it: its last answer and its last note, which may be an error. */
export interface LatestWords {
  prompt: Message | null;
  answer: string | null;
  failure: string | null;
}

const mostLines = 400;

/** null: not recorded, or not among the last lines. A record that cannot be read has none. */
export function latestWords(row: SessionRow): LatestWords {
  const words: LatestWords = { prompt: null, answer: null, failure: null };
  if (row.session.record === null) return words;
  try {
    const place = recordOf(row);
    const { own } = readHistory(place);
    for (const entry of entriesBackward(place.adapter, [own]).take(mostLines)) {
      if (entry.kind !== "known") continue;
      for (const message of entry.facts.messages.toReversed()) {
        if (message.role === "note") words.failure ??= message.text;
        if (message.role === "agent") words.answer ??= message.text;
        if (message.role !== "user") continue;
        words.prompt = message;
        return words;
      }
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return words;
}
