// What may be done with OpenClaw. Its sessions are begun and continued in its gateway; only its interface is a process of ours.
import { argv, handedOn, noWords } from "./argv.ts";
import { fieldsIn, fieldsOf, jsonIn, textIn } from "./fields.ts";
import type { Invocation, OwnSetting } from "./invocation.ts";

export const openclawInvocation: Invocation = {
  chooseId: null,
  promptBy: "stdin",
  // Never used: `create` of its host is.
  headless: () => noWords,
  // A copy is made by its own commands only (/fork in its interface).
  interface: (order) =>
    order.kind === "continue" ? argv`tui --session ${order.session} ${handedOn(order.extra)}` : null,
  environmentFor: (home) => ({ OPENCLAW_STATE_DIR: home }),
  scrubbed: /^OPENCLAW_(CLI|SHELL|PATH_BOOTSTRAPPED|GATEWAY_PORT|PREPEND_PATH)$/,
  // Its commands know nothing of the session that they are run for.
  childMark: null,
  announcedIn: () => null,
  permissions: {
    read: {
      flags: argv``,
      meaning: "it reads below its directory; it has no tools that edit, and its commands are denied",
    },
    edit: {
      flags: argv``,
      meaning:
        "it edits below its directory; commands run only if a person has allowed them for good, others are denied",
    },
    bypass: { flags: argv``, meaning: "it may do everything, and asks nobody" },
  },
  ownSetting: { files: (home) => [`${home}/openclaw.json`], judge: judgeSettings },
  refuses: ({ extra }) =>
    extra.length === 0 ? null : "a session in OpenClaw's gateway takes no arguments: leave out what stands behind --",
  startFailures: [],
  // Only with `stop --server`: it ends its runs and itself.
  stopSignals: [{ signal: "SIGTERM", patienceMs: 10_000 }],
  ownStop: () => null,
  interrupt: () => ({ signal: "SIGINT" }),
};

/** Without a setting it may do everything. What cannot be read as JSON (it may be JSON5) may say that, too. */
function judgeSettings([text]: readonly (string | null)[]): OwnSetting {
  const settings = fieldsOf(jsonIn({ text: text ?? "{}" }, "text"));
  if (settings === null)
    return { meaning: "its own settings, which agentctl cannot read: it may do everything", isBypass: true };
  const mode = textIn(fieldsIn(fieldsIn(settings, "tools"), "exec"), "mode");
  const sandbox = textIn(fieldsIn(fieldsIn(fieldsIn(settings, "agents"), "defaults"), "sandbox"), "mode");
  if (sandbox !== null && sandbox !== "off") return { meaning: `its own sandbox ("${sandbox}")`, isBypass: false };
  if (mode !== null && mode !== "full") return { meaning: `its own setting for commands, "${mode}"`, isBypass: false };
  return { meaning: "it may do everything; --permission read or edit lets it do less", isBypass: true };
}
