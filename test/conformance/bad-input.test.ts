// Every adapter with damaged copies of its captured files: it never throws, never hangs, never gives a wrong status, and loses at
// most one row.
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { adapters } from "../../src/agents/registry.ts";
import {
  hasAnnouncementFiles,
  hasRecordFiles,
  inventionFaults,
  isNameless,
  type Look,
  lookAtBroken,
  mend,
  neighbourFaults,
  type Victim,
  victims,
} from "./damaged-case.ts";
import { throwAwayFolder } from "./folder.ts";
import { relativeFaults } from "./invariants.ts";
import { brokenBytes, cutOffsets, linesOf, type Mutation, parsed, raw, replacedValues, textOf } from "./mutations.ts";
import { share } from "./share-of-cases.ts";

/** Values of one file that are replaced, spread over it: captured files of real agents are long. */
const mostValues = 40;

/** Thousands of broken files each; a busy machine takes its time. */
setDefaultTimeout(120_000);

const folder = throwAwayFolder();
afterAll(() => folder[Symbol.dispose]());

const escapes = "\x1b[31mred\x1b]0;title\x07\x1bP+q\x1b\\\x9b1m\x08\x00\u202e";
const isText = (value: unknown): value is string => typeof value === "string";
const isTime = (value: unknown): boolean => isText(value) && /^\d{4}-\d\d-\d\dT/.test(value);
const times = [
  "+275760-09-13T00:00:00.000Z",
  "-271821-04-20T00:00:00.000Z",
  "0000-00-00T00:00:00Z",
  "NaN",
  "1e400",
  "",
];
const numbers = [-1, 1e308, 5e-324, 2 ** 53, 0.5, raw("1e400"), raw("-1e400"), raw("-0")];
const paths = ["../../etc/passwd", "/etc/passwd", "..", "a\0b", "-"];

const pathsForIds = (old: unknown): readonly unknown[] => (isText(old) || old === null ? paths : []);

const replacements: [name: string, by: (old: unknown) => readonly unknown[]][] = [
  ["wrong types", () => [null, 42, true, "text", [], {}, [{}], { a: [] }]],
  ["escape sequences", (old) => (isText(old) ? [`${old}${escapes}`, `${escapes}${old}`, "\x1b[", "\x9b"] : [])],
  ["lone surrogates", (old) => (isText(old) ? [`${old}\ud800`, "\udc00\ud800", `${"x".repeat(199)}\u{1f600}`] : [])],
  ["ids that look like paths", pathsForIds],
  ["impossible times", (old) => (isTime(old) ? [...times, ...numbers] : [])],
  ["nonsense numbers", (old) => (typeof old === "number" ? numbers : [])],
];

for (const adapter of adapters.filter(hasRecordFiles))
  describe(`damaged records of ${adapter.agent}`, () => {
    const records = victims(adapter, "record", folder.path);

    test("the captured cases have records to damage", () => {
      expect(records.length).toBeGreaterThan(0);
    });

    test("broken bytes give no wrong status", () => {
      expect(breakEach(records, (victim) => brokenBytes(victim.bytes), neighbourFaults)).toEqual([]);
    });

    test("a file that is not a record at all makes its session unknown, not stopped", () => {
      for (const victim of records.slice(0, 3)) {
        using _mended = mendedLater(victim);
        for (const content of [Buffer.alloc(512), "hello\nworld\n", "[]\n42\n"]) {
          const look = lookAtBroken(victim, content);
          const { dead } = look;
          const state = dead.sessions.find(({ id }) => id === victim.id)?.status.state;
          expect(state ?? (isNameless(victim, look) ? "unknown" : null)).toBe("unknown");
          expect(dead.complete).toBe(false);
        }
      }
    });

    test("a record may be cut at any byte", () => {
      expect(records.flatMap(cutFaults)).toEqual([]);
    });

    test("one corrupt line gives no wrong status", () => {
      const corrupt = function* ({ bytes }: Victim): Generator<Mutation> {
        const lines = linesOf(bytes);
        for (const index of lines.keys())
          for (const text of ["{broken", "\0\0\0", (lines[index] ?? "").slice(0, -1), "[".repeat(100_000)])
            yield [`line ${index + 1} = ${text.slice(0, 20)}`, textOf(lines.with(index, text))];
      };
      expect(breakEach(records, corrupt, saysNothingNew)).toEqual([]);
    });

    test("CRLF line ends change nothing", () => {
      for (const victim of records) {
        using _mended = mendedLater(victim);
        const { live, dead, faults } = lookAtBroken(victim, textOf(linesOf(victim.bytes).map((line) => `${line}\r`)));
        const status = (list: Look["live"]) => list.sessions.find(({ id }) => id === victim.id)?.status;
        expect([faults, status(live), status(dead)]).toEqual([[], status(victim.live), status(victim.dead)]);
      }
    });

    for (const [name, by] of replacements)
      test(name, () => {
        const faults = breakEach(records, ({ bytes }) => replacedValues(bytes, mostValues, by), neighbourFaults);
        expect(faults).toEqual([]);
      });

    test("ids of parents and successors may look like paths", () => {
      const relatives = ({ adapter }: Victim, { live, dead }: Look): string[] =>
        [live, dead].flatMap((list) => relativeFaults(adapter, list));
      const faults = breakEach(records, ({ bytes }) => replacedValues(bytes, mostValues, pathsForIds), relatives);
      expect(faults).toEqual([]);
    });

    test("a huge record gives no wrong status", () => {
      expect(breakEach(records.slice(0, 1), hugeFiles, saysNothingNew)).toEqual([]);
    });
  });

