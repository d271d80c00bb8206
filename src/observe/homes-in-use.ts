// The data folders that one observation reads: those of the environment and the settings, and those that live processes name.
import type { Adapter } from "../agents/adapter.ts";
import { realHome } from "./homes.ts";
import { storeKey } from "./open-records.ts";

export interface HomeInUse {
  adapter: Adapter;
  /** The real path. */
  home: string;
  /** All paths of the same folder. */
  names: Set<string>;
  /** The confinements of the processes that name it; null: an unconfined process, the environment or the settings name it. */
  namedIn: Set<string | null>;
}

export interface HomesInUse {
  /** Each home once, by its `storeKey`. */
  byKey: Map<string, HomeInUse>;
  links: Map<string, string | null>;
  mounts: string;
}

/** Ignores relative names: they depend on the directory of the process that uses them. */
export function addHome(
  { byKey, links, mounts }: HomesInUse,
  adapter: Adapter,
  name: string,
  confinement: string | null = null,
): void {
  if (!name.startsWith("/")) return;
  const home = realHome(name, mounts, links);
  const key = storeKey({ agent: adapter.agent, home });
  const entry = byKey.get(key) ?? { adapter, home, names: new Set([home]), namedIn: new Set() };
  entry.names.add(name);
  entry.namedIn.add(confinement);
  byKey.set(key, entry);
}
