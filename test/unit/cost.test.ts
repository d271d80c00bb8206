// Estimated cost: exactly this model, or nothing.
import { describe, expect, test } from "bun:test";
import { makePrices } from "../../scripts/update-prices.ts";
import { estimateUsd, type PriceList, priceOf, readPrices } from "../../src/observe/usage/cost.ts";

const list: PriceList = {
  date: "2026-11-16",
  source: "test",
  models: {
    "big-4": [10, 50, 1, 12.5],
    "big-4-1": [8, 40, 1, 10],
    "big-4-20250101": [9, 45, 1, 11],
    plain: [2, 4, null, null],
  },
};

describe("a model's price", () => {
  test.each([
    ["big-4", 10],
    ["big-4-20250101", 9],
    ["big-4-20250514", 10],
    ["big-4@20250514", 10],
    ["big-4-2025-05-14", 10],
    ["big-4-latest", 10],
    ["big-4-001", 10],
    ["big-4-1-20250805", 8],
  ])("%s", (model, input) => expect(priceOf(model, list)?.[0]).toBe(input));

  test.each([
    "",
    "big",
    "big-",
    "big-5",
    "big-4-2",
    "big-4-1-2",
    "big-4-mini",
    "big-44",
    "xbig-4",
    "Big-4",
    "big-4-latest-2",
    "constructor",
  ])("of %p is unknown", (model) => expect(priceOf(model, list)).toBeNull());
});

test("a cost is the sum over all models, and unknown if one price is unknown", () => {
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const much = { input: 1_000_000, output: 100_000, cacheRead: 2_000_000, cacheWrite: 10 };
  expect(estimateUsd([["big-4", much]], list)).toBe(17.000125);
  expect(
    estimateUsd(
      [
        ["big-4", much],
        ["plain", { ...none, output: 1_000_000 }],
      ],
      list,
    ),
  ).toBe(21.000125);
  expect(
    estimateUsd(
      [
        ["big-4", much],
        ["other", { ...none, output: 1 }],
      ],
      list,
    ),
  ).toBeNull();
  expect(
    estimateUsd(
      [
        ["big-4", much],
        ["other", none],
      ],
      list,
    ),
  ).toBe(17.000125);
  expect(estimateUsd([["plain", { ...none, cacheRead: 1 }]], list)).toBeNull();
  expect(estimateUsd([["", much]], list)).toBeNull();
});

test("the price list in the repository is the output of its script", async () => {
  const prices = await readPrices();
  expect(prices).toEqual(makePrices(prices.date));
  for (const model of ["claude-opus-4-5-20251101", "claude-sonnet-4-5", "gpt-5-codex", "gpt-5.1", "gemini-2.5-pro"])
    expect(priceOf(model, prices)).not.toBeNull();
});
