// How OpenCode's servers (`serve`, `web`, `acp`, an interface with a port) are asked what they are working on.
import type { HostedSession } from "../core/evidence.ts";
import { type Reading, read, unread } from "../core/problem.ts";
import type { Asked, HostProtocol, HttpRequest, Talk } from "./adapter.ts";
import { type Fields, fieldsIn, fieldsOf, jsonIn, numberIn, textIn, textsIn } from "./fields.ts";
import { askedIn } from "./opencode-turn.ts";

type Next<T> = ReturnType<Talk<T>["next"]>;

export const isSessionId = (text: string): boolean => /^ses_[0-9A-Za-z]{10,40}$/.test(text);

export const server: Omit<HostProtocol, "at"> = {
  transport: "http",
  secret: { environment: "OPENCODE_SERVER_PASSWORD", file: "", find: () => null },
  sessions: (asked) => ({ opening: [get("/global/health")], next: (heard) => nextAsking(asked, heard) }),
  interrupt: (id, asked) => ({
    opening: [get(`/session/status${at(asked)}`)],
    next: (heard) => nextInterrupting(id, asked, heard),
  }),
  send: (id, text, _messageId, asked) => ({
    opening: [get(`/session/status${at(asked)}`)],
    next: (heard) => nextSending(id, text, asked, heard),
  }),
};

const user = "opencode";
const get = (path: string): string => JSON.stringify({ method: "GET", path, user } satisfies HttpRequest);
const post = (path: string, body: unknown): string =>
  JSON.stringify({ method: "POST", path, body, user } satisfies HttpRequest);
const inDirectory = (directory: string): string => `?directory=${encodeURIComponent(directory)}`;
/** Of the one session that it is about. */
const at = ({ directories: [directory] }: Asked): string => (directory === undefined ? "" : inDirectory(directory));

interface Heard {
  status: number;
  /** null: no JSON. */
  body: unknown;
}

function heardIn(text: string): Heard {
  const answer = fieldsOf(jsonIn({ text }, "text")) ?? {};
  return { status: numberIn(answer, "status") ?? 0, body: jsonIn(answer, "body") };
}

const silent = (message: string): Reading<never> =>
  unread({ code: "host-silent", agent: "opencode", source: "", message });

const refusal = ({ status, body }: Heard): Reading<never> => {
  if (status === 401) return silent("it wants a password that its environment does not show");
  const said = textIn(fieldsIn(fieldsOf(body) ?? {}, "data"), "message");
  return silent(said ?? `it answered with HTTP status ${status}`);
};

/**
 * What it is working on stands apart for every directory, and asking about a directory that it has not opened opens it
 * there. So only directories are asked about where a recorded turn is open.
 */
const questions = ["/session/status", "/permission", "/question"];

/** Health, then each directory, then whether those who ask still do, and whose subagents they are. */
function nextAsking({ directories }: Asked, texts: readonly string[]): Next<HostedSession[]> {
  const heard = texts.map(heardIn);
  const wanted = directories.flatMap((directory) => questions.map((path) => get(`${path}${inDirectory(directory)}`)));
  const bad = heard.slice(0, 1 + wanted.length).find(({ status, body }) => status !== 200 || body === null);
  if (bad !== undefined) return { answer: refusal(bad) };
  const answers = heard.slice(1, 1 + wanted.length);
  if (heard.length === 1 && wanted.length > 0) return { send: wanted };
  if (answers.length < wanted.length) return { send: [] };
  const busy = busyIn(answers);
  if (busy === null) return { answer: silent("its answer has an unknown shape") };
  const requests = answers
    .flatMap(({ body }, index) => (index % questions.length === 0 ? [] : requestsIn(body)))
    .filter(({ session }) => busy.has(session));
  const later = heard.slice(1 + wanted.length);
  const begun =
    later.length === 0 ? requests.map(({ session, message }) => get(`/session/${session}/message/${message}`)) : [];
  if (begun.length > 0) return { send: begun };
  if (later.length < requests.length) return { send: [] };
  const asking = requests.filter((_, index) => isUnfinished(later[index]));
  const lookedUp = later.slice(requests.length).map(({ body }) => fieldsOf(body) ?? {});
  const { ids, parents } = lineage(asking, lookedUp);
  const known = lookedUp.length === 0 ? 0 : lineage(asking, lookedUp.slice(0, -1)).ids.length;
  if (lookedUp.length < ids.length) return { send: ids.slice(known).map((id) => get(`/session/${id}`)) };
  return { answer: read(hostedIn(busy, asking, parents)) };
}

