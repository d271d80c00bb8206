// Guards the hidden commands, which only agentctl's own holders and launchers call. Other callers may do with them only what the
// guard allows anyway.

import { Failure } from "../core/failure.ts";
import { launchOf } from "../core/family.ts";
import { chainIn, type ProcessRow, type ProcessTable } from "../core/process.ts";
import type { Environment } from "../observe/homes.ts";
import { noDetails } from "../observe/process-query.ts";
import { readProcesses } from "../observe/processes.ts";
import { type Caller, guarded, guardTarget, nameOf, resolveCaller } from "./guard.ts";
import { holderIn } from "./holder.ts";
import { readNotes } from "./notes.ts";
import { takeSnapshot } from "./snapshot.ts";

/** Throws unless the caller is the launch's own holder, or may stop this launch by the guard. */
export async function guardLaunch(launch: string, from: Caller, env: Environment): Promise<void> {
  const snapshot = await takeSnapshot(env);
  const caller = resolveCaller(from, snapshot, env);
  if (!caller.isGuarded || isCalledByHolder(launch, snapshot.table)) return;
  const { notes } = readNotes(env);
  const sessions = snapshot.list.sessions.filter(({ processes }) => processes.some((row) => launchOf(row) === launch));
  for (const session of sessions) guardTarget(session, session.id?.slice(0, 8) ?? launch, caller, snapshot, notes);
  const launchedBy = notes.find(({ id }) => id === launch)?.launchedBy ?? null;
  if (sessions.length > 0 || caller.within.some((session) => nameOf(session) === launchedBy)) return;
  throw guarded("launch-of-others", launch);
}

/**
 * The holder calls from a subshell, which has the holder's arguments. A process can forge arguments, but cannot enter the kernel
 * session that the holder leads.
 */
function isCalledByHolder(launch: string, table: ProcessTable): boolean {
  const isOfHolder = (row: ProcessRow): boolean => holderIn(row.detail?.argv ?? [])?.launch === launch;
  const above = chainIn(table, process.ppid);
  const end = above.findIndex((row) => !isOfHolder(row));
  const top = (end === -1 ? above : above.slice(0, end)).at(-1);
  if (top === undefined || top.session !== top.identity.pid) return false;
  const holder = top.identity.pid;
  return table.rows.every((row) => launchOf(row) !== launch || row.session === holder);
}

/** True if the guard would allow `--permission bypass`, or if the sessions cannot be read. */
export async function mayRunCommands(caller: Caller, env: Environment): Promise<boolean> {
  try {
    return !resolveCaller(caller, await takeSnapshot(env), env).isGuarded;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return true;
  }
}

export async function refuseHooksInside(caller: Caller, env: Environment): Promise<void> {
  if (!(await mayRunCommands(caller, env))) throw guarded("command", "run-hook");
}

/** Throws unless the parent is a holder whose arguments end with these words. */
export function checkHeldWith(words: readonly string[]): void {
  const table = readProcesses({ ...noDetails, pids: new Set([process.ppid]) });
  const parent = table.ok ? table.value.rows.find(({ identity }) => identity.pid === process.ppid) : undefined;
  const argv = parent?.detail?.argv ?? [];
  const isSame = words.every((word, index) => argv[argv.length - words.length + index] === word);
  if (holderIn(argv) !== null && parent?.session === process.ppid && isSame) return;
  throw new Failure("only-for-holder", {});
}
