// How OpenClaw's gateway is asked which sessions it works on, and how they are begun, spoken to and interrupted.
import type { HostedSession, Waiting } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { Asked, HostOrder, HostProtocol, Talk } from "./adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, listIn, numberIn, textIn, textsIn } from "./fields.ts";
import type { Permission } from "./invocation.ts";
import { sessionIn } from "./openclaw-store.ts";

/** Held by whoever has the data folder: a gateway, or a command that works without one. */
export const stateLock = /^(.*)\/tmp\/openclaw(?:-\d+)?\/gateway\.state\.lock\.sqlite$/;

export const gateway: HostProtocol = {
  at: { listens: ({ lockedFiles }) => lockedFiles.some((path) => stateLock.test(path)) },
  transport: "websocket",
  secret: { environment: "OPENCLAW_GATEWAY_TOKEN", file: "openclaw.json", find: tokenIn },
  start: "openclaw gateway run",
  sessions: (asked) => conversation(asked, [listPage(0), ...questions], hostedIn),
  interrupt: (id, asked) =>
    steps(asked, [
      () => ["sessions.resolve", { sessionId: id }],
      (found) => ["sessions.abort", { ...keyIn(found), clearQueued: true }],
      ({ status }) => (status === "aborted" ? "its turn was interrupted" : "no turn was going on"),
    ]),
  send: (id, message, idempotencyKey, asked) =>
    steps(asked, [
      () => ["sessions.resolve", { sessionId: id }],
      // Its own way with a message during a turn is to break into it.
      (found) => ["chat.send", { ...chatOf(found), message, idempotencyKey, queueMode: "followup" }],
      ({ status }) => (status === "started" ? "it has begun with it" : "queued behind its turn"),
    ]),
  create: (order, place, messageId, asked) =>
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
          () => ["sessions.create", { message: order.prompt, cwd: place.cwd, ...settings(order), ...limit(order) }],
          (answer) => (answer["runStarted"] === true ? sessionIn(answer, "sessionId") : null),
        ]),
};

/** A key may be one that every agent has: then only the agent's name makes it whole. */
const keyIn = ({ key, agentId }: Fields): Fields => ({ key, agentId });
const chatOf = ({ key, agentId }: Fields): Fields => ({ sessionKey: key, agentId });
const patch =
  (changes: Fields): Step =>
  (found) => ["sessions.patch", { ...keyIn(found), ...changes }];

/** `guarded` lets commands through that a person allowed before; who else would be asked is not there, so others are denied. */
const modes: Readonly<Record<Permission, string>> = { read: "read-only", edit: "guarded", bypass: "full" };

const settings = ({ permission, model }: HostOrder): Fields => ({
  ...(permission === null ? {} : { permissionMode: modes[permission] }),
  ...(model === null ? {} : { model }),
});

const limit = ({ maxTimeMs }: HostOrder): Fields => (maxTimeMs === null ? {} : { timeoutMs: maxTimeMs });

/** Its settings are JSON5: where that is not JSON, the text is searched. A wrong find is refused by the gateway. */
function tokenIn(text: string): string | null {
  const auth = fieldsIn(fieldsIn(fieldsOf(jsonIn({ text }, "text")) ?? {}, "gateway"), "auth");
  const plain = textIn(auth, "token") ?? textIn(auth, "password");
  if (plain !== null) return plain;
  const [, , found] = /\bauth["']?\s*:\s*\{[^}]*?\b(?:token|password)["']?\s*:\s*(["'])(.*?)\1/s.exec(text) ?? [];
  return found ?? null;
}

type Request = [method: string, params: Fields];

const request = ([method, params]: Request, id = method): string => JSON.stringify({ type: "req", id, method, params });

/**
 * With the token alone, as its own command does on the same machine. Only who administers it sees what is waiting for others.
 * Without capabilities: a client that could show questions to a person would make it wait for one.
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

interface Answer {
  id: string;
  payload: unknown;
  /** Why it was refused; null: it was not. */
  refusal: string | null;
}

/** null: something that the gateway says by itself. */
function answerOf(text: string): Answer | null {
  const fields = fieldsOf(jsonIn({ text }, "text")) ?? {};
  const id = fields["type"] === "res" ? textIn(fields, "id") : null;
  if (id === null) return null;
  const refusal =
    fields["ok"] === true ? null : (textIn(fieldsIn(fields, "error"), "message") ?? "no reason was given");
  return { id, payload: fields["payload"], refusal };
}

/** It speaks first; what it wants to hear then is who we are. */
function greeted<T>(
  { secret }: Asked,
  heard: readonly string[],
  go: (answers: readonly Answer[], newest: Answer) => ReturnType<Talk<T>["next"]>,
): ReturnType<Talk<T>["next"]> {
  const answers = heard.flatMap((text) => answerOf(text) ?? []);
  const newest = answerOf(heard.at(-1) ?? "");
  if (newest === null) {
    const event = textIn(fieldsOf(jsonIn({ text: heard.at(-1) ?? "" }, "text")) ?? {}, "event");
    return { send: event === "connect.challenge" && answers.length === 0 ? [hello(secret)] : [] };
  }
  if (newest.id === "connect" && newest.refusal !== null) return { answer: refused(newest.refusal, secret) };
  return go(answers, newest);
}

