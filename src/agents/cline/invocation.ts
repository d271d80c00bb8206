// How Cline is started, opened and ended. README.md describes what was tested.
import type { OwnSetting } from "../../core/permission.ts";
import { argv, noWords } from "../argv.ts";
import { parsedFields, words } from "../fields.ts";
import { commonFlags, type Invocation, type Order, stopStep } from "../invocation.ts";

export const clineInvocation: Invocation = {
  chooseId: null,
  // Cline does not read a prompt from stdin, although its messages say so.
  promptBy: "argument",
  headless: (order) => argv`--json ${commonFlags(order, clineInvocation)} -- ${asWords(order.prompt ?? "")}`,
  support: (order) =>
    order.permission === null || order.permission === "bypass"
      ? null
      : { path: settingsFile(order), text: settingsWithout(disabled[order.permission]) },
  interface: (order) =>
    order.kind === "fork"
      ? null
      : argv`${order.kind === "continue" ? argv`--id ${order.session}` : noWords} ${commonFlags(order, clineInvocation)}`,
  // Otherwise a session would run in the hub, if there is one, and the launched process would only watch it.
  environment: { CLINE_SESSION_BACKEND_MODE: "local" },
  environmentFor: (home) => ({ CLINE_DATA_DIR: home }),
  // The tools of a hub inherit these variables. With CLINE_RUN_AS_HUB_DAEMON a new Cline would become a hub.
  scrubbed: /^CLINE_(RUN_AS_HUB_DAEMON|NO_INTERACTIVE|BUILD_ENV|WRAPPER_PATH|HOOK_AGENT_RESUME|CONNECTOR_\w+)$/,
  sessionVariable: null,
  announcedIn: () => null,
  // `--plan` alone is not enough for `read`: it blocks only commands with known names. `--auto-approve false` is too much: without an
  // interface it also denies reading. So settings of agentctl replace the person's settings and disable tools.
  permissions: {
    read: { flags: argv`--plan --auto-approve true`, effect: "reads-files-and-web", environment: ownSettings },
    edit: { flags: argv`--auto-approve true`, effect: "edits-no-commands", environment: ownSettings },
    bypass: { flags: argv`--auto-approve true`, effect: "edits-and-runs" },
  },
  ownSetting: { files: (home) => [`${home}/settings/global-settings.json`], judge: judgeSettings },
  refuses: ({ kind, prompt }) => (kind === "continue" && prompt !== null ? { code: "continues-in-interface" } : null),
  startFailures: [{ code: "unknown-argument", pattern: /unknown option/ }],
  // After a first SIGTERM Cline finishes its turn. SIGINT ends the turn, the tool and the run.
  stopSignals: [stopStep("SIGINT", 8_000), stopStep("SIGTERM", 2_000)],
  // With a prompt in its arguments it runs without an interface, even in a terminal.
  interrupt: (argv, tty) =>
    tty === null || argv.slice(1).some((argument) => /\s/.test(argument)) ? { signal: "SIGINT" } : { keys: "Escape" },
};

const settingsFile = ({ supportFolder, permission }: Order): string => `${supportFolder}/cline-${permission}.json`;

/** Of `read` and `edit`. */
function ownSettings(_env: unknown, order: Order): Record<string, string> {
  return { CLINE_GLOBAL_SETTINGS_PATH: settingsFile(order) };
}

const teamTools = words`spawn_teammate shutdown_teammate status task run_task cancel_run list_runs await_runs send_message broadcast read_mailbox mission_log cleanup create_outcome attach_outcome_fragment review_outcome_fragment finalize_outcome list_outcomes`;
const executionTools = ["run_commands", "spawn_agent", "skills", ...teamTools.map((name) => `team_${name}`)];
/** The tools that each permission disables. */
const disabled = { read: [...executionTools, "editor", "apply_patch"], edit: executionTools };

const settingsWithout = (disabledTools: readonly string[]): string =>
  `${JSON.stringify({ telemetryOptOut: true, autoUpdateEnabled: false, disabledTools }, null, 2)}\n`;

/** Cline treats a single word as a mistyped command. It removes blanks at the end of a prompt. */
const asWords = (prompt: string): string => (/\s/.test(prompt) ? prompt : `${prompt} `);

function judgeSettings([text]: readonly (string | null)[]): OwnSetting {
  const isBypass = parsedFields(text ?? null)?.["toolAutoApprove"] !== false;
  return { mode: null, effect: isBypass ? "edits-and-runs" : "denies-changes", isBypass };
}
