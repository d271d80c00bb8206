// Cline 3.0.65, as src/agents/cline/README.md and its captured files show it: two documents for each session, replaced whole, the first
// of which names the process that began it. With its hub, which has sessions like any other process and is none itself.
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type DocumentsFormat, type Fields, type Format, wordsOf } from "./format.ts";
import { errorCode } from "./proc.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, parseObject, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const letters = "0123456789abcdefghijklmnopqrstuvwxyz";

const documents: DocumentsFormat = {
  put(session, { state, message }) {
    const { id, scratch } = session;
    const whole: Fields = { ...stateOf(session), ...fieldsOf(state) };
    const messages = [...messagesOf(session), ...(message === undefined ? [] : [message])];
    if (whole["ended_at"] === null) delete whole["ended_at"];
    Object.assign(scratch, { state: whole, messages });
    const now = new Date().toISOString();
    const origin = { source: "cli", mode: "user", sessionId: id, version: "3.0.65" };
    const said = { version: 1, updated_at: now, agent: "lead", sessionId: id, origin, messages };
    return { [`${id}.json`]: pretty(whole), [`${id}.messages.json`]: pretty(said) };
  },
  lines(session) {
    const state = readState(session);
    if (state === null || state === "unreadable") return state;
    const said = readDocument(messagesPath(session));
    if (said === "unreadable") return said;
    const messages = said?.["messages"];
    const rows = Array.isArray(messages) ? messages.map((message) => ({ ...fieldsOf(message), type: "message" })) : [];
    return [{ ...state, type: "state" }, ...rows];
  },
  owner(session) {
    const state = readState(session);
    if (state === null || state === "unreadable" || typeof state["pid"] !== "number") return null;
    // A run without an interface ends with its session; an interface and the hub go on without it.
    const isLeft = isOver(state) && (state["interactive"] !== false || isInHub(state));
    return isLeft ? null : { pid: state["pid"], writtenMs: Number(state["writtenMs"]) };
  },
  others: (session) => [messagesPath(session)],
  isOver: (first) => isOver(first),
  parting: (session, outcome) => (stateOf(session)["status"] === undefined ? "" : set(overAs(outcome))),
  mayClear: ({ argv }) => !isHeadless(argv),
};

export const clineFormat: Format = {
  agent: "cline",
  command: ".cline",
  program: {
    agent: {
      exe: "cline/bin/.cline",
      name: ".cline",
      commandLine: (argv) => wordsOf(["/usr/lib/node_modules/cline/bin/.cline", ...argv]),
    },
    wrapper: { exe: "node", name: "node", commandLine: (argv) => wordsOf(["node", "/usr/bin/cline", ...argv]) },
  },
  home: "user/.cline/data",
  environment: () => ({}),
  records: "sessions",
  announcements: null,
  database: null,
  documents,
  hub: {
    argv: (cwd) => ["--cline-hub-daemon", "--cwd", cwd, "--host", "127.0.0.1", "--port", "25463", "--pathname", "/hub"],
    environment: { CLINE_RUN_AS_HUB_DAEMON: "1" },
  },
  choosesId: false,
  idInside: false,
  lock: null,
  newId: (dice) => `${Date.now()}_${Array.from({ length: 5 }, () => letters[dice.below(letters.length)]).join("")}`,
  recordPath: ({ home, id }) => join(home, "sessions", id, `${id}.json`),
  argv(manner, id, dice) {
    if (manner === "resume") return ["--id", id];
    return dice.pick([
      ["--json", "--", "do it now"],
      ["--json", "--", `say --id ${id}`],
      [],
      ["--auto-approve", "false"],
    ]);
  },
  mayMoveOn: () => false,
  argvNames: (argv, id) => argv[0] === "--id" && argv[1] === id,
  nestedArgv: (id) => ["--json", "--", `go on with ${id}`],
  hidesArguments: false,
  tidiesOnTerm: false,
  writesLate: false,
  announces: () => true,
  manyWriters: false,
  can(session, event, actor) {
    if (event === "background" || event === "title") return false;
    if (actor === null || !isHeadless(actor.argv)) return true;
    return event === "prompt" ? session.scratch["prompted"] !== true : event !== "question";
  },
  begin(session, actor) {
    if (stateOf(session)["status"] !== undefined) return set({});
    const { id, cwd } = session;
    const interactive = actor === null || !isHeadless(actor.argv);
    const state = {
      version: 1,
      session_id: id,
      source: "cli",
      pid: actor?.pid ?? 0,
      started_at: new Date().toISOString(),
    };
    const metadata = { sessionHistoryOrigin: { mode: "user", version: "3.0.65" }, ...inHub(actor) };
    const rest = { provider: "openai-compatible", model: "fake-model", cwd, workspace_root: cwd, prompt: "", metadata };
    return set({
      ...state,
      exit_code: null,
      status: "idle",
      interactive,
      ...rest,
      messages_path: messagesPath(session),
    });
  },
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(value) {
      const { type, started_at, ts, cwd } = value;
      if (type === "state") return { ...value, type, atMs: Date.parse(String(started_at)), cwd: String(cwd) };
      return { ...value, type: "message", atMs: Number(ts), cwd: null };
    },
    isHeader: ({ type }) => type === "state",
    isMark: () => true,
    isMessage: ({ type }) => type === "message",
    turnOf,
  },
};

