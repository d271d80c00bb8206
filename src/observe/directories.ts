// Whether two paths are one directory. Asked only for silent processes and records that name another path: a directory may have
// been moved, removed, or be known by another name in another container.
import { statSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import type { Evidence } from "../core/evidence.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { errorCode } from "./failure.ts";
import { mayHang } from "./mounts.ts";

export function lookUpDirectories(
  evidence: Evidence,
  owners: ReadonlySet<ProcessRow>,
  adapters: readonly Adapter[],
  mounts: string,
): Record<string, string | null> {
  const found: Record<string, string | null> = {};
  const rows = evidence.processes.ok ? evidence.processes.value.rows : [];
  for (const row of rows) {
    if (row.detail === null || owners.has(row) || !isLive(row)) continue;
    for (const adapter of adapters) {
      if (roleOf(adapter, row) !== "agent") continue;
      const stands = `/proc/${row.identity.pid}/cwd`;
      found[stands] ??= identityOf(stands, row.detail.cwd ?? "", mounts);
      for (const cwd of otherDirectories(row, adapter.agent, evidence)) found[cwd] ??= identityOf(cwd, cwd, mounts);
    }
  }
  return found;
}

/** Of records that may be this process's by their time, but name another directory. */
const otherDirectories = (row: ProcessRow, agent: string, { stores }: Evidence): string[] =>
  stores
    .filter((store) => store.agent === agent)
    .flatMap(({ rows }) => rows)
    .flatMap(({ reading }) => (reading.ok ? [reading.value] : []))
    .filter(({ lastMessageAt, createdAt }) => (lastMessageAt ?? createdAt ?? row.startedAt) >= row.startedAt - slackMs)
    .flatMap(({ cwd }) => (cwd === null || cwd === row.detail?.cwd ? [] : [cwd]));

const slackMs = 1_000;

/** `really`: the path to judge the mount by; a directory on a server that may hang is not asked. */
function identityOf(path: string, really: string, mounts: string): string | null {
  if (!path.startsWith("/") || mayHang(really, mounts)) return null;
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}
