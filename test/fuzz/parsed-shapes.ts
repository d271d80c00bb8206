// What parsers may hand out, more strictly than their types can say it. Returns what does not hold, in words.

import type { Adapter, LineFacts } from "../../src/agents/adapter.ts";
import type { Announcement, NativeRecord, ServedSession, Succession, Tokens } from "../../src/core/evidence.ts";
import type { Reading } from "../../src/core/problem.ts";
import type { StatusReason } from "../../src/core/reason.ts";
import type { Totals } from "../../src/observe/usage/read-counts.ts";
import { detailText } from "../../src/words/problems.ts";
import { reasonText } from "../../src/words/reasons.ts";

type Check = [name: string, holds: boolean];

const failing = (checks: readonly Check[]): string[] => checks.flatMap(([name, holds]) => (holds ? [] : [name]));

export const isText = (value: unknown): value is string => typeof value === "string";
const isTextOrNull = (value: unknown): boolean => value === null || isText(value);
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0;
/** A moment that a calendar holds: anything else throws where it is shown. */
const isTime = (value: unknown): boolean => value === null || (typeof value === "number" && Math.abs(value) <= 8.64e15);
const isTokens = (tokens: Tokens | null): boolean =>
  tokens === null || ["input", "output", "cacheRead", "cacheWrite"].every((key) => isCount(Object(tokens)[key]));
const isOneOf = (value: unknown, ...words: string[]): boolean => isText(value) && words.includes(value);

const waitingKinds = ["permission", "question", "plan", "trust", "login", "limit", "other"];
const isActivity = (value: unknown): boolean => isOneOf(value, "working", "waiting", "idle", "unclear");

function isWaiting(waiting: NativeRecord["pending"]): boolean {
  if (waiting === null) return true;
  const { kind, text, tool, options } = waiting;
  return isOneOf(kind, ...waitingKinds) && isTextOrNull(text) && isTextOrNull(tool) && options.every(isText);
}

/** A code that src/words has a sentence for. */
const isReasonOrNull = (reason: StatusReason | null): boolean => reason === null || isText(reasonText(reason));

const isBackground = (background: NativeRecord["background"]): boolean =>
  background === null || (isCount(background.shells) && isCount(background.subagents));

export function readingFaults<T>(reading: Reading<T>, faults: (value: T) => string[]): string[] {
  if (reading.ok) return faults(reading.value);
  const { code, source, detail } = reading.problem;
  return failing([
    [
      "a problem without words",
      [code, detailText(detail)].every((word) => isText(word) && word !== "") && isText(source),
    ],
  ]);
}

export function recordFaults({ isId }: Adapter, id: string, record: NativeRecord): string[] {
  const { turn, facts } = record;
  const isIdOrNull = (other: string | null): boolean => other === null || (isText(other) && isId(other));
  return failing([
    ["its id is another one", record.id === id],
    ["turn.state is none of the known", isOneOf(turn.state, "none", "open", "closed", "unclear")],
    ["turn.since is no time", turn.state !== "open" || (isTime(turn.since) && isReasonOrNull(turn.doubt))],
    ["turn.at is no time", turn.state !== "closed" || isTime(turn.at)],
    [
      "turn.outcome is none of the known",
      turn.state !== "closed" ||
        turn.outcome === null ||
        isOneOf(turn.outcome, "completed", "failed", "interrupted", "cut-off"),
    ],
    [
      "turn.needs has an unknown shape",
      turn.state !== "closed" ||
        turn.needs === undefined ||
        (isOneOf(turn.needs.kind, "login", "limit") && isText(turn.needs.text)),
    ],
    ["turn.why is no reason", turn.state !== "unclear" || isReasonOrNull(turn.why)],
    ["createdAt is no time", isTime(record.createdAt)],
    ["lastMessageAt is no time", isTime(record.lastMessageAt)],
    ["writtenAt is no time", isTime(record.writtenAt)],
    ["waiting has an unknown shape", isWaiting(record.waiting)],
    ["waiting.since is no time", record.waiting === null || isTime(record.waiting.since)],
    ["pending has an unknown shape", isWaiting(record.pending)],
    ["background is no count", isBackground(record.background)],
    ["parent is no id", isIdOrNull(record.parent)],
    ["continuedBy is no id", isIdOrNull(record.continuedBy)],
    ["subagentOf is no id", isIdOrNull(record.subagentOf)],
    ["tokens are no counts", isTokens(facts.tokens)],
    ["denied is no count", facts.denied === null || isCount(facts.denied)],
    ["costUsd is no sum", facts.costUsd === null || (Number.isFinite(facts.costUsd) && facts.costUsd >= 0)],
    [
      "a fact is no text",
      [facts.model, facts.title, facts.prompt, facts.branch, facts.agentVersion, facts.permission, record.cwd].every(
        isTextOrNull,
      ),
    ],
    ["lines are no counts", isCount(record.skippedLines) && isCount(record.unknownLines)],
  ]);
}