function refused(words: string, secret: string | null): Reading<never> {
  const message = secret === null || secret === "" ? words : words.replaceAll(secret, "…");
  return unread({ code: "host-silent", agent: "openclaw", source: "", message: `the gateway refuses: ${message}` });
}

const pageSize = 200;

/** Archived ones and those without a key of their own may be at work, too. */
const listPage = (offset: number): string =>
  request(
    [
      "sessions.list",
      { limit: pageSize, offset, activeOnly: true, archived: "all", includeGlobal: true, includeUnknown: true },
    ],
    `sessions.list ${offset}`,
  );

const askedOfPeople = ["exec.approval.list", "plugin.approval.list", "question.list"];
const questions = askedOfPeople.map((method) => request([method, {}]));

function conversation(
  asked: Asked,
  opening: string[],
  result: (answers: readonly Answer[]) => HostedSession[],
): Talk<HostedSession[]> {
  const next: Talk<HostedSession[]>["next"] = (heard) =>
    greeted(asked, heard, (answers, newest) => {
      if (newest.id === "connect") return { send: opening };
      const pages = answers.filter(({ id }) => id.startsWith("sessions.list "));
      const failed = pages.find(({ refusal }) => refusal !== null);
      if (failed !== undefined) return { answer: refused(failed.refusal ?? "", asked.secret) };
      const more = pages.includes(newest) || newest.id.startsWith("sessions.list ") ? nextPage(newest) : null;
      if (more !== null) return { send: [listPage(more)] };
      const isWhole = pages.some((page) => nextPage(page) === null);
      const isTold = askedOfPeople.every((method) => answers.some(({ id }) => id === method));
      return isWhole && isTold ? { answer: read(result(answers)) } : { send: [] };
    });
  return { opening: [], next };
}

const nextPage = ({ payload }: Answer): number | null => numberIn(fieldsOf(payload) ?? {}, "nextOffset");

function hostedIn(answers: readonly Answer[]): HostedSession[] {
  const rows = answers.flatMap(({ id, payload }) =>
    id.startsWith("sessions.list ") ? listIn(fieldsOf(payload) ?? {}, "sessions") : [],
  );
  const asking = answers.filter(({ id }) => askedOfPeople.includes(id));
  const isUnsure = asking.some(({ refusal }) => refusal !== null);
  const waiting = new Map(asking.flatMap(({ payload }) => waitingIn(payload)));
  const active = rows.filter((row) => row["hasActiveRun"] !== false);
  return active.flatMap((row): HostedSession[] => {
    const id = sessionIn(row, "sessionId");
    const wants = waiting.get(textIn(row, "key") ?? "") ?? null;
    if (id === null) return [];
    if (wants !== null) return [{ id, activity: "waiting", waiting: wants }];
    // A shape that we do not know is no proof that nothing runs.
    if (row["hasActiveRun"] !== true) return [{ id, activity: "unclear", waiting: null }];
    return [{ id, activity: isUnsure ? "unclear" : "working", waiting: null }];
  });
}

/** Approvals are a list, questions the list in an object; each by the key of its session. */
function waitingIn(payload: unknown): [key: string, waiting: Waiting][] {
  const approvals = listIn({ payload }, "payload").flatMap((approval): [string, Waiting][] => {
    const asked = fieldsIn(approval, "request");
    const key = textIn(asked, "sessionKey");
    const text = textIn(asked, "command") ?? textIn(asked, "title") ?? textIn(asked, "description");
    const tool = textIn(asked, "toolName") ?? (textIn(asked, "command") === null ? null : "exec");
    return key === null ? [] : [[key, { kind: "permission", text, tool, options: textsIn(asked, "allowedDecisions") }]];
  });
  const asked = listIn(fieldsOf(payload) ?? {}, "questions").flatMap((question): [string, Waiting][] => {
    const key = textIn(question, "sessionKey");
    const [first = {}] = listIn(question, "questions");
    const options = listIn(first, "options").flatMap((option) => textIn(option, "label") ?? []);
    return key === null ? [] : [[key, { kind: "question", text: textIn(first, "question"), tool: null, options }]];
  });
  return [...approvals, ...asked];
}

/** One request after the other, each made out of what the earlier ones answered; the last step says the answer. */
type Step = (answers: Fields) => Request | string | null;

function steps(asked: Asked, all: readonly Step[]): Talk<string> {
  const next: Talk<string>["next"] = (heard) =>
    greeted(asked, heard, (answers, newest) => {
      if (newest.refusal !== null) return { answer: refused(newest.refusal, asked.secret) };
      const known = Object.assign({}, ...answers.map(({ payload }) => fieldsOf(payload) ?? {})) as Fields;
      const step = all[answers.length - 1]?.(known) ?? null;
      if (step === null)
        return { answer: refused(textIn(fieldsIn(known, "runError"), "message") ?? "it began nothing", asked.secret) };
      return typeof step === "string" ? { answer: read(step) } : { send: [request(step)] };
    });
  return { opening: [], next };
}
