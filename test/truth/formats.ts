// Every format that the harness plays.
import type { Format } from "./format.ts";
import { claudeFormat } from "./format-claude.ts";
import { codexFormat } from "./format-codex.ts";
import { demoFormat } from "./format-demo.ts";

export const formats: readonly Format[] = [demoFormat, claudeFormat, codexFormat];
