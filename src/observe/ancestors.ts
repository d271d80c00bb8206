// The processes above us, nearest first. Used to answer "which session am I in?".

import type { ProcessIdentity } from "../core/process.ts";
import { readProcesses } from "./processes.ts";

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
