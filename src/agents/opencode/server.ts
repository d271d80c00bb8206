// The protocol of OpenCode's servers: `serve`, `web`, `acp`, and an interface with a port.
import type { ServedSession } from "../../core/evidence.ts";
import type { RequestAnswer } from "../../core/failure.ts";
import { type ProblemDetail, type Reading, read, unread } from "../../core/problem.ts";
import type { HttpRequest, ServerProtocol, Talk, TalkContext } from "../adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, listIn, numberIn, parsedFields, textIn, textsIn } from "../fields.ts";
import { firstQuestion } from "../record-lines.ts";

type Next<T> = ReturnType<Talk<T>["next"]>;

export const isSessionId = (text: string): boolean => /^ses_[0-9A-Za-z]{10,40}$/.test(text);

export const server: Omit<ServerProtocol, "at"> = {
  transport: "http",
  secret: { environment: "OPENCODE_SERVER_PASSWORD", file: "", find: () => null },
  sessions: (asked) => ({ opening: [get("/global/health")], next: (heard) => nextAsking(asked, heard) }),
  interrupt: (id, asked) => ({
    opening: [get(`/session/status${sessionQuery(asked)}`)],
    next: (heard) => nextInterrupting(id, asked, heard),
  }),
  send: (id, text, _messageId, asked) => ({
    opening: [get(`/session/status${sessionQuery(asked)}`)],
    next: (heard) => nextSending(id, text, asked, heard),
  }),
};

const user = "opencode";
const get = (path: string): string => JSON.stringify({ method: "GET", path, user } satisfies HttpRequest);
const post = (path: string, body: unknown): string =>
  JSON.stringify({ method: "POST", path, body, user } satisfies HttpRequest);
const inDirectory = (directory: string): string => `?directory=${encodeURIComponent(directory)}`;
/** The directory of the one session that the conversation is about. */
const sessionQuery = ({ directories: [directory] }: TalkContext): string =>
  directory === undefined ? "" : inDirectory(directory);

interface Heard {
  status: number;
  /** null: not JSON. */
  body: unknown;
}

function heardIn(text: string): Heard {
  const answer = parsedFields(text) ?? {};
  return { status: numberIn(answer, "status") ?? 0, body: jsonIn(answer, "body") };
}

const silent = (detail: ProblemDetail): Reading<never> =>
  unread({ code: "server-silent", agent: "opencode", source: "", detail });

const refusal = ({ status, body }: Heard): Reading<never> => {
  if (status === 401) return silent({ code: "password-needed" });
  const said = textIn(fieldsIn(fieldsOf(body) ?? {}, "data"), "message");
  return silent(said === null ? { code: "answer-http-status", status } : { code: "server-refused", text: said });
};

/**
 * A server answers for one directory at a time, and a question about a directory makes the server open it. So it is asked only about
 * directories in which a recorded turn is open.
 */
const questions = ["/session/status", "/permission", "/question"];

/** Asks for the server's health, then about each directory, then which pending requests are still open, then for the parents of their sessions. */
function nextAsking({ directories }: TalkContext, texts: readonly string[]): Next<ServedSession[]> {
  const heard = texts.map(heardIn);
  const wanted = directories.flatMap((directory) => questions.map((path) => get(`${path}${inDirectory(directory)}`)));
  const bad = heard.slice(0, 1 + wanted.length).find(({ status, body }) => status !== 200 || body === null);
  if (bad !== undefined) return { answer: refusal(bad) };
  const answers = heard.slice(1, 1 + wanted.length);
  if (heard.length === 1 && wanted.length > 0) return { send: wanted };
  if (answers.length < wanted.length) return { send: [] };
  const busy = busyIn(answers);
  if (busy === null) return { answer: silent({ code: "answer-unknown-shape" }) };
  const requests = answers
    .flatMap(({ body }, index) => (index % questions.length === 0 ? [] : requestsIn(body)))
    .filter(({ session }) => busy.has(session));
  const later = heard.slice(1 + wanted.length);
  const messageLookups =
    later.length === 0 ? requests.map(({ session, message }) => get(`/session/${session}/message/${message}`)) : [];
  if (messageLookups.length > 0) return { send: messageLookups };
  if (later.length < requests.length) return { send: [] };
  const asking = requests.filter((_, index) => isUnfinished(later[index]));
  const lookedUp = later.slice(requests.length).map(({ body }) => fieldsOf(body) ?? {});
  const { ids, parents } = lineage(asking, lookedUp);
  const requested = lookedUp.length === 0 ? 0 : lineage(asking, lookedUp.slice(0, -1)).ids.length;
  if (lookedUp.length < ids.length) return { send: ids.slice(requested).map((id) => get(`/session/${id}`)) };
  return { answer: read(servedIn(busy, asking, parents)) };
}

