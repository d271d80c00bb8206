// The changes between two lists: whatever the two are, applying them to the first gives the second.
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { deriveSessions } from "../../src/core/derive.ts";
import { applyToSessions, diffLists } from "../../src/core/diff.ts";
import type { Evidence } from "../../src/core/evidence.ts";
import type { Session, SessionList } from "../../src/core/session.ts";
import { announcement, evidence, process as processRow, record, rules, store } from "../unit/core/build-evidence.ts";
import { anyEvidence } from "./arbitrary-evidence.ts";

setDefaultTimeout(60_000);
const wanted = process.env["PROPERTY_SEED"] ?? "20261116";
fc.configureGlobal({ seed: wanted === "fresh" ? Date.now() : Number(wanted) });
const runs = { numRuns: 400 };

const derive = (seen: Evidence): SessionList => deriveSessions(seen, rules);

/** What a reader sees of sessions, whatever their order. */
const views = (sessions: readonly Session[]): string[] =>
  sessions
    .map(({ evidence: _evidence, wouldChange: _wouldChange, processes, record, ...rest }) =>
      JSON.stringify({
        ...rest,
        facts: record?.facts ?? null,
        owners: processes.map(({ identity, tty }) => ({ identity, tty })),
      }),
    )
    .sort();

const shuffledList = (list: SessionList, seed: number): SessionList => ({
  ...list,
  sessions: list.sessions
    .map((session, index) => ({ session, at: (index * 7919 + seed * 104_729) % 1009 }))
    .sort((a, b) => a.at - b.at)
    .map(({ session }) => session),
});

describe("for any two lists", () => {
  test("applying the changes to the first list gives the second", () => {
    fc.assert(
      fc.property(anyEvidence, anyEvidence, (one, two) => {
        const [before, after] = [derive(one), derive(two)];
        const changes = diffLists(before, after);
        expect(views(applyToSessions(before.sessions, changes.sessions))).toEqual(views(after.sessions));
      }),
      runs,
    );
  });

  test("the order of the sessions does not matter", () => {
    fc.assert(
      fc.property(anyEvidence, anyEvidence, fc.nat(1000), (one, two, seed) => {
        const [before, after] = [derive(one), derive(two)];
        const changes = diffLists(before, after);
        const shuffled = diffLists(shuffledList(before, seed), shuffledList(after, seed + 1));
        expect(shuffled.sessions.map(keysOf)).toEqual(changes.sessions.map(keysOf));
      }),
      runs,
    );
  });

  test("two answers from the same evidence have no changes between them", () => {
    fc.assert(
      fc.property(anyEvidence, (seen) => {
        const nothing = { sessions: [], problems: { began: [], ended: [] } };
        expect(diffLists(derive(seen), derive(seen))).toEqual(nothing);
      }),
      runs,
    );
  });

  test("the changes from the second list to the first undo the changes", () => {
    fc.assert(
      fc.property(anyEvidence, anyEvidence, (one, two) => {
        const [before, after] = [derive(one), derive(two)];
        const there = applyToSessions(before.sessions, diffLists(before, after).sessions);
        const back = applyToSessions(there, diffLists(after, before).sessions);
        expect(views(back)).toEqual(views(before.sessions));
        expect(diffLists(after, before).problems.began).toEqual(diffLists(before, after).problems.ended);
      }),
      runs,
    );
  });
});

const keysOf = ({ before, after }: { before: Session | null; after: Session | null }) =>
  [before, after].map((session) => session && [session.agent, session.home, session.id, session.status.state]);

const named = [store("speaker", [record("s1")], [announcement(10, "s1")])];

test("a process that gets its session is one change", () => {
  const processes = [processRow(10, "speaker")];
  const { sessions } = diffLists(derive(evidence({ processes })), derive(evidence({ processes, stores: named })));
  expect(sessions.map(({ before, after }) => [before?.id, after?.id])).toEqual([[null, "s1"]]);
});

test("a process that goes to sleep does not change its session; a suspended process does", () => {
  const seen = (state: string): SessionList =>
    derive(evidence({ processes: [processRow(10, "speaker", { state })], stores: named }));
  expect(diffLists(seen("R"), seen("S")).sessions).toEqual([]);
  expect(diffLists(seen("S"), seen("T")).sessions).toHaveLength(1);
});
