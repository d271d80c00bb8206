// Tells whether two paths name one directory, for processes that announce no session: a directory may have been moved or removed,
// or may have another name in another container.
import { statSync } from "node:fs";
import type { Adapter } from "../agents/adapter.ts";
import type { Evidence } from "../core/evidence.ts";
import { isLive, type ProcessRow } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { tryOr } from "../lib/errors.ts";
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
      const link = `/proc/${row.identity.pid}/cwd`;
      found[link] ??= identityOf(link, row.detail.cwd ?? "", mounts);
      for (const cwd of otherDirectories(row, adapter.agent, evidence)) found[cwd] ??= identityOf(cwd, cwd, mounts);
    }
  }
  return found;
}

/** The directories of records that, by their time, may belong to this process although it works elsewhere. */
const otherDirectories = (row: ProcessRow, agent: string, { stores }: Evidence): string[] =>
  stores
    .filter((store) => store.agent === agent)
    .flatMap(({ rows }) => rows)
    .flatMap(({ reading }) => (reading.ok ? [reading.value] : []))
    .filter(({ lastMessageAt, createdAt }) => (lastMessageAt ?? createdAt ?? row.startedAt) >= row.startedAt - slackMs)
    .flatMap(({ cwd }) => (cwd === null || cwd === row.detail?.cwd ? [] : [cwd]));

const slackMs = 1_000;

/** `target`: the path that decides whether reading may hang. */
function identityOf(path: string, target: string, mounts: string): string | null {
  if (!path.startsWith("/") || mayHang(target, mounts)) return null;
  const stat = tryOr(null, () => statSync(path));
  return stat === null ? null : `${stat.dev}:${stat.ino}`;
}
