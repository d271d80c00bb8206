// How Claude Code is started, continued and ended. What was seen of it stands in claude-code.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsIn, fieldsOf, jsonIn, lookUp, textIn } from "./fields.ts";
import { type Invocation, modelAndPermission, type Order, type OwnSetting } from "./invocation.ts";

export const claudeInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => argv`-p ${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  interface: (order) => argv`${sessionFlags(order)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  environmentFor: (home) => ({ CLAUDE_CONFIG_DIR: home }),
  scrubbed:
    /^(CLAUDECODE|CLAUDE_CODE_(CHILD_SESSION|SESSION_ID|SESSION_ATTENDED|HOST_SHORT_TEMP_DIRS|ENTRYPOINT|EXECPATH|SSE_PORT|MESSAGING_(SOCKET|TOKEN))|CLAUDE_PID|CLAUDE_EFFORT|CLAUDE_JOB_DIR|CLAUDE_BG_.*|AI_AGENT)$/,
  childMark: "CLAUDE_CODE_SESSION_ID",
  announcedIn: () => null,
  permissions: {
    read: {
      // Not `plan`: there 2.1.197 runs commands that the settings allow, and 2.1.325 leaves commands to a check of its own.
      // With `=`, because the list would go on with the next argument.
      flags: argv`--permission-mode dontAsk --tools=Read,Glob,Grep,WebFetch,WebSearch,Agent`,
      meaning: "it reads and searches below its directory; it has no tools to edit or to run commands",
    },
    edit: {
      flags: argv`--permission-mode acceptEdits`,
      meaning:
        "it edits files and runs simple file commands below its directory; other commands are denied unless its settings allow them",
    },
    bypass: { flags: argv`--dangerously-skip-permissions`, meaning: "it may do everything, and asks nobody" },
  },
  ownSetting: {
    files: (home, cwd) => [
      `${cwd}/.claude/settings.local.json`,
      `${cwd}/.claude/settings.json`,
      `${home}/settings.json`,
    ],
    judge: judgeSettings,
  },
  // IS_SANDBOX=true does not do.
  refuses: ({ permission }, { isRoot, env }) =>
    permission === "bypass" && isRoot && env["IS_SANDBOX"] !== "1" && env["CLAUDE_CODE_BUBBLEWRAP"] !== "1"
      ? "Claude Code refuses to skip permissions as root (it accepts IS_SANDBOX=1 inside of a sandbox)"
      : null,
  startFailures: [
    {
      // Also by `"defaultMode": "bypassPermissions"` in its settings.
      sign: /cannot be used with root\/sudo privileges/,
      message: "Claude Code refuses to skip permissions as root",
      hint: "--permission edit, or another user; inside of a sandbox IS_SANDBOX=1",
    },
    {
      sign: /No conversation found with session ID/,
      message: "Claude Code finds no such conversation here",
      hint: "it looks in the directory where the conversation was held (2.1.197: only there)",
    },
    {
      sign: /Not logged in|Invalid API key/,
      message: "Claude Code is not logged in",
      hint: "start claude once and use /login, or set ANTHROPIC_API_KEY",
    },
    {
      sign: /error: (unknown option|option .* is invalid)/,
      message: "Claude Code does not know an argument",
      hint: "claude --help; another version of it may know other ones",
    },
  ],
  // Each ends it within 0.3 s. SIGINT also ends the running tool, except in 2.1.197's interface.
  stopSignals: [
    { signal: "SIGINT", patienceMs: 5_000 },
    { signal: "SIGTERM", patienceMs: 5_000 },
  ],
  // The job's short id; it does not know the session's.
  ownStop: (job) => argv`stop ${job}`,
  // SIGINT ends an interface, too, even at work.
  interrupt: (argv) => (argv.includes("-p") || argv.includes("--print") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

function sessionFlags(order: Order): Argv {
  if (order.kind === "continue") return argv`--resume ${order.session}`;
  const chosen = order.session === null ? noWords : argv`--session-id ${order.session}`;
  return order.kind === "new" ? chosen : argv`--resume ${order.from} --fork-session ${chosen}`;
}

const commonFlags = (order: Order): Argv => modelAndPermission(order, claudeInvocation);

/** The most specific settings win. */
function judgeSettings(texts: readonly (string | null)[]): OwnSetting {
  const modes = texts.map((text) =>
    textIn(fieldsIn(fieldsOf(jsonIn({ text }, "text")) ?? {}, "permissions"), "defaultMode"),
  );
  const mode = modes.find((each) => each !== null) ?? "default";
  const nobody = "with nobody to ask, edits and commands that its settings do not allow are denied";
  const means: Record<string, string> = {
    default: `${nobody}; --permission edit lets it edit`,
    manual: `${nobody}; --permission edit lets it edit`,
    dontAsk: `${nobody}; --permission edit lets it edit`,
    acceptEdits: "it edits files below its directory; other commands that its settings do not allow are denied",
    plan: "it cannot edit files; --permission edit lets it",
    auto: "it edits files below its directory, and its own safety check decides about commands",
    bypassPermissions: "it may do everything, and asks nobody; as root it refuses to start",
  };
  const meaning = `its own mode "${mode}": ${lookUp(means, mode) ?? "see its settings"}`;
  return { meaning, isBypass: mode === "bypassPermissions" };
}
