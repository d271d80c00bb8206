// The totals of a record: tokens, cost, refusals, final answer.
import { expect, test } from "bun:test";
import type { LineFacts, Message } from "../../src/agents/adapter.ts";
import type { Tokens } from "../../src/core/evidence.ts";
import type { ConversationEntry } from "../../src/observe/conversation.ts";
import { sumUp } from "../../src/observe/usage/read-counts.ts";

const raw = Buffer.from("{}");
const line = (facts: Partial<LineFacts>): ConversationEntry => ({
  kind: "known",
  raw,
  facts: { messages: [], usage: null, costUsd: null, denied: 0, ...facts },
});
const tokens = (input: number, output = 0, cacheRead = 0, cacheWrite = 0): Tokens => ({
  input,
  output,
  cacheRead,
  cacheWrite,
});
const used = (key: string, input: number, model: string | null = null): ConversationEntry =>
  line({ usage: { key, tokens: tokens(input), model } });
const said = (role: Message["role"], text: string): ConversationEntry =>
  line({ messages: [{ at: null, role, text, tool: null }] });

test("missing token counts are not zero tokens", () => {
  expect(sumUp([said("user", "x")])).toEqual({
    tokens: null,
    byModel: new Map(),
    denied: 0,
    costUsd: null,
    answer: null,
    broken: 0,
    unknown: 0,
  });
});

test("a later line with the same key replaces the earlier one, different keys add up, and models are counted separately", () => {
  const { tokens: sum, byModel } = sumUp([
    used("a", 1, "m"),
    used("b", 10, "n"),
    used("a", 2, "m"),
    used("c", 20, "m"),
  ]);
  expect(sum).toEqual(tokens(32));
  expect(byModel).toEqual(
    new Map([
      ["m", tokens(22)],
      ["n", tokens(10)],
    ]),
  );
});

test("the agent's own cost is its last report, unless tokens were counted after it", () => {
  const cost = (costUsd: number): ConversationEntry => line({ costUsd });
  expect(sumUp([used("a", 1), cost(1), used("b", 1), cost(2)]).costUsd).toBe(2);
  expect(sumUp([used("a", 1), cost(1), used("a", 1)]).costUsd).toBe(1);
  expect(sumUp([used("a", 1), cost(1), used("b", 1)]).costUsd).toBeNull();
  expect(sumUp([used("a", 1), cost(1), used("b", 0)]).costUsd).toBe(1);
});

test("the answer is the agent's last message since the last prompt", () => {
  const answer = (...entries: ConversationEntry[]) => sumUp(entries).answer;
  expect(
    answer(said("user", "x"), said("agent", "a"), said("tool", "t"), said("agent", "b"), said("result", "r")),
  ).toBe("b");
  expect(answer(said("user", "x"), said("agent", "a"), said("agent", " \n"), said("note", "failed"))).toBe("a");
  expect(answer(said("user", "x"), said("agent", "a"), said("user", "y"))).toBeNull();
});

test("refused calls add up; broken and unknown lines are counted", () => {
  const entries: ConversationEntry[] = [
    line({ denied: 2 }),
    { kind: "broken", raw },
    { kind: "unknown", raw },
    line({ denied: 1 }),
  ];
  expect(sumUp([...entries, { kind: "broken", raw: null }])).toMatchObject({ denied: 3, broken: 2, unknown: 1 });
});

test("an answer that is recorded before its prompt belongs to it; an older answer does not", () => {
  const at = (role: Message["role"], text: string, time: number): ConversationEntry =>
    line({ messages: [{ at: time, role, text, tool: null }] });
  expect(sumUp([at("agent", "two", 20), at("user", "second", 15)]).answer).toBe("two");
  expect(sumUp([at("user", "first", 1), at("agent", "one", 5), at("user", "second", 15)]).answer).toBeNull();
  expect(sumUp([at("user", "asked by another clock", 99), at("agent", "one", 5)]).answer).toBe("one");
});

test("the tokens of subagents belong to the session, their messages do not", () => {
  const totals = sumUp([used("a", 1), said("agent", "mine")], [used("b", 10), said("agent", "theirs")]);
  expect([totals.tokens, totals.answer]).toEqual([tokens(11), "mine"]);
});

test("the costs of single answers add up if every one is recorded", () => {
  const cost = (key: string, costUsd: number | null): ConversationEntry =>
    line({ usage: { key, tokens: tokens(1), model: null, costUsd } });
  expect(sumUp([cost("a", 0.1), cost("b", 0.2), cost("a", 0.3)]).costUsd).toBe(0.5);
  expect(sumUp([cost("a", 0.1), cost("b", null)]).costUsd).toBeNull();
});
