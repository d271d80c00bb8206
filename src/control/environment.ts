// The environment of an agent that we start: the caller's, without what would make it look like a part of another session.
import type { Adapter } from "../adapters/adapter.ts";
import { adapters } from "../adapters/registry.ts";
import { type Environment, realHome } from "../observe/homes.ts";
import { mountTable } from "../observe/mounts.ts";

/** With the variables that name this home, unless the caller's own lead there anyway. */
export function agentEnvironment(env: Environment, adapter: Adapter, home: string): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(env))
    if (
      value !== undefined &&
      !key.startsWith("AGENTCTL_TAG") &&
      !adapters.some((each) => each.invocation.scrubbed.test(key))
    )
      kept[key] = value;
  return ownHome(adapter, kept) === home ? kept : { ...kept, ...adapter.invocation.environmentFor(home) };
}

/** The data folder that the agent would use with this environment, by its real path. */
export function ownHome(adapter: Adapter, env: Readonly<Record<string, string>>): string | null {
  const home = adapter.home(env);
  return home === null ? null : realHome(home, mountTable());
}
