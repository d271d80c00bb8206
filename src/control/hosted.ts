// Speaking to the host of a session: its turn is ended, or it gets a message. The host itself is never signalled here.
import type { Adapter, Asked, HostProtocol, Talk } from "../adapters/adapter.ts";
import { AgentctlError } from "../core/problem.ts";
import type { Kin } from "../core/session.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { failureText } from "../observe/failure.ts";
import { converse, serverAt } from "../observe/hosts.ts";
import { readProcesses } from "../observe/processes.ts";

const patienceMs = 10_000;

/** Ends its turn; the session stays loaded. What was done, in words. */
export const interruptHosted = (session: Kin & { cwd?: string | null }, adapter: Adapter): Promise<string> =>
  talk(session, adapter, (host, id, asked) => host.interrupt(id, asked));

export const sendToHosted = (session: Kin & { cwd?: string | null }, adapter: Adapter, text: string): Promise<string> =>
  talk(session, adapter, (host, id, asked) => host.send(id, text, crypto.randomUUID(), asked));

async function talk(
  { id, status, home, cwd = null }: Kin & { cwd?: string | null },
  adapter: Adapter,
  about: (host: HostProtocol, id: string, asked: Asked) => Talk<string>,
): Promise<string> {
  const { host } = adapter;
  if (id === null || status?.state !== "running" || status.owner.kind !== "host")
    throw new Error(`${id} has no host to speak to`);
  const { address } = status.owner;
  if (host === null || address.startsWith("process ")) {
    const message = `its host (${address}) can only be spoken to by the program that started it`;
    throw new AgentctlError("refused", message);
  }
  const server = serverAt(adapter, home, address, readProcesses);
  if (server === null)
    throw new AgentctlError("failed", `its host ${address} cannot be reached: it is gone, or not ours`);
  const asked: Asked = { secret: server.secret, directories: cwd === null ? [] : [cwd] };
  const { answer, hangUp } = converse(address, host, about(host, id, asked), asked);
  try {
    const said = await within(deadlineIn(patienceMs), answer);
    if (said === null) throw new AgentctlError("timed-out", `its host ${address} does not answer`);
    if (!said.ok) throw new AgentctlError("failed", `its host refused: ${said.problem.message}`);
    return said.value;
  } catch (error) {
    if (error instanceof AgentctlError || !(error instanceof Error)) throw error;
    throw new AgentctlError("failed", `its host ${address} cannot be reached: ${failureText(error)}`, { cause: error });
  } finally {
    hangUp();
  }
}
