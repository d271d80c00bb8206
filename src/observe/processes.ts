// Reads the processes of this host.
import { type ProblemDetail, type Reading, unread } from "../core/problem.ts";
import {
  chainIn,
  isLive,
  type ProcessIdentity,
  type ProcessRow,
  type ProcessTable,
  sameProcess,
  withAncestors,
} from "../core/process.ts";
import { isError, tryOr } from "../lib/errors.ts";
import { darwinSystem } from "../sys/darwin.ts";
import { DetailError } from "./failure.ts";
import { noDetails, type ProcessQuery } from "./process-query.ts";
import { readDarwinProcesses } from "./processes.darwin.ts";
import { readLinuxProcess, readLinuxProcesses } from "./processes.linux.ts";

export function readProcesses(query: ProcessQuery): Reading<ProcessTable> {
  const { platform } = process;
  if (platform === "linux") return readLinuxProcesses(query);
  if (platform === "darwin") return readDarwinProcesses(query, darwinSystem);
  const detail: ProblemDetail = { code: "unknown-platform", platform };
  return unread({ code: "processes-unreadable", agent: null, source: platform, detail });
}

/** Reads one process, for example before it is signalled; null: gone. Throws if it cannot be read. */
export function readProcess(
  pid: number,
  details: "with details" | "without details" = "without details",
): ProcessRow | null {
  const query = details === "with details" ? { ...noDetails, pids: new Set([pid]) } : noDetails;
  if (process.platform === "linux") return readLinuxProcess(pid, query);
  const table = readProcesses(query);
  if (!table.ok) throw new DetailError(table.problem.detail);
  return table.value.rows.find((row) => row.identity.pid === pid) ?? null;
}

/** This process and those above it, nearest first. Used to answer "which session am I in?". */
export function processesFrom(pid: number): ProcessIdentity[] {
  const table = readProcesses(noDetails);
  return table.ok ? chainIn(table.value, pid).map(({ identity }) => identity) : [];
}

/** Reads the processes above this one, nearest first, as far up as they can be read. */
export const readAncestors = (row: ProcessRow): ProcessRow[] => withAncestors(readParent(row), readParent);

/** A process that is younger than its child has only reused the pid of the parent. */
function readParent({ parent, identity }: ProcessRow): ProcessRow | null {
  const row = parent <= 0 ? null : tryOr(null, () => readProcess(parent), isError);
  return row !== null && Number(row.identity.start) <= Number(identity.start) ? row : null;
}

/** The process as it is now; null: it is dead, even if another process has its pid. */
export function readIfLive(identity: ProcessIdentity): ProcessRow | null {
  const row = readProcess(identity.pid);
  return row !== null && isLive(row) && sameProcess(row.identity, identity) ? row : null;
}
