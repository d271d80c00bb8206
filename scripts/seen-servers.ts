// Asks the servers of a captured moment as agentctl does, and keeps every answer.
import type { Adapter, ServerProtocol, TalkContext } from "../src/agents/adapter.ts";
import { deadlineIn } from "../src/lib/deadline.ts";
import { readProcesses } from "../src/observe/processes.ts";
import { readServers } from "../src/observe/servers.ts";
import { readStore } from "../src/observe/stores.ts";
import type { CapturedServer } from "../test/conformance/cases.ts";

const patienceMs = 60_000;

export async function seenServers(adapter: Adapter, home: string): Promise<CapturedServer[]> {
  if (adapter.server === undefined) return [];
  const talks: { directories: readonly string[]; heard: readonly string[]; answer: unknown }[] = [];
  const listening: Adapter = { ...adapter, server: recording(adapter.server, (talk) => talks.push(talk)) };
  const deadline = deadlineIn(patienceMs);
  const store = readStore(adapter, home, deadline);
  const answers = await Promise.all(readServers(listening, home, () => store, readProcesses, deadline));
  const servers = answers.filter((server) => server !== null);
  for (const { address, answer } of servers)
    if (!answer.ok) throw new Error(`the server at ${address}: ${answer.problem.detail.code}`);
  return servers.flatMap((server) => {
    const talk = talks.find(({ answer }) => answer === server.answer);
    if (talk === undefined || server.process === null) return [];
    return [{ pid: server.process.pid, directories: [...talk.directories], heard: talk.heard.map(parsed) }];
  });
}

function recording(
  protocol: ServerProtocol,
  keep: (talk: { directories: readonly string[]; heard: readonly string[]; answer: unknown }) => void,
): ServerProtocol {
  return {
    ...protocol,
    sessions(asked: TalkContext) {
      const talk = protocol.sessions(asked);
      return {
        ...talk,
        next(heard) {
          const step = talk.next(heard);
          if ("answer" in step) keep({ directories: asked.directories, heard: [...heard], answer: step.answer });
          return step;
        },
      };
    },
  };
}

/** Parses the body of an answer, too, so that it is redacted like everything else. */
function parsed(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || !("body" in value) || typeof value.body !== "string") return value;
  try {
    return { ...value, body: JSON.parse(value.body) };
  } catch (error) {
    if (error instanceof SyntaxError) return value;
    throw error;
  }
}
