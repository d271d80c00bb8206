// A snapshot for commands that act: the sessions, and all processes. Processes of this user have their tags.
import { adapters } from "../agents/registry.ts";
import { Failure } from "../core/failure.ts";
import type { ProcessTable } from "../core/process.ts";
import type { SessionList } from "../core/session.ts";
import { displayVariables } from "../core/windows.ts";
import type { Environment } from "../observe/homes.ts";
import { observe } from "../observe/observe.ts";
import { noDetails, type ProcessQuery } from "../observe/process-query.ts";
import { readProcesses } from "../observe/processes.ts";
import { joinSelections, liveOnly, type Selection, selectIds } from "../observe/selection.ts";
import { readNotes } from "./notes.ts";

export interface Snapshot {
  list: SessionList;
  /** Every process; those of this user with details. */
  table: ProcessTable;
}

/** Variables that tie a process to a launch or to a session. */
const tags = new Set([
  "AGENTCTL_TAG",
  "AGENTCTL_TAG_SID",
  "AGENTCTL_TAG_SESSION",
  ...adapters.flatMap(({ invocation }) => invocation.sessionVariable ?? []),
]);

/** Longer than for a list, because acting needs an answer even from a busy server: OpenClaw's may take many seconds. */
const patienceMs = 4_000;

/**
 * Throws if the process table cannot be read. Has all live sessions, and the stopped ones that are wanted or that agentctl launched.
 */
export async function takeSnapshot(env: Environment, wanted: Selection = liveOnly): Promise<Snapshot> {
  const noted = readNotes(env).notes.map(({ session }) => session);
  return await takeNarrowSnapshot(env, joinSelections(wanted, selectIds(noted)));
}

/** The same without stopped sessions that agentctl launched: there may be many. */
export async function takeNarrowSnapshot(env: Environment, wanted: Selection): Promise<Snapshot> {
  // Sessions are derived from the same table as in other commands: a child between fork and exec is not an agent.
  const { list } = await observe({
    adapters,
    env,
    selection: wanted,
    patienceMs,
    processes: (query) => readProcesses({ ...query, environment: new Set([...query.environment, ...tags]) }),
  });
  const table = readProcesses(ours);
  if (!table.ok) throw new Failure("processes-unreadable", {});
  return { list, table: table.value };
}

const ours: ProcessQuery = { ...noDetails, environment: new Set([...tags, ...displayVariables]), also: "ours" };
