// The processes above a process, nearest first.

import type { ProcessIdentity, ProcessRow } from "../core/process.ts";
import { readProcess, readProcesses } from "./processes.ts";

/** The processes above us. Used to answer "which session am I in?". */
export function ownAncestors(): ProcessIdentity[] {
  const table = readProcesses({ names: new Set(), pids: new Set(), environment: new Set(), lockedFiles: [] });
  if (!table.ok) return [];
  const byPid = new Map(table.value.rows.map((row) => [row.identity.pid, row]));
  const above: ProcessIdentity[] = [];
  for (
    let row = byPid.get(process.ppid);
    row !== undefined && !above.includes(row.identity);
    row = byPid.get(row.parent)
  )
    above.push(row.identity);
  return above;
}

/** As far up as they can be read. One that is younger than the process below it has only got the number of its parent. */
export function ancestorsOf(row: ProcessRow): ProcessRow[] {
  const above: ProcessRow[] = [];
  for (let at = parentOf(row); at !== null && above.length < deepest; at = parentOf(at)) above.push(at);
  return above;
}

const deepest = 1_000;

function parentOf({ parent, identity }: ProcessRow): ProcessRow | null {
  if (parent <= 0) return null;
  try {
    const row = readProcess(parent);
    return row !== null && Number(row.identity.start) <= Number(identity.start) ? row : null;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return null;
  }
}
