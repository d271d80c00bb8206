// Pi 0.73.1 and 0.87.1, as src/agents/pi/README.md and its captured files show them.
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type Fields, type Format, wordsOf } from "./format.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

export const piFormat: Format = {
  agent: "pi",
  command: "pi",
  program: {
    agent: {
      exe: "node",
      name: "pi",
      // Its title takes the room of its arguments.
      commandLine: (argv) => "pi".padEnd(wordsOf(["node", "/usr/bin/pi", ...argv]).length, "\0"),
    },
    wrapper: null,
  },
  home: "user/.pi/agent",
  environment: () => ({}),
  records: "sessions",
  announcements: null,
  database: null,
  idInside: false,
  lock: null,
  newId: (dice) => dice.uuid().replace(/^(.{14})./, "$17"),
  recordPath({ home, id, cwd, bornMs }) {
    const folder = `--${cwd.slice(1).replace(/[/\\:]/g, "-")}--`;
    return join(home, "sessions", folder, `${new Date(bornMs).toISOString().replace(/[:.]/g, "-")}_${id}.jsonl`);
  },
  argv(manner, id, dice) {
    const style = dice.pick([[], ["-p"], ["--mode", "json"]]);
    return manner === "resume" ? [...style, "--session", id] : style;
  },
  mayMoveOn: () => false,
  argvNames: () => false,
  nestedArgv: (id) => ["-p", id],
  hidesArguments: true,
  tidiesOnTerm: false,
  writesLate: false,
  announces: () => false,
  manyWriters: false,
  can: (_session, event) => !["question", "answer", "background"].includes(event),
  begin,
  lines: (session, event, fields, actor) => whenAnswered(session, linesOf(session, event, fields, actor)),
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(value) {
      const { type, timestamp, cwd } = value;
      if (typeof type !== "string" || typeof timestamp !== "string") return null;
      return { ...value, type, atMs: Date.parse(timestamp), cwd: typeof cwd === "string" ? cwd : null };
    },
    isHeader: ({ type }) => type === "session",
    isMark: (line) => roleOf(line) === "user" || isLastAnswer(line),
    isMessage: ({ type }) => type === "message",
    turnOf,
  },
};

const isLate = ({ number }: Session): boolean => number % 2 === 1;

/** Started by hand, it writes nothing before its first answer is complete. */
function begin(session: Session, actor: FakeAgent | null): string {
  const { scratch, id, cwd } = session;
  const me = `${actor?.pid} ${actor?.start}`;
  if (isLate(session) && scratch["unwritten"] !== undefined && scratch["writer"] === me) return "";
  Object.assign(scratch, { writer: me, unwritten: "", leaf: null });
  const header = `${JSON.stringify({ type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd })}\n`;
  const model = entry(session, "model_change", { provider: "fake", modelId: "fake-1" });
  if (!isLate(session)) return header + model;
  scratch["unwritten"] = header + model;
  return "";
}

function whenAnswered({ scratch }: Session, text: string): string {
  if (typeof scratch["unwritten"] !== "string") return text;
  const all = scratch["unwritten"] + text;
  scratch["unwritten"] = all.includes('"role":"assistant"') || scratch["unwritten"] === "" ? undefined : all;
  return scratch["unwritten"] === undefined ? all : "";
}

function entry(session: Session, type: string, fields: Fields): string {
  const id = crypto.randomUUID().slice(0, 8);
  const line = { type, id, parentId: session.scratch["leaf"] ?? null, timestamp: new Date().toISOString(), ...fields };
  session.scratch["leaf"] = id;
  return `${JSON.stringify(line)}\n`;
}

function linesOf(session: Session, event: string, fields: Fields, _actor: FakeAgent | null): string {
  const { scratch } = session;
  const text = String(fields["text"] ?? "");
  const message = (role: string, rest: Fields) => entry(session, "message", { message: { role, ...rest } });
  const usage = { input: 1234, output: 56, cacheRead: 200, cacheWrite: 0, totalTokens: 1490, cost: { total: 0.01 } };
  const answer = (content: Fields[], stopReason: string, rest: Fields = {}) =>
    message("assistant", { content, provider: "fake", model: "fake-1", usage, stopReason, ...rest });
  const result = (words: string): string => {
    const { call } = scratch;
    scratch["call"] = null;
    if (call == null) return "";
    const content = [{ type: "text", text: words }];
    return message("toolResult", { toolCallId: call, toolName: "bash", content, isError: false });
  };
  const call = (words: Fields[]): string => {
    const before = result("ok");
    scratch["call"] = `call_${crypto.randomUUID()}`;
    const part = { type: "toolCall", id: scratch["call"], name: "bash", arguments: { command: "ls" } };
    return before + answer([...words, part], "toolUse");
  };

  if (event === "title") return entry(session, "session_info", { name: text });
  if (event === "prompt") {
    scratch["call"] = null;
    // A person went back to the start of its tree.
    if (fields["mode"] === "plan") scratch["leaf"] = scratch["first"] ?? scratch["leaf"];
    const line = message("user", { content: [{ type: "text", text }], timestamp: Date.now() });
    scratch["first"] ??= scratch["leaf"];
    return line;
  }
  if (event === "reply") return call([{ type: "text", text }]) + result(text);
  if (event === "tool") return call([]);
  if (event === "tool-result") return result(text);
  const before = result(fields["outcome"] === "interrupted" ? "Command aborted" : "ok");
  if (fields["outcome"] === "completed") return before + answer([{ type: "text", text }], "stop");
  if (fields["outcome"] === "interrupted") return before + answer([], "aborted");
  const errors = ["400 no such model", "401 no such key", "500 busy"];
  return before + answer([], "error", { errorMessage: errors[text.length % errors.length] });
}

// --- reading back

function messageOf(line: Line): Fields {
  return line.type === "message" ? (fieldsOf(line["message"]) ?? {}) : {};
}

const roleOf = (line: Line): string => String(messageOf(line)["role"] ?? "");

function isCall(line: Line): boolean {
  const { content } = messageOf(line);
  return Array.isArray(content) && content.some((part) => fieldsOf(part)?.["type"] === "toolCall");
}

const isLastAnswer = (line: Line): boolean => roleOf(line) === "assistant" && !isCall(line);

/** From the last line up its branch. */
function turnOf(all: readonly Line[]): Turn {
  const byId = new Map(all.map((line) => [line["id"], line]));
  const branch: Line[] = [];
  let at: Line | undefined = all.at(-1);
  for (; at !== undefined && !branch.includes(at) && at.type !== "session"; at = byId.get(at["parentId"] ?? "none"))
    branch.push(at);
  const newest = branch.find((line) => line.type === "message");
  if (newest === undefined) return noTurn;
  const prompt = branch.find((line) => roleOf(line) === "user");
  if (!isLastAnswer(newest)) return openedAt(prompt?.atMs ?? Number.NaN);
  const { stopReason, errorMessage } = messageOf(newest);
  const error = String(errorMessage ?? "");
  if (stopReason === "stop") return closed("completed", null, newest.atMs);
  if (stopReason === "aborted") return closed("interrupted", null, newest.atMs);
  // It may be about to try again.
  if (error.startsWith("500")) return { ...closed("failed", null, newest.atMs), doubt: true };
  return closed("failed", error.startsWith("401") ? error : null, newest.atMs);
}
