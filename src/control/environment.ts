// The environment of what we start: the caller's, without what would make it look like a part of another session. An agent
// gets variables of its own besides; a person's commands never see those.
import { resolve } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { adapters } from "../adapters/registry.ts";
import { type Environment, realHome } from "../observe/homes.ts";
import { mountTable } from "../observe/mounts.ts";

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
