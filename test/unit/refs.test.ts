// Printed references stay valid and unchanged while other sessions start.
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { SessionList } from "../../src/core/session.ts";
import { shortestRef } from "../../src/service/refs.ts";

const among = (ids: readonly string[]): SessionList => ({
  ...{ at: 0, complete: true, sessions: [], problems: [] },
  unopened: [{ agent: "demo", ids }],
});

const hex = (value: bigint | number, digits: number): string => value.toString(16).padStart(digits, "0");

function timeOrdered(ms: number, tail: number): string {
  const time = hex(ms, 12);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(tail % 4096, 3)}-8000-${hex(tail, 12)}`;
}

const openCode = (ms: number, tail: number): string =>
  `ses_${hex(BigInt(ms) * 4096n, 12).slice(-12)}ffe${tail}AbCdEfGh`;

test.each([
  ["a random UUID", "3f2a1b9c-6d1e-4c7b-9a55-0123456789ab", "3f2a1b9c"],
  ["a UUIDv7 has its milliseconds", "0193b3a1-7c4d-7000-8000-000000000001", "0193b3a1-7c4d"],
  ["an id like OpenCode's has its time and its counter", "ses_5a7f4c21bffeAbCdEfGh", "ses_5a7f4c21bffe"],
  ["a short id is its own reference", "s1", "s1"],
])("%s", (_title, id, ref) => {
  expect(shortestRef(id, among([]))).toBe(ref);
});

test.each([
  ["UUIDv7", timeOrdered],
  ["OpenCode", openCode],
])("%s: a session of another millisecond changes no reference", (_name, make) => {
  fc.assert(
    fc.property(fc.integer({ min: 1.7e12, max: 1.9e12 }), fc.integer({ min: 1, max: 1e5 }), (ms, later) => {
      const [first, second] = [make(ms, 1), make(ms + later, 2)];
      const alone = shortestRef(first, among([]));
      expect(shortestRef(first, among([second]))).toBe(alone);
      expect(second.startsWith(alone)).toBe(false);
    }),
  );
});

test("two sessions of one millisecond have longer references, each its own", () => {
  const [first, second] = [timeOrdered(1.8e12, 1), timeOrdered(1.8e12, 2)];
  const refs = [shortestRef(first, among([second])), shortestRef(second, among([first]))];
  expect(refs.map((ref) => [first, second].filter((id) => id.startsWith(ref)).length)).toEqual([1, 1]);
});
