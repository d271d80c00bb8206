// How Claude Code is started, continued and ended. What was seen of it stands in claude-code.md.
import { fieldsIn, fieldsOf, jsonIn, textIn } from "./fields.ts";
import type { Invocation, Order } from "./invocation.ts";

export const claudeInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  headless: (order) => ["-p", ...sessionFlags(order), ...commonFlags(order), ...order.extra],
  interface: (order) => [...sessionFlags(order), ...commonFlags(order), ...order.extra],
  environmentFor: (home) => ({ CLAUDE_CONFIG_DIR: home }),
  scrubbed:
    /^(CLAUDECODE|CLAUDE_CODE_(CHILD_SESSION|SESSION_ID|ENTRYPOINT|EXECPATH|SSE_PORT)|CLAUDE_EFFORT|CLAUDE_JOB_DIR|CLAUDE_BG_.*|AI_AGENT)$/,
  childMark: "CLAUDE_CODE_SESSION_ID",
  announcedIn: () => null,
  permissions: {
    read: {
      flags: ["--permission-mode", "plan"],
      meaning: "it reads; edits and commands are denied",
    },
    edit: {
      flags: ["--permission-mode", "acceptEdits"],
      meaning: "it edits files below its directory; other commands are denied unless its settings allow them",
    },
    bypass: { flags: ["--dangerously-skip-permissions"], meaning: "it may do everything, and asks nobody" },
  },
  ownSetting: {
    files: (home, cwd) => [
      `${cwd}/.claude/settings.local.json`,
      `${cwd}/.claude/settings.json`,
      `${home}/settings.json`,
    ],
    meaning: ownMeaning,
  },
  refuses: ({ permission }, { isRoot, env }) =>
    permission === "bypass" && isRoot && !env["IS_SANDBOX"]
      ? "Claude Code refuses to skip permissions as root (it accepts IS_SANDBOX=1 inside of a sandbox)"
      : null,
  startFailures: [],
  stopSignals: [
    { signal: "SIGINT", patienceMs: 5_000 },
    { signal: "SIGTERM", patienceMs: 5_000 },
  ],
  ownStop: (job) => ["stop", job],
  ownSend: () => null,
  interrupt: (argv) => (argv.includes("-p") || argv.includes("--print") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

function sessionFlags({ kind, session, from }: Order): string[] {
  if (kind === "new") return session === null ? [] : ["--session-id", session];
  if (kind === "continue") return ["--resume", session ?? ""];
  return ["--resume", from ?? "", "--fork-session", ...(session === null ? [] : ["--session-id", session])];
}

const commonFlags = ({ model, permission }: Order): string[] => [
  ...(model === null ? [] : ["--model", model]),
  ...(permission === null ? [] : claudeInvocation.permissions[permission].flags),
];

/** The most specific settings win. */
function ownMeaning(texts: readonly (string | null)[]): string {
  const modes = texts.map((text) =>
    textIn(fieldsIn(fieldsOf(jsonIn({ text }, "text")) ?? {}, "permissions"), "defaultMode"),
  );
  const mode = modes.find((each) => each !== null) ?? "default";
  const means: Record<string, string> = {
    default:
      "with nobody to ask, edits and commands that its settings do not allow are denied; --permission edit lets it edit",
    acceptEdits: "it edits files below its directory",
    plan: "it reads and plans; --permission edit lets it edit",
    bypassPermissions: "it may do everything, and asks nobody",
  };
  return `its own mode "${mode}": ${means[mode] ?? "see its settings"}`;
}
