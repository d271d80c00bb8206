// How Codex is started, continued and ended. What was seen of it stands in codex.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsOf, lookUp, uuidIn } from "./fields.ts";
import { type Invocation, modelAndPermission, type Order, type OwnSetting } from "./invocation.ts";

export const codexInvocation: Invocation = {
  chooseId: null,
  promptBy: "stdin",
  // Options stand in front of `resume` and `fork`: behind them 0.166.0 knows no --sandbox.
  headless: (order) => argv`exec --json ${commonFlags(order)} ${handedOn(order.extra)} ${sessionWords(order)} -`,
  interface(order) {
    const id = order.kind === "fork" ? order.from : order.session;
    const command = order.kind === "fork" ? "fork" : "resume";
    return argv`${command} ${commonFlags(order)} ${handedOn(order.extra)} ${id === null ? noWords : argv`${id}`}`;
  },
  environmentFor: (home) => ({ CODEX_HOME: home }),
  scrubbed:
    /^CODEX_(THREAD_ID|SESSION_ID|TOOL_CALL_ID|CI|VERSION|APPLY_PATCH_PRESERVE_LINE_ENDINGS|MANAGED_.*|SANDBOX.*)$/,
  // Not CODEX_THREAD_ID: in the tools of a subagent that is the subagent's own.
  childMark: "CODEX_SESSION_ID",
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "thread.started" ? uuidIn(fields, "thread_id") : null;
  },
  // `exec` never asks, whatever approval_policy says.
  permissions: {
    read: {
      flags: argv`--sandbox read-only`,
      meaning: "a read-only sandbox: its commands can change nothing, and have no network",
    },
    edit: {
      flags: argv`--sandbox workspace-write`,
      meaning:
        "a sandbox: its commands write below its directory (not in .git) and in the temporary folder, without network",
    },
    bypass: {
      flags: argv`--dangerously-bypass-approvals-and-sandbox`,
      meaning: "no sandbox: it may do everything, and asks nobody",
    },
  },
  ownSetting: { files: (home) => [`${home}/config.toml`], judge: judgeConfig },
  refuses: () => null,
  startFailures: [
    {
      sign: /not inside a trusted directory/i,
      message: "Codex works only inside of a git repository, or in a directory that it trusts",
      hint: "git init, or hand it through: -- --skip-git-repo-check",
    },
    {
      sign: /already has an active writer/,
      message: "another process of Codex has this session",
      hint: "agentctl list shows where",
    },
    {
      sign: /no rollout found for thread id/,
      message: "Codex finds no such session",
      hint: "CODEX_HOME names its data folder",
    },
    {
      sign: /Input exceeds the maximum length/,
      message: "the prompt is longer than Codex takes (1,048,576 characters)",
      hint: "put it into a file and let Codex read that",
    },
    {
      sign: /Error loading config\.toml/,
      message: "Codex cannot read its config.toml",
      hint: "repair the line that it names",
    },
    {
      sign: /error: unexpected argument/,
      message: "Codex does not know an argument",
      hint: "codex exec --help; another version of it may know other ones",
    },
  ],
  // `exec` ends at once, and ends its tool; but after its last answer it lingers for 5 s (seen without network), SIGINT or
  // not. An interface dies of the signal itself, and a tool lives on; so does the turn that the daemon has.
  stopSignals: [
    { signal: "SIGINT", patienceMs: 8_000 },
    { signal: "SIGTERM", patienceMs: 2_000 },
  ],
  ownStop: () => null,
  // SIGINT kills an interface.
  interrupt: (argv) => (argv.includes("exec") || argv.includes("e") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

function sessionWords(order: Order): Argv {
  if (order.kind === "new") return noWords;
  return order.kind === "continue" ? argv`resume ${order.session}` : argv`fork ${order.from}`;
}

const commonFlags = (order: Order): Argv => modelAndPermission(order, codexInvocation);

/** Only the top of its file: tables (profiles, projects) come after the first `[`. */
function judgeConfig([text]: readonly (string | null)[], places: readonly string[]): OwnSetting {
  const lines = (text ?? "").split("\n").map((line) => line.trim());
  const firstTable = lines.findIndex((line) => line.startsWith("["));
  const top = firstTable === -1 ? lines : lines.slice(0, firstTable);
  const [mode] = top.flatMap((line) => /^sandbox_mode\s*=\s*["']([a-z-]+)["']/.exec(line)?.[1] ?? []);
  // 0.166.0: a directory with an entry in [projects], whatever that says, is workspace-write.
  const isNamed = places.some((place) => namesProject(text ?? "", place));
  if (mode === undefined) return { meaning: isNamed ? workspace : readOnly, isBypass: false };
  const means: Record<string, string> = {
    "read-only": readOnly,
    "workspace-write": workspace,
    "danger-full-access": "no sandbox, it may do everything",
  };
  return { meaning: lookUp(means, mode) ?? `its own sandbox mode "${mode}"`, isBypass: mode === "danger-full-access" };
}

/** The head of a table, in either kind of quotes; not in a comment. */
function namesProject(text: string, place: string): boolean {
  const heads = [`[projects.${JSON.stringify(place)}]`, `[projects.'${place}']`];
  return text.split("\n").some((line) => heads.includes(line.replace(/#.*$/, "").trim()));
}

const readOnly = "read-only sandbox, it cannot edit; --permission edit lets it";
const workspace = "it edits below its directory, in a sandbox";
