// What must hold for every reading and every answer, whatever was read. Returns what does not hold, in words.

import type { Adapter } from "../../src/agents/adapter.ts";
import type { Announcement, NativeRecord, Store } from "../../src/core/evidence.ts";
import type { Problem, Reading } from "../../src/core/problem.ts";
import type { StatusReason } from "../../src/core/reason.ts";
import type { SessionList } from "../../src/core/session.ts";
import { evidenceJson } from "../../src/service/evidence-json.ts";
import { sessionJson } from "../../src/service/session-json.ts";
import { detailText } from "../../src/words/problems.ts";
import { reasonText } from "../../src/words/reasons.ts";

export function faultsOf(adapter: Adapter, store: Store, list: SessionList): string[] {
  const unread = new Set(store.rows.filter(({ reading }) => !reading.ok).map(({ id }) => id));
  return [
    ...store.rows.flatMap(({ id, reading }) => readingFaults(reading, recordFaults).map((fault) => `${id}: ${fault}`)),
    ...store.announcements.flatMap(({ pid, reading }) =>
      readingFaults(reading, announcementFaults).map((fault) => `${pid}: ${fault}`),
    ),
    ...list.sessions.flatMap((session) => {
      const { id, status } = session;
      const json = { ...sessionJson({ session, ref: "ref", launch: null }), ...evidenceJson(session) };
      return [
        status.state === "stopped" && unread.has(id ?? "") && "stopped, but its record was not read",
        id !== null && !adapter.isId(id) && "its id is no id",
        ...textFaults(json),
      ].flatMap((fault) => (fault === false ? [] : [`${id}: ${fault}`]));
    }),
  ];
}

/** Nothing but an id of this agent ever stands where an id is promised. */
export const relativeFaults = (adapter: Adapter, list: SessionList): string[] =>
  list.sessions.flatMap(({ id, parent, continuedBy }) =>
    Object.entries({ parent, continuedBy })
      .filter(([, other]) => other !== null && !adapter.isId(other))
      .map(([key, other]) => `${id}: ${key} is no id: ${JSON.stringify(other)}`),
  );

/** Line breaks and tabs are text; every other control character, and half a surrogate pair, is not. */
export const isPlain = (text: string): boolean =>
  text.isWellFormed() && !/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/.test(text);

function textFaults(value: unknown, path = ""): string[] {
  if (typeof value === "string") return isPlain(value) ? [] : [`${path} holds control characters`];
  if (typeof value === "number") return Number.isFinite(value) ? [] : [`${path} is ${value}`];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => textFaults(inner, `${path}.${key}`));
}

function readingFaults<T>(reading: Reading<T>, faults: (value: T) => string[]): string[] {
  if (reading.ok) return faults(reading.value);
  const { code, source, detail }: Problem = reading.problem;
  return [code, source, detailText(detail)].every((text) => text.length > 0) ? [] : ["a problem without words"];
}

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === "string";
const number: Check = (value) => typeof value === "number" && Number.isFinite(value);
/** A code that src/words has a sentence for. */
const reason: Check = (value) =>
  typeof value === "object" && value !== null && "code" in value && reasonText(value as StatusReason).length > 0;
const flag: Check = (value) => typeof value === "boolean";
const texts: Check = (value) => Array.isArray(value) && value.every(text);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const oneOf =
  (...words: unknown[]): Check =>
  (value) =>
    words.includes(value);
/** Exactly these fields. */
const fields =
  (checks: Record<string, Check>): Check =>
  (value) =>
    typeof value === "object" && value !== null && misfits({ ...value }, checks).length === 0;

function misfits(value: Record<string, unknown>, checks: Record<string, Check>): string[] {
  const wrong = Object.entries(checks).filter(([key, check]) => !check(value[key]));
  const extra = Object.keys(value).filter((key) => !(key in checks));
  return [...wrong.map(([key]) => `${key} is ${JSON.stringify(value[key])}`), ...extra.map((key) => `${key} is new`)];
}

const waiting = {
  kind: oneOf("permission", "question", "plan", "trust", "login", "limit", "other"),
  text: orNull(text),
  tool: orNull(text),
  options: texts,
};
const background = orNull(fields({ shells: number, subagents: number }));
const activity = oneOf("working", "waiting", "idle", "unclear");
const outcome = oneOf("completed", "failed", "interrupted", "cut-off", null);
const turns: Check[] = [
  fields({ state: oneOf("none") }),
  fields({ state: oneOf("open"), since: orNull(number), doubt: orNull(reason) }),
  fields({ state: oneOf("closed"), at: orNull(number), outcome }),
  fields({ state: oneOf("closed"), at: orNull(number), outcome, doubt: reason }),
  fields({
    state: oneOf("closed"),
    at: orNull(number),
    outcome,
    needs: fields({ kind: oneOf("login", "limit"), text }),
  }),
  fields({ state: oneOf("unclear"), why: reason }),
];

const recordFaults = (record: NativeRecord): string[] =>
  misfits(
    { ...record },
    {
      id: text,
      source: text,
      cwd: orNull(text),
      createdAt: orNull(number),
      lastMessageAt: orNull(number),
      writtenAt: orNull(number),
      turn: (turn) => turns.some((check) => check(turn)),
      waiting: orNull(fields({ ...waiting, since: orNull(number) })),
      background,
      parent: orNull(text),
      continuedBy: orNull(text),
      facts: fields({
        model: orNull(text),
        title: orNull(text),
        prompt: orNull(text),
        branch: orNull(text),
        agentVersion: orNull(text),
        permission: orNull(text),
        denied: orNull(number),
        tokens: orNull(fields({ input: number, output: number, cacheRead: number, cacheWrite: number })),
        costUsd: orNull(number),
      }),
      skippedLines: number,
      torn: flag,
      pending: orNull(fields(waiting)),
      subagentOf: orNull(text),
      unknownLines: number,
      isOver: optional(flag),
      opensAs: optional(text),
      isSegment: optional(flag),
    },
  );

const announcementFaults = (announcement: Announcement): string[] =>
  misfits(
    { ...announcement },
    {
      session: text,
      pid: number,
      start: orNull(text),
      boot: orNull(text),
      namespace: orNull(text),
      host: optional(orNull(text)),
      source: text,
      writtenAt: orNull(number),
      cwd: orNull(text),
      says: orNull(fields({ activity, reason: orNull(reason), since: orNull(number) })),
      waiting: orNull(fields(waiting)),
      background,
      job: orNull(text),
      begunAt: optional(orNull(number)),
      isOver: optional(flag),
    },
  );
