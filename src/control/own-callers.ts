// Hidden commands are for agentctl's own processes: holders and launchers. A caller of another kind gets no more from them
// than the guard allows.
import { launchOf } from "../core/family.ts";
import { AgentctlError } from "../core/problem.ts";
import type { ProcessRow, ProcessTable } from "../core/process.ts";
import type { Environment } from "../observe/homes.ts";
import { readProcesses } from "../observe/processes.ts";
import { callerOf, guardTarget, lift, nameOf } from "./guard.ts";
import { heldIn } from "./holder.ts";
import { readNotes } from "./notes.ts";
import { lookAround, type Surroundings } from "./surroundings.ts";

/** Throws unless the launch's own holder calls, or the guard allows to end this launch. */
export async function guardLaunch(launch: string, env: Environment): Promise<void> {
  const around = await lookAround(env);
  const caller = callerOf(around, env);
  if (!caller.isGuarded || isCalledByHolder(launch, around.table)) return;
  const { notes } = readNotes(env);
  const sessions = around.list.sessions.filter(({ processes }) => processes.some((row) => launchOf(row) === launch));
  for (const session of sessions) guardTarget(session, session.id?.slice(0, 8) ?? launch, caller, around, notes);
  const launchedBy = notes.find(({ id }) => id === launch)?.launchedBy ?? null;
  if (sessions.length > 0 || caller.within.some((session) => nameOf(session) === launchedBy)) return;
  const message = `called from inside an agent's session: the launch ${launch} is not one of its own`;
  throw new AgentctlError("refused", message, { hint: lift });
}

/**
 * The holder calls from a subshell, which has the holder's arguments. Arguments can be forged, but not the kernel session of
 * the launch's processes: the holder leads it, and nobody can enter it from elsewhere.
 */
function isCalledByHolder(launch: string, { rows }: ProcessTable): boolean {
  const byPid = new Map(rows.map((row) => [row.identity.pid, row]));
  const isOfHolder = (row: ProcessRow | undefined): row is ProcessRow =>
    row !== undefined && heldIn(row.detail?.argv ?? [])?.launch === launch;
  let top: ProcessRow | null = null;
  for (let row = byPid.get(process.ppid); isOfHolder(row); row = byPid.get(row.parent)) top = row;
  if (top === null || top.session !== top.identity.pid) return false;
  const holder = top.identity.pid;
  return rows.every((row) => launchOf(row) !== launch || row.session === holder);
}

/** Whether this process may run commands: not where the guard would refuse `bypass`. */
export async function mayRunCommands(env: Environment): Promise<boolean> {
  const around = await lookWherePossible(env);
  return around === null || !callerOf(around, env).isGuarded;
}

/** Throws where an agent calls. That nobody could look is no reason not to run what is due. */
export async function refuseHooksInside(env: Environment): Promise<void> {
  const around = await lookWherePossible(env);
  if (around === null || !callerOf(around, env).isGuarded) return;
  throw new AgentctlError("refused", "called from inside an agent's session: no run-hook", { hint: lift });
}

async function lookWherePossible(env: Environment): Promise<Surroundings | null> {
  try {
    return await lookAround(env);
  } catch (error) {
    if (!(error instanceof AgentctlError)) throw error;
    return null;
  }
}

/** Throws unless the parent is a holder whose own arguments end with these words. */
export function checkHeldWith(words: readonly string[]): void {
  const pids = new Set([process.ppid]);
  const table = readProcesses({ names: new Set(), pids, environment: new Set(), lockedFiles: [] });
  const parent = table.ok ? table.value.rows.find(({ identity }) => identity.pid === process.ppid) : undefined;
  const argv = parent?.detail?.argv ?? [];
  const isSame = words.every((word, index) => argv[argv.length - words.length + index] === word);
  if (heldIn(argv) !== null && parent?.session === process.ppid && isSame) return;
  throw new AgentctlError("refused", "only the holder of a launch calls exec-agent; nothing was started");
}
