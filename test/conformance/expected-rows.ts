// What a schedule says about its sessions, compared with what the built binary answers: list and status, whole objects.
import { expect } from "bun:test";
import type { Json, TestHome } from "./test-home.ts";

export interface ExpectedRow {
  id: string | null;
  state: "running" | "stopped" | "unknown";
  activity: string | null;
  outcome: string | null;
  suspended: boolean;
  waiting: Json | null;
  link: string | null;
  pid: number | null;
  /** All owners, when more than one. */
  pids: number[];
  served: boolean;
  cwd: string | null;
  parent: string | null;
  conflicts: number;
}

const nothing = {
  activity: null,
  outcome: null,
  suspended: false,
  waiting: null,
  link: null,
  pid: null,
  pids: [],
  served: false,
  parent: null,
  conflicts: 0,
};

type Rest = Partial<ExpectedRow>;

export function rowsOf({ place }: TestHome) {
  const common = { ...nothing, cwd: place.project };
  return {
    running: (id: string | null, pid: number, activity: string, rest: Rest = {}): ExpectedRow => ({
      ...common,
      id,
      state: "running",
      activity,
      pid,
      link: id === null ? null : "announced",
      ...rest,
    }),
    stopped: (id: string, outcome: string | null, rest: Rest = {}): ExpectedRow => ({
      ...common,
      id,
      state: "stopped",
      outcome,
      ...rest,
    }),
    unknown: (id: string, rest: Rest = {}): ExpectedRow => ({ ...common, id, state: "unknown", ...rest }),
  };
}

/** Asked once, not until it fits: the answer must be true at once. */
export async function expectRows(
  world: TestHome,
  rows: ExpectedRow[],
  complete: "complete" | "incomplete" = "complete",
) {
  const refs = rows.map(({ id, pid }) => id ?? `pid:${pid}`);
  const asked = Promise.allSettled(refs.map((ref) => world.ask("status", ref, "--json")));
  const list = await world.list();
  const statuses = await asked;
  const sessions = (list["sessions"] as Json[]).filter((row) => row["home"] === world.place.agentHome);
  expect(sessions.map(viewOf).sort(byId)).toEqual([...rows].sort(byId));
  expect(list["complete"]).toBe(complete === "complete");
  expect((list["problems"] as Json[]).length > 0).toBe(complete === "incomplete");
  for (const [index, status] of statuses.entries()) {
    if (status.status === "rejected") throw status.reason;
    const row = sessions.find((session) => session["id"] === refs[index] || session["ref"] === refs[index]);
    expectStatus(status.value, row ?? {});
  }
}

/** `status` counts what `list` shows only where it costs nothing. */
const apart = { startedAt: null, tokens: null, denied: null, costUsd: null, costSource: null };

function expectStatus({ evidence, wouldChange, ...session }: Json, row: Json): void {
  // The start of a process is known to a clock tick; "nothing happens, nothing changes" looks at it.
  expect({ ...session, ...apart }).toEqual({ ...row, ...apart });
  expect((evidence as Json[]).length).toBeGreaterThan(0);
  for (const proof of evidence as Json[]) expect(Object.keys(proof)).toEqual(["fact", "value", "source", "rule", "at"]);
  expect((wouldChange as string[]).length).toBeGreaterThan(0);
}

function viewOf(row: Json): ExpectedRow {
  const pidOf = (process: unknown): number | null => (process === null ? null : Number((process as Json)["pid"]));
  return {
    id: row["id"] as string | null,
    state: row["state"] as ExpectedRow["state"],
    activity: row["activity"] as string | null,
    outcome: row["outcome"] as string | null,
    suspended: row["reasonCode"] === "suspended",
    waiting: row["waiting"] as Json | null,
    link: row["link"] as string | null,
    pid: pidOf(row["process"]),
    pids: (row["processes"] as unknown[]).map((process) => pidOf(process) ?? 0),
    served: row["served"] as boolean,
    cwd: row["cwd"] as string | null,
    parent: row["parent"] as string | null,
    conflicts: (row["conflicts"] as unknown[]).length,
  };
}

const byId = (a: ExpectedRow, b: ExpectedRow): number =>
  (a.id ?? "").localeCompare(b.id ?? "") || (a.pid ?? 0) - (b.pid ?? 0);
