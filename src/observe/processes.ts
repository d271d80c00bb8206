// Reads the process table of this host.
import { type ProblemDetail, type Reading, unread } from "../core/problem.ts";
import { isLive, type ProcessIdentity, type ProcessRow, type ProcessTable, sameProcess } from "../core/process.ts";
import { darwinSystem } from "../sys/darwin.ts";
import { DetailError } from "./failure.ts";
import { noDetails, type ProcessQuery } from "./process-query.ts";
import { readDarwinProcesses } from "./processes.darwin.ts";
import { readLinuxProcess, readLinuxProcesses } from "./processes.linux.ts";

export function readProcesses(query: ProcessQuery): Reading<ProcessTable> {
  if (process.platform === "linux") return readLinuxProcesses(query);
  if (process.platform === "darwin") return readDarwinProcesses(query, darwinSystem);
  const { platform } = process;
  const detail: ProblemDetail = { code: "unknown-platform", platform };
  return unread({ code: "processes-unreadable", agent: null, source: platform, detail });
}

/** Reads one process, for example before it is signalled; null: gone. Throws if it cannot be read. */
export function readProcess(
  pid: number,
  details: "with details" | "without details" = "without details",
): ProcessRow | null {
  if (process.platform === "linux") return readLinuxProcess(pid, details);
  const pids = new Set(details === "with details" ? [pid] : []);
  const table = readProcesses({ ...noDetails, pids });
  if (!table.ok) throw new DetailError(table.problem.detail);
  return table.value.rows.find((row) => row.identity.pid === pid) ?? null;
}

/** The process as it is now; null: it is dead, even if another process has its pid. */
export function readIfLive(identity: ProcessIdentity): ProcessRow | null {
  const row = readProcess(identity.pid);
  return row !== null && isLive(row) && sameProcess(row.identity, identity) ? row : null;
}
