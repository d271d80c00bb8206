// Asks the server of a session to end the session's turn, or to give it a message. Never signals the server.
import type { Adapter, ServerProtocol, Talk, TalkContext } from "../agents/adapter.ts";
import { Failure, type RequestAnswer } from "../core/failure.ts";
import type { Kin } from "../core/session.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { failureText } from "../lib/errors.ts";
import { readProcesses } from "../observe/processes.ts";
import { converse, serverAt } from "../observe/servers.ts";

const patienceMs = 10_000;

type SessionWithCwd = Kin & { cwd?: string | null };

/** Ends its turn; the session stays loaded. */
export const interruptServed = (session: SessionWithCwd, adapter: Adapter): Promise<RequestAnswer> =>
  talk(session, adapter, (server, id, asked) => server.interrupt(id, asked));

export const sendToServed = (session: SessionWithCwd, adapter: Adapter, text: string): Promise<RequestAnswer> =>
  talk(session, adapter, (server, id, asked) => server.send(id, text, crypto.randomUUID(), asked));

async function talk(
  { id, status, home, cwd = null }: SessionWithCwd,
  adapter: Adapter,
  about: (protocol: ServerProtocol, id: string, asked: TalkContext) => Talk<RequestAnswer>,
): Promise<RequestAnswer> {
  const { server: protocol } = adapter;
  if (id === null || status?.state !== "running" || status.owner.kind !== "server")
    throw new Error(`${id} has no server to speak to`);
  const { address } = status.owner;
  if (protocol === undefined || address.startsWith("process ")) throw new Failure("server-is-private", { address });
  const server = serverAt(adapter, home, address, readProcesses);
  if (server === null) throw new Failure("server-gone", { address, detail: null });
  const asked: TalkContext = { secret: server.secret, directories: cwd === null ? [] : [cwd] };
  const { answer, hangUp } = converse(address, protocol, about(protocol, id, asked), asked);
  try {
    const said = await within(deadlineIn(patienceMs), answer);
    if (said === null) throw new Failure("server-timed-out", { address });
    if (!said.ok) throw new Failure("server-refused", { address, detail: said.problem.detail });
    return said.value;
  } catch (error) {
    if (error instanceof Failure || !(error instanceof Error)) throw error;
    throw new Failure("server-gone", { address, detail: failureText(error) }, { cause: error });
  } finally {
    hangUp();
  }
}
