// Runs a person's shell command (a setup, a check) and waits for it. If it is aborted, it ends with everything that it
// started.
import { isLive, type ProcessIdentity, sameProcess } from "../core/process.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Environment } from "../observe/homes.ts";
import { noDetails } from "../observe/process-query.ts";
import { readProcess, readProcesses } from "../observe/processes.ts";
import { type ShellEnd, spawnShell } from "../sys/spawn.ts";
import { withoutTags } from "./child-environment.ts";
import { endInRounds } from "./end-processes.ts";

/** Finds descendants that left the command's kernel session. Agents that the command launches do not inherit it. */
const tagName = "AGENTCTL_TAG_COMMAND";

export async function runShellCommand(
  command: string,
  { cwd, env, signal }: { cwd: string; env: Environment; signal: AbortSignal },
): Promise<ShellEnd> {
  const tag = crypto.randomUUID();
  const shell = spawnShell(command, { cwd, env: { ...withoutTags(env), PWD: cwd, [tagName]: tag } });
  const leader = readProcess(shell.pid)?.identity ?? null;
  try {
    return await unlessAborted(signal, shell.ended);
  } catch (error) {
    await endAll(shell.pid, leader, tag);
    throw error;
  }
}

const graceMs = 2_000;

async function endAll(session: number, leader: ProcessIdentity | null, tag: string): Promise<void> {
  await endInRounds(() => {
    const table = readProcesses({ ...noDetails, environment: new Set([tagName]), also: "ours" });
    const rows = table.ok ? table.value.rows.filter(isLive) : [];
    // The id of a kernel session is not reused while a process is in it.
    const first = rows.find(({ identity }) => identity.pid === session);
    const isStill = leader !== null && (first === undefined || sameProcess(first.identity, leader));
    const found = rows.filter((row) => row.detail?.env?.[tagName] === tag || (isStill && row.session === session));
    for (const { identity, startedAt } of found)
      for (const row of rows)
        if (row.parent === identity.pid && row.startedAt >= startedAt && !found.includes(row)) found.push(row);
    return found;
  }, graceMs);
}
