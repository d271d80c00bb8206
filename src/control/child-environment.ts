// The environment of child processes: the caller's, without variables that would make the child look like a part of another
// session. Agents get additional variables, which hooks and other commands of a person do not get.
import { resolve } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { adapters } from "../agents/registry.ts";
import { type Environment, realHome } from "../observe/homes.ts";
import { mountTable } from "../observe/mounts.ts";
import { noDetails } from "../observe/process-query.ts";
import { readProcesses } from "../observe/processes.ts";

/** The holder has variables for its agent under names with this prefix, so that only the agent gets them. */
export const keptForAgent = "AGENTCTL_TAG_SET_";

/** Removes the tags of launches, and the variables by which agents mark the programs in their sessions. */
export function withoutTags(env: Environment): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(env)) {
    const isTag = key.startsWith("AGENTCTL_TAG") || adapters.some(({ invocation }) => invocation.scrubbed.test(key));
    if (value !== undefined && !isTag) kept[key] = value;
  }
  return kept;
}

/** Variables that make runtimes, loaders and shells run other code in every program. */
const runsCode =
  /^(BUN_(OPTIONS|BE_BUN|INSPECT\w*|JSC_\w+)|NODE_OPTIONS|LD_(PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_\w+|BASH_ENV|ENV)$/;

/**
 * Removes such variables if an agent set them in its session: they would run code in another agent, which may have other
 * permissions. A person's variables are also in the environment of the agent's own process, and are kept.
 */
export function withoutOwnCode(env: Environment, agentPid: number): Environment {
  const suspects = Object.keys(env).filter((name) => runsCode.test(name));
  if (suspects.length === 0) return env;
  const table = readProcesses({ ...noDetails, pids: new Set([agentPid]), environment: new Set(suspects) });
  const agent = table.ok ? table.value.rows.find(({ identity }) => identity.pid === agentPid) : undefined;
  const given = agent?.detail?.env ?? {};
  return Object.fromEntries(
    Object.entries(env).filter(([name, value]) => !runsCode.test(name) || given[name] === value),
  );
}

/** With variables that make the agent use this home, unless it would anyway. null: no such variables. */
export function callerEnvironment(env: Environment, adapter: Adapter, home: string | null): Record<string, string> {
  const kept = withoutTags(env);
  // A relative path would mean another folder in the agent's directory.
  const isThere = adapter.home(kept)?.startsWith("/") === true && ownHome(adapter, kept) === home;
  return home === null || isThere ? kept : { ...kept, ...adapter.invocation.environmentFor(home) };
}

/** The same, with the variables that the agent is always started with. */
export const agentEnvironment = (env: Environment, adapter: Adapter, home: string | null): Record<string, string> => ({
  ...callerEnvironment(env, adapter, home),
  ...adapter.invocation.environment,
});

/** The real path of the data folder that the agent would use with this environment. */
export function ownHome(adapter: Adapter, env: Readonly<Record<string, string>>): string | null {
  const home = adapter.home(env);
  return home === null ? null : realHome(resolve(home), mountTable());
}
