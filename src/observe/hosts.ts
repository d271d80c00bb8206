// Asks the processes that serve many sessions which ones they are running. A silent host is an answer too: "unread".
import { join } from "node:path";
import type { Adapter, Asked, HostProtocol, Talk } from "../adapters/adapter.ts";
import { clockSlackMs } from "../core/claims.ts";
import type { HostAnswer, Store } from "../core/evidence.ts";
import { namedHome } from "../core/found.ts";
import { type Problem, type Reading, unread } from "../core/problem.ts";
import { isLive, isSuspended, type ProcessIdentity, type ProcessRow, type ProcessTable } from "../core/process.ts";
import { roleOf } from "../core/rules.ts";
import { type Deadline, pause, within } from "../lib/deadline.ts";
import { openPlainSocket, openWebSocket } from "../sys/unix-socket.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { type FoundFile, findFiles, ownUid, readWhole, withFile } from "./files.ts";
import { realHome } from "./homes.ts";
import { mountTable } from "./mounts.ts";
import { listenerAt } from "./own-socket.ts";
import { portsOf } from "./ports.ts";
import type { ProcessWish } from "./process-wish.ts";

/** Looks up processes before they are asked. */
export type ReadTable = (wish: ProcessWish) => Reading<ProcessTable>;

interface Host {
  address: string;
  process: ProcessIdentity | null;
  startedAt: number | null;
  secret: string | null;
  /** Why it cannot answer, so that it is not waited for; null: it may. */
  stuck: string | null;
}

export function readHosts(
  adapter: Adapter,
  home: string,
  store: () => Store | null,
  readTable: ReadTable,
  deadline: Deadline,
): Promise<HostAnswer | null>[] {
  const protocol = adapter.host;
  if (protocol === null) return [];
  const { hosts, failures } = findHosts(adapter, protocol, home, readTable);
  const asked = Object.values(Object.groupBy(hosts, ({ process, address }) => process?.pid ?? address)).map((same) =>
    firstAnswer((same ?? []).map((host) => ask(adapter, protocol, home, host, store, deadline))),
  );
  return [...asked, ...failures.map(async ({ path, message }) => unlistedHosts(adapter, home, path, message))];
}

/** A process may listen on several ports; on which of them it answers as a host shows when it does. */
async function firstAnswer(asked: Promise<HostAnswer | null>[]): Promise<HostAnswer | null> {
  const heard = await Promise.all(asked);
  return heard.find((host) => host?.answer.ok === true) ?? heard.find((host) => host !== null) ?? null;
}

/** Whoever hosts behind a folder that cannot be listed may have any session of this home. */
function unlistedHosts(adapter: Adapter, home: string, address: string, message: string): HostAnswer {
  const problem: Problem = { code: "store-unreadable", agent: adapter.agent, source: address, message };
  return { agent: adapter.agent, home, address, process: null, startedAt: null, answer: unread(problem) };
}

function findHosts(adapter: Adapter, protocol: HostProtocol, home: string, readTable: ReadTable) {
  const { at } = protocol;
  if ("listens" in at) return { hosts: listeners(adapter, protocol, at.listens, home, readTable), failures: [] };
  const { files, failures } = findFiles(home, at);
  let table: Reading<ProcessTable> | null = null;
  const hosts = files.flatMap(({ path, subject }): Host[] => {
    const listener = listenerAt(path);
    if (listener.kind === "foreign" || listener.kind === "nobody") return [];
    const busy = listener.kind === "busy" ? "the server takes no connections" : null;
    const pid = Number(subject);
    if (Number.isNaN(pid)) return [{ address: path, process: null, startedAt: null, secret: null, stuck: busy }];
    // A socket under the number of one process on which another listens speaks for neither.
    if (listener.kind === "listener" && listener.pid !== pid) return [];
    table ??= readTable({ names: new Set(), pids: pidsIn(files), environment: new Set(), lockedFiles: [] });
    const row = table.ok ? table.value.rows.find(({ identity }) => identity.pid === pid) : undefined;
    if (row === undefined || !isLive(row) || row.detail?.ours !== true || row.detail.confinement !== null) return [];
    const { identity, startedAt } = row;
    return [{ address: path, process: identity, startedAt, secret: null, stuck: suspended(row) ?? busy }];
  });
  return { hosts, failures };
}

