// Gemini CLI 0.61.0, as src/agents/gemini/README.md and its captured files show it.
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type Fields, type Format, wordsOf } from "./format.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const program = "/usr/bin/gemini";

export const geminiFormat: Format = {
  agent: "gemini",
  command: "gemini",
  program: {
    agent: {
      exe: "node",
      name: "MainThread",
      environment: { GEMINI_CLI_NO_RELAUNCH: "true" },
      commandLine: (argv) => wordsOf(["/usr/bin/node", "--max-old-space-size=3986", program, ...argv]),
    },
    wrapper: { exe: "node", name: "MainThread", commandLine: (argv) => wordsOf(["node", program, ...argv]) },
  },
  home: "user/.gemini",
  environment: () => ({}),
  records: "tmp",
  announcements: null,
  database: null,
  idInside: true,
  lock: null,
  beside: ({ cwd }) => ({ "../.project_root": cwd }),
  cwdBeside: true,
  // The name of a file has only the first eight letters of an id: some share them.
  newId: (dice) => (dice.chance(0.5) ? dice.uuid().replace(/^.{8}/, "0badcafe") : dice.uuid()),
  recordPath({ home, id, cwd, bornMs, number }) {
    // Begun in different minutes.
    const minute = new Date(bornMs - number * 60_000).toISOString().slice(0, 16).replace(":", "-");
    return join(home, "tmp", basename(cwd), "chats", `session-${minute}-${id.slice(0, 8)}.jsonl`);
  },
  argv(manner, id, dice) {
    const headless = dice.chance(0.6) ? ["-p", "go", "-o", "stream-json"] : [];
    if (manner === "resume") return [...headless, "--resume", id];
    if (manner === "nameless") return dice.chance(0.3) ? ["-p", id] : headless;
    return [...headless, "--session-id", id];
  },
  // In an interface another session may have been opened since.
  mayMoveOn: () => false,
  argvNames: (argv, id) => isHeadless(argv) && argv.indexOf(id) > 1,
  nestedArgv: (id) => ["-p", "go", "--session-id", id],
  hidesArguments: false,
  tidiesOnTerm: false,
  writesLate: false,
  announces: () => false,
  manyWriters: false,
  can: (_session, event, actor) => event !== "background" && (event !== "question" || !isHeadless(actor?.argv ?? [])),
  begin({ id, cwd }) {
    const now = new Date().toISOString();
    const projectHash = createHash("sha256").update(cwd).digest("hex");
    return line({ sessionId: id, projectHash, startTime: now, lastUpdated: now, kind: "main" });
  },
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(value) {
      const { type, timestamp, sessionId, startTime } = value;
      const set = fieldsOf(value["$set"]);
      const at = timestamp ?? startTime ?? set?.["lastUpdated"];
      const atMs = typeof at === "string" ? Date.parse(at) : Number.NaN;
      if (typeof sessionId === "string") return { ...value, type: "header", atMs, cwd: null };
      if (set !== null) return { ...value, type: "patch", atMs, cwd: null };
      return typeof type === "string" ? { ...value, type, atMs, cwd: null } : null;
    },
    isHeader: ({ type }) => type === "header",
    isMark: isPrompt,
    isMessage: (row) => !["header", "patch"].includes(row.type) || messagesOf(row) !== null,
    turnOf,
  },
};

const isHeadless = (argv: readonly string[]): boolean => argv[0] === "-p";

const line = (row: Fields): string => `${JSON.stringify(row)}\n`;

function lines({ scratch }: Session, event: string, fields: Fields, _actor: FakeAgent | null): string {
  const now = new Date().toISOString();
  const text = String(fields["text"] ?? "");
  const say = (type: string, rest: Fields, id: unknown = crypto.randomUUID()) =>
    line({ id, timestamp: now, type, ...rest });
  const touched = line({ $set: { lastUpdated: now } });
  const answer = (content: string, rest: Fields = {}, id: unknown = crypto.randomUUID()) => {
    const tokens = { input: 1234, output: 56, cached: 200, thoughts: 0, tool: 0, total: 1290 };
    return say("gemini", { content, thoughts: [], tokens, model: "fake-1", ...rest }, id) + touched;
  };
  // A call stands in the record when it is done: the same message once more.
  const call = (): string => {
    scratch["call"] = crypto.randomUUID();
    return answer("", {}, scratch["call"]);
  };
  const result = (output: string, status = "success"): string => {
    const { call: id } = scratch;
    scratch["call"] = null;
    if (id == null) return "";
    const functionResponse = { id: "c1", name: "run_shell_command", response: { output } };
    const toolCalls = [
      { id: "c1", name: "run_shell_command", args: { command: "ls" }, result: [{ functionResponse }], status },
    ];
    return (
      answer("", { toolCalls }, id) + (status === "success" ? say("user", { content: [{ functionResponse }] }) : "")
    );
  };

  if (event === "title") return line({ $set: { summary: text } });
  if (event === "prompt") {
    scratch["call"] = null;
    return say("user", { content: [{ text }] }) + touched;
  }
  if (event === "reply") return result("ok") + answer(text);
  if (event === "tool") return call();
  if (event === "tool-result" || event === "answer") return result(text);
  if (event === "question") return scratch["call"] == null ? call() : "";
  if (fields["outcome"] === "completed") return result("ok") + answer(text);
  if (fields["outcome"] === "failed") return result("ok") + say("error", { content: "[API Error: no such model]" });
  if (scratch["call"] != null) return say("info", { content: "Request cancelled." }) + result("", "cancelled");
  return say("info", { content: "Request cancelled." }) + line({ $set: { messages: [], lastUpdated: now } });
}

// --- reading back

const isToolAnswer = ({ content }: Fields): boolean =>
  Array.isArray(content) && content.some((part) => fieldsOf(part)?.["functionResponse"] !== undefined);

function isPrompt(row: Line): boolean {
  return row.type === "user" && !isToolAnswer(row);
}

function messagesOf(row: Line): unknown[] | null {
  const messages = fieldsOf(row["$set"])?.["messages"];
  return Array.isArray(messages) ? messages : null;
}

function turnOf(all: readonly Line[]): Turn {
  const at = all.findLastIndex(isPrompt);
  const prompt = all[at];
  if (prompt === undefined) return noTurn;
  let says = openedAt(prompt.atMs);
  const open = says;
  let isCancelled = false;
  for (const row of all.slice(at + 1)) {
    if (row.type === "gemini") says = afterAnswer(row, open);
    if (row.type === "user") says = says.turn === "open" ? open : says;
    if (row.type === "error") says = closed("failed", null, row.atMs);
    if (row.type === "info") {
      isCancelled = true;
      if (says.outcome === null) says = { ...open, doubt: true };
    }
    if (messagesOf(row) !== null && says.outcome === null)
      says = closed(isCancelled ? "interrupted" : null, null, row.atMs);
  }
  return says;
}

/** An answer with a text may have called a tool; a call that is not done is not recorded. */
function afterAnswer(row: Line, open: Turn): Turn {
  const { toolCalls, content } = row;
  if (Array.isArray(toolCalls)) {
    const isCancelled = toolCalls.every((call) => fieldsOf(call)?.["status"] === "cancelled");
    return isCancelled ? closed("interrupted", null, row.atMs) : { ...open, doubt: true };
  }
  if (content === "") return { ...open, doubt: true };
  return { ...closed(null, null, row.atMs), doubt: true };
}
