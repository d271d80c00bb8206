// The environment of what we start: the caller's, without what would make it look like a part of another session. An agent
// gets variables of its own besides; a person's commands never see those.
import { resolve } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { adapters } from "../adapters/registry.ts";
import { type Environment, realHome } from "../observe/homes.ts";
import { mountTable } from "../observe/mounts.ts";
import { readProcesses } from "../observe/processes.ts";

/** A variable that a holder keeps for its agent waits under a longer name, where nobody takes it for the caller's. */
export const keptForAgent = "AGENTCTL_TAG_SET_";

/** Without what makes a process look like a part of a launch or of a session. */
export function unmarked(env: Environment): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(env))
    if (
      value !== undefined &&
      !key.startsWith("AGENTCTL_TAG") &&
      !adapters.some((each) => each.invocation.scrubbed.test(key))
    )
      kept[key] = value;
  return kept;
}

/** Variables by which runtimes, loaders and shells run code of their owner's choice in every program. */
const runsCode =
  /^(BUN_(OPTIONS|BE_BUN|INSPECT\w*|JSC_\w+)|NODE_OPTIONS|LD_(PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_\w+|BASH_ENV|ENV)$/;

/**
 * Without what an agent has set inside of its session to run code in another agent, which may have other permissions. What a
 * person set is in the environment of the agent's own process, too, and stays.
 */
export function withoutOwnCode(env: Environment, agentPid: number): Environment {
  const suspects = Object.keys(env).filter((name) => runsCode.test(name));
  if (suspects.length === 0) return env;
  const wish = { names: new Set<string>(), pids: new Set([agentPid]), environment: new Set(suspects), lockedFiles: [] };
  const table = readProcesses(wish);
  const agent = table.ok ? table.value.rows.find(({ identity }) => identity.pid === agentPid) : undefined;
  const given = agent?.detail?.env ?? {};
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => !runsCode.test(name) || given[name] === value),
  );
}

/** With the variables that name this home, unless the caller's own lead there anyway; null: wherever those lead. */
export function callerEnvironment(env: Environment, adapter: Adapter, home: string | null): Record<string, string> {
  const kept = unmarked(env);
  // From the agent's own directory a relative one would lead elsewhere.
  const isThere = adapter.home(kept)?.startsWith("/") === true && ownHome(adapter, kept) === home;
  return home === null || isThere ? kept : { ...kept, ...adapter.invocation.environmentFor(home) };
}

/** The same with what the agent is always started with. */
export const agentEnvironment = (env: Environment, adapter: Adapter, home: string | null): Record<string, string> => ({
  ...callerEnvironment(env, adapter, home),
  ...adapter.invocation.environment,
});

/** The data folder that the agent would use with this environment, by its real path. */
export function ownHome(adapter: Adapter, env: Readonly<Record<string, string>>): string | null {
  const home = adapter.home(env);
  return home === null ? null : realHome(resolve(home), mountTable());
}