const pretty = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;
const isHeadless = (argv: readonly string[]): boolean => argv[0] === "--json";
const stateOf = ({ scratch }: Session): Fields => fieldsOf(scratch["state"]) ?? {};
const messagesOf = ({ scratch }: Session): Fields[] => (scratch["messages"] as Fields[] | undefined) ?? [];
const messagesPath = ({ home, id }: Session): string => join(home, "sessions", id, `${id}.messages.json`);

/** The hub writes more into the records of its sessions. */
const inHub = (actor: FakeAgent | null): Fields =>
  actor?.served == null ? {} : { autoApproveTools: true, mode: "act" };

// --- what it writes: each line is a change of the one document, or one more message of the other

const set = (state: Fields): string => `${JSON.stringify({ state })}\n`;
const say = (message: Fields): string => `${JSON.stringify({ message: { ...message, ts: Date.now() } })}\n`;
const user = (content: Fields[]): string => say({ id: crypto.randomUUID(), role: "user", content });
const model = (content: Fields[], metadata: Fields = {}): string =>
  say({ id: `msg_${crypto.randomUUID()}`, role: "assistant", content, modelInfo: { id: "fake-model" }, ...metadata });

const endings = { completed: ["completed", 0], failed: ["failed", 1], interrupted: ["cancelled", 0] } as const;

function overAs(outcome: keyof typeof endings): Fields {
  const [status, exit_code] = endings[outcome];
  return { status, exit_code, ended_at: new Date().toISOString() };
}

function lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string {
  const { scratch } = session;
  const text = String(fields["text"] ?? "");
  // A prompt is recorded with the first answer to it.
  const asked = (): string => {
    const prompts = (scratch["asked"] as string[] | undefined) ?? [];
    scratch["asked"] = [];
    return prompts.join("");
  };
  const call = (name: string, input: Fields, words = ""): string => {
    const id = `toolu_${crypto.randomUUID()}`;
    scratch["call"] = { id, name };
    return model([...(words === "" ? [] : [{ type: "text", text: words }]), { type: "tool_use", id, name, input }]);
  };
  const result = (words: string, rest: Fields = {}): string => {
    const called = fieldsOf(scratch["call"]);
    scratch["call"] = null;
    if (called === null) return "";
    const { id, name } = called;
    const content = [{ query: "ls", result: words, success: true, ...rest }];
    return user([{ type: "tool_result", tool_use_id: id, name, content }]);
  };
  const works = set({ status: "running" });

  if (event === "prompt") {
    const wrapped = `<user_input mode="act">${text}</user_input>`;
    const prompts = (scratch["asked"] as string[] | undefined) ?? [];
    Object.assign(scratch, { prompted: true, call: null });
    scratch["asked"] = [...prompts, user([{ type: "text", text: wrapped }])];
    // What stood there of an earlier end goes.
    return set({ status: "running", prompt: wrapped, exit_code: null, ended_at: null });
  }
  if (event === "reply")
    return asked() + result("ok") + call("run_commands", { commands: ["ls"] }, text) + result("ok") + works;
  if (event === "tool") return asked() + result("ok") + call("run_commands", { commands: ["ls"] }) + works;
  if (event === "tool-result" || event === "answer") return asked() + result(text) + works;
  if (event === "question") {
    const before = asked() + result("ok");
    if (fields["kind"] === "question")
      return before + call("ask_question", { question: text, options: ["yes", "no"] }) + works;
    return before + call("run_commands", { commands: [text] }) + set({ status: "pending" });
  }
  const outcome = fields["outcome"] as keyof typeof endings;
  const isRun = actor !== null && isHeadless(actor.argv);
  const ended = set(isRun ? overAs(outcome) : { status: "idle" });
  const before = asked() + result(outcome === "interrupted" ? "" : "ok", outcome === "interrupted" ? aborted : {});
  if (outcome === "completed") return before + model([{ type: "text", text }]) + ended;
  if (outcome === "interrupted") return before + ended;
  return before + model([{ type: "text", text: "fake error" }], { metadata: { displayRole: "error" } }) + ended;
}

