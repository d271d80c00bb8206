// What seems cut off where somebody has just gone on to another session is looked at again; nothing else makes anybody wait.
import { expect, test } from "bun:test";
import { settledAt } from "../../src/observe/just-left.ts";
import { ago, claim, closed, derive, evidence, now, open, process, record, store, type World } from "./core/world.ts";

const left = record("s1", { turn: open, lastMessageAt: ago(2) });
const justSaid = claim(10, "s2", { writtenAt: now - 100 });
const speaker = process(10, "speaker", { startedAt: ago(10) });
const world = (change: { left?: typeof left; said?: typeof justSaid; speaker?: typeof speaker } = {}): World => ({
  processes: [change.speaker ?? speaker],
  stores: [store("speaker", [change.left ?? left, record("s2")], [change.said ?? justSaid])],
});

const cases: [name: string, World, waitMs: number | null][] = [
  ["a word of a moment ago", world(), 200],
  ["older than what is ever written late", world({ said: { ...justSaid, writtenAt: now - 300 } }), null],
  ["a time that is not yet", world({ said: { ...justSaid, writtenAt: now + 1 } }), null],
  ["the end is written", world({ left: { ...left, turn: closed } }), null],
  ["another directory", world({ said: { ...justSaid, cwd: "/else" } }), null],
  ["a process that began after the last message", world({ speaker: { ...speaker, startedAt: ago(1) } }), null],
  ["a word about the session itself", world({ said: { ...justSaid, session: "s1" } }), null],
  ["a word of who is dead", { ...world(), processes: [] }, null],
  ["another agent", { ...world(), stores: [store("speaker", [], [justSaid]), store("pool", [left])] }, null],
];
test.each(cases)("%s", (_name, seen, waitMs) =>
  expect(settledAt(evidence(seen), derive(seen), now, now)).toBe(waitMs === null ? null : now + waitMs),
);

test("who looked for longer looks again at once", () => {
  const seen = world({ said: { ...justSaid, writtenAt: now - 1_000 } });
  expect(settledAt(evidence(seen), derive(seen), now - 900, now)).toBe(now - 700);
});
