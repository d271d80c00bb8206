// How Claude Code is started, continued and ended. README.md describes what was tested.
import type { OwnSetting, PermissionEffect } from "../../core/permission.ts";
import { type Argv, argv } from "../argv.ts";
import { fieldsIn, lookUp, textIn } from "../fields.ts";
import { commonFlags, type Invocation, modeIn, type Order, sessionFlags, stopStep } from "../invocation.ts";

export const claudeInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`-p ${sessionWords(order)} ${commonFlags(order, claudeInvocation)}`,
  interface: (order) => argv`${sessionWords(order)} ${commonFlags(order, claudeInvocation)}`,
  environmentFor: (home) => ({ CLAUDE_CONFIG_DIR: home }),
  scrubbed:
    /^(CLAUDECODE|CLAUDE_CODE_(CHILD_SESSION|SESSION_ID|SESSION_ATTENDED|HOST_SHORT_TEMP_DIRS|ENTRYPOINT|EXECPATH|SSE_PORT|MESSAGING_(SOCKET|TOKEN))|CLAUDE_PID|CLAUDE_EFFORT|CLAUDE_JOB_DIR|CLAUDE_BG_.*|AI_AGENT)$/,
  sessionVariable: "CLAUDE_CODE_SESSION_ID",
  announcedIn: () => null,
  permissions: {
    read: {
      // Not `plan`: in that mode 2.1.197 runs commands that the settings allow, and 2.1.325 runs commands that pass its own check.
      // `=` is needed: otherwise the list would continue with the next argument.
      flags: argv`--permission-mode dontAsk --tools=Read,Glob,Grep,WebFetch,WebSearch,Agent`,
      effect: "reads-below",
    },
    edit: { flags: argv`--permission-mode acceptEdits`, effect: "edits-below-simple-commands" },
    bypass: { flags: argv`--dangerously-skip-permissions`, effect: "everything" },
  },
  ownSetting: {
    files: (home, cwd) => [
      `${cwd}/.claude/settings.local.json`,
      `${cwd}/.claude/settings.json`,
      `${home}/settings.json`,
    ],
    judge: judgeSettings,
  },
  // Claude Code accepts only the value 1, not "true".
  refuses: ({ permission }, { isRoot, env }) =>
    permission === "bypass" && isRoot && env["IS_SANDBOX"] !== "1" && env["CLAUDE_CODE_BUBBLEWRAP"] !== "1"
      ? { code: "bypass-as-root", variable: "IS_SANDBOX=1" }
      : null,
  startFailures: [
    // `"defaultMode": "bypassPermissions"` in its settings has the same result.
    { code: "bypass-as-root", pattern: /cannot be used with root\/sudo privileges/, variable: "IS_SANDBOX=1" },
    { code: "no-such-session", pattern: /No conversation found with session ID/, isByDirectory: true },
    {
      code: "not-logged-in",
      pattern: /Not logged in|Invalid API key/,
      command: "start claude and use /login",
      variable: "ANTHROPIC_API_KEY",
    },
    { code: "unknown-argument", pattern: /error: (unknown option|option .* is invalid)/ },
  ],
  // Each signal ends Claude Code within 0.3 s. SIGINT also ends the running tool, except in 2.1.197's interface.
  stopSignals: [stopStep("SIGINT", 5_000), stopStep("SIGTERM", 5_000)],
  // `claude stop` accepts the short id of a job, not the id of its session.
  ownStop: (job) => argv`stop ${job}`,
  // SIGINT would end an interface, also during a turn.
  interrupt: (argv) => (argv.includes("-p") || argv.includes("--print") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

const sessionWords = (order: Order): Argv =>
  sessionFlags(order, (from, chosen) => argv`--resume ${from} --fork-session ${chosen}`);

/** The most specific settings win. */
function judgeSettings(texts: readonly (string | null)[]): OwnSetting {
  const mode = modeIn(texts, (settings) => textIn(fieldsIn(settings, "permissions"), "defaultMode")) ?? "default";
  return { mode, effect: lookUp(effects, mode) ?? null, isBypass: mode === "bypassPermissions" };
}

const effects: Readonly<Record<string, PermissionEffect>> = {
  default: "denies-changes",
  manual: "denies-changes",
  dontAsk: "denies-changes",
  acceptEdits: "edits-below-allowed-commands",
  plan: "plans-only",
  auto: "edits-below-checked-commands",
  bypassPermissions: "everything-not-as-root",
};
