// The protocol of OpenClaw's gateway: lists, begins and interrupts sessions, and sends messages to them.
import type { ServedSession, Waiting } from "../../core/evidence.ts";
import type { RequestAnswer } from "../../core/failure.ts";
import { type Reading, read, unread } from "../../core/problem.ts";
import type { ServerOrder, ServerProtocol, Talk, TalkContext } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, listIn, numberIn, parsedFields, textIn, textsIn } from "../fields.ts";
import type { Permission } from "../invocation.ts";
import { firstQuestion } from "../record-lines.ts";
import { sessionIn } from "./store.ts";

/** The process that uses the data folder locks this file: a gateway, or a command that works without a gateway. */
export const stateLock = /^(.*)\/tmp\/openclaw(?:-\d+)?\/gateway\.state\.lock\.sqlite$/;

export const gateway: ServerProtocol = {
  at: { listens: ({ lockedFiles }) => lockedFiles.some((path) => stateLock.test(path)) },
  transport: "websocket",
  secret: { environment: "OPENCLAW_GATEWAY_TOKEN", file: "openclaw.json", find: tokenIn },
  start: "openclaw gateway run",
  sessions: listing,
  interrupt: (id, asked) =>
    steps<RequestAnswer>(asked, [
      () => ["sessions.resolve", { sessionId: id }],
      (found) => ["sessions.abort", { ...keyIn(found), clearQueued: true }],
      ({ status }) => (status === "aborted" ? "interrupted" : "no-turn"),
    ]),
  send: (id, message, idempotencyKey, asked) =>
    steps<RequestAnswer>(asked, [
      () => ["sessions.resolve", { sessionId: id }],
      // By default (`steer`) a message during a turn would become part of that turn.
      (found) => ["chat.send", { ...chatOf(found), message, idempotencyKey, queueMode: "followup" }],
      ({ status }) => (status === "started" ? "begun" : "queued"),
    ]),
  create: (order, messageId, asked) =>
    order.kind === "continue"
      ? steps(asked, [
          () => ["sessions.resolve", { sessionId: order.session }],
          ...(Object.keys(settings(order)).length === 0 ? [] : [patch(settings(order))]),
          (found) => [
            "chat.send",
            { ...chatOf(found), message: order.prompt, idempotencyKey: messageId, ...limit(order) },
          ],
          () => order.session,
        ])
      : steps(asked, [
          () => ["sessions.create", { message: order.prompt, cwd: order.cwd, ...settings(order), ...limit(order) }],
          (answer) => (answer["runStarted"] === true ? sessionIn(answer, "sessionId") : null),
        ]),
};

/** A key is unique only together with the agent's id, because several agents may have the same key. */
const keyIn = ({ key, agentId }: Fields): Fields => ({ key, agentId });
const chatOf = ({ key, agentId }: Fields): Fields => ({ sessionKey: key, agentId });
const patch =
  (changes: Fields): GatewayStep =>
  (found) => ["sessions.patch", { ...keyIn(found), ...changes }];

/** `guarded` allows commands that a person approved before. Other commands are denied, because no person can answer. */
const modes: Readonly<Record<Permission, string>> = { read: "read-only", edit: "guarded", bypass: "full" };

const settings = ({ permission, model }: ServerOrder): Fields => ({
  ...(permission === null ? {} : { permissionMode: modes[permission] }),
  ...(model === null ? {} : { model }),
});

const limit = ({ maxTimeMs }: ServerOrder): Fields => (maxTimeMs === null ? {} : { timeoutMs: maxTimeMs });

/** The settings are JSON5. If they are not plain JSON, the text is searched; the gateway refuses a wrong token. */
function tokenIn(text: string): string | null {
  const auth = fieldsIn(fieldsIn(parsedFields(text) ?? {}, "gateway"), "auth");
  const plain = textIn(auth, "token") ?? textIn(auth, "password");
  if (plain !== null) return plain;
  const [, , found] = /\bauth["']?\s*:\s*\{[^}]*?\b(?:token|password)["']?\s*:\s*(["'])(.*?)\1/s.exec(text) ?? [];
  return found ?? null;
}

type GatewayRequest = [method: string, params: Fields];

const request = ([method, params]: GatewayRequest, id = method): string =>
  JSON.stringify({ type: "req", id, method, params });

/**
 * Authenticates with the token alone, as OpenClaw's own command does on the same host. Only an administrator sees requests that wait
 * for other clients. `caps` is empty: the gateway would wait for a client that says it can show questions to a person.
 */
const hello = (secret: string | null): string =>
  request([
    "connect",
    {
      minProtocol: 4,
      maxProtocol: 4,
      client: { id: "cli", displayName: "agentctl", version: "1", platform: "any", mode: "cli" },
      role: "operator",
      scopes: ["operator.read", "operator.write", "operator.admin", "operator.approvals", "operator.questions"],
      caps: [],
      ...(secret === null ? {} : { auth: { token: secret, password: secret } }),
    },
  ]);

interface GatewayAnswer {
  id: string;
  payload: unknown;
  /** The reason for a refusal; null: not refused. */
  refusal: string | null;
}

/** null: not an answer, but a message that the gateway sends without a request. */
function answerOf(text: string): GatewayAnswer | null {
  const fields = parsedFields(text) ?? {};
  const id = fields["type"] === "res" ? textIn(fields, "id") : null;
  if (id === null) return null;
  const refusal = fields["ok"] === true ? null : (textIn(fieldsIn(fields, "error"), "message") ?? "");
  return { id, payload: fields["payload"], refusal };
}

