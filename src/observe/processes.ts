// The process table of this machine.
import { type Reading, unread } from "../core/problem.ts";
import type { ProcessRow, ProcessTable } from "../core/process.ts";
import { darwinSystem } from "../sys/darwin.ts";
import type { ProcessWish } from "./process-wish.ts";
import { readDarwinProcesses } from "./processes.darwin.ts";
import { readLinuxProcess, readLinuxProcesses } from "./processes.linux.ts";

export function readProcesses(wish: ProcessWish): Reading<ProcessTable> {
  if (process.platform === "linux") return readLinuxProcesses(wish);
  if (process.platform === "darwin") return readDarwinProcesses(wish, darwinSystem);
  const message = `the process table of ${process.platform} is not known to agentctl`;
  return unread({ code: "processes-unreadable", agent: null, source: process.platform, message });
}

/** One process as it is this moment, for whoever is about to signal it; null: gone. Throws where it cannot be told. */
export function readProcess(
  pid: number,
  details: "with details" | "without details" = "without details",
): ProcessRow | null {
  if (process.platform === "linux") return readLinuxProcess(pid, details);
  const pids = new Set(details === "with details" ? [pid] : []);
  const table = readProcesses({ names: new Set(), pids, environment: new Set(), lockedFiles: [] });
  if (!table.ok) throw new Error(table.problem.message);
  return table.value.rows.find((row) => row.identity.pid === pid) ?? null;
}
