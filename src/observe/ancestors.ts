// The processes above a process, nearest first.
import { chainIn, type ProcessIdentity, type ProcessRow, withAncestors } from "../core/process.ts";
import { noDetails } from "./process-query.ts";
import { readProcess, readProcesses } from "./processes.ts";

/** This process and those above it. Used to answer "which session am I in?". */
export function processesFrom(pid: number): ProcessIdentity[] {
  const table = readProcesses(noDetails);
  return table.ok ? chainIn(table.value, pid).map(({ identity }) => identity) : [];
}

/** Reads the processes above this one, as far up as they can be read. */
export const readAncestors = (row: ProcessRow): ProcessRow[] => withAncestors(readParent(row), readParent);

/** A process that is younger than its child has only reused the pid of the parent. */
function readParent({ parent, identity }: ProcessRow): ProcessRow | null {
  if (parent <= 0) return null;
  try {
    const row = readProcess(parent);
    return row !== null && Number(row.identity.start) <= Number(identity.start) ? row : null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}
