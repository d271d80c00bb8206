// agentctl run: an agent in the foreground. Progress on stderr, the final answer on stdout; it ends with this command.
import type { Adapter } from "../adapters/adapter.ts";
import { endLaunch } from "../control/end-launch.ts";
import { type Launched, leftoverLines } from "../control/launch.ts";
import { launchFiles } from "../control/notes.ts";
import { lastLines, linesAtEnd } from "../control/output.ts";
import { startWhere } from "../control/start-in-worktree.ts";
import { interruption, type StartRequest } from "../control/start-session.ts";
import type { Stopped } from "../control/stop.ts";
import { tidyUp } from "../control/tidy.ts";
import { waitFor } from "../control/wait.ts";
import type { Outcome } from "../core/evidence.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { cut, jsonLine, oneLine, plainText } from "../lib/width.ts";
import { type Mark, startMark } from "../observe/conversation.ts";
import { readMore } from "../observe/follow.ts";
import { parseJson, recordAt } from "../observe/records.ts";
import { readTotals } from "../observe/totals.ts";
import type { Command, Context } from "./command.ts";
import { countedFrom } from "./count.ts";
import { orderFlags, orderNotes, requestOf, worktreeOf } from "./launch-order.ts";
import { readingOf, recordOf } from "./record-of.ts";
import { shortDuration, terminalOf } from "./render.ts";
import { endingOf } from "./result.ts";
import { sessionJson, statusWord } from "./session-json.ts";
import { launchedSessions, lookAtRows, type Row } from "./sessions.ts";
import { tailText } from "./status.ts";

export const run: Command = {
  usage: "agentctl run [AGENT] (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary: "Runs an agent in the foreground: progress on stderr, its final answer on stdout.",
  notes: [
    orderNotes,
    "Ctrl-C, SIGTERM, SIGHUP and --max-time end the agent and what its tools started; so does the end of this process,",
    "whatever ended it. A second Ctrl-C does not wait. JSON: the session as it is then, with `result`, its final answer.",
    "Exit codes: 0 completed; 10 it failed, was interrupted or cut off; 11 it needs a person; 130 interrupted.",
  ].join("\n"),
  behindDashes: "handed on",
  flags: orderFlags,
  examples: [
    ['agentctl run claude "explain this repository" --permission read', "the answer on stdout"],
    ["agentctl run codex -F task.md --permission edit --max-time 30m --json", "in a CI job"],
  ],
  async run(args, context) {
    const wanted = requestOf(args, context, "run", true);
    const { interrupted, again, release } = interruption();
    try {
      const { launched, request } = await startWhere(wanted, worktreeOf(args, wanted.adapter.agent, "run"));
      if (launched.problem !== null) context.err(`agentctl: ${launched.problem}\n`);
      context.err(`agentctl: ${launched.id} has begun (agentctl status ${launched.id})\n`);
      const over = tidyUp([launched.launch], context.env, request.warn).then(() =>
        untilOver(launched, request, context),
      );
      const ended = await Promise.race([over, interrupted]).catch(async (error) => {
        const gently = endLaunch(launched.launch, context.env);
        const now = again.then(() => endLaunch(launched.launch, context.env, "now"));
        const stopped = await Promise.race([gently, now]);
        tellLeft(stopped, context);
        throw launched.holder === null ? hostedInstead(error, launched, stopped) : error;
      });
      const said = saidOf(launched, request.adapter, context);
      const code = await answer(ended, said, args.has("--json"), context);
      const isTooLong = request.maxTimeMs !== null && Date.now() - launched.at >= request.maxTimeMs;
      if (isTooLong && code !== 0)
        context.err(`agentctl: ended: --max-time ${shortDuration(request.maxTimeMs ?? 0)} was over\n`);
      // The answer is out; what its tools left running, or the agent itself if it lingers, does not outlive this command.
      tellLeft(await endLaunch(launched.launch, context.env, "over"), context);
      return code;
    } finally {
      release();
    }
  },
};

/** What lives in a host is not ended: its turn is. */
function hostedInstead(error: unknown, { id }: Launched, stopped: readonly Stopped[]): unknown {
  if (!(error instanceof AgentctlError) || error.code !== "interrupted") return error;
  const [said] = stopped.flatMap((each) => each.said ?? []);
  const message = `interrupted; ${id} stays in its host: ${said ?? "whether its turn was ended is not known"}`;
  return new AgentctlError("interrupted", message, { hint: `agentctl status ${id}`, cause: error });
}

function tellLeft(stopped: readonly Stopped[], context: Context): void {
  for (const line of leftoverLines(stopped)) context.err(`agentctl: ${oneLine(line)}\n`);
}

