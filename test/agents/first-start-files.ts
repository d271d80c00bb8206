// What Claude Code and Codex need to find in a home before their first start.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClaudeVersion, installed, type TestHome, type TestHomeOptions } from "./test-home.ts";

/** The dummy key; Claude's first-run dialog is skipped for keys whose last 20 characters are approved. */
const dummyKey = "dummy-key-of-the-throw-away-world";

export function setUpClaude(world: TestHome, { claude = "2.1.325", trust = "given" }: TestHomeOptions = {}): void {
  mkdirSync(world.claudeHome, { recursive: true });
  world.addCommand("claude", join(installed, folderOf(claude), "bin", "claude.exe"));
  Object.assign(world.env, {
    ANTHROPIC_BASE_URL: world.model.url,
    ANTHROPIC_API_KEY: dummyKey,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    // 2.1.197's interface would clone its plugin collection from the network.
    CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
    IS_SANDBOX: "1",
  });
  writeFileSync(join(world.home, ".claude.json"), JSON.stringify(claudeFirstRun(world.cwd, trust)));
}

const folderOf = (version: ClaudeVersion): string => `claude-${version.split(".").at(-1)}`;

export function setUpCodex(world: TestHome, options: TestHomeOptions = {}): void {
  mkdirSync(world.codexHome, { recursive: true });
  world.addCommand("codex", join(installed, "codex", "bin", "codex.js"));
  writeFileSync(join(world.codexHome, "config.toml"), codexConfig(world.cwd, world.model.url, options));
}

function claudeFirstRun(cwd: string, trust: "given" | "ask"): Record<string, unknown> {
  return {
    hasCompletedOnboarding: true,
    lastOnboardingVersion: "2.1.325",
    theme: "dark",
    customApiKeyResponses: { approved: [dummyKey.slice(-20)], rejected: [] },
    bypassPermissionsModeAccepted: true,
    projects: trust === "given" ? { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } } : {},
  };
}

function codexConfig(cwd: string, url: string, options: TestHomeOptions): string {
  const trusted = options.trust === "ask" ? "" : `[projects."${cwd}"]\ntrust_level = "trusted"\n`;
  return `model = "gpt-5-codex"
model_provider = "fake"
approval_policy = "${options.codexApproval ?? "never"}"
sandbox_mode = "${options.codexApproval === "on-request" ? "workspace-write" : "danger-full-access"}"
check_for_update_on_startup = false
[features]
daemon_auto_start = ${options.codexDaemon === "shared"}
[model_providers.fake]
name = "fake"
base_url = "${url}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
${trusted}`;
}
