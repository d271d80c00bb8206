// How OpenCode is started, continued and ended. What was seen of it stands in opencode.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, textIn } from "./fields.ts";
import { type Invocation, modelAndPermission, type Order } from "./invocation.ts";
import { isSessionId } from "./opencode-server.ts";

/**
 * Its settings allow everything, and its flags only widen that. What may be done less stands in an agent of our own, which
 * no setting of a person reaches. A subagent has its own permissions: so these have none.
 */
const looking = {
  "*": "deny",
  read: { "*": "allow", "*.env": "deny", "*.env.*": "deny", "*.env.example": "allow" },
  ...{ grep: "allow", glob: "allow", list: "allow", lsp: "allow", skill: "allow" },
  ...{ webfetch: "allow", websearch: "allow", todowrite: "allow" },
};
const ownAgents = {
  "agentctl-read": { mode: "primary", description: "reads, changes nothing", permission: looking },
  "agentctl-edit": {
    mode: "primary",
    description: "edits files, runs nothing",
    permission: { ...looking, edit: "allow" },
  },
};

const settingsKey = "OPENCODE_CONFIG_CONTENT";

/** The settings that the caller hands over in its environment, and our agents. */
function withOwnAgents(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const settings = settingsIn(env) ?? {};
  return { [settingsKey]: JSON.stringify({ ...settings, agent: { ...fieldsIn(settings, "agent"), ...ownAgents } }) };
}

/** null: there are some, with comments or broken, to which nothing can be added. */
function settingsIn(env: Readonly<Record<string, string | undefined>>): Fields | null {
  return env[settingsKey] ? fieldsOf(jsonIn(env, settingsKey)) : {};
}

export const opencodeInvocation: Invocation = {
  chooseId,
  promptBy: "stdin",
  headless: (order) => argv`run --format json ${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  prepare: (session, order, { cwd, at }) =>
    order.kind === "new"
      ? {
          kind: "command",
          text: newSession(session, cwd, at),
          arguments: (file) => argv`import ${file}`,
          undo: argv`session delete ${session}`,
        }
      : null,
  interface: (order) => argv`${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  environmentFor: (home) =>
    home.endsWith("/opencode")
      ? { XDG_DATA_HOME: home.slice(0, -"/opencode".length), OPENCODE_DB: "" }
      : { OPENCODE_DB: `${home}/opencode.db` },
  scrubbed: /^OPENCODE(_PID|_CLIENT|_PROCESS_ROLE|_RUN_ID)?$/,
  // Its tools know its pid, not its session.
  childMark: null,
  announcedIn(line) {
    const id = textIn(fieldsOf(line) ?? {}, "sessionID");
    return id !== null && isSessionId(id) ? id : null;
  },
  // Of a prompt that never reached a model nothing else tells.
  endedIn: (line) => (fieldsOf(line)?.["type"] === "error" ? "failed" : null),
  permissions: {
    read: {
      flags: argv`--agent agentctl-read`,
      environment: withOwnAgents,
      meaning: "it reads and searches below its directory and in the web; no edits, no commands, no subagents",
    },
    edit: {
      flags: argv`--agent agentctl-edit`,
      environment: withOwnAgents,
      meaning: "it edits below its directory; no commands, no subagents",
    },
    bypass: { flags: argv`--auto`, meaning: "it may do everything that its settings do not deny, and asks nobody" },
  },
  ownSetting: {
    files: () => [],
    judge: () => ({
      meaning:
        "its settings decide; without any it edits and runs commands, and is refused only what leads out of its directory",
      isBypass: true,
    }),
  },
  refuses: ({ permission }, { env }) =>
    (permission === "read" || permission === "edit") && settingsIn(env) === null
      ? `${settingsKey} is no plain JSON: the rules of --permission ${permission} cannot be added to it`
      : null,
  startFailures: [
    {
      sign: /Session not found/,
      message: "OpenCode finds no such session",
      hint: "another release channel of it may keep a database of its own; XDG_DATA_HOME and OPENCODE_DB name its data",
    },
    {
      sign: /ProviderModelNotFoundError|Model not found/,
      message: "OpenCode does not know the model",
      hint: "opencode models lists them: PROVIDER/MODEL",
    },
    {
      // It answers with its help, without a word about which.
      sign: /auto-approve permissions that are not explicitly denied/,
      message: "OpenCode does not know an argument",
      hint: "opencode run --help; another version of it may know other ones",
    },
    {
      sign: /database is locked/,
      message: "another program had OpenCode's database just when it started",
      hint: "try again",
    },
    {
      sign: /Configuration is invalid|ConfigInvalidError|ConfigJsonError|is not valid JSON/,
      message: "OpenCode cannot read its settings",
      hint: "repair the file that it names",
    },
  ],
  // An interface ends its turn and its tool first, and gives itself 5 s for that; `run` dies of every signal at once.
  stopSignals: [{ signal: "SIGTERM", patienceMs: 10_000 }],
  ownStop: () => null,
  interrupt: (argv) => (argv.includes("run") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

/** 12 digits that fall with time, as in its own ids: its lists show the newest first. */
function chooseId(uuid: string, at: number): string {
  const time = BigInt.asUintN(48, ~(BigInt(at) * 0x1000n));
  const random = BigInt(`0x${uuid.replaceAll("-", "")}`);
  return `ses_${time.toString(16).padStart(12, "0")}${inLetters(random).slice(-14).padStart(14, "0")}`;
}

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

function inLetters(value: bigint): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = `${letters[Number(rest % 62n)]}${text}`;
  return text;
}

/** What `run` forbids in the sessions that it makes itself: nobody is there to answer. */
const unasked = ["question", "plan_enter", "plan_exit"].map((permission) => ({
  permission,
  pattern: "*",
  action: "deny",
}));

/** A title of this shape is one that it replaces after the first prompt. Project and directory it fills in itself. */
function newSession(id: string, directory: string, at: number): string {
  const title = `New session - ${new Date(at).toISOString()}`;
  const time = { created: at, updated: at };
  const info = {
    id,
    slug: "agentctl",
    projectID: "global",
    directory,
    title,
    version: "agentctl",
    permission: unasked,
    time,
  };
  return JSON.stringify({ info, messages: [] });
}

function sessionFlags(order: Order): Argv {
  if (order.kind === "fork") return argv`--session ${order.from} --fork`;
  return order.session === null ? noWords : argv`--session ${order.session}`;
}

const commonFlags = (order: Order): Argv => modelAndPermission(order, opencodeInvocation);
