// What hosts answered at a captured moment: asked as agentctl asks them, every text kept.
import type { Adapter, Asked, HostProtocol } from "../src/adapters/adapter.ts";
import { deadlineIn } from "../src/lib/deadline.ts";
import { readHosts } from "../src/observe/hosts.ts";
import { readProcesses } from "../src/observe/processes.ts";
import { readStore } from "../src/observe/stores.ts";
import type { CapturedHost } from "../test/conformance/cases.ts";

const patienceMs = 60_000;

export async function seenHosts(adapter: Adapter, home: string): Promise<CapturedHost[]> {
  if (adapter.host === null) return [];
  const talks: { directories: readonly string[]; heard: readonly string[]; answer: unknown }[] = [];
  const listening: Adapter = { ...adapter, host: recording(adapter.host, (talk) => talks.push(talk)) };
  const deadline = deadlineIn(patienceMs);
  const store = readStore(adapter, home, deadline);
  const answers = await Promise.all(readHosts(listening, home, () => store, readProcesses, deadline));
  const hosts = answers.filter((host) => host !== null);
  for (const { address, answer } of hosts)
    if (!answer.ok) throw new Error(`the host at ${address}: ${answer.problem.message}`);
  return hosts.flatMap((host) => {
    const talk = talks.find(({ answer }) => answer === host.answer);
    if (talk === undefined || host.process === null) return [];
    return [{ pid: host.process.pid, directories: [...talk.directories], heard: talk.heard.map(parsed) }];
  });
}

function recording(
  protocol: HostProtocol,
  keep: (talk: { directories: readonly string[]; heard: readonly string[]; answer: unknown }) => void,
): HostProtocol {
  return {
    ...protocol,
    sessions(asked: Asked) {
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

/** As JSON, also inside of an answer's body, so that it is redacted like everything else. */
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
