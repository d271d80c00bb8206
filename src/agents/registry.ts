// The only list of agents.
import type { Adapter } from "./adapter.ts";
import { claudeCode } from "./claude-code/index.ts";
import { cline } from "./cline/index.ts";
import { codex } from "./codex/index.ts";
import { copilot } from "./copilot/index.ts";
import { demo } from "./demo/index.ts";
import { gemini } from "./gemini/index.ts";
import { openclaw } from "./openclaw/index.ts";
import { opencode } from "./opencode/index.ts";
import { pi } from "./pi/index.ts";
import { qwen } from "./qwen/index.ts";

export const adapters: readonly Adapter[] = [
  claudeCode,
  codex,
  copilot,
  openclaw,
  pi,
  opencode,
  demo,
  gemini,
  qwen,
  cline,
];

export const adapterNamed = (name: string): Adapter | null =>
  adapters.find((adapter) => adapter.agent === name || adapter.aliases.includes(name)) ?? null;
