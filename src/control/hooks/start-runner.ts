// Starts the process that runs a hook: on-start when a session begins, on-exit if the holder was killed before it could start it.
// Each launch has one kernel lock, which goes from the launcher to the runner of on-start and then to the runner of on-exit. A
// runner that is killed loses the lock, and the next runner takes it.
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { adapterNamed } from "../../agents/registry.ts";
import { Failure } from "../../core/failure.ts";
import { launchOf } from "../../core/family.ts";
import type { Notice, OnNotice } from "../../core/notice.ts";
import { isLive, type ProcessRow } from "../../core/process.ts";
import { isSameSession } from "../../core/session.ts";
import { asFailure } from "../../observe/failure.ts";
import type { Environment } from "../../observe/homes.ts";
import { tryLock } from "../../sys/file-lock.ts";
import { selfCommand } from "../../sys/self.ts";
import { spawnFree } from "../../sys/spawn.ts";
import { callerEnvironment, withoutTags } from "../child-environment.ts";
import { type Caller, type ResolvedCaller, resolveCaller } from "../guard.ts";
import { holderIn } from "../holder.ts";
import { agentctlHome, checkOwn, launchFiles, type ReadNote, readHookedNotes, sessionOfNote } from "../notes.ts";
import { type Snapshot, takeSnapshot } from "../snapshot.ts";

const runnerWord = "run-hook";

/** The file descriptor of the lock in a runner that inherited it. */
export const inheritedLock = 3;

/** The environment of a hook: the caller's, without tags and without variables that are meant for the agent. */
export function hookEnvironment(env: Environment, { agent, home }: Pick<ReadNote, "agent" | "home">) {
  const adapter = adapterNamed(agent);
  const plain = adapter === null ? withoutTags(env) : callerEnvironment(env, adapter, home);
  return { ...plain, ...homeVariable(env) };
}

/** As an absolute path: the child starts in another directory. */
export const homeVariable = (env: Environment): Record<string, string> =>
  env["AGENTCTL_HOME"] ? { AGENTCTL_HOME: agentctlHome(env) } : {};

/** Takes the lock before the note is written, when no other process knows the launch. Returns the lock's descriptor. */
export function takeHookLock(env: Environment, launch: string): number {
  const { hookLock } = launchFiles(env, launch);
  checkOwn(env, "launches");
  mkdirSync(dirname(hookLock), { recursive: true, mode: 0o700 });
  const fd = openSync(hookLock, "wx", 0o600);
  tryLock(fd);
  return fd;
}

/** Called when the session has begun. Starts the runner of on-start, which inherits the lock. Returns a notice if that failed. */
export function startOnStartHook(
  lock: number,
  launch: string,
  { agent, home, hooks, cwd, env }: Pick<ReadNote, "agent" | "home" | "hooks"> & { cwd: string; env: Environment },
): Notice | null {
  try {
    if (hooks.start !== null)
      spawnFree([...selfCommand(), runnerWord, "start", launch, cwd], {
        env: hookEnvironment(env, { agent, home }),
        inherits: lock,
      });
    return null;
  } catch (error) {
    return { code: "start-hook-not-run", facts: { failure: asFailure(error) } };
  } finally {
    closeSync(lock);
  }
}

/** Looks at sessions only if a launch has an on-exit hook that has not ended. */
export async function startDueHooks(caller: Caller, env: Environment, onNotice: OnNotice): Promise<void> {
  const notes = readHookedNotes(env).filter(isExitHookOpen);
  if (notes.length === 0) return;
  try {
    const snapshot = await takeSnapshot(env);
    startDueHooksOf(notes, snapshot, resolveCaller(caller, snapshot, env), env, onNotice);
  } catch (error) {
    // The command itself has succeeded; the next one tries again.
    if (!(error instanceof Failure)) throw error;
    onNotice({ code: "hooks-postponed", facts: { failure: error } });
  }
}

/** Does nothing inside an agent's session: hooks are a person's commands, and run outside of every session. */
export function startDueHooksOf(
  notes: readonly ReadNote[],
  snapshot: Snapshot,
  caller: Pick<ResolvedCaller, "isGuarded">,
  env: Environment,
  onNotice: OnNotice,
): void {
  if (caller.isGuarded) return;
  for (const note of notes)
    try {
      if (isExitHookDue(note, snapshot))
        spawnFree([...selfCommand(), runnerWord, "late", note.id], { env: hookEnvironment(env, note), inherits: null });
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      onNotice({ code: "exit-hook-not-run", facts: { launch: note.id, failure: asFailure(error) } });
    }
}

export const isExitHookOpen = ({ hooks, hookRuns }: ReadNote): boolean =>
  hooks.exit !== null && hookRuns.exit?.state !== "ended";

/** True if the agent is proven to be gone and neither its holder nor a runner is left to run on-exit. */
export function isExitHookDue(note: ReadNote, { list, table }: Snapshot): boolean {
  const { state = "cut-off" } = note.hookRuns.exit ?? {};
  if (note.hooks.exit === null || state !== "cut-off" || table.gaps.length > 0) return false;
  const hasRunner = table.rows.some((row) => {
    const argv = row.detail?.argv ?? [];
    const isRunner = argv.includes(runnerWord) && argv.includes(note.id);
    return isLive(row) && (isRunner || holderIn(argv)?.launch === note.id);
  });
  // The holder led the kernel session of its launch and is gone. A kernel session that has a leader belongs to other processes.
  const mayBeOfLaunch = (row: ProcessRow): boolean =>
    launchOf(row) === note.id || (isUnread(row) && !table.rows.some((at) => isLive(at) && leads(at, row)));
  const hasAgent = list.sessions.some((each) =>
    each.processes.some((row) => (each.agent === note.agent ? mayBeOfLaunch(row) : launchOf(row) === note.id)),
  );
  if (hasRunner || hasAgent) return false;
  if (note.exit !== null) return true;
  const session = list.sessions.find((each) => isSameSession(each, sessionOfNote(note)));
  if (session !== undefined) return session.status.state !== "unknown";
  // There is no record: only a complete list and a complete process table prove that no process has the session.
  const isTagged = table.rows.some((row) => isLive(row) && mayBeOfLaunch(row));
  return !isTagged && list.complete && table.namespace.initial;
}

/** True if the environment could not be read, so that it is not known whether the process carries a tag. */
const isUnread = ({ detail }: ProcessRow): boolean => detail?.ours === true && detail.env === null;

const leads = ({ identity }: ProcessRow, { session }: ProcessRow): boolean => identity.pid === session;
