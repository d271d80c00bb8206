// The demo agent, as src/agents/demo/README.md describes it.
import { join } from "node:path";
import type { Format } from "./format.ts";
import { closed, type Line, noTurn, openedAt, parseObject, recordLine, type Turn } from "./read-record.ts";

export const demoFormat: Format = {
  agent: "demo",
  command: "demo-agent",
  program: "script",
  home: "demo-home",
  environment: (home) => ({ DEMO_AGENT_HOME: home }),
  records: "sessions",
  announcements: {
    folder: "live",
    inPlace: false,
    hasBoot: true,
    hasNamespace: () => true,
    fileOf: ({ pid }) => `${pid}.json`,
    pattern: /^(?<pid>\d+)\.json$/,
    write: ({ pid, start, boot, namespace, session }, { cwd }) =>
      JSON.stringify({ pid, start, boot, namespace, session, cwd, at: new Date().toISOString() }),
    parse(text) {
      const { pid, start, boot, namespace, session } = parseObject(text) ?? {};
      if (typeof pid !== "number" || typeof start !== "string" || typeof boot !== "string") return null;
      if (typeof namespace !== "string" || typeof session !== "string") return null;
      return { pid, start, boot, namespace, session, status: null, waitingFor: null };
    },
  },
  database: null,
  idInside: false,
  lock: null,
  newId: (dice) => dice.uuid(),
  recordPath: ({ home, id }) => join(home, "sessions", `${id}.jsonl`),
  argv(manner, id, dice) {
    if (manner === "resume") return ["--resume", id];
    if (manner === "argv") return ["--no-announce", "--session-id", id];
    // Told to be silent, or a talker that has not spoken yet: only the first may be linked by its directory.
    if (manner === "nameless") return dice.chance(0.5) ? ["--no-announce"] : [];
    return dice.chance(0.5) ? ["--session-id", id] : [];
  },
  mayMoveOn: () => false,
  argvNames: (argv, id) => argv.includes(id),
  nestedArgv: (id) => ["--session-id", id],
  hidesArguments: false,
  tidiesOnTerm: true,
  writesLate: false,
  announces: (argv) => !argv.includes("--no-announce"),
  manyWriters: true,
  can: () => true,
  begin: ({ id, cwd }) => recordLine("session", { version: 1, id, cwd, model: "demo-1", parent: null }),
  lines: (_session, event, fields) => recordLine(event, fields),
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(line) {
      const { type, at } = line;
      if (typeof type !== "string" || typeof at !== "string") return null;
      return { ...line, type, atMs: Date.parse(at), cwd: typeof line["cwd"] === "string" ? line["cwd"] : null };
    },
    isHeader: ({ type }) => type === "session",
    isMark: ({ type }) => type === "prompt" || type === "end",
    isMessage: ({ type }) => type !== "title" && type !== "background",
    turnOf,
  },
};

function turnOf(lines: readonly Line[]): Turn {
  let says = noTurn;
  for (const line of lines) {
    if (line.type === "prompt") says = openedAt(line.atMs);
    if (line.type === "end") says = closed(String(line["outcome"]), null, line.atMs);
    // Asked outside of a turn it is kept for the next one, as the page says nothing else.
    if (line.type === "question") says = { ...says, question: String(line["text"]) };
    if (line.type === "answer") says = { ...says, question: null };
  }
  return says;
}
