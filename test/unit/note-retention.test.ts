// How long notes and output of launches are kept.
import { expect, test } from "bun:test";
import { expired, type Kept } from "../../src/control/note-retention.ts";
import { unsaid } from "../../src/control/notes.ts";

const now = Date.UTC(2026, 10, 16);
const day = 24 * 3_600_000;
const gigabyte = 1024 ** 3;

const kept = (id: string, change: Partial<Kept> = {}): Kept => ({
  id,
  note: null,
  bytes: 1000,
  endedAt: now - day,
  inUse: false,
  ...change,
});
const ended = (id: string, status: number, change: Partial<Kept> = {}): Kept =>
  kept(id, {
    note: {
      ...unsaid,
      id,
      agent: "demo",
      home: "/h",
      session: null,
      at: "",
      exit: { status },
      hookRuns: { start: null, exit: null },
    },
    ...change,
  });
const goes = (all: readonly Kept[]): string[] => expired(all, now).map(({ id }) => id);

test("a launch expires thirty days after its end, unless it is in use", () => {
  const old = { endedAt: now - 31 * day };
  expect(
    goes([
      kept("young"),
      kept("old", old),
      kept("used", { ...old, inUse: true }),
      kept("edge", { endedAt: now - 29.9 * day }),
    ]),
  ).toEqual(["old"]);
});

test("beyond two gigabytes the oldest launches expire first, failed ones last, those in use never", () => {
  const big = { bytes: gigabyte };
  const all = [
    ended("failed", 1, { ...big, endedAt: now - 5 * day }),
    ended("newer", 0, { ...big, endedAt: now - 2 * day }),
    ended("older", 0, { ...big, endedAt: now - 4 * day }),
    kept("used", { ...big, inUse: true, endedAt: now - 6 * day }),
  ];
  expect(goes(all)).toEqual(["older", "newer"]);
  expect(goes([...all, kept("used too", { bytes: 3 * gigabyte, inUse: true })])).toEqual(["older", "newer", "failed"]);
  expect(goes(all.slice(0, 2))).toEqual([]);
});
