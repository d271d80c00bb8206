// One look for those who act: the sessions, and beside them every process of ours with the marks that it carries.
import { adapters } from "../adapters/registry.ts";
import { AgentctlError } from "../core/problem.ts";
import type { ProcessTable } from "../core/process.ts";
import type { SessionList } from "../core/session.ts";
import { displayVariables } from "../core/windows.ts";
import type { Environment } from "../observe/homes.ts";
import { observe } from "../observe/observe.ts";
import type { ProcessWish } from "../observe/process-wish.ts";
import { readProcesses } from "../observe/processes.ts";
import { noneStopped, type Wanted, wantedOr, withIds } from "../observe/wanted.ts";
import { readNotes } from "./notes.ts";

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

/** Who acts would rather wait for a busy host than not know: OpenClaw's was seen to take many seconds for an answer. */
const patienceMs = 4_000;

/**
 * Acting needs the process table: where it cannot be read, nothing is done. Of stopped sessions those are seen that were
 * launched, and those that are wanted.
 */
export async function lookAround(env: Environment, wanted: Wanted = noneStopped): Promise<Surroundings> {
  const noted = readNotes(env).notes.map(({ session }) => session);
  return await lookCloselyAround(env, wantedOr(wanted, withIds(noted)));
}

/** The same without what was launched and is over: its records are many. */
export async function lookCloselyAround(env: Environment, wanted: Wanted): Promise<Surroundings> {
  // The sessions are derived from what every other command sees: a child between fork and exec, say, is no agent.
  const { list } = await observe({
    adapters,
    env,
    wanted,
    patienceMs,
    processes: (wish) => readProcesses({ ...wish, environment: new Set([...wish.environment, ...marks]) }),
  });
  const table = readProcesses(ours);
  return { list, table: table.ok ? table.value : unreadable() };
}

const ours: ProcessWish = {
  ...{ names: new Set(), pids: new Set(), lockedFiles: [], also: "ours" },
  environment: new Set([...marks, ...displayVariables]),
};

function unreadable(): never {
  throw new AgentctlError("cannot-tell", "the process table cannot be read: nothing was done", {
    hint: "agentctl doctor says why",
  });
}
