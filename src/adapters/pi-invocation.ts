// How Pi is started, continued and ended. What was seen of it stands in pi.md.
import { type Argv, argv, handedOn, noWords } from "./argv.ts";
import { fieldsOf, uuidIn } from "./fields.ts";
import { type Invocation, modelAndPermission, type Order, type Place } from "./invocation.ts";

export const piInvocation: Invocation = {
  chooseId: (uuid) => uuid,
  promptBy: "stdin",
  // As JSON it names its session at once. As text 0.73 would show no sign of life before its first answer is complete.
  headless: (order, place) =>
    argv`--mode json ${sessionFlags(order, place)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  interface: (order, place) => argv`${sessionFlags(order, place)} ${commonFlags(order)} ${handedOn(order.extra)}`,
  // 0.73 has no flag for an id; but it takes over one that it finds in a record.
  prepare: (session, order, place) =>
    order.kind === "new" ? { kind: "file", path: recordPath(session, place), text: headerLine(session, place) } : null,
  environmentFor: (home) => ({ PI_CODING_AGENT_DIR: home }),
  scrubbed: /^PI_(CODING_AGENT|SESSION_ID|SESSION_FILE|PROVIDER|MODEL|REASONING_LEVEL)$/,
  // Since 0.87; 0.73 gives its tools nothing of the kind.
  childMark: "PI_SESSION_ID",
  announcedIn(line) {
    const fields = fieldsOf(line);
    return fields?.["type"] === "session" ? uuidIn(fields, "id") : null;
  },
  permissions: {
    read: {
      flags: argv`--tools read,grep,find,ls`,
      meaning: "it reads and searches everywhere; it has no tools to edit or to run commands",
    },
    edit: {
      flags: argv`--tools read,grep,find,ls,edit,write`,
      meaning: "it edits files everywhere, also outside of its directory; it has no tool to run commands",
    },
    bypass: { flags: argv``, meaning: "it may do everything, and asks nobody, as always" },
  },
  ownSetting: {
    files: () => [],
    judge: () => ({
      meaning:
        "Pi has no permissions of its own: it may do everything, and asks nobody; --permission edit takes its shell away",
      isBypass: true,
    }),
  },
  // A fork gets an id of its own making.
  refuses: () => null,
  startFailures: [
    {
      sign: /No session found matching/,
      message: "Pi finds no such session",
      hint: "PI_CODING_AGENT_DIR names its data folder; it looks in the folder of the session's directory",
    },
    {
      sign: /Stored session working directory does not exist/,
      message: "the directory of this session is gone",
      hint: "make it again, or open the session with pi --session",
    },
    {
      sign: /Unknown option/,
      message: "Pi does not know an argument",
      hint: "pi --help; another version of it may know other ones",
    },
    {
      sign: /Model ".*" not found|No models? (available|match)/,
      message: "Pi does not know this model",
      hint: "pi --list-models",
    },
    {
      sign: /No API key found|No models available/,
      message: "Pi is not logged in",
      hint: "start pi once and use /login, or set the provider's API key",
    },
  ],
  // SIGINT kills it, and leaves its tool running; SIGTERM ends its tool, too.
  stopSignals: [{ signal: "SIGTERM", patienceMs: 5_000 }],
  ownStop: () => null,
  interrupt: (_, tty) => (tty === null ? { signal: "SIGTERM" } : { keys: "Escape" }),
};

function sessionFlags(order: Order, place: Place): Argv {
  if (order.kind === "new")
    return order.session === null ? noWords : argv`--session ${recordPath(order.session, place)}`;
  // The folder is named, because a setting or a variable may lead elsewhere; there a part of the id would do, too.
  const folder = argv`--session-dir ${folderOf(place)}`;
  return order.kind === "continue" ? argv`--session ${order.session} ${folder}` : argv`--fork ${order.from} ${folder}`;
}

const commonFlags = (order: Order): Argv => modelAndPermission(order, piInvocation);

/** Pi's own name of a directory's folder; two directories may share one. */
const folderOf = ({ home, cwd }: Place): string =>
  `${home}/sessions/--${cwd.replace(/^[/\\]/, "").replace(/[/\\:]/g, "-")}--`;

const recordPath = (session: string, place: Place): string =>
  `${folderOf(place)}/${new Date(place.at).toISOString().replace(/[:.]/g, "-")}_${session}.jsonl`;

const headerLine = (id: string, { cwd, at }: Place): string =>
  `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date(at).toISOString(), cwd })}\n`;
