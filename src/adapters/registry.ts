// The only list of agents.
import type { Adapter } from "./adapter.ts";
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { demo } from "./demo.ts";

export const adapters: readonly Adapter[] = [claudeCode, codex, demo];

export const adapterNamed = (name: string): Adapter | null =>
  adapters.find((adapter) => adapter.agent === name || adapter.aliases.includes(name)) ?? null;
