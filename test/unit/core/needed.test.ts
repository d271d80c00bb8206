import { describe, expect, test } from "bun:test";
import type { Store } from "../../../src/core/evidence.ts";
import { neededRecords, outline } from "../../../src/core/needed.ts";
import { unread } from "../../../src/core/problem.ts";
import { type Agent, claim, evidence, host, problem, process, record, rules, store, type World } from "./world.ts";

/** Of records s1 and s2 of this agent, known by their names alone. */
function need(agent: Agent, world: Omit<World, "stores">, change: Partial<Store> = {}) {
  const names: Store = { ...store(agent, [record("s1"), record("s2")]), ...change };
  const rows = names.rows.map(({ id }) => outline(id, "", null));
  const { of, named } = neededRecords(evidence({ ...world, stores: [{ ...names, rows }] }), rules);
  return { s1: of(names, "s1"), s2: of(names, "s2"), isSilent: named !== null };
}

const nobody = { s1: null, s2: null, isSilent: false };

describe("a record is needed", () => {
  test("by nobody, where nobody lives", () => {
    expect(need("speaker", { processes: [] })).toEqual(nobody);
  });

  test("of a session that a live process announces, and of no other", () => {
    const world = { processes: [process(10, "speaker")] };
    const { claims } = store("speaker", [], [claim(10, "s1")]);
    expect(need("speaker", world, { claims })).toEqual({ ...nobody, s1: "owned" });
  });

  test("of a session in the arguments of another user's process: whose file it is, its name does not say", () => {
    const argv = ["speaker", "--resume", "s1"];
    const world = { processes: [process(10, "speaker", { argv, ours: false, uid: 42, env: null })] };
    expect(need("speaker", world)).toEqual({ ...nobody, s1: "owned" });
  });

  test("in every home, of a session that is named by a process of which nobody knows the home", () => {
    const argv = ["speaker", "--resume", "s1"];
    const elsewhere = store("speaker", [record("s1")], [], { home: "/other/.speaker", onRootDevice: false });
    const stores = [store("speaker", [record("s1")]), elsewhere].map((each) => ({
      ...each,
      rows: each.rows.map(({ id }) => outline(id, "", null)),
    }));
    const processes = [process(10, "speaker", { argv, sameFiles: false })];
    const { of } = neededRecords(
      evidence({ processes, stores, table: { namespace: { id: "pid:[1]", initial: false } } }),
      rules,
    );
    // Else one of them would be the only one that anybody knows of.
    expect(stores.map((each) => of(each, "s1"))).toEqual(["owned", "owned"]);
  });

  test("of every session, where a silent process may have any", () => {
    expect(need("mute", { processes: [process(10, "mute")] })).toEqual({
      s1: "doubted",
      s2: "doubted",
      isSilent: true,
    });
  });

  test("of every session, where the store, or the process table, was not read whole", () => {
    const all = { s1: "doubted", s2: "doubted", isSilent: false } as const;
    expect(need("speaker", { processes: [] }, { listing: unread(problem("store-unreadable", "/x")) })).toEqual(all);
    expect(need("speaker", { table: { gaps: [problem("process-unreadable", "/proc/1")] } })).toEqual(all);
  });

  test("of a session whose record may be one that cannot be read", () => {
    const nameless = [{ begins: "s1", problem: problem("store-unreadable", "/x"), writtenAt: 0 }];
    expect(need("speaker", { processes: [] }, { nameless })).toEqual({ s1: "doubted", s2: null, isSilent: false });
  });

  test("of every session, where a host does not answer", () => {
    expect(need("pool", { hosts: [host(null, "silent")] })).toMatchObject({ s1: "doubted", s2: "doubted" });
  });
});
