// Cline. Its README describes what it writes and how that was tested.
import type { Adapter } from "../adapter.ts";
import { baseName, flagValue } from "../argv.ts";
import { idOrNull, words } from "../fields.ts";
import { clineInvocation } from "./invocation.ts";
import { documents, isSessionId, parseAnnouncement, parseLine, parseRecord } from "./lines.ts";

const sessionFile = { folder: "sessions/*", name: /^(?<id>\d{10,16}_[A-Za-z0-9]{1,32})\.json$/ };

export const cline: Adapter = {
  agent: "cline",
  title: "Cline",
  aliases: [],
  command: "cline",
  install: "npm install -g cline",
  verified: ["3.0.65"],
  ties: "The record of a session names the process that began it; the arguments name a session that was reopened. Cline chooses the id, which is known once the record exists.",
  knows: "Working, waiting with the call or the question, idle; how each turn ended.",
  unknowable: [
    "If Cline's hub is running, a session that was started by hand runs in the hub, not in the program on the screen. The hub does not record when that program exits: during a turn such a session is unclear.",
    "While the hub is running, a session that was cut off since the start of the hub is unknown until Cline is started again: the hub may have reopened it, and does not record that.",
    "A session in the hub can be interrupted, stopped and sent messages only in Cline's own interface.",
    "An interface has no session before its first prompt. If it opens an old session, the record keeps naming the old process: the session is known by the arguments (cline --id), or not at all.",
    "An interface that shows a session of the hub is listed as well, by its pid: it looks like one that has a session of its own.",
    "Sessions that an editor starts with cline --acp were not tested.",
  ],
  isId: isSessionId,
  // The binary is a hidden file next to npm's starter, or is in a separate package.
  processNames: [".cline", "cline", "node", "MainThread", "node-MainThread"],
  environment: ["CLINE_DATA_DIR", "CLINE_DIR", "HOME", "CLINE_RUN_AS_HUB_DAEMON"],
  records: [{ ...sessionFile, assembled: documents }],
  announcements: { ...sessionFile, parse: parseAnnouncement },
  // agentctl does not ask the hub, because the hub would write files to answer. Records name the pid of the hub for sessions that
  // it began. The hub may have reopened any session that has not ended.
  serversNameBy: "answer",
  countsDenied: true,
  role(_name, { argv, exe, env }) {
    if (argv === null) return isBinary(exe ?? "") ? "agent" : null;
    if (isStarter(argv)) return "helper";
    const own = ownArguments(argv);
    if (own === null) return null;
    if (own[0] === "--cline-hub-daemon" || env?.["CLINE_RUN_AS_HUB_DAEMON"] === "1") return "server";
    // One process serves all sessions of an editor.
    if (own.includes("--acp")) return "server";
    return commands.includes(own[0] ?? "") || own.some((argument) => infoFlags.test(argument)) ? "helper" : "agent";
  },
  announces: () => true,
  /** Only an interface can continue a session. */
  argvId: (argv) => idOrNull(flagValue(ownArguments(argv) ?? [], "--id"), isSessionId),
  home: (env) => env["CLINE_DATA_DIR"] || dataIn(env["CLINE_DIR"]) || dataIn(env["HOME"] && `${env["HOME"]}/.cline`),
  /** Arguments take precedence over the environment. */
  heldHome({ argv }) {
    const own = argv === null ? [] : (ownArguments(argv) ?? []);
    return flagValue(own, "--data-dir") ?? dataIn(flagValue(own, "--config") ?? undefined);
  },
  parseRecord,
  parseLine,
  invocation: clineInvocation,
};

const dataIn = (folder: string | undefined): string | null => (folder ? `${folder}/data` : null);

const commands = words`auth config plugin skill connect mcp doctor history h hook schedule hub dashboard update version kanban`;
const infoFlags = /^(-V|--version|-h|--help|--update|--kanban)$/;

const isBinary = (path: string): boolean => /^\.?cline(\.exe)?$/.test(baseName(path.replace(/ \(deleted\)$/, "")));

/** npm's starter is the parent of the binary. */
const isStarter = (argv: readonly string[]): boolean =>
  /^(node|nodejs)$/.test(baseName(argv[0] ?? "")) && argv.slice(1).some((word) => /\/cline$/.test(word));

const ownArguments = (argv: readonly string[]): readonly string[] | null =>
  isBinary(argv[0] ?? "") ? argv.slice(1) : null;