export function announcementFaults({ isId }: Adapter, pid: number, announcement: Announcement): string[] {
  const { says } = announcement;
  return failing([
    ["its session is no id", isText(announcement.session) && isId(announcement.session)],
    // NaN: the file is named after its session, and only its content says whose it is.
    ["its pid is another one", Number.isNaN(pid) || announcement.pid === pid],
    [
      "a word is no text",
      [announcement.start, announcement.boot, announcement.namespace, announcement.cwd, announcement.job].every(
        isTextOrNull,
      ),
    ],
    ["says has an unknown shape", says === null || (isActivity(says.activity) && isReasonOrNull(says.reason))],
    ["says.since is no time", says === null || isTime(says.since)],
    ["waiting has an unknown shape", isWaiting(announcement.waiting)],
    ["background is no count", isBackground(announcement.background)],
  ]);
}

export function lineFaults({ messages, usage, costUsd, denied }: LineFacts): string[] {
  return failing([
    [
      "a message has an unknown shape",
      messages.every(
        ({ role, text, tool }) =>
          isOneOf(role, "user", "agent", "tool", "result", "note") && isText(text) && isTextOrNull(tool),
      ),
    ],
    ["a message's time is no time", messages.every(({ at }) => isTime(at))],
    ["usage has an unknown shape", usage === null || (isText(usage.key) && isTextOrNull(usage.model))],
    ["usage holds no counts", usage === null || isTokens(usage.tokens)],
    ["costUsd is no sum", costUsd === null || (Number.isFinite(costUsd) && costUsd >= 0)],
    ["denied is no count", isCount(denied)],
  ]);
}

export function totalsFaults({ tokens, byModel, denied, costUsd, answer, broken, unknown }: Totals): string[] {
  return failing([
    ["the tokens of all lines are no counts", isTokens(tokens) && [...byModel.values()].every(isTokens)],
    ["the refusals of all lines are no count", denied === null || isCount(denied)],
    ["the cost is no sum", costUsd === null || (Number.isFinite(costUsd) && costUsd >= 0)],
    ["the answer is no text", isTextOrNull(answer)],
    ["broken and unknown lines are no counts", isCount(broken) && isCount(unknown)],
  ]);
}

export function successionFaults({ isId }: Adapter, { from, to, at, cwd }: Succession): string[] {
  return failing([
    ["a succession names no ids", isId(from) && (to === null || isId(to))],
    ["a succession's time is no time", isTime(at)],
    ["a succession's directory is no text", isTextOrNull(cwd)],
  ]);
}

export function servedFaults({ isId }: Adapter, sessions: readonly ServedSession[]): string[] {
  return sessions.flatMap(({ id, activity, waiting }) =>
    failing([
      ["a served session has no id", isText(id) && isId(id)],
      ["a served session's activity is none of the known", isActivity(activity)],
      ["a served session waits for something unknown", isWaiting(waiting)],
    ]),
  );
}
