// Asks servers (processes that serve many sessions) which sessions they run. A server that does not answer counts as unread.
import { join } from "node:path";
import type { Adapter, ServerProtocol, Talk, TalkContext } from "../agents/adapter.ts";
import { clockSlackMs } from "../core/announcements.ts";
import type { ServerAnswer, Store } from "../core/evidence.ts";
import { namedHome } from "../core/matches.ts";
import { type Problem, type ProblemDetail, type Reading, unread } from "../core/problem.ts";
import { isLive, isSuspended, type ProcessIdentity, type ProcessRow, type ProcessTable } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { type Deadline, pause, within } from "../lib/deadline.ts";
import { openPlainSocket, openWebSocket } from "../sys/unix-socket.ts";
import { errorCode, failureOf, isGone, tryOr } from "./failure.ts";
import { type FoundFile, findFiles, ownUid, readWhole, withFile } from "./files.ts";
import { realHome } from "./homes.ts";
import { mountTable } from "./mounts.ts";
import { listenerAt } from "./own-socket.ts";
import { portsOf } from "./ports.ts";
import { noDetails, type ProcessQuery } from "./process-query.ts";

export type ProcessReader = (query: ProcessQuery) => Reading<ProcessTable>;

interface ListeningServer {
  address: string;
  process: ProcessIdentity | null;
  startedAt: number | null;
  secret: string | null;
  /** The reason why it cannot answer now; null: it may answer. */
  stuck: ProblemDetail | null;
}

export function readServers(
  adapter: Adapter,
  home: string,
  store: () => Store | null,
  readTable: ProcessReader,
  deadline: Deadline,
): Promise<ServerAnswer | null>[] {
  const protocol = adapter.server;
  if (protocol === undefined) return [];
  const { servers, failures } = findServers(adapter, protocol, home, readTable);
  const asked = Object.values(Object.groupBy(servers, ({ process, address }) => process?.pid ?? address)).map((same) =>
    firstAnswer((same ?? []).map((server) => ask(adapter, protocol, home, server, store, deadline))),
  );
  return [...asked, ...failures.map(async ({ path, detail }) => unlistedServers(adapter, home, path, detail))];
}

/** A process may listen on several ports, and answer as a server on one of them. */
async function firstAnswer(asked: Promise<ServerAnswer | null>[]): Promise<ServerAnswer | null> {
  const heard = await Promise.all(asked);
  return heard.find((server) => server?.answer.ok === true) ?? heard.find((server) => server !== null) ?? null;
}

/** There may be servers in a folder that cannot be listed, with any sessions of this home. */
function unlistedServers(adapter: Adapter, home: string, address: string, detail: ProblemDetail): ServerAnswer {
  const problem: Problem = { code: "store-unreadable", agent: adapter.agent, source: address, detail };
  return { agent: adapter.agent, home, address, process: null, startedAt: null, answer: unread(problem) };
}

function findServers(adapter: Adapter, protocol: ServerProtocol, home: string, readTable: ProcessReader) {
  const { at } = protocol;
  if ("listens" in at) return { servers: listeners(adapter, protocol, at.listens, home, readTable), failures: [] };
  const { files, failures } = findFiles(home, at);
  let table: Reading<ProcessTable> | null = null;
  const servers = files.flatMap(({ path, subject }): ListeningServer[] => {
    const listener = listenerAt(path);
    if (listener.kind === "foreign" || listener.kind === "not-listening") return [];
    const busy: ProblemDetail | null = listener.kind === "busy" ? { code: "server-busy" } : null;
    const pid = Number(subject);
    if (Number.isNaN(pid)) return [{ address: path, process: null, startedAt: null, secret: null, stuck: busy }];
    // The name of the socket is the pid of its server. If another process listens there, the answer would be about neither.
    if (listener.kind === "listener" && listener.pid !== pid) return [];
    table ??= readTable({ ...noDetails, pids: pidsIn(files) });
    const row = table.ok ? table.value.rows.find(({ identity }) => identity.pid === pid) : undefined;
    if (row === undefined || !isLive(row) || row.detail?.ours !== true || row.detail.confinement !== null) return [];
    const { identity, startedAt } = row;
    return [{ address: path, process: identity, startedAt, secret: null, stuck: suspended(row) ?? busy }];
  });
  return { servers, failures };
}

const pidsIn = (files: readonly FoundFile[]): Set<number> =>
  new Set(files.map(({ subject }) => Number(subject)).filter((pid) => !Number.isNaN(pid)));

const suspended = (row: ProcessRow): ProblemDetail | null => (isSuspended(row) ? { code: "server-suspended" } : null);

/**
 * Our processes that use this home and listen on a port. A confined process is never asked and never gets the secret: it could
 * claim sessions outside its sandbox.
 */