/** The gateway sends the first message, and then expects the client to authenticate. */
function greeted<T>(
  { secret }: TalkContext,
  heard: readonly string[],
  go: (answers: readonly GatewayAnswer[], newest: GatewayAnswer) => ReturnType<Talk<T>["next"]>,
): ReturnType<Talk<T>["next"]> {
  const answers = heard.flatMap((text) => answerOf(text) ?? []);
  const newest = answerOf(heard.at(-1) ?? "");
  if (newest === null) {
    const event = textIn(parsedFields(heard.at(-1) ?? null) ?? {}, "event");
    return { send: event === "connect.challenge" && answers.length === 0 ? [hello(secret)] : [] };
  }
  if (newest.id === "connect" && newest.refusal !== null) return { answer: refused(newest.refusal, secret) };
  return go(answers, newest);
}

function refused(words: string, secret: string | null): Reading<never> {
  const text = secret === null || secret === "" ? words : words.replaceAll(secret, "…");
  return unread({ code: "server-silent", agent: "openclaw", source: "", detail: { code: "server-refused", text } });
}

const pageSize = 200;

/** Archived sessions, and sessions without their own key, may be working, too. */
const listPage = (offset: number): string =>
  request(
    [
      "sessions.list",
      { limit: pageSize, offset, activeOnly: true, archived: "all", includeGlobal: true, includeUnknown: true },
    ],
    `sessions.list ${offset}`,
  );

const questionMethods = ["exec.approval.list", "plugin.approval.list", "question.list"];
const questions = questionMethods.map((method) => request([method, {}]));

function listing(asked: TalkContext): Talk<ServedSession[]> {
  const next: Talk<ServedSession[]>["next"] = (heard) =>
    greeted(asked, heard, (answers, newest) => {
      if (newest.id === "connect") return { send: [listPage(0), ...questions] };
      const pages = answers.filter(({ id }) => id.startsWith("sessions.list "));
      const failed = pages.find(({ refusal }) => refusal !== null);
      if (failed !== undefined) return { answer: refused(failed.refusal ?? "", asked.secret) };
      const more = pages.includes(newest) || newest.id.startsWith("sessions.list ") ? nextPage(newest) : null;
      if (more !== null) return { send: [listPage(more)] };
      const isWhole = pages.some((page) => nextPage(page) === null);
      const hasQuestions = questionMethods.every((method) => answers.some(({ id }) => id === method));
      return isWhole && hasQuestions ? { answer: read(servedIn(answers)) } : { send: [] };
    });
  return { opening: [], next };
}

const nextPage = ({ payload }: GatewayAnswer): number | null => numberIn(fieldsOf(payload) ?? {}, "nextOffset");

function servedIn(answers: readonly GatewayAnswer[]): ServedSession[] {
  const rows = answers.flatMap(({ id, payload }) =>
    id.startsWith("sessions.list ") ? listIn(fieldsOf(payload) ?? {}, "sessions") : [],
  );
  const asking = answers.filter(({ id }) => questionMethods.includes(id));
  const isUnsure = asking.some(({ refusal }) => refusal !== null);
  const waiting = new Map(asking.flatMap(({ payload }) => waitingIn(payload)));
  const active = rows.filter((row) => row["hasActiveRun"] !== false);
  return active.flatMap((row): ServedSession[] => {
    const id = sessionIn(row, "sessionId");
    const wants = waiting.get(textIn(row, "key") ?? "") ?? null;
    if (id === null) return [];
    if (wants !== null) return [{ id, activity: "waiting", waiting: wants }];
    // An unknown shape does not prove that the session is not running.
    if (row["hasActiveRun"] !== true) return [{ id, activity: "unclear", waiting: null }];
    return [{ id, activity: isUnsure ? "unclear" : "working", waiting: null }];
  });
}

/** Approvals are a list; questions are a list in an object. Each has the key of its session. */
function waitingIn(payload: unknown): [key: string, waiting: Waiting][] {
  const approvals = listIn({ payload }, "payload").flatMap((approval): [string, Waiting][] => {
    const asked = fieldsIn(approval, "request");
    const key = textIn(asked, "sessionKey");
    const text = textIn(asked, "command") ?? textIn(asked, "title") ?? textIn(asked, "description");
    const tool = textIn(asked, "toolName") ?? (textIn(asked, "command") === null ? null : "exec");
    return key === null ? [] : [[key, { kind: "permission", text, tool, options: textsIn(asked, "allowedDecisions") }]];
  });
  const openQuestions = listIn(fieldsOf(payload) ?? {}, "questions").flatMap((question): [string, Waiting][] => {
    const key = textIn(question, "sessionKey");
    return key === null ? [] : [[key, { kind: "question", tool: null, ...firstQuestion(question) }]];
  });
  return [...approvals, ...openQuestions];
}

/** One request after the other, each made from the answers to the earlier requests. The last step returns the final answer. */
type GatewayStep<T extends string = never> = (answers: Fields) => GatewayRequest | T | null;

function steps<T extends string>(asked: TalkContext, all: readonly GatewayStep<T>[]): Talk<T> {
  const next: Talk<T>["next"] = (heard) =>
    greeted(asked, heard, (answers, newest) => {
      if (newest.refusal !== null) return { answer: refused(newest.refusal, asked.secret) };
      const known = Object.assign({}, ...answers.map(({ payload }) => fieldsOf(payload) ?? {})) as Fields;
      const step = all[answers.length - 1]?.(known) ?? null;
      if (step === null) return { answer: refused(textIn(fieldsIn(known, "runError"), "message") ?? "", asked.secret) };
      return typeof step === "string" ? { answer: read(step) } : { send: [request(step)] };
    });
  return { opening: [], next };
}
