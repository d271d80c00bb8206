// How Codex is started, continued and ended. What was seen of it stands in codex.md.
import { fieldsOf, uuidIn } from "./fields.ts";
import type { Invocation, Order } from "./invocation.ts";

export const codexInvocation: Invocation = {
  chooseId: null,
  promptBy: "stdin",
  headless: (order) => ["exec", "--json", ...commonFlags(order), ...order.extra, ...sessionWords(order), "-"],
  interface: (order) => [
    order.kind === "fork" ? "fork" : "resume",
    ...commonFlags(order),
    ...order.extra,
    order.from ?? order.session ?? "",
  ],
  environmentFor: (home) => ({ CODEX_HOME: home }),
  scrubbed: /^CODEX_(THREAD_ID|SESSION_ID|TOOL_CALL_ID|CI|MANAGED_.*|SANDBOX.*)$/,
  childMark: "CODEX_THREAD_ID",
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "thread.started" ? uuidIn(fields, "thread_id") : null;
  },
  permissions: {
    read: { flags: ["--sandbox", "read-only"], meaning: "a read-only sandbox: it cannot edit" },
    edit: {
      flags: ["--sandbox", "workspace-write"],
      meaning: "a sandbox that lets it edit below its directory, without network",
    },
    bypass: {
      flags: ["--dangerously-bypass-approvals-and-sandbox"],
      meaning: "no sandbox: it may do everything, and asks nobody",
    },
  },
  ownSetting: { files: (home) => [`${home}/config.toml`], meaning: ownMeaning },
  refuses: () => null,
  startFailures: [
    {
      sign: /not inside a trusted directory/i,
      message: "Codex works only inside of a git repository, or in a directory that it trusts",
      hint: "git init, or hand it through: -- --skip-git-repo-check",
    },
  ],
  stopSignals: [
    { signal: "SIGINT", patienceMs: 5_000 },
    { signal: "SIGTERM", patienceMs: 5_000 },
  ],
  ownStop: () => null,
  ownSend: (session, text) => ["queue", "--thread", session, "--message", text],
  interrupt: (argv) => (argv.includes("exec") || argv.includes("e") ? { signal: "SIGINT" } : { keys: "Escape" }),
};

const sessionWords = ({ kind, session, from }: Order): string[] =>
  kind === "new" ? [] : kind === "continue" ? ["resume", session ?? ""] : ["fork", from ?? ""];

const commonFlags = ({ model, permission }: Order): string[] => [
  ...(model === null ? [] : ["--model", model]),
  ...(permission === null ? [] : codexInvocation.permissions[permission].flags),
];

/** Only the top of its file: tables (profiles, projects) come after the first `[`. */
function ownMeaning([text]: readonly (string | null)[]): string {
  const top = (text ?? "").split(/^\s*\[/m)[0] ?? "";
  const mode = /^\s*sandbox_mode\s*=\s*["']([a-z-]+)["']/m.exec(top)?.[1] ?? "read-only";
  const means: Record<string, string> = {
    "read-only": "read-only sandbox, it cannot edit; --permission edit lets it",
    "workspace-write": "it edits below its directory, in a sandbox",
    "danger-full-access": "no sandbox, it may do everything",
  };
  return means[mode] ?? `its own sandbox mode "${mode}"`;
}
