// Asks the processes that serve many sessions which ones they are running. A silent host is an answer too: "unread".
import type { Adapter, HostProtocol } from "../adapters/adapter.ts";
import type { HostAnswer } from "../core/evidence.ts";
import { type Problem, unread } from "../core/problem.ts";
import type { ProcessIdentity } from "../core/process.ts";
import { type Deadline, within } from "../lib/deadline.ts";
import { askSocket } from "../sys/unix-socket.ts";
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
  const known = identify(Number(socket.subject));
  if (known === null) return null;
  const host = {
    agent: adapter.agent,
    home,
    address: socket.path,
    process: known.identity,
    startedAt: known.startedAt,
  };
  const silent = (message: string): HostAnswer => {
    const problem: Problem = { code: "host-silent", agent: adapter.agent, source: socket.path, message };
    return { ...host, answer: unread(problem) };
  };
  const { answer, hangUp } = askSocket(socket.path, protocol.question);
  try {
    const text = await within(deadline, answer);
    if (text === null) return silent("the host does not answer in time");
    const parsed = protocol.parseAnswer(text);
    return parsed.ok ? { ...host, answer: parsed } : silent(parsed.problem.message);
  } catch (error) {
    // A listening socket closes with its process: nobody there means that the host is gone and its pid is another's.
    if (errorCode(error) === "ECONNREFUSED" || isGone(error)) return null;
    return silent(failureText(error));
  } finally {
    hangUp();
  }
}