for (const adapter of adapters.filter(hasAnnouncementFiles))
  describe(`damaged announcements of ${adapter.agent}`, () => {
    const announcements = victims(adapter, "announcement", folder.path);

    test("the captured cases have announcements to damage", () => {
      expect(announcements.length).toBeGreaterThan(0);
    });

    test("broken bytes give no wrong status", () => {
      const cut = ({ bytes }: Victim): Mutation[] =>
        cutOffsets(bytes).map((offset) => [`cut at ${offset}`, bytes.subarray(0, offset)]);
      expect(breakEach(announcements, (victim) => brokenBytes(victim.bytes), announcementFaults)).toEqual([]);
      expect(breakEach(announcements, cut, announcementFaults)).toEqual([]);
    });

    for (const [name, by] of replacements)
      test(name, () => {
        const faults = breakEach(
          announcements,
          ({ bytes }) => replacedValues(bytes, mostValues, by),
          deadStayAsTheyWere,
        );
        expect(faults).toEqual([]);
      });
  });

/** What is wrong after each mutation of each victim; the first few say enough. */
function breakEach(
  all: readonly Victim[],
  mutations: (victim: Victim) => Iterable<Mutation>,
  more: (victim: Victim, look: Look) => string[],
): string[] {
  return all.flatMap((victim, index) => {
    using _mended = mendedLater(victim);
    const found: string[] = [];
    for (const [label, content] of share(mutations(victim), index)) {
      const look = lookAtBroken(victim, content);
      for (const fault of [...look.faults, ...more(victim, look)]) found.push(`${victim.name}, ${label}: ${fault}`);
      if (found.length > 10) break;
    }
    return found;
  });
}

const saysNothingNew = (victim: Victim, look: Look): string[] => [
  ...neighbourFaults(victim, look),
  ...inventionFaults(victim, look),
];

/** Half a line may be the end of the turn or a question, so the outcome is unknown. */
function cutFaults(victim: Victim, index: number): string[] {
  using _mended = mendedLater(victim);
  const firstLine = victim.bytes.indexOf(10);
  const isAlone = victim.store.rows.filter(({ id }) => id === victim.id).length === 1;
  return [...share(cutOffsets(victim.bytes), index)].flatMap((offset) => {
    const cut = lookAtBroken(victim, victim.bytes.subarray(0, offset));
    const status = cut.dead.sessions.find(({ id }) => id === victim.id)?.status;
    const torn = offset > firstLine + 1 && victim.bytes[offset - 1] !== 10;
    const invents = torn && isAlone && status?.state === "stopped" && status.outcome !== null;
    return [...cut.faults, ...neighbourFaults(victim, cut), ...(invents ? [`says ${status.outcome}`] : [])].map(
      (fault) => `${victim.name}, cut at ${offset}: ${fault}`,
    );
  });
}

const mendedLater = (victim: Victim): Disposable => ({ [Symbol.dispose]: () => mend(victim) });

function* hugeFiles({ bytes }: Victim): Generator<Mutation> {
  const lines = linesOf(bytes);
  const padded = (line: string, size: number): string => {
    const value = parsed(line);
    return JSON.stringify({ ...(typeof value === "object" ? value : {}), padding: "x".repeat(size) });
  };
  const copies = Math.ceil((50 * 1024 * 1024) / bytes.length);
  yield ["50 MB", textOf(lines).repeat(copies)];
  const wide = lines.map((line) => padded(line, 100 * 1024));
  yield ["lines of 100 KB", textOf(wide).repeat(Math.ceil(200 / wide.length))];
  for (const index of [0, Math.floor(lines.length / 2), lines.length - 1])
    yield [`line ${index + 1} of 20 MB`, textOf(lines.with(index, padded(lines[index] ?? "", 20 * 1024 * 1024)))];
  yield ["20 MB at the end without a newline", textOf(lines) + "x".repeat(20 * 1024 * 1024)];
}

/** A live process whose announcement is broken may have any session: nothing that ran may count as stopped. */
function announcementFaults(victim: Victim, look: Look): string[] {
  const stopped = look.live.sessions.filter(({ status }) => status.state === "stopped").map(({ id }) => id);
  const ran = victim.live.sessions.filter(({ status }) => status.state === "running").map(({ id }) => id);
  const lost = ran.filter((id) => stopped.includes(id));
  return [...deadStayAsTheyWere(victim, look), ...lost.map((id) => `${id} ran and is now stopped`)];
}

/** Without live processes an announcement, broken or not, changes no status. */
function deadStayAsTheyWere(victim: Victim, look: Look): string[] {
  const statuses = (list: Look["dead"]) => list.sessions.map(({ id, status }) => [id, status]);
  const before = statuses(victim.dead);
  // An announcement may name another session now, or another pid namespace: then that is not proven either.
  const known = statuses(look.dead).filter(([id]) => before.some(([other]) => other === id));
  return Bun.deepEquals(known.filter(isStopped), known)
    ? Bun.deepEquals(known, before)
      ? []
      : ["a dead session changed"]
    : [];
}

const isStopped = ([, status]: readonly unknown[]): boolean =>
  typeof status === "object" && status !== null && "state" in status && status.state === "stopped";
