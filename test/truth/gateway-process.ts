// A program of its own: stands for OpenClaw's gateway. It holds the data folder's lock, listens, and answers out of what the
// harness says it has in mind (gateway.ts): a file that is read at every question. Without a lock it is one that is still starting.
import { Database } from "bun:sqlite";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { ServerWebSocket } from "bun";
import type { Memory, Run } from "./gateway.ts";

const { FAKE_MEMORY: memoryPath = "", FAKE_LOCK: lockPath = "", FAKE_NAME: name = "" } = process.env;
const recall = (): Memory => JSON.parse(readFileSync(memoryPath, "utf8"));

interface Request {
  id: string;
  method: string;
  params: Record<string, unknown>;
}

type Socket = ServerWebSocket<unknown>;

const say = (socket: Socket, message: object): void => void socket.send(JSON.stringify(message));
const answer = (socket: Socket, { id }: Request, payload: unknown): void =>
  say(socket, { type: "res", id, ok: true, payload });
const refuse = (socket: Socket, { id }: Request, message: string): void =>
  say(socket, { type: "res", id, ok: false, error: { code: "INVALID_REQUEST", message } });

function hear(socket: Socket, request: Request): void {
  const memory = recall();
  const { manner } = memory;
  if (manner === "silent") return;
  // It talks about other things in between.
  say(socket, { type: "event", event: "tick", payload: { ts: Date.now() } });
  const refusal = refusalOf(request, memory);
  if (manner === "garbage") socket.send("not json");
  else if (refusal !== null) refuse(socket, request, refusal);
  else if (manner !== "hanging up" || request.method === "connect") answer(socket, request, payloadOf(request, memory));
  if (manner === "garbage" || (manner === "hanging up" && request.method !== "connect")) socket.close();
}

function refusalOf({ method, params }: Request, { manner, token }: Memory): string | null {
  if (method === "connect") {
    const auth = (params["auth"] ?? {}) as { token?: string };
    if (manner === "starting") return "gateway starting; retry shortly";
    return auth.token === token ? null : "unauthorized: gateway token mismatch";
  }
  if (manner === "refusing") return "internal error";
  return manner === "blind" && method.endsWith("approval.list") ? "missing scope: operator.approvals" : null;
}

function payloadOf({ method, params }: Request, memory: Memory): unknown {
  const { runs } = memory;
  if (method === "connect") return { type: "hello-ok", protocol: 4 };
  if (method === "sessions.list") return listOf(memory, Number(params["offset"]));
  if (method === "exec.approval.list") return asking(runs, "permission").map(approvalOf);
  if (method === "plugin.approval.list") return [];
  if (method === "question.list") return { questions: asking(runs, "question").map(questionOf) };
  if (method === "sessions.resolve") return { ok: true, key: keyOf(String(params["sessionId"])), agentId: "main" };
  return method === "sessions.abort" ? abort(memory, String(params["key"])) : {};
}

/** Includes sessions without a run, as the gateway answers a request without a filter. */
function listOf({ runs, others, page, manner }: Memory, offset: number) {
  const active = runs.map(({ sessionId }) => ({
    ...{ key: keyOf(sessionId), sessionId, status: "running" },
    ...(manner === "odd" ? {} : { hasActiveRun: true }),
  }));
  const idle = others.map((sessionId) => ({ key: keyOf(sessionId), sessionId, status: "done", hasActiveRun: false }));
  const all = [...idle, ...active];
  const nextOffset = offset + page < all.length ? offset + page : null;
  const sessions = all.slice(offset, offset + page);
  return { count: sessions.length, totalCount: all.length, nextOffset, hasMore: nextOffset !== null, sessions };
}

const keyOf = (sessionId: string): string => `agent:main:dashboard:${sessionId}`;

const asking = (runs: Run[], kind: string): Run[] => runs.filter(({ asks }) => asks?.kind === kind);

const approvalOf = ({ sessionId, asks }: Run) => ({
  id: sessionId,
  request: { command: asks?.text, sessionKey: keyOf(sessionId), allowedDecisions: ["allow-once", "deny"] },
});

const questionOf = ({ sessionId, asks }: Run) => ({
  ...{ id: sessionId, sessionKey: keyOf(sessionId), status: "pending" },
  questions: [{ questionId: "q", question: asks?.text, options: [{ label: "yes" }, { label: "no" }] }],
});

function abort(memory: Memory, key: string) {
  const [run] = memory.runs.filter(({ sessionId }) => keyOf(sessionId) === key);
  if (run === undefined) return { status: "no-active-run" };
  recordEnd(memory.database, run.sessionId);
  const left = { ...memory, runs: memory.runs.filter((each) => each !== run) };
  writeFileSync(`${memoryPath}.tmp`, JSON.stringify(left));
  renameSync(`${memoryPath}.tmp`, memoryPath);
  return { status: "aborted" };
}

function recordEnd(path: string, sessionId: string): void {
  try {
    using database = new Database(path, { readwrite: true, create: false });
    const sql = "update session_windows set status = 'killed', ended_at = ?, updated_at = ? where session_id = ?";
    database.run(sql, [Date.now(), Date.now(), sessionId]);
  } catch (error) {
    // What stands there may be no database.
    if (!(error instanceof Error) || error.name !== "SQLiteError") throw error;
  }
}

const lock = lockPath === "" ? null : new Database(lockPath, { create: true });
lock?.run("begin exclusive");

if (lock !== null && recall().manner !== "local")
  Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request, server) {
      if (recall().manner !== "draining" && server.upgrade(request)) return undefined;
      return new Response("draining", { status: 503 });
    },
    websocket: {
      open(socket) {
        const payload = { nonce: crypto.randomUUID(), ts: Date.now() };
        if (recall().manner !== "silent") say(socket, { type: "event", event: "connect.challenge", payload });
      },
      message: (socket, text) => hear(socket, JSON.parse(String(text))),
    },
  });
// Asked to end, it first lets its turns end.
process.on("SIGTERM", () => {
  if (recall().manner !== "draining") process.exit(0);
});
// Also keeps the lock from being collected.
setInterval(() => lock?.filename, 1_000_000);
// The sign that it is ready.
writeFileSync("/proc/self/comm", name);