/** What was aborted stays in its list of requests (1.18.33): only those of a message that is still in the making count. */
const isUnfinished = (message: Heard | undefined): boolean => {
  const info = fieldsIn(fieldsOf(message?.body) ?? {}, "info");
  return message?.status === 200 && fieldsIn(info, "time")["completed"] === undefined;
};

interface Request {
  session: string;
  message: string;
  waiting: NonNullable<HostedSession["waiting"]>;
}

const requestsIn = (body: unknown): Request[] =>
  (Array.isArray(body) ? body : []).flatMap((value) => {
    const fields = fieldsOf(value) ?? {};
    const session = textIn(fields, "sessionID");
    const message = textIn(fieldsIn(fields, "tool"), "messageID");
    if (session === null || message === null || !isSessionId(session) || !/^msg_\w+$/.test(message)) return [];
    return [{ session, message, waiting: wishOf(fields) }];
  });

function wishOf(request: Fields): Request["waiting"] {
  const permission = textIn(request, "permission");
  if (permission === null) return { ...askedIn(request), tool: "question" };
  const metadata = fieldsIn(request, "metadata");
  const patterns = Array.isArray(request["patterns"]) ? textsIn(request, "patterns").join(", ") : null;
  const text = textIn(metadata, "command") ?? textIn(metadata, "filepath") ?? patterns;
  return { kind: "permission", text, tool: permission, options: ["once", "always", "reject"] };
}

/** The sessions to look up, one after the other, and what was learned of each: whoever asks, its parent, and so on. */
function lineage(requests: readonly Request[], lookedUp: readonly Fields[]) {
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
function busyIn(answers: readonly Heard[]): Map<string, HostedSession> | null {
  const busy = new Map<string, HostedSession>();
  for (const [index, { body }] of answers.entries()) {
    if (index % questions.length !== 0) continue;
    const statuses = fieldsOf(body);
    if (statuses === null) return null;
    for (const [id, status] of Object.entries(statuses)) {
      const type = fieldsOf(status)?.["type"];
      if (!isSessionId(id) || type === "idle") continue;
      // "retry": the model refused for now, and it will ask again by itself.
      const activity = type === "busy" || type === "retry" ? "working" : "unclear";
      busy.set(id, { id, activity, waiting: null });
    }
  }
  return busy;
}

/** What a subagent asks for is asked in the session that a person sees. */
function hostedIn(
  busy: ReadonlyMap<string, HostedSession>,
  asking: readonly Request[],
  parents: ReadonlyMap<string, string>,
): HostedSession[] {
  const hosted = new Map(busy);
  for (const { session, waiting } of asking) {
    const seen = new Set<string>();
    for (let id: string | undefined = session; id !== undefined && !seen.has(id); id = parents.get(id)) {
      seen.add(id);
      hosted.set(id, { id, activity: "waiting", waiting });
    }
  }
  return [...hosted.values()];
}

const isBusy = (id: string, { body }: Heard): boolean => {
  const status = fieldsOf(fieldsOf(body)?.[id]);
  return status !== null && status["type"] !== "idle";
};

/** It aborts whatever it is told to, busy or not: so its status is asked first. */
function nextInterrupting(id: string, asked: Asked, texts: readonly string[]): Next<string> {
  const [status, done] = texts.map(heardIn);
  if (status === undefined) return { send: [] };
  if (status.status !== 200) return { answer: refusal(status) };
  if (!isBusy(id, status)) return { answer: read("no turn was going on") };
  if (done === undefined) return { send: [post(`/session/${id}/abort${at(asked)}`, {})] };
  return { answer: done.status === 200 ? read("its turn was interrupted") : refusal(done) };
}

function nextSending(id: string, text: string, asked: Asked, texts: readonly string[]): Next<string> {
  const [status, done] = texts.map(heardIn);
  if (status === undefined) return { send: [] };
  if (status.status !== 200) return { answer: refusal(status) };
  if (done === undefined)
    return { send: [post(`/session/${id}/prompt_async${at(asked)}`, { parts: [{ type: "text", text }] })] };
  if (done.status !== 204 && done.status !== 200) return { answer: refusal(done) };
  return { answer: read(isBusy(id, status) ? "queued behind its turn" : "it has begun with it") };
}
