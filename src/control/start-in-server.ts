// Begins or continues a session in its agent's server, for agents that have one: agentctl starts no process.
import type { ServerProtocol, TalkContext } from "../agents/adapter.ts";
import type { ServerAnswer } from "../core/evidence.ts";
import { Failure } from "../core/failure.ts";
import { deadlineIn, unlessAborted, within } from "../lib/deadline.ts";
import { failureOf } from "../observe/failure.ts";
import { readProcesses } from "../observe/processes.ts";
import { converse, readServers, serverAt } from "../observe/servers.ts";
import { type Launched, type LaunchPlan, noteOrNotice } from "./start-agent.ts";

/** True if the server was asked to begin the session: that request cannot be taken back. */
export const mayStillBegin = (error: unknown): boolean =>
  error instanceof Failure && ["interrupted-after-request", "start-unconfirmed"].includes(error.code);

/** The session has begun when the server answers: from then on every look sees it. */
export async function startInServer(
  wanted: LaunchPlan,
  server: ServerProtocol,
  signal: AbortSignal,
): Promise<Launched> {
  const launch = crypto.randomUUID();
  const plan = { ...wanted, at: Date.now() };
  let isAsked = false;
  const onAsking = (): void => {
    isAsked = true;
  };
  try {
    const id = await unlessAborted(signal, begun(plan, server, onAsking));
    const notice = noteOrNotice(plan, launch, id);
    return { id, launch, at: plan.at, holder: null, notices: notice === null ? [] : [notice] };
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    if (!isAsked) throw new Failure("interrupted", { result: "nothing-started" }, { cause: error });
    throw new Failure("interrupted-after-request", { agent: plan.adapter.title }, { cause: error });
  }
}

async function begun(plan: LaunchPlan, protocol: ServerProtocol, onAsking: () => void): Promise<string> {
  const { adapter, home, cwd, startTimeoutMs } = plan;
  if (protocol.create === undefined || plan.kind === "fork")
    throw new Error(`${adapter.agent} cannot begin a session in a server`);
  const there = await serverThatAnswers(plan, protocol);
  const server = serverAt(adapter, home, there.address, readProcesses);
  const { title: agent } = adapter;
  const { address } = there;
  if (server === null) throw new Failure("server-unreachable", { agent, address, detail: null });
  const asked: TalkContext = { secret: server.secret, directories: [cwd] };
  const talk = protocol.create(plan, crypto.randomUUID(), asked);
  onAsking();
  const { answer, hangUp } = converse(address, protocol, talk, asked);
  try {
    const said = await within(deadlineIn(startTimeoutMs), answer);
    if (said === null) throw new Failure("start-unconfirmed", { agent, address, seconds: startTimeoutMs / 1000 });
    if (!said.ok) throw new Failure("server-refused-session", { agent, detail: said.problem.detail });
    return said.value;
  } catch (error) {
    if (error instanceof Failure || !(error instanceof Error)) throw error;
    throw new Failure("server-unreachable", { agent, address, detail: failureOf(error) }, { cause: error });
  } finally {
    hangUp();
  }
}

/** A server that does not answer gets no prompt: agentctl could not tell whether the server accepted it. */
async function serverThatAnswers(
  { adapter, home, startTimeoutMs }: LaunchPlan,
  { start }: ServerProtocol,
): Promise<ServerAnswer> {
  const asked = await Promise.all(readServers(adapter, home, () => null, readProcesses, deadlineIn(startTimeoutMs)));
  const heard = asked.filter((server) => server !== null);
  const there = heard.find(({ answer }) => answer.ok);
  if (there !== undefined) return there;
  const [silent] = heard;
  const { title: agent } = adapter;
  if (silent !== undefined && !silent.answer.ok)
    throw new Failure("server-unreachable", { agent, address: silent.address, detail: silent.answer.problem.detail });
  throw new Failure("server-not-running", { agent, home, start: start ?? null });
}
