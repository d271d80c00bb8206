// A session that seems cut off is read again if its process just changed its session; nothing else causes a delay.
import { expect, test } from "bun:test";
import { settledAt } from "../../src/observe/session-switch.ts";
import {
  ago,
  announcement,
  closed,
  derive,
  evidence,
  now,
  open,
  type PartialEvidence,
  process,
  record,
  store,
} from "./core/build-evidence.ts";

const left = record("s1", { turn: open, lastMessageAt: ago(2) });
const justSaid = announcement(10, "s2", { writtenAt: now - 100 });
const speaker = process(10, "speaker", { startedAt: ago(10) });
const partial = (
  change: { left?: typeof left; said?: typeof justSaid; speaker?: typeof speaker } = {},
): PartialEvidence => ({
  processes: [change.speaker ?? speaker],
  stores: [store("speaker", [change.left ?? left, record("s2")], [change.said ?? justSaid])],
});

const cases: [name: string, PartialEvidence, waitMs: number | null][] = [
  ["an announcement of a moment ago", partial(), 200],
  ["an announcement older than the longest delay", partial({ said: { ...justSaid, writtenAt: now - 300 } }), null],
  ["an announcement with a time in the future", partial({ said: { ...justSaid, writtenAt: now + 1 } }), null],
  ["the end is written", partial({ left: { ...left, turn: closed } }), null],
  ["another directory", partial({ said: { ...justSaid, cwd: "/else" } }), null],
  ["a process that started after the last message", partial({ speaker: { ...speaker, startedAt: ago(1) } }), null],
  ["an announcement of the session itself", partial({ said: { ...justSaid, session: "s1" } }), null],
  ["an announcement of a dead process", { ...partial(), processes: [] }, null],
  ["another agent", { ...partial(), stores: [store("speaker", [], [justSaid]), store("pool", [left])] }, null],
];
test.each(cases)("%s", (_name, seen, waitMs) =>
  expect(settledAt(evidence(seen), derive(seen), now, now)).toBe(waitMs === null ? null : now + waitMs),
);

test("a reading that took longer than the delay is repeated at once", () => {
  const seen = partial({ said: { ...justSaid, writtenAt: now - 1_000 } });
  expect(settledAt(evidence(seen), derive(seen), now - 900, now)).toBe(now - 700);
});
