import { describe, expect, test } from "bun:test";
import type { Store } from "../../../src/core/evidence.ts";
import { unread } from "../../../src/core/problem.ts";
import { neededRecords, outline } from "../../../src/core/required-records.ts";
import {
  type Agent,
  announcement,
  evidence,
  type PartialEvidence,
  problem,
  process,
  record,
  rules,
  serverAnswer,
  store,
} from "./build-evidence.ts";

/** Why the records s1 and s2 of this agent, which are known only by name, are required; null: not required. */
function need(agent: Agent, partial: Omit<PartialEvidence, "stores">, change: Partial<Store> = {}) {
  const names: Store = { ...store(agent, [record("s1"), record("s2")]), ...change };
  const rows = names.rows.map(({ id }) => outline(id, "", null));
  const { of, named } = neededRecords(evidence({ ...partial, stores: [{ ...names, rows }] }), rules);
  return { s1: of(names, "s1"), s2: of(names, "s2"), isSilent: named !== null };
}

const none = { s1: null, s2: null, isSilent: false };

describe("a record is required", () => {
  test("for no session if no process is alive", () => {
    expect(need("speaker", { processes: [] })).toEqual(none);
  });

  test("if a live process announces its session, and no other record is", () => {
    const partial = { processes: [process(10, "speaker")] };
    const { announcements } = store("speaker", [], [announcement(10, "s1")]);
    expect(need("speaker", partial, { announcements })).toEqual({ ...none, s1: "owned" });
  });

  test("if arguments of another user's process name its session, because the file name does not show the owner", () => {
    const argv = ["speaker", "--resume", "s1"];
    const partial = { processes: [process(10, "speaker", { argv, ours: false, uid: 42, env: null })] };
    expect(need("speaker", partial)).toEqual({ ...none, s1: "owned" });
  });

  test("in every home if a process with an unknown home names its session", () => {
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
    // If only one were read, it would look like the only match.
    expect(stores.map((each) => of(each, "s1"))).toEqual(["owned", "owned"]);
  });

  test("of every session if a process that names no session may have any of them", () => {
    expect(need("mute", { processes: [process(10, "mute")] })).toEqual({
      s1: "doubted",
      s2: "doubted",
      isSilent: true,
    });
  });

  test("of every session if the store or the process table was not read completely", () => {
    const all = { s1: "doubted", s2: "doubted", isSilent: false } as const;
    expect(need("speaker", { processes: [] }, { listing: unread(problem("store-unreadable", "/x")) })).toEqual(all);
    expect(need("speaker", { table: { gaps: [problem("process-unreadable", "/proc/1")] } })).toEqual(all);
  });

  test("if an unreadable record may belong to its session", () => {
    const nameless = [{ begins: "s1", problem: problem("store-unreadable", "/x"), writtenAt: 0 }];
    expect(need("speaker", { processes: [] }, { nameless })).toEqual({ s1: "doubted", s2: null, isSilent: false });
  });

  test("of every session if a server does not answer", () => {
    expect(need("pool", { servers: [serverAnswer(null, "silent")] })).toMatchObject({ s1: "doubted", s2: "doubted" });
  });
});
