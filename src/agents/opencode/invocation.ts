// How OpenCode is started, continued and ended. README.md describes what was tested.
import { type Argv, argv, noWords } from "../argv.ts";
import { type Fields, fieldsIn, fieldsOf, idOrNull, jsonIn, textIn } from "../fields.ts";
import { commonFlags, type Invocation, type Order, stopStep } from "../invocation.ts";
import { isSessionId } from "./server.ts";

/**
 * By default OpenCode may do everything, and its flags only allow more. So `read` and `edit` are agents of agentctl, which a
 * person's settings do not change. A subagent has its own permissions, so these agents must not start one.
 */
const readOnly = {
  "*": "deny",
  read: { "*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow" },
  ...{ grep: "allow", glob: "allow", list: "allow", lsp: "allow", skill: "allow" },
  ...{ webfetch: "allow", websearch: "allow", todowrite: "allow" },
};
const mayEdit = { ...readOnly, edit: "allow" };
const ownAgents = {
  "agentctl-read": { mode: "primary", description: "reads, changes nothing", permission: readOnly },
  "agentctl-edit": { mode: "primary", description: "edits files, runs nothing", permission: mayEdit },
};

const settingsKey = "OPENCODE_CONFIG_CONTENT";

/** The settings in the caller's environment, with the agents of agentctl added. */
function withOwnAgents(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const settings = settingsIn(env) ?? {};
  return { [settingsKey]: JSON.stringify({ ...settings, agent: { ...fieldsIn(settings, "agent"), ...ownAgents } }) };
}

/** null: the settings are not plain JSON, so nothing can be added to them. */
function settingsIn(env: Readonly<Record<string, string | undefined>>): Fields | null {
  return env[settingsKey] ? fieldsOf(jsonIn(env, settingsKey)) : {};
}

export const opencodeInvocation: Invocation = {
  chooseId,
  promptBy: "stdin",
  headless: (order) => argv`run --format json ${sessionFlags(order)} ${commonFlags(order, opencodeInvocation)}`,
  prepare: (session, order) =>
    order.kind === "new"
      ? {
          kind: "command",
          text: newSession(session, order.cwd, order.at),
          arguments: (file) => argv`import ${file}`,
          undo: argv`session delete ${session}`,
        }
      : null,
  interface: (order) => argv`${sessionFlags(order)} ${commonFlags(order, opencodeInvocation)}`,
  environmentFor: (home) =>
    home.endsWith("/opencode")
      ? { XDG_DATA_HOME: home.slice(0, -"/opencode".length), OPENCODE_DB: "" }
      : { OPENCODE_DB: `${home}/opencode.db` },
  scrubbed: /^OPENCODE(_PID|_CLIENT|_PROCESS_ROLE|_RUN_ID)?$/,
  // OpenCode gives its tools its pid, but not its session.
  sessionVariable: null,
  announcedIn: (line) => idOrNull(textIn(fieldsOf(line) ?? {}, "sessionID"), isSessionId),
  // If a prompt never reached a model, the failure is recorded nowhere else.
  endedIn: (line) => (fieldsOf(line)?.["type"] === "error" ? "failed" : null),
  permissions: {
    read: { flags: argv`--agent agentctl-read`, environment: withOwnAgents, effect: "reads-below-and-web" },
    edit: { flags: argv`--agent agentctl-edit`, environment: withOwnAgents, effect: "edits-below-no-commands" },
    bypass: { flags: argv`--auto`, effect: "everything-not-denied" },
  },
  ownSetting: { files: () => [], judge: () => ({ mode: null, effect: "settings-decide", isBypass: true }) },
  refuses: ({ permission }, { env }) =>
    (permission === "read" || permission === "edit") && settingsIn(env) === null
      ? { code: "settings-not-json", variable: settingsKey, permission }
      : null,
  startFailures: [
    // Another release channel may keep a database of its own.
    { code: "no-such-session", pattern: /Session not found/, variable: "XDG_DATA_HOME or OPENCODE_DB" },
    { code: "unknown-model", pattern: /ProviderModelNotFoundError|Model not found/, command: "opencode models" },
    // It prints its help instead of naming the argument.
    {
      code: "unknown-argument",
      pattern: /auto-approve permissions that are not explicitly denied/,
      command: "opencode run --help",
    },
    { code: "database-locked", pattern: /database is locked/ },
    {
      code: "config-unreadable",
      pattern: /Configuration is invalid|ConfigInvalidError|ConfigJsonError|is not valid JSON/,
    },
  ],
  // An interface first ends its turn and its tool, for up to 5 s. Every signal ends `run` at once.
  stopSignals: [stopStep("SIGTERM", 10_000)],
  interrupt: (argv) => (argv.includes("run") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

/** The first 12 digits decrease with time, like those of OpenCode's own ids: its lists show the newest first. */
function chooseId(uuid: string, at: number): string {
  const time = BigInt.asUintN(48, ~(BigInt(at) * 0x1000n));
  const random = BigInt(`0x${uuid.replaceAll("-", "")}`);
  return `ses_${time.toString(16).padStart(12, "0")}${inBase62(random).slice(-14).padStart(14, "0")}`;
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

function inBase62(value: bigint): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = `${digits[Number(rest % 62n)]}${text}`;
  return text;
}

/** `run` denies these in sessions that it creates, because no person can answer. */
const deniedQuestions = ["question", "plan_enter", "plan_exit"].map((permission) => ({
  permission,
  pattern: "*",
  action: "deny",
}));

/** OpenCode replaces a title of this form after the first prompt, and sets the project and the directory itself. */
function newSession(id: string, directory: string, at: number): string {
  const title = `New session - ${new Date(at).toISOString()}`;
  const time = { created: at, updated: at };
  const own = { slug: "agentctl", projectID: "global", version: "agentctl", permission: deniedQuestions };
  return JSON.stringify({ info: { ...own, id, directory, title, time }, messages: [] });
}

function sessionFlags(order: Order): Argv {
  if (order.kind === "fork") return argv`--session ${order.from} --fork`;
  return order.session === null ? noWords : argv`--session ${order.session}`;
}
