// How Qwen Code is started, continued and ended. What was seen of it stands in qwen.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsIn, fieldsOf, jsonIn, lookUp, textIn } from "./fields.ts";
import { type Invocation, modelAndPermission, type Order, type OwnSetting } from "./invocation.ts";

/** A tool that is not in this list does not exist for it, whatever its settings allow. */
const readers = "read_file,list_directory,glob,grep_search,web_fetch";

export const qwenInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) =>
    argv`--output-format stream-json ${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  interface: (order) => argv`${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  // Two processes instead of three.
  environment: { QWEN_CODE_NO_RELAUNCH: "true" },
  environmentFor: (home) => ({ QWEN_HOME: home }),
  scrubbed:
    /^(QWEN_CODE|QWEN_CODE_(SESSION_ID|CLI|LAUNCHER_PID|LAUNCHER_PATH|STARTUP_VERSION|MODEL|MODEL_IDENTITY|PROJECT_DIR|RELAUNCH_ARGS|MANAGED_.*|PRIVATE_.*|PROMPT_ID|AGENT_.*))$/,
  childMark: "QWEN_CODE_SESSION_ID",
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "system" && fields["subtype"] === "init" ? textIn(fields, "session_id") : null;
  },
  permissions: {
    read: {
      flags: argv`--approval-mode default --core-tools ${readers}`,
      meaning: "it reads files and the web; no other tool is there",
    },
    edit: {
      flags: argv`--approval-mode auto-edit`,
      meaning: "it edits files, also outside of its directory; of commands it runs what its settings allow",
    },
    bypass: { flags: argv`--approval-mode yolo`, meaning: "it may do everything, and asks nobody" },
  },
  ownSetting: {
    files: (home, cwd) => ["/etc/qwen-code/settings.json", `${cwd}/.qwen/settings.json`, `${home}/settings.json`],
    judge: judgeSettings,
  },
  refuses: (order) =>
    order.kind === "fork"
      ? "Qwen Code chooses the id of a fork itself, and only its interface is asked for one: agentctl resume --fork"
      : null,
  startFailures: [
    {
      sign: /Session Id \S+ already exists/,
      message: "Qwen Code has a session of this id already",
      hint: "agentctl send goes on with it",
    },
    {
      sign: /No saved session found with ID/,
      message: "Qwen Code finds no such session in this directory",
      hint: "it keeps its sessions by directory; QWEN_HOME names its data folder",
    },
    {
      sign: /No auth type is selected|Missing API key|OPENAI_API_KEY/,
      message: "Qwen Code is not logged in",
      hint: "log in in its interface, or set OPENAI_API_KEY",
    },
    {
      sign: /^Unknown arguments?:/m,
      message: "Qwen Code does not know an argument",
      hint: "qwen --help; another version of it may know other ones",
    },
  ],
  // SIGINT and SIGTERM end it in 0.3 s, and its tool; it records that.
  stopSignals: [
    { signal: "SIGINT", patienceMs: 5_000 },
    { signal: "SIGTERM", patienceMs: 5_000 },
  ],
  ownStop: () => null,
  // SIGINT ends an interface.
  interrupt: (_argv, tty) => (tty === null ? { signal: "SIGINT" } : { keys: "Escape" }),
};

const sessionFlags = (order: Order): Argv => {
  if (order.kind === "fork") return argv`--resume ${order.from} --fork-session`;
  if (order.kind === "continue") return argv`--resume ${order.session}`;
  return order.session === null ? noWords : argv`--session-id ${order.session}`;
};

const commonFlags = (order: Order): Argv => modelAndPermission(order, qwenInvocation);

/** The first one wins; without any it is `auto`. */
function judgeSettings(texts: readonly (string | null)[]): OwnSetting {
  const modes = texts.map((text) => {
    const settings = fieldsOf(jsonIn({ text }, "text")) ?? {};
    return textIn(fieldsIn(settings, "tools"), "approvalMode") ?? textIn(settings, "approvalMode");
  });
  const mode = modes.find((each) => each !== null) ?? "auto";
  const denied = "edits and commands that its settings do not allow are denied; --permission edit lets it edit";
  const means: Record<string, string> = {
    default: denied,
    auto: `without an interface, ${denied}; a model decides about its other tool calls`,
    plan: "it only reads and plans; --permission edit lets it edit",
    "auto-edit": "it edits files; commands that its settings do not allow are denied",
    yolo: "it may do everything, and asks nobody",
  };
  const meaning = `its own mode "${mode}": ${lookUp(means, mode) ?? "see its settings"}`;
  return { meaning, isBypass: mode === "yolo" };
}