function listeners(
  adapter: Adapter,
  protocol: ServerProtocol,
  listens: (detail: NonNullable<ProcessRow["detail"]>) => boolean,
  home: string,
  readTable: ProcessReader,
): ListeningServer[] {
  const secretKey = protocol.secret?.environment;
  const environment = new Set([...adapter.environment, ...(secretKey === undefined ? [] : [secretKey])]);
  const names = new Set(adapter.processNames);
  const table = readTable({ names, pids: new Set(), environment, lockedFiles: [adapter] });
  const links = new Map<string, string | null>();
  return (table.ok ? table.value.rows : []).flatMap((row): ListeningServer[] => {
    const { detail } = row;
    if (detail === null || !isLive(row) || !detail.ours || detail.confinement !== null) return [];
    if (roleOf(adapter, row) === null || !listens(detail)) return [];
    const named = namedHome(adapter, detail);
    if (named === null || realHome(named, mountTable(), links) !== home) return [];
    const secret = (secretKey === undefined ? null : detail.env?.[secretKey]) || secretFile(protocol, home);
    const scheme = protocol.transport === "websocket" ? "ws" : "http";
    return portsOf(row.identity.pid).map((port) => ({
      address: `${scheme}://127.0.0.1:${port}`,
      process: row.identity,
      startedAt: row.startedAt,
      secret,
      stuck: suspended(row),
    }));
  });
}

const secretBytes = 1024 * 1024;

function secretFile({ secret }: ServerProtocol, home: string): string | null {
  if (secret === undefined) return null;
  return tryOr(null, () =>
    withFile(join(home, secret.file), (open) =>
      open.uid === ownUid ? secret.find(readWhole(open, secretBytes).toString("utf8")) : null,
    ),
  );
}

async function ask(
  adapter: Adapter,
  protocol: ServerProtocol,
  home: string,
  { address, process, startedAt, secret, stuck }: ListeningServer,
  store: () => Store | null,
  deadline: Deadline,
): Promise<ServerAnswer | null> {
  const server = { agent: adapter.agent, home, address, process, startedAt };
  const silent = (detail: ProblemDetail): ServerAnswer => {
    const problem: Problem = { code: "server-silent", agent: adapter.agent, source: address, detail };
    return { ...server, answer: unread(problem) };
  };
  if (stuck !== null) return silent(stuck);
  let directories: string[] | null = null;
  const about: TalkContext = {
    secret,
    // A getter, because it may read every record and few protocols need it. The value stays the same during a conversation.
    get directories() {
      directories ??= directoriesSince(startedAt, store());
      return directories;
    },
  };
  for (let attempt = 1; ; attempt += 1) {
    const line = converse(address, protocol, protocol.sessions(about), about);
    try {
      const parsed = await within(deadline, line.answer);
      if (parsed === null) return silent({ code: "no-answer-in-time" });
      return parsed.ok ? { ...server, answer: parsed } : silent(parsed.problem.detail);
    } catch (error) {
      // The socket closes when its process exits: without a listener the server is gone.
      if (errorCode(error) === "ECONNREFUSED" || isGone(error)) return null;
      if (attempt === mostAttempts) return silent(failureOf(error));
    } finally {
      line.hangUp();
    }
    await pause(hungUpMs);
  }
}

/** A server that hangs up may be exiting. Then its socket closes in a moment. */
const mostAttempts = 2;
const hungUpMs = 20;

/** The directories of sessions that a server may be working on: sessions last written before it started are not its own. */
function directoriesSince(startedAt: number | null, store: Store | null): string[] {
  const found = (store?.rows ?? []).flatMap(({ reading, writtenAt }) => {
    const isOlder = startedAt !== null && writtenAt !== null && writtenAt < startedAt - clockSlackMs;
    return reading.ok && !isOlder && reading.value.turn.state !== "closed" ? (reading.value.cwd ?? []) : [];
  });
  return [...new Set(found)].sort();
}

/** Our server at this address, with the secret that it requires; null: it is gone, or not ours. */
export function serverAt(
  adapter: Adapter,
  home: string,
  address: string,
  readTable: ProcessReader,
): { secret: string | null } | null {
  if (adapter.server === undefined) return null;
  const { servers } = findServers(adapter, adapter.server, home, readTable);
  return servers.find((server) => server.address === address) ?? null;
}

/** Talks to the server until the answer is complete. */
export function converse<T>(
  address: string,
  { transport }: ServerProtocol,
  talk: Talk<T>,
  { secret }: TalkContext,
): { answer: Promise<Reading<T>>; hangUp(): void } {
  let hungUp = false;
  let close = (): void => {
    hungUp = true;
  };
  const speak = async (): Promise<Reading<T>> => {
    const line =
      transport === "http"
        ? (await import("../sys/http.ts")).openHttp(address, secret)
        : transport === "websocket"
          ? openWebSocket(address)
          : openPlainSocket(address);
    close = line.close;
    if (hungUp) line.close();
    const heard: string[] = [];
    for (const text of talk.opening) await line.send(text);
    for (;;) {
      const text = await line.hear();
      heard.push(text);
      const step = talk.next(heard);
      if ("answer" in step) return step.answer;
      for (const more of step.send) await line.send(more);
    }
  };
  return { answer: speak(), hangUp: () => close() };
}