/** 1.18.33 keeps aborted requests in its list: only requests of an unfinished message count. */
const isUnfinished = (message: Heard | undefined): boolean => {
  const info = fieldsIn(fieldsOf(message?.body) ?? {}, "info");
  return message?.status === 200 && fieldsIn(info, "time")["completed"] === undefined;
};

interface PendingRequest {
  session: string;
  message: string;
  waiting: NonNullable<ServedSession["waiting"]>;
}

const requestsIn = (body: unknown): PendingRequest[] =>
  listIn({ body }, "body").flatMap((fields) => {
    const session = textIn(fields, "sessionID");
    const message = textIn(fieldsIn(fields, "tool"), "messageID");
    if (session === null || message === null || !isSessionId(session) || !/^msg_\w+$/.test(message)) return [];
    return [{ session, message, waiting: waitingOf(fields) }];
  });

function waitingOf(request: Fields): PendingRequest["waiting"] {
  const permission = textIn(request, "permission");
  if (permission === null) return { kind: "question", tool: "question", ...firstQuestion(request) };
  const metadata = fieldsIn(request, "metadata");
  const patterns = Array.isArray(request["patterns"]) ? textsIn(request, "patterns").join(", ") : null;
  const text = textIn(metadata, "command") ?? textIn(metadata, "filepath") ?? patterns;
  return { kind: "permission", text, tool: permission, options: ["once", "always", "reject"] };
}

/** The sessions to look up (each session with a request, its parent, and so on), and the parents that are known so far. */
function lineage(requests: readonly PendingRequest[], lookedUp: readonly Fields[]) {
  const ids = [...new Set(requests.map(({ session }) => session))];
  const parents = new Map<string, string>();
  for (const [index, session] of lookedUp.entries()) {
    const parent = textIn(session, "parentID");
    const id = ids[index];
    if (parent === null || id === undefined || !isSessionId(parent)) continue;
    parents.set(id, parent);
    if (!ids.includes(parent)) ids.push(parent);
  }
  return { ids, parents };
}

/** null: an unknown shape. */
function busyIn(answers: readonly Heard[]): Map<string, ServedSession> | null {
  const busy = new Map<string, ServedSession>();
  for (const [index, { body }] of answers.entries()) {
    if (index % questions.length !== 0) continue;
    const statuses = fieldsOf(body);
    if (statuses === null) return null;
    for (const [id, status] of Object.entries(statuses)) {
      const type = fieldsOf(status)?.["type"];
      if (!isSessionId(id) || type === "idle") continue;
      // "retry": the request to the model failed, and OpenCode will send it again.
      const activity = type === "busy" || type === "retry" ? "working" : "unclear";
      busy.set(id, { id, activity, waiting: null });
    }
  }
  return busy;
}

/** The request of a subagent is shown in the session that a person sees. */
function servedIn(
  busy: ReadonlyMap<string, ServedSession>,
  asking: readonly PendingRequest[],
  parents: ReadonlyMap<string, string>,
): ServedSession[] {
  const served = new Map(busy);
  for (const { session, waiting } of asking) {
    const seen = new Set<string>();
    for (let id: string | undefined = session; id !== undefined && !seen.has(id); id = parents.get(id)) {
      seen.add(id);
      served.set(id, { id, activity: "waiting", waiting });
    }
  }
  return [...served.values()];
}

const isBusy = (id: string, { body }: Heard): boolean => {
  const status = fieldsOf(fieldsOf(body)?.[id]);
  return status !== null && status["type"] !== "idle";
};

/** Asks for the status first, because OpenCode also aborts idle sessions. */
function nextInterrupting(id: string, asked: TalkContext, texts: readonly string[]): Next<RequestAnswer> {
  const [status, done] = texts.map(heardIn);
  if (status === undefined) return { send: [] };
  if (status.status !== 200) return { answer: refusal(status) };
  if (!isBusy(id, status)) return { answer: read("no-turn") };
  if (done === undefined) return { send: [post(`/session/${id}/abort${sessionQuery(asked)}`, {})] };
  return { answer: done.status === 200 ? read("interrupted") : refusal(done) };
}

function nextSending(id: string, text: string, asked: TalkContext, texts: readonly string[]): Next<RequestAnswer> {
  const [status, done] = texts.map(heardIn);
  if (status === undefined) return { send: [] };
  if (status.status !== 200) return { answer: refusal(status) };
  if (done === undefined)
    return { send: [post(`/session/${id}/prompt_async${sessionQuery(asked)}`, { parts: [{ type: "text", text }] })] };
  if (done.status !== 204 && done.status !== 200) return { answer: refusal(done) };
  return { answer: read(isBusy(id, status) ? "queued" : "begun") };
}
