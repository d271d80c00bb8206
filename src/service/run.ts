// Runs an agent until its session is over or needs a person. The agent ends with the call.
import type { Adapter, Message } from "../agents/adapter.ts";
import { lastLines, linesAtEnd } from "../control/agent-output.ts";
import { endLaunch } from "../control/end-launch.ts";
import { launchFiles } from "../control/notes.ts";
import { leftoverNotices } from "../control/start-agent.ts";
import { type StartedLaunch, startLaunch } from "../control/start-launch.ts";
import type { StopReport } from "../control/stop.ts";
import { waitFor } from "../control/wait.ts";
import type { Outcome } from "../core/evidence.ts";
import { Failure } from "../core/failure.ts";
import { exitOf } from "../core/failure-kinds.ts";
import { exitCodes } from "../core/problem.ts";
import { isSameSession } from "../core/session.ts";
import { deadlineIn, unlessAborted, within } from "../lib/deadline.ts";
import { type Mark, startMark } from "../observe/conversation.ts";
import { readMore } from "../observe/follow.ts";
import { parseJson, recordAt } from "../observe/records.ts";
import type { Call } from "./call.ts";
import { endingOf } from "./ending.ts";
import { cleanUpAfter } from "./launch.ts";
import { type LaunchRequest, planLaunch } from "./launch-plan.ts";
import { launchedSessions, lookAtRows, type SessionRow } from "./look.ts";
import { sessionJson } from "./session-json.ts";
import { readAnswer } from "./usage.ts";

/** A front door shows the steps of a run, in this order. */
export interface RunListener {
  onStart(id: string): void;
  onMessage(message: Message): void;
  onEnd(end: RunEnd): void;
}

export interface RunEnd {
  /** Includes the totals of its record. */
  row: SessionRow;
  /** The final answer; null: there is none. */
  text: string | null;
  /** How its turn ended, in words; null: it completed. */
  note: string | null;
  /** It needed a person, so it was stopped. */
  wasAsking: boolean;
  /** The time limit of the request was reached. */
  isTimeUp: boolean;
  /** The end of the agent's stderr if it failed. */
  stderr: string;
  exitCode: number;
}

/** After `call.signal` the agent is stopped gently, after `killSignal` at once. */
export async function run(
  request: LaunchRequest,
  call: Call,
  killSignal: AbortSignal,
  listener: RunListener,
): Promise<number> {
  const started = await startLaunch(planLaunch(request, call, true), call);
  const { launched, plan } = started;
  const { launch } = launched;
  for (const notice of launched.notices) call.onNotice(notice);
  listener.onStart(launched.id);
  const over = cleanUpAfter([started], call).then(() => untilOver(started, call, listener));
  const ended = await unlessAborted(call.signal, over).catch(async (error) => {
    const stopping = endLaunch(launch, call.caller, call.env);
    const stopped = await unlessAborted(killSignal, stopping).catch(async (reason) => {
      if (!killSignal.aborted) throw reason;
      return await endLaunch(launch, call.caller, call.env, "now");
    });
    tellLeftovers(stopped, call);
    throw launched.holder === null ? servedInstead(error, launched.id, stopped) : error;
  });
  const isTimeUp = plan.maxTimeMs !== null && Date.now() - launched.at >= plan.maxTimeMs;
  const end = { ...(await describeEnd(ended, started, call)), isTimeUp };
  listener.onEnd(end);
  // Now that the answer is shown: stop the agent if it lingers, and the processes that its tools left running.
  tellLeftovers(await endLaunch(launch, call.caller, call.env, "over"), call);
  return end.exitCode;
}

/** A session in a server is not stopped: only its turn is. */
function servedInstead(error: unknown, id: string, stopped: readonly StopReport[]): unknown {
  if (!(error instanceof Failure) || exitOf(error) !== "interrupted") return error;
  const [said] = stopped.flatMap((each) => each.said ?? []);
  return new Failure("left-in-server", { id, answer: said ?? null }, { cause: error });
}

