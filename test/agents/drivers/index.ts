// The real agents that the shared suites go through.
import type { RealAgent } from "../driver.ts";
import { claude } from "./claude.ts";
import { cline } from "./cline.ts";
import { codex } from "./codex.ts";
import { copilot } from "./copilot.ts";
import { gemini } from "./gemini.ts";
import { opencode } from "./opencode.ts";
import { pi073, pi087 } from "./pi.ts";
import { qwen } from "./qwen.ts";

export const drivers: readonly RealAgent[] = [claude, codex, pi073, pi087, opencode, copilot, gemini, qwen, cline];
