// How Codex's app-server is asked which threads it has loaded, and what they are doing.
import type { HostedSession, Waiting } from "../core/evidence.ts";
import { read, unread } from "../core/problem.ts";
import type { HostProtocol, Talk } from "./adapter.ts";
import { type Fields, fieldsIn, fieldsOf, isUuid, jsonIn, listIn, textIn, uuidIn } from "./fields.ts";

export const daemon: HostProtocol = {
  at: { folder: "app-server-control", name: /^(?<id>app-server-control)\.sock$/ },
  transport: "websocket",
  sessions: () => ({ opening: [hello()], next: nextMessages }),
  interrupt: (id) => ({ opening: [hello()], next: (heard) => nextInterrupting(id, heard) }),
  send: (id, text, messageId) => ({ opening: [hello()], next: (heard) => nextSending(id, text, messageId, heard) }),
};

/** The queue of a thread is one of the things that it calls experimental. */
function hello(): string {
  const clientInfo = { name: "agentctl", title: "agentctl", version: "1" };
  return request("initialize", "initialize", { clientInfo, capabilities: { experimentalApi: true } });
}

function request(id: string, method: string, params: Fields): string {
  return JSON.stringify({ id, method, params });
}

const listPage = (cursor: string | null): string =>
  request(`list ${cursor ?? ""}`, "thread/loaded/list", cursor === null ? {} : { cursor });

/** initialize, then the loaded threads page by page, then each of them: all by its own answers. */
function nextMessages(heard: readonly string[]): ReturnType<Talk<HostedSession[]>["next"]> {
  const answers = heard.map(answerOf).filter((answer) => answer !== null);
  const newest = answerOf(heard.at(-1) ?? "");
  const pages = answers.filter(({ id }) => id.startsWith("list "));
  const ids = pages.flatMap(({ result }) => idsIn(result));
  const failed = answers.find(({ id, error }) => error && !isUuid(id));
  if (failed !== undefined)
    return {
      answer: unread({ code: "host-silent", agent: "codex", source: "", message: `no answer to ${failed.id}` }),
    };
  if (newest === null) return { send: [] };
  if (newest.id === "initialize") return { send: [JSON.stringify({ method: "initialized" }), listPage(null)] };
  const cursor = textIn(newest.result, "nextCursor");
  const reads = idsIn(newest.result).map((id) => request(id, "thread/read", { threadId: id, includeTurns: false }));
  if (newest.id.startsWith("list ") && cursor !== null) return { send: [listPage(cursor), ...reads] };
  if (newest.id.startsWith("list ") && reads.length > 0) return { send: reads };
  const threads = answers.filter(({ id }) => isUuid(id));
  const isWhole = pages.some(({ result }) => textIn(result, "nextCursor") === null);
  const heardOf = new Set(threads.map(({ id }) => id));
  if (!isWhole || ids.some((id) => !heardOf.has(id))) return { send: [] };
  return {
    answer: read(
      threads.filter(({ id }) => ids.includes(id)).flatMap(({ result }) => hostedOf(fieldsIn(result, "thread")) ?? []),
    ),
  };
}

const idsIn = (result: Fields): string[] =>
  Array.isArray(result["data"]) ? result["data"].filter((id) => typeof id === "string" && isUuid(id)) : [];

/** null: something that the daemon says by itself. */
function answerOf(text: string): { id: string; result: Fields; error: boolean; refusal: string | null } | null {
  const fields = fieldsOf(jsonIn({ text }, "text")) ?? {};
  const id = textIn(fields, "id");
  if (id === null || "method" in fields) return null;
  const refusal = textIn(fieldsIn(fields, "error"), "message");
  return { id, result: fieldsIn(fields, "result"), error: fieldsOf(fields["result"]) === null, refusal };
}

/** null: a thread that is no session (a title being made up), or that another process has. */
function hostedOf(thread: Fields): HostedSession | null {
  const id = uuidIn(thread, "id");
  const status = fieldsIn(thread, "status");
  if (id === null || thread["ephemeral"] === true || status["type"] === "notLoaded") return null;
  // After a turn that failed it says systemError until the next one begins; it takes prompts all the same.
  if (status["type"] === "idle" || status["type"] === "systemError") return { id, activity: "idle", waiting: null };
  const flags = status["activeFlags"];
  if (status["type"] !== "active" || !Array.isArray(flags)) return { id, activity: "unclear", waiting: null };
  const waits = (kind: Waiting["kind"]): HostedSession => ({
    ...{ id, activity: "waiting" },
    waiting: { kind, text: null, tool: null, options: [] },
  });
  if (flags.includes("waitingOnApproval")) return waits("permission");
  if (flags.includes("waitingOnUserInput")) return waits("question");
  return { id, activity: flags.length === 0 ? "working" : "unclear", waiting: null };
}

/** initialize, then the newest turn of the thread, then its end if it is going on. */
function nextInterrupting(id: string, heard: readonly string[]): ReturnType<Talk<string>["next"]> {
  const newest = answerOf(heard.at(-1) ?? "");
  if (newest === null) return { send: [] };
  // 0.166.0 lists no turns of a thread without a prompt, and a turn may end while we ask.
  if (/not materialized|no active turn/.test(newest.refusal ?? "")) return { answer: read("no turn was going on") };
  if (newest.error) return { answer: refused(newest) };
  if (newest.id === "initialize")
    return {
      send: [
        JSON.stringify({ method: "initialized" }),
        request("turns", "thread/turns/list", { threadId: id, limit: 1, itemsView: "notLoaded" }),
      ],
    };
  if (newest.id !== "turns") return { answer: read("its turn was interrupted") };
  const [turn = {}] = listIn(newest.result, "data");
  const turnId = turn["status"] === "inProgress" ? textIn(turn, "id") : null;
  if (turnId === null) return { answer: read("no turn was going on") };
  return { send: [request("interrupt", "turn/interrupt", { threadId: id, turnId })] };
}

const refused = ({ id, refusal }: { id: string; refusal: string | null }) =>
  unread({ code: "host-silent", agent: "codex", source: "", message: refusal || `no answer to ${id}` });

/**
 * A turn of its own where the thread is idle: what is queued there may wait for somebody to open it (0.166.0, after an
 * interruption). Where a turn is going on a new one would break into it, so there it is queued.
 */
function nextSending(
  id: string,
  text: string,
  clientUserMessageId: string,
  heard: readonly string[],
): ReturnType<Talk<string>["next"]> {
  const newest = answerOf(heard.at(-1) ?? "");
  if (newest === null) return { send: [] };
  if (newest.error) return { answer: refused(newest) };
  const input = [{ type: "text", text }];
  switch (newest.id) {
    case "initialize":
      return {
        send: [
          JSON.stringify({ method: "initialized" }),
          request("state", "thread/read", { threadId: id, includeTurns: false }),
        ],
      };
    case "state": {
      const status = fieldsIn(fieldsIn(newest.result, "thread"), "status")["type"];
      return {
        send: [
          status === "active"
            ? request("queued", "thread/queue/add", { threadId: id, clientUserMessageId, input })
            : request("begun", "turn/start", { threadId: id, input }),
        ],
      };
    }
    default:
      return { answer: read(newest.id === "queued" ? "queued behind its turn" : "it has begun with it") };
  }
}
