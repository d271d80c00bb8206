// How Pi is started, continued and ended. README.md describes what was tested.
import { type Argv, argv, noWords } from "../argv.ts";
import { commonFlags, type Invocation, type Order, stopStep, uuidInLine } from "../invocation.ts";

export const piInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  // In JSON mode Pi names its session at once. In text mode 0.73 prints nothing until its first answer is complete.
  headless: (order) => argv`--mode json ${sessionFlags(order)} ${commonFlags(order, piInvocation)}`,
  interface: (order) => argv`${sessionFlags(order)} ${commonFlags(order, piInvocation)}`,
  // 0.73 has no flag for an id, but uses the id of an existing record.
  prepare: (session, order) =>
    order.kind === "new" ? { kind: "file", path: recordPath(session, order), text: headerLine(session, order) } : null,
  environmentFor: (home) => ({ PI_CODING_AGENT_DIR: home }),
  scrubbed: /^PI_(CODING_AGENT|SESSION_ID|SESSION_FILE|PROVIDER|MODEL|REASONING_LEVEL)$/,
  // Since 0.87; 0.73 sets no such variable.
  sessionVariable: "PI_SESSION_ID",
  announcedIn: (line) => uuidInLine(line, "session", "id"),
  permissions: {
    read: { flags: argv`--tools read,grep,find,ls`, effect: "reads-everywhere" },
    edit: { flags: argv`--tools read,grep,find,ls,edit,write`, effect: "edits-no-commands" },
    bypass: { flags: argv``, effect: "everything" },
  },
  ownSetting: { files: () => [], judge: () => ({ mode: null, effect: "everything-by-default", isBypass: true }) },
  startFailures: [
    {
      code: "no-such-session",
      pattern: /No session found matching/,
      isByDirectory: true,
      variable: "PI_CODING_AGENT_DIR",
    },
    { code: "directory-gone", pattern: /Stored session working directory does not exist/, command: "pi --session" },
    { code: "unknown-argument", pattern: /Unknown option/ },
    {
      code: "unknown-model",
      pattern: /Model ".*" not found|No models? (available|match)/,
      command: "pi --list-models",
    },
    {
      code: "not-logged-in",
      pattern: /No API key found|No models available/,
      command: "start pi and use /login",
      variable: "the provider's API key",
    },
  ],
  // SIGINT kills Pi and leaves its tool running. SIGTERM also ends the tool.
  stopSignals: [stopStep("SIGTERM", 5_000)],
  interrupt: (_, tty) => (tty === null ? { signal: "SIGTERM" } : { keys: "Escape" }),
};

function sessionFlags(order: Order): Argv {
  if (order.kind === "new")
    return order.session === null ? noWords : argv`--session ${recordPath(order.session, order)}`;
  // Names the folder, because a setting or a variable may choose another one.
  const folder = argv`--session-dir ${folderOf(order)}`;
  return order.kind === "continue" ? argv`--session ${order.session} ${folder}` : argv`--fork ${order.from} ${folder}`;
}

/** The folder that Pi uses for a directory. Two directories may share one. */
const folderOf = ({ home, cwd }: Order): string =>
  `${home}/sessions/--${cwd.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-")}--`;

const recordPath = (session: string, order: Order): string =>
  `${folderOf(order)}/${new Date(order.at).toISOString().replace(/[:.]/g, "-")}_${session}.jsonl`;

const headerLine = (id: string, { cwd, at }: Order): string =>
  `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(at).toISOString(), cwd })}\n`;