const aborted = { error: "Command failed: Command was aborted", success: false };

// --- reading back

/** With when it was written. */
function readState(session: Session): Fields | "unreadable" | null {
  const path = clineFormat.recordPath(session);
  const state = readDocument(path);
  if (state === null || state === "unreadable") return state;
  const isOne = typeof state["status"] === "string" && state["session_id"] === session.id;
  return isOne ? { ...state, writtenMs: statSync(path).mtimeMs } : "unreadable";
}

function readDocument(path: string): Fields | "unreadable" | null {
  try {
    if (!statSync(path).isFile()) return "unreadable";
    return parseObject(readFileSync(path, "utf8")) ?? "unreadable";
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    if (["ELOOP", "ENOTDIR", "EISDIR"].includes(errorCode(error))) return "unreadable";
    throw error;
  }
}

const outcomes = new Map([
  ["completed", "completed"],
  ["failed", "failed"],
  ["cancelled", "interrupted"],
]);

const isOver = ({ status }: Fields): boolean => outcomes.has(String(status));
const isInHub = ({ metadata }: Fields): boolean => typeof fieldsOf(metadata)?.["autoApproveTools"] === "boolean";

const blocksOf = ({ content }: Fields): Fields[] =>
  Array.isArray(content) ? content.map((block) => fieldsOf(block) ?? {}) : [];
const isPrompt = (row: Line): boolean => row["role"] === "user" && blocksOf(row).some(({ type }) => type === "text");

function turnOf([state, ...messages]: readonly Line[]): Turn {
  if (state === undefined) return noTurn;
  const newest = messages.at(-1);
  const outcome = outcomes.get(String(state["status"]));
  if (outcome !== undefined) return closed(outcome, null, Date.parse(String(state["ended_at"])));
  if (state["status"] === "idle") {
    if (newest === undefined) return noTurn;
    const isError = fieldsOf(newest["metadata"])?.["displayRole"] === "error";
    const ended = newest["role"] === "user" ? "interrupted" : isError ? "failed" : "completed";
    return closed(ended, null, newest.atMs);
  }
  const call = blocksOf(newest ?? {}).findLast(({ type }) => type === "tool_use");
  // Its prompt is not written yet: no later than the status.
  const isUnwritten = newest?.["role"] === "assistant" && call === undefined;
  const prompt = messages.findLast(isPrompt) ?? messages[0];
  const open = openedAt(isUnwritten ? Number(state["writtenMs"]) : (prompt?.atMs ?? state.atMs));
  if (isInHub(state)) return { ...open, doubt: true };
  const { commands, question } = fieldsOf(call?.["input"]) ?? {};
  if (state["status"] === "pending") return { ...open, question: Array.isArray(commands) ? commands.join("\n") : "" };
  if (question === undefined) return open;
  // A session that was started headless is always recorded as headless, so it is unclear whether a person is asked.
  return state["interactive"] === true ? { ...open, question: String(question) } : { ...open, doubt: true };
}
