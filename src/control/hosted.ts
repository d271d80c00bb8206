// Speaking to the host of a session: its turn is ended, or it gets a message. The host itself is never signalled here.
import { randomUUID } from "node:crypto";
import type { Adapter, HostProtocol, Talk } from "../adapters/adapter.ts";
import { AgentctlError } from "../core/problem.ts";
import type { Kin } from "../core/session.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { failureText } from "../observe/failure.ts";
import { converse } from "../observe/hosts.ts";

const patienceMs = 10_000;

/** Ends its turn; the session stays loaded. What was done, in words. */
export const interruptHosted = (session: Kin, adapter: Adapter): Promise<string> =>
  talk(session, adapter, (host, id) => host.interrupt(id));

export const sendToHosted = (session: Kin, adapter: Adapter, text: string): Promise<string> =>
  talk(session, adapter, (host, id) => host.send(id, text, randomUUID()));

async function talk(
  { id, status }: Kin,
  { host }: Adapter,
  about: (host: HostProtocol, id: string) => Talk<string>,
): Promise<string> {
  if (host === null || id === null || status?.state !== "running" || status.owner.kind !== "host")
    throw new Error(`${id} has no host to speak to`);
  const { address } = status.owner;
  if (!address.startsWith("/")) {
    const message = `its host (${address}) can only be spoken to by the program that started it`;
    throw new AgentctlError("refused", message);
  }
  const { answer, hangUp } = converse(address, host.transport, about(host, id));
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
