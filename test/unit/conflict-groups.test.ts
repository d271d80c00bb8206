// Conflicts are shown as groups of sessions, and the work grows linearly with the number of sessions.
import { describe, expect, test } from "bun:test";
import { conflictLines } from "../../src/cli/conflicts.ts";
import { conflictsAmong, type Neighbour } from "../../src/control/conflicts/conflict-groups.ts";
import type { Session } from "../../src/core/session.ts";

const status = {
  state: "running",
  activity: "working",
  owner: { kind: "server", process: null, address: "" },
} as const;

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

describe("sessions in one worktree", () => {
  test("are one conflict if they are working", () => {
    expect(told([neighbour("a", "/p"), neighbour("b", "/p"), neighbour("c", "/p"), neighbour("d", "/q")])).toEqual([
      ["index", "a b c", ""],
    ]);
  });

  test("have no conflict with an idle session", () => {
    expect(told([neighbour("a", "/p"), neighbour("b", "/p", { idle: true })])).toEqual([]);
  });

  test("have no conflict if one started the other; two started sessions have one", () => {
    const [parent, child] = [neighbour("a", "/p"), neighbour("b", "/p", { parent: "a" })];
    expect(told([parent, child])).toEqual([]);
    expect(told([parent, child, neighbour("c", "/p", { parent: "a" })])).toEqual([["index", "b c", ""]]);
    expect(told([parent, child, neighbour("x", "/p")])).toEqual([["index", "a b x", ""]]);
  });

  test("have a conflict about a file that several records say was edited", () => {
    const edited = ["f", "g"];
    expect(told([neighbour("a", "/p", { edited, idle: true }), neighbour("b", "/p", { edited, idle: true })])).toEqual([
      ["file", "a b", "f g"],
    ]);
    // Git alone does not show which session made a change.
    expect(told([neighbour("a", "/p", { idle: true }), neighbour("b", "/p", { idle: true })], { "/p": ["f"] })).toEqual(
      [],
    );
  });
});

describe("sessions in several worktrees", () => {
  const [a, b, c] = [neighbour("a", "/p"), neighbour("b", "/q"), neighbour("c", "/r")];

  test("have their changed files grouped by the sessions that changed them", () => {
    const dirty = { "/p": ["f", "g", "own"], "/q": ["f", "g", "h"], "/r": ["h", "f"] };
    expect(told([a, b, c], dirty)).toEqual([
      ["file", "a b c", "f"],
      ["file", "a b", "g"],
      ["file", "b c", "h"],
    ]);
  });

  test("have a conflict if git reports a file in one and a record reports it in another", () => {
    const edits = neighbour("e", "/q", { edited: ["f"] });
    expect(told([a, edits], { "/p": ["f", "g"], "/q": ["g"] })).toEqual([["file", "a e", "f g"]]);
  });

  test("have a conflict with a parent and its child in another worktree", () => {
    const [parent, child] = [neighbour("a", "/p"), neighbour("k", "/p", { parent: "a" })];
    expect(told([parent, child, b], { "/p": ["f"], "/q": ["f"] })).toEqual([["file", "a k b", "f"]]);
    const far = neighbour("k", "/q", { parent: "a" });
    expect(told([a, far], { "/p": ["f"], "/q": ["f"] })).toEqual([]);
  });
});

describe("many sessions", () => {
  const many = (count: number, place: (at: number) => string): Neighbour[] =>
    Array.from({ length: count }, (_, at) => neighbour(`s${at}`, place(at), { edited: ["common", `own${at}`] }));

  test.each([500, 5_000])("%d that work in one worktree give two lines with one group each", (count) => {
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
      `agentctl: demo s0, demo s1, demo s2 and ${count - 3} more work in the same worktree: /p\n` +
        `agentctl: demo s0, demo s1, demo s2 and ${count - 3} more have all changed common\n`,
    );
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  test("5,000 in separate worktrees with 200 changed files each are grouped quickly", () => {
    const neighbours = many(5_000, (at) => `/${at}`);
    const files = Array.from({ length: 200 }, (_, at) => `f${at}`);
    const begun = performance.now();
    const { conflicts } = conflictsAmong(neighbours, new Map(neighbours.map(({ place }) => [place, files])));
    expect(conflicts.map(({ sessions, files }) => [sessions.length, files.length])).toEqual([[5_000, 201]]);
    expect(performance.now() - begun).toBeLessThan(10_000);
  });

  test("with a separate group for every file show some groups and count the rest", () => {
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