const pidsIn = (files: readonly FoundFile[]): Set<number> =>
  new Set(files.map(({ subject }) => Number(subject)).filter((pid) => !Number.isNaN(pid)));

const suspended = (row: ProcessRow): string | null => (isSuspended(row) ? "the host is suspended" : null);

/**
 * Processes of ours that keep this home and listen. What they listen on is theirs alone to say. A confined one is not asked, and told
 * no secret: it would speak of sessions outside of its sandbox.
 */
function listeners(
  adapter: Adapter,
  protocol: HostProtocol,
  listens: (detail: NonNullable<ProcessRow["detail"]>) => boolean,
  home: string,
  readTable: ReadTable,
): Host[] {
  const secretKey = protocol.secret?.environment;
  const environment = new Set([...adapter.environment, ...(secretKey === undefined ? [] : [secretKey])]);
  const names = new Set(adapter.processNames);
  const table = readTable({ names, pids: new Set(), environment, lockedFiles: [adapter] });
  const links = new Map<string, string | null>();
  return (table.ok ? table.value.rows : []).flatMap((row): Host[] => {
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

function secretFile({ secret }: HostProtocol, home: string): string | null {
  if (secret === undefined) return null;
  try {
    const text = withFile(join(home, secret.file), (open) =>
      open.uid === ownUid ? readWhole(open, secretBytes) : null,
    );
    return text === null ? null : secret.find(text.toString("utf8"));
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

async function ask(
  adapter: Adapter,
  protocol: HostProtocol,
  home: string,
  { address, process, startedAt, secret, stuck }: Host,
  store: () => Store | null,
  deadline: Deadline,
): Promise<HostAnswer | null> {
  const host = { agent: adapter.agent, home, address, process, startedAt };
  const silent = (message: string): HostAnswer => {
    const problem: Problem = { code: "host-silent", agent: adapter.agent, source: address, message };
    return { ...host, answer: unread(problem) };
  };
  if (stuck !== null) return silent(stuck);
  let directories: string[] | null = null;
  const about: Asked = {
    secret,
    // Few ask for it, and it may take reading every record. The same ones for all of a conversation.
    get directories() {
      directories ??= directoriesSince(startedAt, store());
      return directories;
    },
  };
  for (let attempt = 1; ; attempt += 1) {
    const line = converse(address, protocol, protocol.sessions(about), about);
    try {
      const parsed = await within(deadline, line.answer);
      if (parsed === null) return silent("the host does not answer in time");
      return parsed.ok ? { ...host, answer: parsed } : silent(parsed.problem.message);
    } catch (error) {
      // A listening socket closes with its process: nobody there means that the host is gone and its pid is another's.
      if (errorCode(error) === "ECONNREFUSED" || isGone(error)) return null;
      if (attempt === mostAttempts) return silent(failureText(error));
    } finally {
      line.hangUp();
    }
    await pause(hungUpMs);
  }
}

/** Whoever hangs up may be dying: then nobody is there any more in a moment. */
const mostAttempts = 2;
const hungUpMs = 20;

/** Where sessions are recorded that a host may be working on: what was last written before it began is none of its. */
function directoriesSince(startedAt: number | null, store: Store | null): string[] {
  const found = (store?.rows ?? []).flatMap(({ reading, writtenAt }) => {
    const isOlder = startedAt !== null && writtenAt !== null && writtenAt < startedAt - clockSlackMs;
    return reading.ok && !isOlder && reading.value.turn.state !== "closed" ? (reading.value.cwd ?? []) : [];
  });
  return [...new Set(found)].sort();
}

/** The server of ours that is behind an address now, and the secret that it wants to hear; null: it is gone, or not ours. */
export function serverAt(
  adapter: Adapter,
  home: string,
  address: string,
  readTable: ReadTable,
): { secret: string | null } | null {
  if (adapter.host === null) return null;
  const { hosts } = findHosts(adapter, adapter.host, home, readTable);
  return hosts.find((host) => host.address === address) ?? null;
}

/** Talks with whoever listens there until it has its answer. */
export function converse<T>(
  address: string,
  { transport }: HostProtocol,
  talk: Talk<T>,
  { secret }: Asked,
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
