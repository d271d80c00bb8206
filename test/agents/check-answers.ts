// Asks the built binary inside a home, and compares its answer with what the schedule did and with the process table.
import { expect } from "bun:test";
import { join } from "node:path";
import type { CapturedSession } from "./case.ts";
import type { TestHome } from "./test-home.ts";

/** AGENTCTL_BIN: another build than the usual one. */
export const agentctl = process.env["AGENTCTL_BIN"] ?? join(import.meta.dir, "../../dist/agentctl");

export interface Listed {
  id: string | null;
  agent: string;
  home: string;
  state: string;
  activity: string | null;
  outcome: string | null;
  status: string;
  reason: string | null;
  reasonCode: string | null;
  waiting: { kind: string; text: string | null; tool: string | null; options: string[] } | null;
  background: { shells: number; subagents: number } | null;
  link: string | null;
  process: { pid: number; start: string } | null;
  processes: { pid: number }[];
  served: boolean;
  cwd: string | null;
  model: string | null;
  prompt: string | null;
  permission: string | null;
  branch: string | null;
  agentVersion: string | null;
  tokens: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number } | null;
  denied: number | null;
  parent: string | null;
  continuedBy: string | null;
  conflicts: string[];
}

export interface List {
  complete: boolean;
  problems: { code: string; source: string; message: string }[];
  sessions: Listed[];
}

export async function ask<T>(world: TestHome, ...args: string[]): Promise<T> {
  const child = Bun.spawn([agentctl, ...args, "--json"], {
    env: { HOME: world.home, PATH: world.env["PATH"] ?? "", AGENTCTL_HOME: join(world.dir, "agentctl") },
    cwd: world.cwd,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  if (out === "") throw new Error(`agentctl ${args.join(" ")}: ${err}`);
  return JSON.parse(out) as T;
}

export const list = (world: TestHome): Promise<List> => ask<List>(world, "list", "-a");

export async function rowOf(world: TestHome, id: string): Promise<Listed> {
  const { sessions } = await list(world);
  const found = sessions.filter((session) => session.id === id);
  const [row] = found;
  if (row === undefined || found.length > 1)
    throw new Error(`${found.length} rows of ${id}: ${JSON.stringify(sessions)}`);
  return row;
}

/** Every session of the schedule is listed once, as it is; nothing else of this agent is; every owner is a live process. */
export async function expectList(
  world: TestHome,
  agent: string,
  sessions: readonly CapturedSession[],
  nameless: readonly number[] = [],
): Promise<void> {
  const answer = await list(world);
  const own = answer.sessions.filter((row) => row.agent === agent);
  const rows = own.filter(({ id, process }) => id !== null || !nameless.includes(process?.pid ?? 0));
  expect(own.length - rows.length).toBe(nameless.length);
  expect({ complete: answer.complete, problems: answer.problems }).toEqual({ complete: true, problems: [] });
  expect(rows.map(({ id }) => id).sort()).toEqual(sessions.map(({ id }) => id).sort());
  const live = new Map(world.processes().map((seen) => [seen.pid, seen]));
  for (const { id, pid, expected } of sessions) {
    const row = rows.find((each) => each.id === id);
    if (row === undefined) continue;
    expect([id, row.state]).toEqual([id, expected.state]);
    if (expected.notInTheFiles !== true) {
      expect([id, row.activity, row.outcome]).toEqual([id, expected.activity, expected.outcome]);
    } else expect(["unclear", "cut-off", expected.activity, expected.outcome]).toContain(row.activity ?? row.outcome);
    if (pid !== null) {
      const owners = [row.process?.pid, ...row.processes.map((each) => each.pid)];
      expect(owners).toContain(pid);
      expect(row.process?.start).toBe(live.get(row.process?.pid ?? 0)?.start ?? "not a live process");
    } else expect(row.process).toBeNull();
    if (expected.waiting !== undefined && row.activity !== "unclear")
      expect(row.waiting).toMatchObject({ ...expected.waiting });
    if (expected.background !== undefined) expect(row.background).toEqual(expected.background);
    if (expected.continuedBy !== undefined) expect(row.continuedBy).toBe(expected.continuedBy);
    const { tokens, denied, ...facts } = expected.facts ?? {};
    // The contract shows the first 200 characters.
    expect(row).toMatchObject({ ...facts, prompt: facts.prompt?.slice(0, 200) ?? null });
    const status = await ask<Listed>(world, "status", id);
    expect([status.state, status.activity, status.outcome]).toEqual([row.state, row.activity, row.outcome]);
    if (tokens !== undefined)
      expect(status.tokens && { ...status.tokens, total: undefined }).toEqual(
        tokens && { ...tokens, total: undefined },
      );
    if (denied !== undefined) expect(status.denied).toBe(denied);
  }
}
