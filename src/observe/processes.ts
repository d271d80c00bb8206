// Reads the process table of this host.
import { type ProblemDetail, type Reading, unread } from "../core/problem.ts";
import type { ProcessRow, ProcessTable } from "../core/process.ts";
import { darwinSystem } from "../sys/darwin.ts";
import { DetailError } from "./failure.ts";
import type { ProcessQuery } from "./process-query.ts";
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
  const table = readProcesses({ names: new Set(), pids, environment: new Set(), lockedFiles: [] });
  if (!table.ok) throw new DetailError(table.problem.detail);
  return table.value.rows.find((row) => row.identity.pid === pid) ?? null;
}
