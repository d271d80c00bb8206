// How Gemini CLI is started, continued and ended. README.md describes what was tested.
import type { OwnSetting, PermissionEffect } from "../../core/permission.ts";
import { type Argv, argv, noWords } from "../argv.ts";
import { fieldsIn, fieldsOf, lookUp, textIn } from "../fields.ts";
import { commonFlags, type Invocation, modeIn, type Order, sessionFlags, stopStep } from "../invocation.ts";

/** A policy of the host makes Gemini ignore `--admin-policy`. */
const voidedBy = {
  folders: ["/etc/gemini-cli/policies", "/Library/Application Support/GeminiCli/policies"],
  name: /\.toml$/,
};

export const geminiInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) =>
    argv`--output-format stream-json ${sessionWords(order)} ${policyFlags(order)} ${commonFlags(order, geminiInvocation)}`,
  interface: (order) =>
    order.kind === "fork" ? null : argv`${sessionWords(order)} ${commonFlags(order, geminiInvocation)}`,
  support: (order) =>
    order.permission === null || order.permission === "bypass"
      ? null
      : { path: policyFile(order), text: policies[order.permission] },
  // Otherwise there are two processes: the first only starts the second, and does not forward signals.
  environment: { GEMINI_CLI_NO_RELAUNCH: "true" },
  // Gemini itself appends /.gemini.
  environmentFor: (home) => ({ GEMINI_CLI_HOME: home.replace(/\/\.gemini$/, "") }),
  scrubbed: /^GEMINI_CLI$/,
  sessionVariable: null,
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "init" ? textIn(fields, "session_id") : null;
  },
  endedIn(line) {
    const fields = fieldsOf(line);
    if (fields?.["type"] !== "result") return null;
    return lookUp({ success: "completed", error: "failed" } as const, textIn(fields, "status") ?? "") ?? null;
  },
  // The plan mode is not enough for `read`: without an interface Gemini may leave it by itself, and then do everything.
  permissions: {
    read: { flags: argv`--approval-mode default`, effect: "reads-files-and-web", voidedBy },
    edit: { flags: argv`--approval-mode auto_edit`, effect: "edits-below-allowed-commands", voidedBy },
    bypass: { flags: argv`--approval-mode yolo`, effect: "edits-below-and-runs" },
  },
  ownSetting: {
    files: (home, cwd) => ["/etc/gemini-cli/settings.json", `${cwd}/.gemini/settings.json`, `${home}/settings.json`],
    judge: judgeSettings,
  },
  startFailures: [
    {
      code: "untrusted-directory",
      pattern: /not running in a trusted directory/,
      command: "trust it in its interface",
      variable: "GEMINI_CLI_TRUST_WORKSPACE=true",
      argument: "--skip-trust",
    },
    { code: "session-exists", pattern: /already exists\. Use --resume/ },
    { code: "no-such-session", pattern: /Error resuming session/, isByDirectory: true, variable: "GEMINI_CLI_HOME" },
    {
      code: "not-logged-in",
      pattern: /(must specify|set) the GEMINI_API_KEY|Please set an Auth method/i,
      variable: "GEMINI_API_KEY",
    },
    { code: "unknown-argument", pattern: /^Unknown arguments?:/m },
  ],
  // Each signal ends Gemini within 0.1 s with exit status 0, and leaves its tool running.
  stopSignals: [stopStep("SIGTERM", 5_000)],
  // A signal would end the whole process.
  interrupt: () => ({ keys: "Escape" }),
};

const sessionWords = (order: Order): Argv => sessionFlags(order, () => noWords);

const policyFlags = (order: Order): Argv =>
  order.permission === null || order.permission === "bypass" ? noWords : argv`--admin-policy ${policyFile(order)}`;

const policyFile = ({ supportFolder, permission }: Order): string => `${supportFolder}/gemini-${permission}.toml`;

/** These rules override all other policies, also those of its settings. */
const policies = {
  read: `[[rule]]
toolName = "*"
decision = "deny"
priority = 900

[[rule]]
toolName = ["list_directory", "read_file", "read_many_files", "glob", "grep_search", "web_fetch", "google_web_search"]
decision = "allow"
priority = 950
`,
  // A session that leaves the plan mode without an interface may do everything.
  edit: `[[rule]]
toolName = ["enter_plan_mode", "exit_plan_mode"]
decision = "deny"
priority = 950
`,
};

/** The first file with a mode wins. In every mode Gemini without an interface may enter the plan mode, and leave it for yolo. */
function judgeSettings(texts: readonly (string | null)[]): OwnSetting {
  const mode = modeIn(texts, (settings) => textIn(fieldsIn(settings, "general"), "defaultApprovalMode")) ?? "default";
  return { mode, effect: lookUp(effects, mode) ?? null, isBypass: true, mayLeavePlan: true };
}

const effects: Readonly<Record<string, PermissionEffect>> = {
  default: "settings-only",
  auto_edit: "edits-below",
  plan: "plans-first",
};
