// Copilot 1.0.102, as src/agents/copilot/README.md and its captured files show it; without its servers.
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type Fields, type Format, wordsOf } from "./format.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const library = "/usr/lib/node_modules/@github";

export const copilotFormat: Format = {
  agent: "copilot",
  command: "copilot",
  program: {
    agent: {
      exe: "copilot-linux-x64/copilot",
      name: "MainThread",
      commandLine: (argv) => wordsOf([`${library}/copilot-linux-x64/copilot`, ...argv]),
    },
    wrapper: {
      exe: "node",
      name: "MainThread",
      commandLine: (argv) => wordsOf(["node", "/usr/bin/copilot", ...argv]),
    },
  },
  home: "user/.copilot",
  environment: () => ({}),
  records: "session-state",
  announcements: null,
  database: null,
  idInside: false,
  lock: { path: (id, pid) => join("session-state", id, `inuse.${pid}.hold`), isExclusive: false },
  beside: ({ id, cwd }) => ({ "workspace.yaml": `id: ${id}\ncwd: ${cwd}\nname: Work\n` }),
  cwdBeside: true,
  newId: (dice) => dice.uuid(),
  recordPath: ({ home, id }) => join(home, "session-state", id, "events.jsonl"),
  argv(manner, id, dice) {
    const style = dice.pick([[], ["-p", "go", "--allow-all"], ["-p", "--session-id"]]);
    if (manner === "resume") return [...style, dice.pick([`--resume=${id}`, `--session-id=${id}`])];
    if (manner === "nameless") return style;
    return manner === "argv" || dice.chance(0.5) ? [...style, "--session-id", id] : style;
  },
  mayMoveOn: () => false,
  argvNames: (argv, id) => argv.at(-1)?.endsWith(id) === true,
  nestedArgv: (id) => ["--session-id", id],
  hidesArguments: false,
  tidiesOnTerm: true,
  writesLate: true,
  announces: () => true,
  manyWriters: false,
  can: (_session, event, actor) =>
    event !== "background" && event !== "title" && (event !== "question" || actor?.argv.includes("-p") === false),
  begin({ id, cwd }) {
    const now = new Date().toISOString();
    const data = { sessionId: id, version: 1, copilotVersion: "1.0.102", startTime: now, selectedModel: "fake-1" };
    return line("session.start", { ...data, context: { cwd } });
  },
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(value) {
      const { type, timestamp } = value;
      if (typeof type !== "string" || typeof timestamp !== "string") return null;
      return { ...value, type, atMs: Date.parse(timestamp), cwd: null };
    },
    isHeader: () => true,
    isMark: ({ type }) => type === "user.message",
    isMessage: ({ type }) => /^(user|assistant|tool|permission|abort|session\.error)/.test(type),
    turnOf,
  },
};

function line(type: string, data: Fields): string {
  const row = { type, data, id: crypto.randomUUID(), timestamp: new Date().toISOString(), parentId: null };
  return `${JSON.stringify(row)}\n`;
}

const model = (toolRequests: Fields[], content: string): string =>
  line("assistant.message", { messageId: crypto.randomUUID(), model: "fake-1", content, toolRequests });

