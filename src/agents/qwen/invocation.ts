// How Qwen Code is started, continued and ended. README.md describes what was tested.
import type { OwnSetting, PermissionEffect } from "../../core/permission.ts";
import { type Argv, argv } from "../argv.ts";
import { type Fields, fieldsIn, fieldsOf, lookUp, textIn } from "../fields.ts";
import { commonFlags, type Invocation, modeIn, type Order, sessionFlags, stopStep } from "../invocation.ts";

/** With `--core-tools` Qwen has only these tools, even if its settings allow others. */
const readTools = "read_file,list_directory,glob,grep_search,web_fetch";

export const qwenInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`--output-format stream-json ${sessionWords(order)} ${commonFlags(order, qwenInvocation)}`,
  interface: (order) => argv`${sessionWords(order)} ${commonFlags(order, qwenInvocation)}`,
  // Makes Qwen start two processes instead of three.
  environment: { QWEN_CODE_NO_RELAUNCH: "true" },
  environmentFor: (home) => ({ QWEN_HOME: home }),
  scrubbed:
    /^(QWEN_CODE|QWEN_CODE_(SESSION_ID|CLI|LAUNCHER_PID|LAUNCHER_PATH|STARTUP_VERSION|MODEL|MODEL_IDENTITY|PROJECT_DIR|RELAUNCH_ARGS|MANAGED_.*|PRIVATE_.*|PROMPT_ID|AGENT_.*))$/,
  sessionVariable: "QWEN_CODE_SESSION_ID",
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "system" && fields["subtype"] === "init" ? textIn(fields, "session_id") : null;
  },
  permissions: {
    read: { flags: argv`--approval-mode default --core-tools ${readTools}`, effect: "reads-files-and-web" },
    edit: { flags: argv`--approval-mode auto-edit`, effect: "edits-allowed-commands" },
    bypass: { flags: argv`--approval-mode yolo`, effect: "everything" },
  },
  ownSetting: {
    files: (home, cwd) => ["/etc/qwen-code/settings.json", `${cwd}/.qwen/settings.json`, `${home}/settings.json`],
    judge: judgeSettings,
  },
  startFailures: [
    { code: "session-exists", pattern: /Session Id \S+ already exists/ },
    { code: "no-such-session", pattern: /No saved session found with ID/, isByDirectory: true, variable: "QWEN_HOME" },
    {
      code: "not-logged-in",
      pattern: /No auth type is selected|Missing API key|OPENAI_API_KEY/,
      variable: "OPENAI_API_KEY",
    },
    { code: "unknown-argument", pattern: /^Unknown arguments?:/m },
  ],
  // SIGINT and SIGTERM end Qwen and its tool within 0.3 s. Qwen records that.
  stopSignals: [stopStep("SIGINT", 5_000), stopStep("SIGTERM", 5_000)],
  // SIGINT would end an interface.
  interrupt: (_argv, tty) => (tty === null ? { signal: "SIGINT" } : { keys: "Escape" }),
};

const sessionWords = (order: Order): Argv => sessionFlags(order, (from) => argv`--resume ${from} --fork-session`);

/** The first file with a mode wins; without one the mode is `auto`. */
function judgeSettings(texts: readonly (string | null)[]): OwnSetting {
  const find = (settings: Fields): string | null =>
    textIn(fieldsIn(settings, "tools"), "approvalMode") ?? textIn(settings, "approvalMode");
  const mode = modeIn(texts, find) ?? "auto";
  return { mode, effect: lookUp(effects, mode) ?? null, isBypass: mode === "yolo" };
}

const effects: Readonly<Record<string, PermissionEffect>> = {
  default: "denies-changes",
  auto: "model-decides",
  plan: "plans-only",
  "auto-edit": "edits-allowed-commands",
  yolo: "everything",
};
