// Qwen Code 0.24.4, as src/agents/qwen/README.md and its captured files show it: interfaces announce themselves, headless ones do not.
import { join } from "node:path";
import type { FakeAgent } from "./fake-agent.ts";
import { type Fields, type Format, wordsOf } from "./format.ts";
import { closed, fieldsOf, type Line, noTurn, openedAt, parseObject, type Turn } from "./read-record.ts";
import type { Session } from "./simulated-host.ts";

const library = "/usr/lib/node_modules/@qwen-code/qwen-code";

export const qwenFormat: Format = {
  agent: "qwen",
  command: "qwen",
  program: {
    agent: {
      exe: "node",
      name: "node-MainThread",
      environment: { QWEN_CODE_NO_RELAUNCH: "true" },
      commandLine: (argv) => wordsOf(["/usr/bin/node", "--expose-gc", `${library}/cli.js`, ...argv]),
    },
    wrapper: {
      exe: "node",
      name: "node-MainThread",
      commandLine: (argv) => wordsOf(["node", "/usr/bin/qwen", ...argv]),
    },
  },
  home: "user/.qwen",
  environment: () => ({}),
  records: "projects",
  announcements: {
    folder: "sessions",
    inPlace: false,
    hasBoot: true,
    hasNamespace: () => true,
    fileOf: ({ pid }) => `${pid}.json`,
    pattern: /^(?<pid>\d+)\.json$/,
    write({ pid, start, boot, namespace, session }, { cwd }) {
      const pidNs = Number(/\d+/.exec(namespace ?? "")?.[0]);
      return JSON.stringify({ pid, procStart: `${boot}:${start}`, pidNs, sessionId: session, cwd, kind: "tui" });
    },
    parse(text, pid) {
      const { procStart, pidNs, sessionId, ...rest } = parseObject(text) ?? {};
      if (rest["pid"] !== pid || typeof sessionId !== "string" || typeof procStart !== "string") return null;
      const [boot = null, start = null] = procStart.split(":");
      return { pid, start, boot, namespace: `pid:[${pidNs}]`, session: sessionId, status: null, waitingFor: null };
    },
  },
  database: null,
  idInside: false,
  lock: null,
  newId: (dice) => dice.uuid(),
  recordPath: ({ home, id, cwd }) => join(home, "projects", cwd.replaceAll("/", "-"), "chats", `${id}.jsonl`),
  argv(manner, id, dice) {
    const headless = dice.pick([
      ["-p", "go"],
      ["-o", "stream-json"],
    ]);
    if (manner === "argv") return [...headless, "--session-id", id];
    if (manner === "resume") return [...(dice.chance(0.6) ? headless : []), "--resume", id];
    if (manner === "nameless") return dice.chance(0.5) ? headless : [];
    return dice.chance(0.5) ? [] : ["--session-id", id];
  },
  // An interface may have gone on to another session.
  mayMoveOn: () => false,
  argvNames: (argv, id) => argv.at(-1) === id,
  nestedArgv: (id) => ["-p", "go", "--session-id", id],
  hidesArguments: false,
  tidiesOnTerm: true,
  writesLate: false,
  announces: (argv) => !isHeadless(argv),
  manyWriters: false,
  can: (_session, event, actor) => event !== "background" && (event !== "question" || !isHeadless(actor?.argv ?? [])),
  begin: () => "",
  lines,
  wordAfter: () => null,
  firstWord: () => ({ status: null, waitingFor: null }),
  reader: {
    accept(value) {
      const { type, timestamp, cwd, sessionId } = value;
      if (typeof type !== "string" || typeof sessionId !== "string") return null;
      const atMs = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
      return { ...value, type, atMs, cwd: typeof cwd === "string" ? cwd : null };
    },
    isHeader: () => true,
    isMark: ({ type }) => type === "user",
    isMessage: ({ type }) => type !== "system",
    turnOf,
  },
};

const isHeadless = (argv: readonly string[]): boolean => argv[0] === "-p" || argv[0] === "-o";

