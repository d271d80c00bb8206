// How Copilot is started, continued and ended. What was seen of it stands in copilot.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsOf, uuidIn } from "./fields.ts";
import type { Invocation, Order } from "./invocation.ts";

export const copilotInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`--output-format=json ${sessionWords(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  interface: (order) =>
    order.kind === "fork" ? null : argv`${sessionWords(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  // "true" in the caller's environment would let it do everything, whatever the flags say.
  environment: { COPILOT_ALLOW_ALL: "false" },
  environmentFor: (home) => ({ COPILOT_HOME: home }),
  scrubbed: /^COPILOT_(AGENT_SESSION_ID|CLI|LOADER_PID|CLI_BINARY_VERSION|CLI_RESOLVED_DIST_DIR)$/,
  childMark: "COPILOT_AGENT_SESSION_ID",
  // Only in its last line.
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "result" ? uuidIn(fields, "sessionId") : null;
  },
  permissions: {
    read: {
      flags: argv`--deny-tool=write --deny-tool=shell`,
      meaning: "it reads below its directory; edits and commands are denied",
    },
    edit: {
      flags: argv`--allow-tool=write`,
      meaning:
        "it edits below its directory and in the temporary folder; commands are denied, unless they only read or you approved them for this place before",
    },
    bypass: { flags: argv`--allow-all`, meaning: "it may do everything, and asks nobody" },
  },
  // Its settings have a mode for interfaces only; approvals that were saved for the place count.
  ownSetting: {
    files: () => [],
    judge: () => ({
      meaning:
        "it reads below its directory; edits and commands are denied, unless you approved them for this place before; --permission edit lets it edit",
      isBypass: false,
    }),
  },
  refuses: (order) => (order.kind === "fork" ? "Copilot has no way to fork a session from the command line" : null),
  startFailures: [
    {
      sign: /No authentication information found/,
      message: "Copilot is not logged in",
      hint: "copilot login; or COPILOT_PROVIDER_BASE_URL for a model of your own (copilot help providers)",
    },
    {
      sign: /No session, task, or name matched/,
      message: "Copilot finds no such session",
      hint: "COPILOT_HOME names its data folder",
    },
    {
      sign: /Invalid command format|error: unexpected argument|error: invalid value/,
      message: "Copilot does not know an argument",
      hint: "copilot --help; another version of it may know other ones",
    },
  ],
  // Both end it cleanly, with its tools; busy machines have taken 4 s.
  stopSignals: [
    { signal: "SIGTERM", patienceMs: 8_000 },
    { signal: "SIGINT", patienceMs: 2_000 },
  ],
  ownStop: () => null,
  // Esc must be pressed twice, and not too fast. SIGINT ends an interface.
  interrupt: () => ({ keys: "C-c" }),
};

/** `--session-id` would begin a new session where there is no old one. */
const sessionWords = (order: Order): Argv => {
  if (order.kind === "new") return order.session === null ? noWords : argv`--session-id=${order.session}`;
  return argv`--resume=${order.kind === "continue" ? order.session : order.from}`;
};

function commonFlags({ model, permission }: Order): Argv {
  const flags = permission === null ? noWords : copilotInvocation.permissions[permission].flags;
  return argv`${model === null ? noWords : argv`--model=${model}`} ${flags}`;
}