function tellLeftovers(stopped: readonly StopReport[], { onNotice }: Call): void {
  for (const notice of leftoverNotices(stopped)) onNotice(notice);
}

interface EndedRun {
  row: SessionRow;
  /** As it was before it was stopped; null: it ended without that. */
  asking: SessionRow | null;
}

/** A headless session that waits for a person would wait forever: it is stopped then. */
async function untilOver({ launched, plan }: StartedLaunch, call: Call, listener: RunListener): Promise<EndedRun> {
  const progress = new Progress(plan.adapter, listener);
  const name = { agent: plan.adapter.agent, home: plan.home, id: launched.id };
  const mine = (rows: readonly SessionRow[]) =>
    rows.find(({ session, launch }) => launch?.id === launched.launch || isSameSession(session, name));
  const look = () => lookAtRows(call, launchedSessions(call));
  const { value } = await waitFor({
    look: async () => {
      const row = mine((await look()).rows) ?? null;
      if (row !== null) progress.show(row);
      return row;
    },
    isEnough: (row) => row === null || row.session.status.state === "stopped" || needsPerson(row),
    sessions: (row) => (row === null ? [] : [row.session]),
    timeoutMs: null,
    signal: call.signal,
  });
  if (value === null) throw new Failure("session-gone", { id: launched.id });
  const asking = needsPerson(value) ? value : null;
  if (asking !== null) await endLaunch(launched.launch, call.caller, call.env);
  // The holder writes the exit status a moment after the agent has ended.
  if (launched.holder !== null) await within(deadlineIn(exitFileMs), launched.holder.exited);
  return { row: mine((await look()).rows) ?? value, asking };
}

const exitFileMs = 300;

const needsPerson = ({ session: { status } }: SessionRow): boolean =>
  status.state === "running" && status.activity === "waiting";

/** Shows the messages that were recorded since the last look. */
class Progress {
  private mark: Mark = startMark;

  constructor(
    private readonly adapter: Adapter,
    private readonly listener: RunListener,
  ) {}

  show({ session: { record } }: SessionRow): void {
    if (record === null) return;
    const { entries, mark } = readMore(this.adapter, recordAt(this.adapter, record.source, record.id), this.mark);
    this.mark = mark;
    for (const entry of entries)
      if (entry.kind === "known") for (const message of entry.facts.messages) this.listener.onMessage(message);
  }
}

async function describeEnd(
  { row, asking }: EndedRun,
  { launched, plan }: StartedLaunch,
  { env }: Call,
): Promise<Omit<RunEnd, "isTimeUp">> {
  const read = row.session.record === null ? null : await readAnswer(row);
  const ending = endingOf((asking ?? row).session, outcomeInOutput(launched.launch, plan.adapter, env));
  const exitCode = ending.code === exitCodes["cannot-tell"] ? exitCodes["agent-failed"] : ending.code;
  const hasFailed = exitCode === exitCodes["agent-failed"];
  return {
    row: read === null ? row : { ...row, counted: read.counted },
    text: ending.final ? (read?.answer ?? null) : null,
    note: ending.note,
    wasAsking: asking !== null,
    stderr: hasFailed && row.launch !== null ? lastLines(launchFiles(env, row.launch.id).err) : "",
    exitCode,
  };
}

/** For agents whose records do not say how a turn ended. */
function outcomeInOutput(launch: string, { invocation: { endedIn } }: Adapter, env: Call["env"]): Outcome | null {
  if (endedIn === undefined) return null;
  const lines = linesAtEnd(launchFiles(env, launch).out).map((line) => parseJson(line));
  return lines.reduceRight<Outcome | null>((said, line) => said ?? (line.ok ? endedIn(line.value) : null), null);
}

export const runJson = ({ row, text }: RunEnd) => ({ ...sessionJson(row), result: text });
