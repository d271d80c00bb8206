// The hooks of launches, for those who start agents and those who come later. A kernel lock of each launch says whose turn it
// is: the launcher's until the session has begun, then that of whoever runs on-start, then that of whoever runs on-exit.
// A runner that is killed loses the lock with its life, and the next one takes it.
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { adapterNamed } from "../adapters/registry.ts";
import { failureText } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { tryLock } from "../sys/file-lock.ts";
import { selfCommand } from "../sys/self.ts";
import { spawnFree } from "../sys/spawn.ts";
import { callerEnvironment, unmarked } from "./environment.ts";
import { agentctlHome, checkOwn, type LaunchNote, launchFiles } from "./notes.ts";

/** The hidden command that runs a hook. */
export const runnerWord = "run-hook";

/** Where the lock is in a runner that got it handed. */
export const handedLock = 3;

/** What a person's command is run with: never a tag, never the mark of a session, nothing that was meant for the agent. */
export function hookEnvironment(env: Environment, { agent, home }: Pick<LaunchNote, "agent" | "home">) {
  const adapter = adapterNamed(agent);
  const plain = adapter === null ? unmarked(env) : callerEnvironment(env, adapter, home);
  return { ...plain, ...homeVariable(env) };
}

/** From another directory a relative one would lead elsewhere. */
export const homeVariable = (env: Environment): Record<string, string> =>
  env["AGENTCTL_HOME"] ? { AGENTCTL_HOME: agentctlHome(env) } : {};

/** Before the note is written: nobody else knows of this launch yet. The lock's descriptor. */
export function holdHooks(env: Environment, launch: string): number {
  const { hookLock } = launchFiles(env, launch);
  checkOwn(env, "launches");
  mkdirSync(dirname(hookLock), { recursive: true, mode: 0o700 });
  const fd = openSync(hookLock, "wx", 0o600);
  tryLock(fd);
  return fd;
}

/** The session has begun: on-start goes on with the lock. What went wrong, in words. */
export function releaseHooks(
  lock: number,
  launch: string,
  { agent, home, hooks, cwd, env }: Pick<LaunchNote, "agent" | "home" | "hooks"> & { cwd: string; env: Environment },
): string | null {
  try {
    if (hooks.start !== null)
      spawnFree([...selfCommand(), runnerWord, "start", launch, cwd], {
        env: hookEnvironment(env, { agent, home }),
        inherits: lock,
      });
    return null;
  } catch (error) {
    return `--on-start could not be run: ${failureText(error)}`;
  } finally {
    closeSync(lock);
  }
}
