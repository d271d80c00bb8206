// How Codex is started, continued and ended. README.md describes what was tested.
import type { OwnSetting, PermissionEffect } from "../../core/permission.ts";
import { type Argv, argv, noWords } from "../argv.ts";
import { lookUp } from "../fields.ts";
import { commonFlags, type Invocation, type Order, stopStep, uuidInLine } from "../invocation.ts";

export const codexInvocation: Invocation = {
  chooseId: null,
  promptBy: "stdin",
  // Options come before `resume` and `fork`: after them 0.166.0 does not accept --sandbox.
  headless: (order) => argv`exec --json ${commonFlags(order, codexInvocation)} ${sessionWords(order)} -`,
  interface(order) {
    const id = order.kind === "fork" ? order.from : order.session;
    const command = order.kind === "fork" ? "fork" : "resume";
    return argv`${command} ${commonFlags(order, codexInvocation)} ${id === null ? noWords : argv`${id}`}`;
  },
  environmentFor: (home) => ({ CODEX_HOME: home }),
  scrubbed:
    /^CODEX_(THREAD_ID|SESSION_ID|TOOL_CALL_ID|CI|VERSION|APPLY_PATCH_PRESERVE_LINE_ENDINGS|MANAGED_.*|SANDBOX.*)$/,
  // Not CODEX_THREAD_ID: in the tools of a subagent that is the subagent's id.
  sessionVariable: "CODEX_SESSION_ID",
  announcedIn: (line) => uuidInLine(line, "thread.started", "thread_id"),
  // `exec` never asks for approval, even if approval_policy tells it to.
  permissions: {
    read: { flags: argv`--sandbox read-only`, effect: "read-only-sandbox" },
    edit: { flags: argv`--sandbox workspace-write`, effect: "workspace-sandbox" },
    bypass: { flags: argv`--dangerously-bypass-approvals-and-sandbox`, effect: "no-sandbox" },
  },
  ownSetting: { files: (home) => [`${home}/config.toml`], judge: judgeConfig },
  startFailures: [
    {
      code: "untrusted-directory",
      pattern: /not inside a trusted directory/i,
      command: "run git init",
      argument: "--skip-git-repo-check",
    },
    { code: "session-in-use", pattern: /already has an active writer/ },
    { code: "no-such-session", pattern: /no rollout found for thread id/, variable: "CODEX_HOME" },
    // More than 1,048,576 characters.
    { code: "prompt-too-long", pattern: /Input exceeds the maximum length/ },
    { code: "config-unreadable", pattern: /Error loading config\.toml/ },
    { code: "unknown-argument", pattern: /error: unexpected argument/, command: "codex exec --help" },
  ],
  // `exec` and its tool end at once. After its last answer `exec` stays for 5 s (seen without network), also after SIGINT. A
  // signal kills an interface, but not its tool, nor a turn that runs in the daemon.
  stopSignals: [stopStep("SIGINT", 8_000), stopStep("SIGTERM", 2_000)],
  // SIGINT would kill an interface.
  interrupt: (argv) => (argv.includes("exec") || argv.includes("e") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

function sessionWords(order: Order): Argv {
  if (order.kind === "new") return noWords;
  return order.kind === "continue" ? argv`resume ${order.session}` : argv`fork ${order.from}`;
}

/** Reads the mode only from the top of the file: tables (profiles, projects) come after the first `[`. */
function judgeConfig([text]: readonly (string | null)[], places: readonly string[]): OwnSetting {
  const lines = (text ?? "").split("\n").map((line) => line.trim());
  const firstTable = lines.findIndex((line) => line.startsWith("["));
  const top = firstTable === -1 ? lines : lines.slice(0, firstTable);
  const [mode] = top.flatMap((line) => /^sandbox_mode\s*=\s*["']([a-z-]+)["']/.exec(line)?.[1] ?? []);
  // 0.166.0 uses workspace-write in a directory that has any entry in [projects].
  const isNamed = places.some((place) => namesProject(text ?? "", place));
  if (mode === undefined) return { mode: null, effect: isNamed ? "edits-in-sandbox" : "cannot-edit", isBypass: false };
  return { mode, effect: lookUp(effects, mode) ?? null, isBypass: mode === "danger-full-access" };
}

/** Whether the file has a table for this project, in either kind of quotes. Ignores comments. */
function namesProject(text: string, place: string): boolean {
  const heads = [`[projects.${JSON.stringify(place)}]`, `[projects.'${place}']`];
  return text.split("\n").some((line) => heads.includes(line.replace(/#.*$/, "").trim()));
}

const effects: Readonly<Record<string, PermissionEffect>> = {
  "read-only": "cannot-edit",
  "workspace-write": "edits-in-sandbox",
  "danger-full-access": "no-sandbox",
};
