// Sessions in each other's way are told as groups, and the work grows with their number, not with its square.
import { describe, expect, test } from "bun:test";
import { conflictLines } from "../../src/cli/conflicts.ts";
import { conflictsAmong, type Neighbour } from "../../src/control/conflict-groups.ts";
import type { Session } from "../../src/core/session.ts";

const status = { state: "running", activity: "working", owner: { kind: "host", process: null, address: "" } } as const;

function neighbour(
  id: string,
  place: string,
  more: { edited?: string[]; parent?: string; idle?: true } = {},
): Neighbour {
  const { edited = [], parent = null, idle } = more;
  const session: Session = {
    ...{ agent: "demo", home: "/home", id, cwd: place, parent },
    status: idle === undefined ? status : { ...status, activity: "idle" },
    ...{ reason: null, since: null, waiting: null, background: null, startedAt: null, updatedAt: null, endedAt: null },
    ...{ continuedBy: null, record: null, job: null, processes: [], conflicts: [], evidence: [], wouldChange: [] },
  };
  return { session, place, edited: new Set(edited) };
}

const told = (neighbours: Neighbour[], dirty: Record<string, string[]> = {}) =>
  conflictsAmong(neighbours, new Map(Object.entries(dirty))).conflicts.map(({ kind, sessions, files }) => [
    kind,
    sessions.map(({ id }) => id).join(" "),
    files.join(" "),
  ]);

describe("in one worktree", () => {
  test("all that are at work are one conflict", () => {
    expect(told([neighbour("a", "/p"), neighbour("b", "/p"), neighbour("c", "/p"), neighbour("d", "/q")])).toEqual([
      ["index", "a b c", ""],
    ]);
  });

  test("an idle one is in nobody's way", () => {
    expect(told([neighbour("a", "/p"), neighbour("b", "/p", { idle: true })])).toEqual([]);
  });

  test("a session and the one that it was started from share it on purpose; two of them do not", () => {
    const [parent, child] = [neighbour("a", "/p"), neighbour("b", "/p", { parent: "a" })];
    expect(told([parent, child])).toEqual([]);
    expect(told([parent, child, neighbour("c", "/p", { parent: "a" })])).toEqual([["index", "b c", ""]]);
    expect(told([parent, child, neighbour("x", "/p")])).toEqual([["index", "a b x", ""]]);
  });

  test("a file that several have edited, by their records", () => {
    const edited = ["f", "g"];
    expect(told([neighbour("a", "/p", { edited, idle: true }), neighbour("b", "/p", { edited, idle: true })])).toEqual([
      ["file", "a b", "f g"],
    ]);
    // By git alone nobody can tell whose change it is.
    expect(told([neighbour("a", "/p", { idle: true }), neighbour("b", "/p", { idle: true })], { "/p": ["f"] })).toEqual(
      [],
    );
  });
});

describe("in several worktrees", () => {
  const [a, b, c] = [neighbour("a", "/p"), neighbour("b", "/q"), neighbour("c", "/r")];

  test("files are grouped by the sessions that have changed them", () => {
    const dirty = { "/p": ["f", "g", "own"], "/q": ["f", "g", "h"], "/r": ["h", "f"] };
    expect(told([a, b, c], dirty)).toEqual([
      ["file", "a b c", "f"],
      ["file", "a b", "g"],
      ["file", "b c", "h"],
    ]);
  });

  test("git's word in one and the record of another meet, and one group tells both", () => {
    const edits = neighbour("e", "/q", { edited: ["f"] });
    expect(told([a, edits], { "/p": ["f", "g"], "/q": ["g"] })).toEqual([["file", "a e", "f g"]]);
  });

  test("kin of one worktree both meet a stranger of another", () => {
    const [parent, child] = [neighbour("a", "/p"), neighbour("k", "/p", { parent: "a" })];
    expect(told([parent, child, b], { "/p": ["f"], "/q": ["f"] })).toEqual([["file", "a k b", "f"]]);
    const far = neighbour("k", "/q", { parent: "a" });
    expect(told([a, far], { "/p": ["f"], "/q": ["f"] })).toEqual([]);
  });
});

describe("however many there are", () => {
  const many = (count: number, place: (at: number) => string): Neighbour[] =>
    Array.from({ length: count }, (_, at) => neighbour(`s${at}`, place(at), { edited: ["common", `own${at}`] }));

  test.each([500, 5_000])("%d at work in one worktree: two lines, one group each", (count) => {
    const begun = performance.now();
    const found = {
      ...conflictsAmong(
        many(count, () => "/p"),
        new Map(),
      ),
      unseen: [],
    };
    expect(found.conflicts.map(({ kind, sessions, files }) => [kind, sessions.length, files])).toEqual([
      ["index", count, []],
      ["file", count, ["common"]],
    ]);
    const lines = conflictLines(found, []);
    expect(lines).toBe(
      `agentctl: demo s0, demo s1, demo s2 and ${count - 3} more are at work in one worktree: /p\n` +
        `agentctl: demo s0, demo s1, demo s2 and ${count - 3} more have all changed common\n`,
    );
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  test("5,000 in worktrees of their own, each with 200 changed files", () => {
    const neighbours = many(5_000, (at) => `/${at}`);
    const files = Array.from({ length: 200 }, (_, at) => `f${at}`);
    const begun = performance.now();
    const { conflicts } = conflictsAmong(neighbours, new Map(neighbours.map(({ place }) => [place, files])));
    expect(conflicts.map(({ sessions, files }) => [sessions.length, files.length])).toEqual([[5_000, 201]]);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  test("every file with a group of its own: some are told, the rest is counted", () => {
    const neighbours = many(2_000, (at) => `/${at}`);
    const dirty = new Map(
      neighbours.map(({ place }, at) => [place, [`pair${at >> 1}`, `next${(at + 1) >> 1}`]] as const),
    );
    const { conflicts, omitted } = conflictsAmong(neighbours, dirty);
    expect(conflicts.length).toBe(100);
    expect(omitted).toBeGreaterThan(1_000);
    const lines = conflictLines({ conflicts, omitted, unseen: Array.from({ length: 9 }, (_, at) => `/${at}`) }, []);
    expect(lines.split("\n").slice(-3)).toEqual([
      `agentctl: … and ${conflicts.length - 5 + omitted} more conflicts; agentctl list --json shows more`,
      "agentctl: changed files were not compared, git did not answer: /0, /1, /2, and 6 more",
      "",
    ]);
    expect(lines.split("\n").length).toBeLessThan(10);
  });
});
