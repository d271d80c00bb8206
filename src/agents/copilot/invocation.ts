// How Copilot is started, continued and ended. README.md describes what was tested.
import { type Argv, argv, handedOn, noWords } from "../argv.ts";
import { type Invocation, type Order, stopStep, uuidInLine } from "../invocation.ts";

export const copilotInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`--output-format=json ${sessionWords(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  interface: (order) =>
    order.kind === "fork" ? null : argv`${sessionWords(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  // "true" in the caller's environment would allow everything, in spite of the flags.
  environment: { COPILOT_ALLOW_ALL: "false" },
  environmentFor: (home) => ({ COPILOT_HOME: home }),
  scrubbed: /^COPILOT_(AGENT_SESSION_ID|CLI|LOADER_PID|CLI_BINARY_VERSION|CLI_RESOLVED_DIST_DIR)$/,
  sessionVariable: "COPILOT_AGENT_SESSION_ID",
  // Only the last line of the output has the id.
  announcedIn: (line) => uuidInLine(line, "result", "sessionId"),
  permissions: {
    read: { flags: argv`--deny-tool=write --deny-tool=shell`, effect: "reads-below" },
    edit: { flags: argv`--allow-tool=write`, effect: "edits-approved-commands" },
    bypass: { flags: argv`--allow-all`, effect: "everything" },
  },
  // The mode in its settings applies only to interfaces. Approvals that were saved for the directory also apply without an interface.
  ownSetting: { files: () => [], judge: () => ({ mode: null, effect: "approved-only", isBypass: false }) },
  startFailures: [
    {
      code: "not-logged-in",
      pattern: /No authentication information found/,
      command: "run copilot login",
      variable: "COPILOT_PROVIDER_BASE_URL",
    },
    { code: "no-such-session", pattern: /No session, task, or name matched/, variable: "COPILOT_HOME" },
    { code: "unknown-argument", pattern: /Invalid command format|error: unexpected argument|error: invalid value/ },
  ],
  // Both signals end Copilot and its tools cleanly. On a busy host that took 4 s.
  stopSignals: [stopStep("SIGTERM", 8_000), stopStep("SIGINT", 2_000)],
  // Ctrl-C interrupts the turn. Esc would have to be pressed twice, and not too fast. SIGINT would end an interface.
  interrupt: () => ({ keys: "C-c" }),
};

/** An old session needs `--resume`: `--session-id` would begin a new session if the old one is missing. */
const sessionWords = (order: Order): Argv => {
  if (order.kind === "new") return order.session === null ? noWords : argv`--session-id=${order.session}`;
  return argv`--resume=${order.kind === "continue" ? order.session : order.from}`;
};

function commonFlags({ model, permission }: Order): Argv {
  const flags = permission === null ? noWords : copilotInvocation.permissions[permission].flags;
  return argv`${model === null ? noWords : argv`--model=${model}`} ${flags}`;
}
