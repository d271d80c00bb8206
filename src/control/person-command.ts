// A person's shell command that we wait for (a setup, a check). Where nobody wants it any more, it ends with everything that
// it started.
import { isLive, type ProcessIdentity, type ProcessRow, sameProcess } from "../core/process.ts";
import type { Environment } from "../observe/homes.ts";
import { readProcess, readProcesses } from "../observe/processes.ts";
import { type ShellEnd, spawnShell } from "../sys/spawn.ts";
import { endProcesses } from "./end.ts";
import { unmarked } from "./environment.ts";

/** By it what left the command's kernel session is found. Agents that it launches do not inherit it. */
const markKey = "AGENTCTL_TAG_COMMAND";

export async function runForPerson(
  command: string,
  { cwd, env, interrupted }: { cwd: string; env: Environment; interrupted: Promise<never> },
): Promise<ShellEnd> {
  const mark = crypto.randomUUID();
  const shell = spawnShell(command, { cwd, env: { ...unmarked(env), PWD: cwd, [markKey]: mark } });
  const leader = readProcess(shell.pid)?.identity ?? null;
  try {
    return await Promise.race([shell.ended, interrupted]);
  } catch (error) {
    await endAll(shell.pid, leader, mark);
    throw error;
  }
}

const mostRounds = 5;
const graceMs = 2_000;

/** Whoever is of it now, and whoever they start meanwhile. */
async function endAll(session: number, leader: ProcessIdentity | null, mark: string): Promise<void> {
  const wish = { names: new Set<string>(), pids: new Set<number>(), environment: new Set([markKey]), lockedFiles: [] };
  for (let round = 0; round < mostRounds; round += 1) {
    const table = readProcesses({ ...wish, also: "ours" });
    const found = table.ok ? startedBy(session, leader, mark, table.value.rows.filter(isLive)) : [];
    if (found.length === 0) return;
    const gently = round === 0 ? [{ signal: "SIGTERM", patienceMs: graceMs } as const] : [];
    const steps = [...gently, { signal: "SIGKILL", patienceMs: graceMs } as const];
    await endProcesses(found.map(({ identity }) => ({ process: identity, steps })));
  }
}

function startedBy(
  session: number,
  leader: ProcessIdentity | null,
  mark: string,
  rows: readonly ProcessRow[],
): ProcessRow[] {
  // The number of a kernel session is not used again while somebody is in it.
  const holder = rows.find(({ identity }) => identity.pid === session);
  const isStill = holder === undefined || (leader !== null && sameProcess(holder.identity, leader));
  const found = rows.filter(
    (row) => row.detail?.env?.[markKey] === mark || (isStill && row.session === session && leader !== null),
  );
  for (const each of found)
    for (const row of rows)
      if (row.parent === each.identity.pid && row.startedAt >= each.startedAt && !found.includes(row)) found.push(row);
  return found;
}

/** What became of it, where it was not well. */
export const shellWord = ({ status, signal }: Pick<ShellEnd, "status" | "signal">): string =>
  status === null ? `killed (${signal ?? "by a signal"})` : `failed (exit status ${status})`;
