// Begins or continues a session in its agent's host, where that is how it is done: no process of ours, no holder.
import type { Asked, HostProtocol } from "../adapters/adapter.ts";
import type { HostAnswer } from "../core/evidence.ts";
import { AgentctlError } from "../core/problem.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { failureText } from "../observe/failure.ts";
import { converse, readHosts, serverAt } from "../observe/hosts.ts";
import { readProcesses } from "../observe/processes.ts";
import type { Launched, LaunchOrder } from "./launch.ts";
import { supportFolder, writeNote } from "./notes.ts";

/** The host was asked to begin, and nobody here can take that back. */
export class MayStillBegin extends AgentctlError {}

const whetherItDid = { hint: "agentctl list shows whether it did" };

/** The host has begun when it answers: from then on everybody can see it. */
export async function startInHost(
  wanted: LaunchOrder,
  host: HostProtocol,
  interrupted: Promise<never>,
): Promise<Launched> {
  const launch = crypto.randomUUID();
  const at = Date.now();
  let isAsked = false;
  const onAsking = (): void => {
    isAsked = true;
  };
  try {
    const id = await Promise.race([begun(wanted, host, onAsking), interrupted]);
    return { id, launch, at, holder: null, problem: noteOrProblem(wanted, { id: launch, at }, id) };
  } catch (error) {
    if (!(error instanceof AgentctlError) || error.code !== "interrupted") throw error;
    if (!isAsked) throw new AgentctlError("interrupted", "interrupted; nothing was started", { cause: error });
    const message = `interrupted; ${wanted.adapter.title} was asked already and may begin all the same`;
    throw new MayStillBegin("interrupted", message, { ...whetherItDid, cause: error });
  }
}

async function begun(wanted: LaunchOrder, host: HostProtocol, onAsking: () => void): Promise<string> {
  const { adapter, order, home, cwd, maxTimeMs, startTimeoutMs } = wanted;
  if (host.create === undefined || order.kind === "fork") throw new Error(`${adapter.agent} begins nothing in a host`);
  const there = await hostThatAnswers(wanted, host);
  const server = serverAt(adapter, home, there.address, readProcesses);
  if (server === null)
    throw new AgentctlError("agent-missing", `${adapter.title} cannot be reached at ${there.address}: it is gone`);
  const asked: Asked = { secret: server.secret, directories: [cwd] };
  const place = { home, own: supportFolder(wanted.env), cwd, at: Date.now() };
  const talk = host.create({ ...order, maxTimeMs }, place, crypto.randomUUID(), asked);
  onAsking();
  const { answer, hangUp } = converse(there.address, host, talk, asked);
  try {
    const said = await within(deadlineIn(startTimeoutMs), answer);
    if (said === null) {
      const message = `${adapter.title} (${there.address}) has not answered within ${startTimeoutMs / 1000} s; it may still begin`;
      throw new MayStillBegin("timed-out", message, whetherItDid);
    }
    if (!said.ok) throw new AgentctlError("agent-missing", `${adapter.title} has not begun: ${said.problem.message}`);
    return said.value;
  } catch (error) {
    if (error instanceof AgentctlError || !(error instanceof Error)) throw error;
    const message = `${adapter.title} cannot be reached at ${there.address}: ${failureText(error)}`;
    throw new AgentctlError("agent-missing", message, { cause: error });
  } finally {
    hangUp();
  }
}

/** Nothing is handed to one that does not answer: nobody could say afterwards whether it took it. */
async function hostThatAnswers(
  { adapter, home, startTimeoutMs }: LaunchOrder,
  { start }: HostProtocol,
): Promise<HostAnswer> {
  const asked = await Promise.all(readHosts(adapter, home, () => null, readProcesses, deadlineIn(startTimeoutMs)));
  const heard = asked.filter((host) => host !== null);
  const there = heard.find(({ answer }) => answer.ok);
  if (there !== undefined) return there;
  const [silent] = heard;
  if (silent !== undefined && !silent.answer.ok) {
    const message = `${adapter.title} cannot be asked at ${silent.address}: ${silent.answer.problem.message}`;
    throw new AgentctlError("agent-missing", message);
  }
  const message = `${adapter.title} begins sessions in its host, and none is running for ${home}`;
  throw new AgentctlError("agent-missing", message, start === undefined ? {} : { hint: `start one first: ${start}` });
}

const promptKept = 4_000;

/** The session runs: that its name and labels could not be kept is only worth a word. */
function noteOrProblem(
  { adapter, home, env, note, order }: LaunchOrder,
  launch: { id: string; at: number },
  session: string,
): string | null {
  const at = new Date(launch.at).toISOString();
  const prompt = order.prompt.slice(0, promptKept);
  const { agent } = adapter;
  try {
    writeNote(env, { id: launch.id, agent, home, session, at, permission: order.permission, prompt, ...note });
    return null;
  } catch (error) {
    return `its name and labels could not be kept: ${failureText(error)}`;
  }
}
