// One look for those who act: the sessions, and beside them every process of ours with the marks that it carries.
import { adapters } from "../adapters/registry.ts";
import { deriveSessions } from "../core/derive.ts";
import { AgentctlError } from "../core/problem.ts";
import type { ProcessRow, ProcessTable } from "../core/process.ts";
import type { SessionList } from "../core/session.ts";
import type { Environment } from "../observe/homes.ts";
import { observe } from "../observe/observe.ts";
import type { ProcessWish } from "../observe/process-wish.ts";
import { readProcesses } from "../observe/processes.ts";

export interface Surroundings {
  list: SessionList;
  /** Every process, ours with details. */
  table: ProcessTable;
}

const marks = new Set([
  "AGENTCTL_TAG",
  "AGENTCTL_TAG_SID",
  "AGENTCTL_TAG_SESSION",
  ...adapters.flatMap(({ invocation }) => invocation.childMark ?? []),
]);

/** Acting needs the process table: where it cannot be read, nothing is done. */
export async function lookAround(env: Environment): Promise<Surroundings> {
  let whole: ProcessTable | null = null;
  const evidence = await observe({
    adapters,
    env,
    processes: (wish) => {
      const table = readProcesses(withMarks(wish));
      if (!table.ok) return table;
      whole = table.value;
      // The sessions are derived from what every other command sees, and nothing more.
      return { ok: true, value: { ...table.value, rows: table.value.rows.map((row) => asWished(row, wish)) } };
    },
  });
  return { list: deriveSessions(evidence, adapters), table: whole ?? unreadable() };
}

const withMarks = (wish: ProcessWish): ProcessWish => ({
  ...wish,
  environment: new Set([...wish.environment, ...marks]),
  also: "ours",
});

function asWished(row: ProcessRow, wish: ProcessWish): ProcessRow {
  return wish.names.has(row.name) || wish.pids.has(row.identity.pid) ? row : { ...row, detail: null };
}

function unreadable(): never {
  throw new AgentctlError("cannot-tell", "the process table cannot be read: nothing was done", {
    hint: "agentctl doctor says why",
  });
}