function lines(session: Session, event: string, fields: Fields, _actor: FakeAgent | null): string {
  const { scratch } = session;
  const text = String(fields["text"] ?? "");
  const call = (toolName: string, input: Fields, words = ""): string => {
    const toolCallId = `call_${crypto.randomUUID()}`;
    scratch["call"] = toolCallId;
    return (
      model([{ toolCallId, name: toolName, arguments: input }], words) +
      line("tool.execution_start", { toolCallId, toolName, arguments: input })
    );
  };
  const answered = (): string => {
    const { asked: requestId } = scratch;
    scratch["asked"] = null;
    return requestId == null ? "" : line("permission.completed", { requestId, result: { kind: "approved" } });
  };
  const result = (content: string): string => {
    const { call: toolCallId } = scratch;
    const before = answered();
    scratch["call"] = null;
    if (toolCallId == null) return before;
    return before + line("tool.execution_complete", { toolCallId, success: true, result: { content } });
  };
  const next = line("assistant.turn_end", { turnId: "0" }) + line("assistant.turn_start", { turnId: "1" });

  if (event === "prompt") {
    Object.assign(scratch, { call: null, asked: null });
    return line("user.message", { content: text }) + line("assistant.turn_start", { turnId: "0" });
  }
  if (event === "reply") return result("ok") + call("bash", { command: "ls" }, text) + result("ok") + next;
  if (event === "tool") return call("bash", { command: "ls" });
  if (event === "tool-result") return result(text) + next;
  if (event === "answer") return scratch["asked"] == null ? result(text) + next : answered();
  if (event === "question") return ask(session, String(fields["kind"]), text, { call, result });
  const before = result("ok");
  const end = line("assistant.turn_end", { turnId: "0" });
  if (fields["outcome"] === "completed") return before + model([], text) + end;
  if (fields["outcome"] === "interrupted") return before + line("abort", { reason: "user initiated" });
  const errorType = ["query", "authentication", "quota"][text.length % 3];
  return before + line("session.error", { errorType, message: `failed: ${errorType}` }) + end;
}

interface Pens {
  call(tool: string, input: Fields): string;
  result(words: string): string;
}

function ask({ scratch }: Session, kind: string, text: string, { call, result }: Pens): string {
  if (kind === "question") return result("ok") + call("ask_user", { question: text, choices: ["yes", "no"] });
  if (kind === "plan") return result("ok") + call("exit_plan_mode", { summary: text });
  const before = scratch["call"] == null ? call("bash", { command: text }) : "";
  const requestId = crypto.randomUUID();
  const second = scratch["asked"];
  if (second != null) return before;
  scratch["asked"] = requestId;
  const permissionRequest = { kind: "shell", fullCommandText: text, toolCallId: scratch["call"] };
  return before + line("permission.requested", { requestId, permissionRequest });
}

// --- reading back

/** Judges the lines after the last prompt. Answers and ends count only after the last request to the model. */
function turnOf(all: readonly Line[]): Turn {
  const at = all.findLastIndex(({ type }) => type === "user.message");
  const prompt = all[at];
  const isAnyMessage = all.some(({ type }) => copilotFormat.reader.isMessage?.({ type, atMs: 0, cwd: null }));
  if (prompt === undefined) return isAnyMessage ? { ...noTurn, turn: "unclear" } : noTurn;
  const since = all.slice(at + 1);
  const dataOf = (row: Line | undefined) => fieldsOf(row?.["data"]) ?? {};
  const asked = new Map<unknown, string>();
  const calls = new Map<unknown, Fields>();
  for (const row of since) {
    const data = dataOf(row);
    if (row.type === "permission.requested")
      asked.set(data["requestId"], String(fieldsOf(data["permissionRequest"])?.["fullCommandText"]));
    if (row.type === "permission.completed") asked.delete(data["requestId"]);
    if (row.type === "tool.execution_start") calls.set(data["toolCallId"], data);
    if (row.type === "tool.execution_complete") calls.delete(data["toolCallId"]);
  }
  const called = since.slice(since.findLastIndex(({ type }) => type === "assistant.turn_start") + 1);
  const find = (type: string) => called.findLast((row) => row.type === type);
  const [aborted, error, ended, answer] = ["abort", "session.error", "assistant.turn_end", "assistant.message"].map(
    find,
  );
  if (aborted !== undefined) return closed("interrupted", null, aborted.atMs);
  const { errorType, message } = dataOf(error);
  if (error !== undefined && ended !== undefined)
    return closed("failed", errorType === "query" ? null : String(message), error.atMs);
  const { toolRequests } = dataOf(answer);
  if (ended !== undefined && Array.isArray(toolRequests) && toolRequests.length === 0)
    return closed("completed", null, ended.atMs);
  const [question = questionIn([...calls.values()])] = asked.values();
  return { ...openedAt(prompt.atMs), question };
}

function questionIn(calls: Fields[]): string | null {
  const asks = calls.find(({ toolName }) => toolName === "ask_user" || toolName === "exit_plan_mode");
  const { question, summary } = fieldsOf(asks?.["arguments"]) ?? {};
  return asks === undefined ? null : String(question ?? summary);
}
