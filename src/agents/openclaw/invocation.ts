// How OpenClaw's interface is opened and its gateway ended. The gateway itself begins and continues sessions: see server.ts.
import type { OwnSetting } from "../../core/permission.ts";
import { argv, handedOn, noWords } from "../argv.ts";
import { fieldsIn, parsedFields, textIn } from "../fields.ts";
import { type Invocation, stopStep } from "../invocation.ts";

export const openclawInvocation: Invocation = {
  chooseId: null,
  promptBy: "stdin",
  // Not used: `create` in server.ts begins sessions.
  headless: () => noWords,
  // Only /fork in its interface copies a session.
  interface: (order) =>
    order.kind === "continue" ? argv`tui --session ${order.session} ${handedOn(order.extra)}` : null,
  environmentFor: (home) => ({ OPENCLAW_STATE_DIR: home }),
  scrubbed: /^OPENCLAW_(CLI|SHELL|PATH_BOOTSTRAPPED|GATEWAY_PORT|PREPEND_PATH)$/,
  // OpenClaw does not give its tools the id of the session.
  sessionVariable: null,
  announcedIn: () => null,
  permissions: {
    read: { flags: argv``, effect: "reads-below" },
    edit: { flags: argv``, effect: "edits-below-kept-approvals" },
    bypass: { flags: argv``, effect: "everything" },
  },
  ownSetting: { files: (home) => [`${home}/openclaw.json`], judge: judgeSettings },
  refuses: ({ extra }) => (extra.length === 0 ? null : { code: "takes-no-arguments" }),
  startFailures: [],
  // Only for `stop --server`. The gateway waits up to 315 s for its turns before it exits; SIGKILL follows after 10 s.
  stopSignals: [stopStep("SIGTERM", 10_000)],
  interrupt: () => ({ signal: "SIGINT" }),
};

/** Without a setting OpenClaw may do everything. Settings that are not plain JSON (but JSON5) may allow that, too. */
function judgeSettings([text]: readonly (string | null)[]): OwnSetting {
  const settings = parsedFields(text ?? "{}");
  if (settings === null) return { mode: null, effect: "settings-unreadable", isBypass: true };
  const mode = textIn(fieldsIn(fieldsIn(settings, "tools"), "exec"), "mode");
  const sandbox = textIn(fieldsIn(fieldsIn(fieldsIn(settings, "agents"), "defaults"), "sandbox"), "mode");
  if (sandbox !== null && sandbox !== "off") return { mode: sandbox, effect: "own-sandbox", isBypass: false };
  if (mode !== null && mode !== "full") return { mode, effect: "own-command-rules", isBypass: false };
  return { mode: null, effect: "everything-by-default", isBypass: true };
}
