// All formats that the harness simulates.
import type { Format } from "./format.ts";
import { claudeFormat } from "./format-claude.ts";
import { clineFormat } from "./format-cline.ts";
import { codexFormat } from "./format-codex.ts";
import { copilotFormat } from "./format-copilot.ts";
import { demoFormat } from "./format-demo.ts";
import { geminiFormat } from "./format-gemini.ts";
import { openclawFormat } from "./format-openclaw.ts";
import { opencodeFormat } from "./format-opencode.ts";
import { piFormat } from "./format-pi.ts";
import { qwenFormat } from "./format-qwen.ts";

export const formats: readonly Format[] = [
  demoFormat,
  claudeFormat,
  codexFormat,
  piFormat,
  opencodeFormat,
  copilotFormat,
  geminiFormat,
  qwenFormat,
  clineFormat,
  openclawFormat,
];
