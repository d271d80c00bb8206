// How Gemini CLI is started, continued and ended. What was seen of it stands in gemini.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsIn, fieldsOf, jsonIn, lookUp, textIn } from "./fields.ts";
import {
  type Invocation,
  modelAndPermission,
  type Order,
  type OwnSetting,
  type Permission,
  type Place,
} from "./invocation.ts";

/** Where the machine has policies of its own, it takes no other one (`--admin-policy` is ignored). */
const voidedBy = {
  folders: ["/etc/gemini-cli/policies", "/Library/Application Support/GeminiCli/policies"],
  name: /\.toml$/,
  why: "the machine has policies of its own, and takes no other one",
};

export const geminiInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order, place) =>
    argv`--output-format stream-json ${sessionFlags(order)} ${commonFlags(order)} ${policyFlags(order, place)} ${handedOn(order.extra)}`,
  interface: (order) =>
    order.kind === "fork" ? null : argv`${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  support: (order, { own }) =>
    order.permission === null || order.permission === "bypass"
      ? null
      : { path: policyFile(own, order.permission), text: policies[order.permission] },
  // One process instead of two: the first one only starts the second, and takes signals without handing them on.
  environment: { GEMINI_CLI_NO_RELAUNCH: "true" },
  // It adds the folder's name itself.
  environmentFor: (home) => ({ GEMINI_CLI_HOME: home.replace(/\/\.gemini$/, "") }),
  scrubbed: /^GEMINI_CLI$/,
  childMark: null,
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "init" ? textIn(fields, "session_id") : null;
  },
  endedIn(line) {
    const fields = fieldsOf(line);
    if (fields?.["type"] !== "result") return null;
    return lookUp({ success: "completed", error: "failed" } as const, textIn(fields, "status") ?? "") ?? null;
  },
  // Its plan mode is no `read`: without an interface it may leave it by itself, and may do everything then.
  permissions: {
    read: {
      flags: argv`--approval-mode default`,
      meaning: "it reads files and the web; a policy takes every other tool away",
      voidedBy,
    },
    edit: {
      flags: argv`--approval-mode auto_edit`,
      meaning: "it edits files below its directory; of commands it runs what its settings allow",
      voidedBy,
    },
    bypass: {
      flags: argv`--approval-mode yolo`,
      meaning: "it edits files below its directory and runs every command",
    },
  },
  ownSetting: {
    files: (home, cwd) => ["/etc/gemini-cli/settings.json", `${cwd}/.gemini/settings.json`, `${home}/settings.json`],
    judge: judgeSettings,
  },
  refuses: (order) => (order.kind === "fork" ? "Gemini CLI has no way to fork a session" : null),
  startFailures: [
    {
      sign: /not running in a trusted directory/,
      message: "Gemini CLI works only in a directory that it trusts",
      hint: "trust it in its interface, set GEMINI_CLI_TRUST_WORKSPACE=true, or hand it through: -- --skip-trust",
    },
    {
      sign: /already exists\. Use --resume/,
      message: "Gemini CLI has a session of this id already",
      hint: "agentctl send goes on with it",
    },
    {
      sign: /Error resuming session/,
      message: "Gemini CLI finds no such session in this directory",
      hint: "it keeps its sessions by directory; GEMINI_CLI_HOME names the folder of its data",
    },
    {
      sign: /(must specify|set) the GEMINI_API_KEY|Please set an Auth method/i,
      message: "Gemini CLI is not logged in",
      hint: "log in in its interface, or set GEMINI_API_KEY",
    },
    {
      sign: /^Unknown arguments?:/m,
      message: "Gemini CLI does not know an argument",
      hint: "gemini --help; another version of it may know other ones",
    },
  ],
  // Each ends it in 0.1 s with exit 0, and leaves the tool running.
  stopSignals: [{ signal: "SIGTERM", patienceMs: 5_000 }],
  ownStop: () => null,
  // Any signal ends an interface, too.
  interrupt: () => ({ keys: "Escape" }),
};

function sessionFlags(order: Order): Argv {
  if (order.kind === "continue") return argv`--resume ${order.session}`;
  return order.kind === "fork" || order.session === null ? noWords : argv`--session-id ${order.session}`;
}

const commonFlags = (order: Order): Argv => modelAndPermission(order, geminiInvocation);

const policyFlags = ({ permission }: Order, { own }: Place): Argv =>
  permission === null || permission === "bypass" ? noWords : argv`--admin-policy ${policyFile(own, permission)}`;

const policyFile = (own: string, permission: Permission): string => `${own}/gemini-${permission}.toml`;

/** Above all other policies, those of its settings included. */
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
  // Whoever leaves the plan mode without an interface may do everything.
  edit: `[[rule]]
toolName = ["enter_plan_mode", "exit_plan_mode"]
decision = "deny"
priority = 950
`,
};

/** The first one wins. Whatever they say: without an interface it may enter the plan mode, and leave it for yolo. */
function judgeSettings(texts: readonly (string | null)[]): OwnSetting {
  const modes = texts.map((text) =>
    textIn(fieldsIn(fieldsOf(jsonIn({ text }, "text")) ?? {}, "general"), "defaultApprovalMode"),
  );
  const mode = modes.find((each) => each !== null) ?? "default";
  const means: Record<string, string> = {
    default: "it edits and runs only what its settings allow; --permission edit lets it edit",
    auto_edit: "it edits files below its directory",
    plan: "it plans first",
  };
  const meaning = `its own mode "${mode}": ${lookUp(means, mode) ?? "see its settings"}`;
  return { meaning: `${meaning}; but it may plan, and then do everything`, isBypass: true };
}
