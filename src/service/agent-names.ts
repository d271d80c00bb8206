// The names of agents and permissions, for front doors.
import { type Permission, permissions } from "../agents/invocation.ts";
import { adapterNamed, adapters } from "../agents/registry.ts";

export const permissionNames: readonly Permission[] = permissions;

export const agentNames: readonly string[] = adapters.map(({ agent }) => agent);

/** The agent with this name or alias; null: there is none. */
export const agentNamed = (name: string): string | null => adapterNamed(name)?.agent ?? null;

export const noAgentText = (name: string): string => `no agent is called ${name} (known: ${agentNames.join(", ")})`;