interface Ended {
  row: Row;
  /** As it was before we ended it; null: it ended by itself. */
  asking: Row | null;
}

/** Headless: when it waits for a person nobody will come, so it is ended then, too. */
async function untilOver(launched: Launched, request: StartRequest, context: Context): Promise<Ended> {
  const progress = new Progress(request.adapter, context);
  const mine = (rows: readonly Row[]) =>
    rows.find(
      ({ session, launch }) =>
        launch?.id === launched.launch || (session.id === launched.id && session.home === request.home),
    );
  const look = () => lookAtRows(context, launchedSessions(context));
  const { value } = await waitFor({
    look: async () => {
      const row = mine((await look()).rows) ?? null;
      if (row !== null) progress.show(row);
      return row;
    },
    isEnough: (row) => row === null || row.session.status.state === "stopped" || needsPerson(row),
    sessions: (row) => (row === null ? [] : [row.session]),
    timeoutMs: null,
  });
  if (value === null) throw new AgentctlError("agent-failed", `${launched.id} is gone, and nothing is recorded of it`);
  const asking = needsPerson(value) ? value : null;
  if (asking !== null) await endLaunch(launched.launch, context.env);
  // Its holder writes the exit status a moment after the agent's end.
  if (launched.holder !== null) await within(deadlineIn(exitFileMs), launched.holder.exited);
  return { row: mine((await look()).rows) ?? value, asking };
}

const exitFileMs = 300;

const needsPerson = ({ session: { status } }: Row): boolean =>
  status.state === "running" && status.activity === "waiting";

/** What the agent says and does, a line each. */
class Progress {
  private mark: Mark = startMark;

  constructor(
    private readonly adapter: Adapter,
    private readonly context: Context,
  ) {}

  show({ session: { record } }: Row): void {
    if (record === null) return;
    const { entries, mark } = readMore(this.adapter, recordAt(this.adapter, record.source, record.id), this.mark);
    this.mark = mark;
    const columns = terminalOf(this.context).columns;
    for (const entry of entries) {
      if (entry.kind !== "known") continue;
      for (const { role, text, tool } of entry.facts.messages)
        if (role !== "user" && role !== "result")
          this.context.err(`${cut(oneLine(`${tool ?? role}: ${text}`), columns)}\n`);
    }
  }
}

/** Its own last word on its output, for agents whose records do not say how a turn ended. */
function saidOf({ launch }: Launched, { invocation: { endedIn } }: Adapter, { env }: Context): Outcome | null {
  if (endedIn === undefined) return null;
  const words = linesAtEnd(launchFiles(env, launch).out).map((line) => parseJson(line));
  return words.reduceRight<Outcome | null>((said, line) => said ?? (line.ok ? endedIn(line.value) : null), null);
}

async function answer({ row, asking }: Ended, said: Outcome | null, json: boolean, context: Context): Promise<number> {
  const totals = row.session.record === null ? null : readingOf(row, () => readTotals(recordOf(row)));
  const ending = endingOf((asking ?? row).session, said);
  const text = ending.final ? (totals?.answer ?? null) : null;
  if (json) {
    const counted = totals === null ? row : { ...row, counted: await countedFrom(totals, row) };
    context.out(jsonLine({ ...sessionJson(counted), result: text }));
  } else if (text !== null) context.out(`${plainText(text).trimEnd()}\n`);
  const code = ending.code === exitCodes["cannot-tell"] ? exitCodes["agent-failed"] : ending.code;
  const hasFailed = code === exitCodes["agent-failed"];
  const exit = hasFailed ? exitText(row) : "";
  if (ending.note !== null) context.err(`agentctl: ${row.ref} ${oneLine(ending.note)}${exit}\n`);
  if (hasFailed) context.err(stderrTail(row, context));
  if (totals?.denied) context.err(`agentctl: ${row.ref} was denied ${callsText(totals.denied)}\n`);
  if (asking !== null) context.err(`agentctl: nobody answers here, so ${endedText(row)}\n`);
  return code;
}

const exitText = ({ launch }: Row): string => (launch?.exit == null ? "" : ` (exit status ${launch.exit.status})`);

const stderrTail = ({ launch }: Row, { env }: Context): string =>
  launch === null ? "" : tailText("its stderr", lastLines(launchFiles(env, launch.id).err));

const callsText = (count: number): string => (count === 1 ? "1 tool call" : `${count} tool calls`);

/** What lives in a host has lost its turn only, and may be on. */
const endedText = ({ ref, session }: Row): string =>
  session.status.state === "stopped" ? `${ref} was ended` : `${ref} was to end: it is ${statusWord(session)} now`;
