// The protocol of Codex's app-server: lists its threads and what they are doing, interrupts turns, and sends messages.
import type { ServedSession, Waiting } from "../../core/evidence.ts";
import type { RequestAnswer } from "../../core/failure.ts";
import { type ProblemDetail, type Reading, read, unread } from "../../core/problem.ts";
import type { ServerProtocol, Talk } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, isUuid, listIn, parsedFields, textIn, textsIn, uuidIn } from "../fields.ts";

export const daemon: ServerProtocol = {
  at: { folder: "app-server-control", name: /^(?<id>app-server-control)\.sock$/ },
  transport: "websocket",
  sessions: () => ({ opening: [hello()], next: nextMessages }),
  interrupt: (id) => ({ opening: [hello()], next: (heard) => nextInterrupting(id, heard) }),
  send: (id, text, messageId) => ({ opening: [hello()], next: (heard) => nextSending(id, text, messageId, heard) }),
};

/** The queue of a thread belongs to the experimental API. */
function hello(): string {
  const clientInfo = { name: "agentctl", title: "agentctl", version: "1" };
  return request("initialize", "initialize", { clientInfo, capabilities: { experimentalApi: true } });
}

const request = (id: string, method: string, params: Fields): string => JSON.stringify({ id, method, params });
const initialized = JSON.stringify({ method: "initialized" });

const listPage = (cursor: string | null): string =>
  request(`list ${cursor ?? ""}`, "thread/loaded/list", cursor === null ? {} : { cursor });

/** Sends initialize, then asks for the loaded threads page by page, then for each thread. */
function nextMessages(heard: readonly string[]): ReturnType<Talk<ServedSession[]>["next"]> {
  const answers = heard.map(answerOf).filter((answer) => answer !== null);
  const newest = answerOf(heard.at(-1) ?? "");
  const pages = answers.filter(({ id }) => id.startsWith("list "));
  const ids = pages.flatMap(({ result }) => idsIn(result));
  const failed = answers.find(({ id, error }) => error && !isUuid(id));
  if (failed !== undefined) return { answer: silent({ code: "no-answer", request: failed.id }) };
  if (newest === null) return { send: [] };
  if (newest.id === "initialize") return { send: [initialized, listPage(null)] };
  const cursor = textIn(newest.result, "nextCursor");
  const reads = idsIn(newest.result).map((id) => request(id, "thread/read", { threadId: id, includeTurns: false }));
  if (newest.id.startsWith("list ") && cursor !== null) return { send: [listPage(cursor), ...reads] };
  if (newest.id.startsWith("list ") && reads.length > 0) return { send: reads };
  const threads = answers.filter(({ id }) => isUuid(id));
  const isWhole = pages.some(({ result }) => textIn(result, "nextCursor") === null);
  const answered = new Set(threads.map(({ id }) => id));
  if (!isWhole || ids.some((id) => !answered.has(id))) return { send: [] };
  return {
    answer: read(
      threads.filter(({ id }) => ids.includes(id)).flatMap(({ result }) => servedOf(fieldsIn(result, "thread")) ?? []),
    ),
  };
}

const idsIn = (result: Fields): string[] => textsIn(result, "data").filter(isUuid);

/** null: not an answer, but a message that the daemon sends without a request. */
function answerOf(text: string): { id: string; result: Fields; error: boolean; refusal: string | null } | null {
  const fields = parsedFields(text) ?? {};
  const id = textIn(fields, "id");
  if (id === null || "method" in fields) return null;
  const refusal = textIn(fieldsIn(fields, "error"), "message");
  return { id, result: fieldsIn(fields, "result"), error: fieldsOf(fields["result"]) === null, refusal };
}

/** null: a thread that is not a session (it only makes a title), or a thread that another process has. */
function servedOf(thread: Fields): ServedSession | null {
  const id = uuidIn(thread, "id");
  const status = fieldsIn(thread, "status");
  if (id === null || thread["ephemeral"] === true || status["type"] === "notLoaded") return null;
  // After a failed turn the type is systemError until the next turn begins. The thread still accepts prompts.
  if (status["type"] === "idle" || status["type"] === "systemError") return { id, activity: "idle", waiting: null };
  const flags = status["activeFlags"];
  if (status["type"] !== "active" || !Array.isArray(flags)) return { id, activity: "unclear", waiting: null };
  const waits = (kind: Waiting["kind"]): ServedSession => ({
    ...{ id, activity: "waiting" },
    waiting: { kind, text: null, tool: null, options: [] },
  });
  if (flags.includes("waitingOnApproval")) return waits("permission");
  if (flags.includes("waitingOnUserInput")) return waits("question");
  return { id, activity: flags.length === 0 ? "working" : "unclear", waiting: null };
}

/** Sends initialize, then asks for the newest turn of the thread, then interrupts that turn if it is in progress. */
function nextInterrupting(id: string, heard: readonly string[]): ReturnType<Talk<RequestAnswer>["next"]> {
  const newest = answerOf(heard.at(-1) ?? "");
  if (newest === null) return { send: [] };
  // 0.166.0 lists no turns of a thread without a prompt, and a turn may end while we ask.
  if (/not materialized|no active turn/.test(newest.refusal ?? "")) return { answer: read("no-turn") };
  if (newest.error) return { answer: refused(newest) };
  if (newest.id === "initialize")
    return {
      send: [initialized, request("turns", "thread/turns/list", { threadId: id, limit: 1, itemsView: "notLoaded" })],
    };
  if (newest.id !== "turns") return { answer: read("interrupted") };
  const [turn = {}] = listIn(newest.result, "data");
  const turnId = turn["status"] === "inProgress" ? textIn(turn, "id") : null;
  if (turnId === null) return { answer: read("no-turn") };
  return { send: [request("interrupt", "turn/interrupt", { threadId: id, turnId })] };
}

const refused = ({ id, refusal }: { id: string; refusal: string | null }): Reading<never> =>
  silent(refusal ? { code: "server-refused", text: refusal } : { code: "no-answer", request: id });

const silent = (detail: ProblemDetail): Reading<never> =>
  unread({ code: "server-silent", agent: "codex", source: "", detail });

/**
 * Starts a turn if the thread is idle: a queued message would wait until a person opens the thread (0.166.0, after an
 * interruption). If a turn is in progress, the message is queued, because a new turn would interrupt the old one.
 */
function nextSending(
  id: string,
  text: string,
  clientUserMessageId: string,
  heard: readonly string[],
): ReturnType<Talk<RequestAnswer>["next"]> {
  const newest = answerOf(heard.at(-1) ?? "");
  if (newest === null) return { send: [] };
  if (newest.error) return { answer: refused(newest) };
  const input = [{ type: "text", text }];
  if (newest.id === "initialize")
    return { send: [initialized, request("state", "thread/read", { threadId: id, includeTurns: false })] };
  if (newest.id !== "state") return { answer: read(newest.id === "queued" ? "queued" : "begun") };
  const isActive = fieldsIn(fieldsIn(newest.result, "thread"), "status")["type"] === "active";
  const sent = isActive
    ? request("queued", "thread/queue/add", { threadId: id, clientUserMessageId, input })
    : request("begun", "turn/start", { threadId: id, input });
  return { send: [sent] };
}
