// The agents that agentctl knows: which are installed, where their data is, what cannot be known about them.
import { existsSync } from "node:fs";
import type { Adapter } from "../agents/adapter.ts";
import { adapterNamed, adapters } from "../agents/registry.ts";
import { findBinary, installedVersion } from "../control/agent-program.ts";
import { Failure } from "../core/failure.ts";
import { type Environment, homesOf, readSettings, realHome } from "../observe/homes.ts";
import { mayHang, mountTable } from "../observe/mounts.ts";

export type AgentFacts = ReturnType<typeof factsOf>;

export const listAgents = (env: Environment): AgentFacts[] => adapters.map((adapter) => factsOf(adapter, env));

export function describeAgent(name: string, env: Environment): AgentFacts {
  const adapter = adapterNamed(name);
  if (adapter !== null) return factsOf(adapter, env);
  throw new Failure("agent-not-found", { name, agents: adapters.map(({ agent }) => agent) });
}

function factsOf(adapter: Adapter, env: Environment) {
  const { settings } = readSettings(env);
  const homes = [...new Set(homesOf(adapter, env, settings))].map((path) => ({ path, exists: isThere(path) }));
  const { read, edit, bypass } = adapter.invocation.permissions;
  return {
    agent: adapter.agent,
    title: adapter.title,
    aliases: adapter.aliases,
    binary: findBinary(adapter, env),
    install: adapter.install,
    version: installedVersion(adapter, env),
    verified: adapter.verified,
    homes,
    ties: adapter.ties,
    knows: adapter.knows,
    unknowable: adapter.unknowable,
    permissions: { read: read.effect, edit: edit.effect, bypass: bypass.effect },
  };
}

/** null: on a file system whose server may not answer; asking could hang. */
const isThere = (path: string): boolean | null =>
  mayHang(realHome(path, mountTable()), mountTable()) ? null : existsSync(path);
