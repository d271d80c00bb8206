// How Cline is started, opened and ended. What was seen of it stands in cline.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsOf, jsonIn } from "./fields.ts";
import { type Invocation, modelAndPermission, type Order, type OwnSetting, type Permission } from "./invocation.ts";

export const clineInvocation: Invocation = {
  chooseId: null,
  // It reads no prompt from stdin, whatever its messages say.
  promptBy: "argument",
  headless: (order) => argv`--json ${commonFlags(order)} ${handedOn(order.extra)} -- ${asWords(order.prompt ?? "")}`,
  support: ({ permission }, { own }) =>
    permission === null || permission === "bypass"
      ? null
      : { path: settingsFile(own, permission), text: settingsWithout(tools[permission]) },
  interface: (order) =>
    order.kind === "fork"
      ? null
      : argv`${order.kind === "continue" ? argv`--id ${order.session}` : noWords} ${commonFlags(order)} ${handedOn(order.extra)}`,
  // Without it a session would live in the hub, if there is one, and the launched process would only watch it.
  environment: { CLINE_SESSION_BACKEND_MODE: "local" },
  environmentFor: (home) => ({ CLINE_DATA_DIR: home }),
  // A hub hands its own on to what its tools start; with the first of them everything would be a hub.
  scrubbed: /^CLINE_(RUN_AS_HUB_DAEMON|NO_INTERACTIVE|BUILD_ENV|WRAPPER_PATH|HOOK_AGENT_RESUME|CONNECTOR_\w+)$/,
  childMark: null,
  announcedIn: () => null,
  // Its plan mode is no `read`: it keeps only commands with known names from writing. Nor is --auto-approve false: without an
  // interface it refuses reading as well. So the tools are taken away, by settings of ours in place of the person's.
  permissions: {
    read: {
      flags: argv`--plan --auto-approve true`,
      meaning: "it reads files and the web; its other tools are taken away",
      environment: (_env, { own }) => ({ CLINE_GLOBAL_SETTINGS_PATH: settingsFile(own, "read") }),
    },
    edit: {
      flags: argv`--auto-approve true`,
      meaning: "it edits files everywhere; commands and subagents are taken away",
      environment: (_env, { own }) => ({ CLINE_GLOBAL_SETTINGS_PATH: settingsFile(own, "edit") }),
    },
    bypass: { flags: argv`--auto-approve true`, meaning: "it edits files and runs every command" },
  },
  ownSetting: {
    files: (home) => [`${home}/settings/global-settings.json`],
    judge: judgeSettings,
  },
  refuses(order) {
    if (order.kind === "fork") return "Cline forks a session only in its own interface";
    if (order.kind === "continue" && order.prompt !== null)
      return "Cline goes on with a session only in its own interface: agentctl resume opens it";
    return null;
  },
  startFailures: [
    {
      sign: /unknown option/,
      message: "Cline does not know an argument",
      hint: "cline --help; another version of it may know other ones",
    },
  ],
  // It takes a first SIGTERM for a hint, and finishes its turn; SIGINT ends the turn, the tool and the run.
  stopSignals: [
    { signal: "SIGINT", patienceMs: 8_000 },
    { signal: "SIGTERM", patienceMs: 2_000 },
  ],
  ownStop: () => null,
  // A prompt in its arguments: a run without an interface, even in a terminal.
  interrupt: (argv, tty) =>
    tty === null || argv.slice(1).some((argument) => /\s/.test(argument)) ? { signal: "SIGINT" } : { keys: "Escape" },
};

const settingsFile = (own: string, permission: Permission): string => `${own}/cline-${permission}.json`;

const teamTools =
  "spawn_teammate shutdown_teammate status task run_task cancel_run list_runs await_runs send_message broadcast read_mailbox mission_log cleanup create_outcome attach_outcome_fragment review_outcome_fragment finalize_outcome list_outcomes";
const others = ["run_commands", "spawn_agent", "skills", ...teamTools.split(" ").map((name) => `team_${name}`)];
/** What each takes away. */
const tools = { read: [...others, "editor", "apply_patch"], edit: others };

const settingsWithout = (disabledTools: readonly string[]): string =>
  `${JSON.stringify({ telemetryOptOut: true, autoUpdateEnabled: false, disabledTools }, null, 2)}\n`;

/** One word alone it takes for a mistyped command; blanks at the end it drops. */
const asWords = (prompt: string): string => (/\s/.test(prompt) ? prompt : `${prompt} `);

const commonFlags = (order: Order): Argv => modelAndPermission(order, clineInvocation);

function judgeSettings([text]: readonly (string | null)[]): OwnSetting {
  const approves = fieldsOf(jsonIn({ text }, "text"))?.["toolAutoApprove"] !== false;
  return approves
    ? { meaning: "its own setting: it edits files and runs every command", isBypass: true }
    : { meaning: "its own setting: edits and commands are refused", isBypass: false };
}
