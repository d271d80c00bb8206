// Asks the processes that serve many sessions which ones they are running. A silent host is an answer too: "unread".
import type { Adapter, HostProtocol, Talk } from "../adapters/adapter.ts";
import type { HostAnswer } from "../core/evidence.ts";
import { type Problem, type Reading, unread } from "../core/problem.ts";
import type { ProcessIdentity } from "../core/process.ts";
import { type Deadline, within } from "../lib/deadline.ts";
import { openPlainSocket, openWebSocket } from "../sys/unix-socket.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { type FoundFile, findFiles } from "./files.ts";

/** The identity of a live process, read before it is asked; null: gone. */
export type Identify = (pid: number) => { identity: ProcessIdentity; startedAt: number } | null;

export function readHosts(
  adapter: Adapter,
  home: string,
  identify: Identify,
  deadline: Deadline,
): Promise<HostAnswer | null>[] {
  const protocol = adapter.host;
  if (protocol === null) return [];
  const { files, failures } = findFiles(home, protocol.sockets);
  const asked = files.map((socket) => ask(adapter, protocol, home, socket, identify, deadline));
  return [...asked, ...failures.map(async ({ path, message }) => unlistedHosts(adapter, home, path, message))];
}

/** Whoever hosts behind a folder that cannot be listed may have any session of this home. */
function unlistedHosts(adapter: Adapter, home: string, address: string, message: string): HostAnswer {
  const problem: Problem = { code: "store-unreadable", agent: adapter.agent, source: address, message };
  return { agent: adapter.agent, home, address, process: null, startedAt: null, answer: unread(problem) };
}

async function ask(
  adapter: Adapter,
  protocol: HostProtocol,
  home: string,
  socket: FoundFile,
  identify: Identify,
  deadline: Deadline,
): Promise<HostAnswer | null> {
  const pid = Number(socket.subject);
  const known = Number.isNaN(pid) ? null : identify(pid);
  if (known === null && !Number.isNaN(pid)) return null;
  const host = {
    agent: adapter.agent,
    home,
    address: socket.path,
    process: known?.identity ?? null,
    startedAt: known?.startedAt ?? null,
  };
  const silent = (message: string): HostAnswer => {
    const problem: Problem = { code: "host-silent", agent: adapter.agent, source: socket.path, message };
    return { ...host, answer: unread(problem) };
  };
  const { answer, hangUp } = converse(socket.path, protocol.transport, protocol.sessions);
  try {
    const parsed = await within(deadline, answer);
    if (parsed === null) return silent("the host does not answer in time");
    return parsed.ok ? { ...host, answer: parsed } : silent(parsed.problem.message);
  } catch (error) {
    // A listening socket closes with its process: nobody there means that the host is gone and its pid is another's.
    if (errorCode(error) === "ECONNREFUSED" || isGone(error)) return null;
    return silent(failureText(error));
  } finally {
    hangUp();
  }
}

/** Talks with whoever listens there until it has its answer. */
export function converse<T>(
  path: string,
  transport: HostProtocol["transport"],
  talk: Talk<T>,
): { answer: Promise<Reading<T>>; hangUp(): void } {
  const line = transport === "websocket" ? openWebSocket(path) : openPlainSocket(path);
  const speak = async (): Promise<Reading<T>> => {
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
  return { answer: speak(), hangUp: () => line.close() };
}
