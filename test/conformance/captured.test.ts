// Every adapter reads files that its agent really wrote. A new case is a new folder below test/fixtures and needs no code.
import { describe, expect, test } from "bun:test";
import type { Adapter } from "../../src/agents/adapter.ts";
import { adapters } from "../../src/agents/registry.ts";
import type { ProcessIdentity, ProcessRow } from "../../src/core/process.ts";
import type { Session } from "../../src/core/session.ts";
import { recordAt } from "../../src/observe/records.ts";
import { readTotals } from "../../src/observe/usage/read-counts.ts";
import { casesOf, derive, type Expected, heardAt, placeCase, sessionNamed, storeAt, tableAt } from "./cases.ts";
import { throwAwayFolder } from "./folder.ts";

for (const adapter of adapters)
  describe(`captured from ${adapter.agent}`, () => {
    const cases = casesOf(adapter);

    test("there are captured cases", () => {
      expect(cases.length).toBeGreaterThan(0);
    });

    for (const captured of cases.filter(({ moment }) => moment === "live"))
      test(`${captured.name}: the next process with the same pid does not own the session`, () => {
        using folder = throwAwayFolder();
        const store = storeAt(adapter, placeCase(adapter, captured, folder.path));
        const table = tableAt(captured, adapter, store, folder.path);
        const later = table.rows.map((row) => stranger({ ...row.identity, start: `${row.identity.start}1` }, row));
        const boot = "11111111-1111-4111-8111-111111111111";
        const afterReboot = table.rows.map((row) => stranger({ ...row.identity, boot }, row));
        for (const changed of [{ rows: later }, { boot, rows: afterReboot }]) {
          const { sessions } = derive(adapter, store, { ...table, ...changed });
          expect(sessions.filter(({ status }) => status.state === "running")).toEqual([]);
        }
      });

    for (const captured of cases)
      test(captured.name, () => {
        using folder = throwAwayFolder();
        const store = storeAt(adapter, placeCase(adapter, captured, folder.path));
        const table = tableAt(captured, adapter, store, folder.path);
        const list = derive(adapter, store, table, heardAt(captured, adapter, store, table));
        expect({ complete: list.complete, problems: list.problems }).toEqual({ complete: true, problems: [] });
        for (const expected of captured.expected) {
          const actual = named(viewOf(adapter, sessionNamed(list, expected.id)), expected);
          expect(actual).toEqual(named(inTheFiles(expected, actual), expected));
        }
      });
  });

/** Another program with the same pid. */
function stranger(identity: ProcessIdentity, row: ProcessRow): ProcessRow {
  const { detail } = row;
  const other = { argv: ["sleep", "1000"], exe: "/usr/bin/sleep", lockedFiles: [] };
  return {
    ...row,
    identity,
    startedAt: Date.now(),
    name: "sleep",
    detail: detail && { ...detail, ...other },
  };
}

type View = Record<string, unknown>;

function viewOf(adapter: Adapter, { status, record, ...session }: Session): View {
  const file = record && recordAt(adapter, record.source, record.id);
  const counted = file && readTotals({ adapter, home: session.home, file });
  return {
    id: session.id,
    state: status.state,
    activity: status.state === "running" ? status.activity : null,
    outcome: status.state === "stopped" ? status.outcome : null,
    waiting: session.waiting,
    background: session.background,
    cwd: session.cwd,
    parent: session.parent,
    continuedBy: session.continuedBy,
    facts: { ...(record?.facts ?? noFacts), tokens: counted?.tokens ?? null, denied: counted?.denied ?? null },
    result: counted?.answer ?? null,
  };
}

const noFacts = { prompt: null, model: null };

/** What both know: the keys that the case names, also inside of its objects. */
function named(actual: unknown, expected: unknown): unknown {
  if (!isFields(actual) || !isFields(expected)) return actual;
  const keys = Object.keys(expected).filter((key) => !notCompared.includes(key));
  return Object.fromEntries(keys.map((key) => [key, named(actual[key], expected[key])]));
}

/** Said by a capture, but no part of a session. */
const notCompared = ["notInTheFiles"];

/** Where a capture says that the files alone cannot show it, an honest "unclear", "cut-off" or null is right, too. */
function inTheFiles(expected: Expected, actual: unknown): View {
  if (expected["notInTheFiles"] !== true || !isFields(actual)) return expected;
  const activity = actual["activity"] === "unclear" ? "unclear" : expected["activity"];
  const saysLess = actual["outcome"] === null || actual["outcome"] === "cut-off";
  const outcome = saysLess ? actual["outcome"] : expected["outcome"];
  const waiting = activity === "unclear" ? null : expected["waiting"];
  return { ...expected, activity, outcome, waiting };
}

const isFields = (value: unknown): value is View =>
  typeof value === "object" && value !== null && !Array.isArray(value);