function lines(session: Session, event: string, fields: Fields, actor: FakeAgent | null): string {
  const { scratch, id: sessionId, cwd } = session;
  const text = String(fields["text"] ?? "");
  const line = (type: string, rest: Fields): string => {
    const uuid = crypto.randomUUID();
    const timestamp = new Date().toISOString();
    const row = {
      uuid,
      parentUuid: scratch["leaf"] ?? null,
      sessionId,
      timestamp,
      type,
      cwd,
      version: "0.24.4",
      ...rest,
    };
    scratch["leaf"] = uuid;
    return `${JSON.stringify(row)}\n`;
  };
  const system = (subtype: string, systemPayload: Fields) => line("system", { subtype, systemPayload });
  const counted = (name: string, rest: Fields = {}) => {
    const uiEvent = { "event.name": `qwen-code.${name}`, prompt_id: `${sessionId}########1`, ...rest };
    return system("ui_telemetry", { uiEvent });
  };
  const said = (parts: Fields[]): string => {
    const usageMetadata = { promptTokenCount: 1234, candidatesTokenCount: 56, cachedContentTokenCount: 200 };
    return (
      counted("api_response") + line("assistant", { message: { role: "model", parts }, model: "fake-1", usageMetadata })
    );
  };
  const call = (words: Fields[], command: string): string => {
    scratch["call"] = `call_${crypto.randomUUID()}`;
    return said([...words, { functionCall: { id: scratch["call"], name: "run_shell_command", args: { command } } }]);
  };
  const result = (output: string, status = "success"): string => {
    const { call: callId } = scratch;
    scratch["call"] = null;
    if (callId == null) return "";
    const parts = [{ functionResponse: { id: callId, name: "run_shell_command", response: { output } } }];
    return line("tool_result", { message: { role: "user", parts }, toolCallResult: { callId, status } });
  };

  if (event === "title") return system("custom_title", { customTitle: text });
  if (event === "prompt") {
    scratch["call"] = null;
    const prompt = line("user", { message: { role: "user", parts: [{ text }] }, provenance: "real_user" });
    return isHeadless(actor?.argv ?? []) ? prompt : prompt + system("file_history_snapshot", {});
  }
  if (event === "reply") return result("ok") + call([{ text }], "ls") + result("ok");
  if (event === "tool") return call([], "ls");
  if (event === "tool-result" || event === "answer") return result(text);
  if (event === "question") return scratch["call"] == null ? call([], text) : "";
  if (fields["outcome"] === "completed") return result("ok") + said([{ text }]);
  if (fields["outcome"] === "failed")
    return result("ok") + counted("api_error", { status_code: text.length % 2 === 0 ? 400 : 429, error_message: "no" });
  if (scratch["call"] != null) return result("", "cancelled");
  return line("assistant", { message: { role: "model", parts: [{ text: `${text} so far` }] }, model: "fake-1" });
}

// --- reading back

function partsOf(row: Line): Fields[] {
  const parts = fieldsOf(row["message"])?.["parts"];
  return Array.isArray(parts) ? parts.map((part) => fieldsOf(part) ?? {}) : [];
}

function turnOf(all: readonly Line[]): Turn {
  const at = all.findLastIndex(({ type }) => type === "user");
  const prompt = all[at];
  if (prompt === undefined) return all.some(({ type }) => type !== "system") ? { ...noTurn, turn: "unclear" } : noTurn;
  const since = all.slice(at + 1);
  // Only an interface takes snapshots; there a turn may be cancelled without a trace.
  const isShown = since.some((row) => row["subtype"] === "file_history_snapshot");
  const open: Turn = { ...openedAt(prompt.atMs), doubt: isShown };
  let says = open;
  for (const row of since) {
    const event = fieldsOf(fieldsOf(row["systemPayload"])?.["uiEvent"]) ?? {};
    const [command] = partsOf(row).flatMap(
      (part) => fieldsOf(fieldsOf(part["functionCall"])?.["args"])?.["command"] ?? [],
    );
    if (row.type === "assistant" && command !== undefined) says = { ...open, pending: String(command), doubt: true };
    else if (row.type === "assistant")
      says = closed(row["usageMetadata"] === undefined ? "interrupted" : "completed", null, row.atMs);
    if (row.type === "tool_result" && fieldsOf(row["toolCallResult"])?.["status"] === "cancelled")
      says = closed("interrupted", null, row.atMs);
    else if (row.type === "tool_result") says = says.turn === "closed" ? { ...noTurn, turn: "unclear" } : open;
    // It may try again what may pass.
    if (event["event.name"] === "qwen-code.api_error")
      says = { ...closed("failed", null, row.atMs), doubt: event["status_code"] === 429 };
  }
  return says;
}
