// The only list of agents.
import type { Adapter } from "./adapter.ts";
import { claudeCode } from "./claude-code.ts";
import { cline } from "./cline.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { demo } from "./demo.ts";
import { gemini } from "./gemini.ts";
import { openclaw } from "./openclaw.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";
import { qwen } from "./qwen.ts";

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
