// agentctl stop: ends sessions, says what was ended and what was left alone.

import { lookForDueHooks } from "../control/due-hooks.ts";
import { notesWhenOver } from "../control/exits.ts";
import { type Caller, callerOf, guardTarget } from "../control/guard.ts";
import { type Stopped, stopSessions } from "../control/stop.ts";
import { vanished } from "../core/derive.ts";
import type { Leftover } from "../core/family.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { oneLine, someLines } from "../lib/width.ts";
import { checkKnown } from "./acted-row.ts";
import { parseDuration } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { canAsk, confirm } from "./question.ts";
import { problemLines } from "./render.ts";
import { clean, sessionJson, statusWord } from "./session-json.ts";
import { lookAroundAtRows, type Row } from "./sessions.ts";
import { chooseRows, isOne, lookForAll, severalFlags } from "./several.ts";

export const stop: Command = {
  usage: "agentctl stop <ref>… [--grace 20s] [--now] [--leftovers] [--host] [-y] [--json]",
  summary: "Ends sessions: the agent's own way or the gentlest signal first, then what its tools left running.",
  notes: [
    "A signal goes to a process that is still the one we saw, never to a bare pid. What has a terminal of its own, has",
    "another session, or is a multiplexer or a daemon is reported as left over, and ended only with --leftovers.",
    "A session inside of a host: its turn is ended, the host stays (--host ends it and all that it hosts).",
    "Exit codes: 0 stopped (also if it was before); 6 something is still running; 5 refused; 8 cannot tell.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--grace", value: "T", help: "how long it may take to end by itself before SIGKILL (default: 20s)" },
    { flag: "--now", help: "SIGKILL at once" },
    { flag: "--leftovers", help: "end the leftovers, too" },
    { flag: "--host", help: "of a hosted session: end its host" },
    { flag: "--yes", short: "-y", help: "do not ask" },
    { flag: "--json", help: "print JSON: the session as it is now, ended, leftovers" },
  ],
  examples: [
    ["agentctl stop 3f2a1b9c", "one session"],
    ["agentctl stop --group nightly -y", "all of a group"],
    ["agentctl stop painter --now", "without waiting"],
  ],
  async run(args, context) {
    const graceMs = parseDuration(args.one("--grace") ?? "20s", "stop");
    const { all } = await lookForAll(args, context, lookAroundAtRows);
    context.err(problemLines(all.problems));
    const rows = chooseRows(args, all, "stop", context).map(({ row }) => row);
    const caller = callerOf(all.around, context.env);
    for (const { session, ref } of rows) guardTarget(session, ref, caller, all.around, all.notes);
    for (const row of rows) checkKnown(row);
    for (const row of rows) checkNotAround(row, caller);
    if (!args.has("--yes")) askFirst(rows, context);
    const targets = rows.map(({ session }) => ({
      session,
      launches: all.notes
        .filter(({ agent, home, session: id }) => agent === session.agent && home === session.home && id === session.id)
        .map(({ id }) => id),
    }));
    const options = { graceMs, now: args.has("--now"), leftovers: args.has("--leftovers"), host: args.has("--host") };
    const answers = await stopSessions(targets, options, all.around, caller.pids, context.env);
    const fresh = await withExits(rows, answers, context);
    await lookForDueHooks(context.env, (text) => context.err(`agentctl: ${oneLine(text)}\n`));
    const told = answers.map((answer, index) => ({ answer, row: fresh[index] })).filter(hasRow);
    const failures = answers.flatMap(({ failure }) => failure ?? []);
    if (rows.length === 1 && failures[0] !== undefined) throw failures[0];
    if (args.has("--json")) {
      const json = told.map(({ answer, row }) => stopJson(answer, row));
      context.out(`${JSON.stringify(clean(isOne(args) ? json[0] : json))}\n`);
    } else for (const { answer, row } of told) context.out(stopText(answer, row));
    return Math.max(...answers.map(exitCodeOf));
  },
};

const exitPatienceMs = 300;

/** With the exit statuses that their holders write a moment after the agents' ends. */
async function withExits(rows: readonly Row[], answers: readonly Stopped[], { env }: Context): Promise<Row[]> {
  const notes = await notesWhenOver(
    rows.flatMap(({ launch }, at) => ((answers[at]?.ended.length ?? 0) === 0 ? [] : (launch?.id ?? []))),
    env,
    exitPatienceMs,
  );
  return rows.map((row) => ({ ...row, launch: notes.find(({ id }) => id === row.launch?.id) ?? row.launch }));
}

const hasRow = (each: { answer: Stopped; row: Row | undefined }): each is { answer: Stopped; row: Row } =>
  each.row !== undefined;

/** Most agents take their tools along: this command would be gone before it could answer. */
function checkNotAround({ session, ref }: Row, caller: Caller): void {
  const isAbove = session.processes.some(({ identity }) => caller.pids.has(identity.pid));
  if (session.status.state !== "running" || !isAbove || !caller.within.includes(session)) return;
  const message = `this command runs inside of ${ref}: ending that would end this command before its answer`;
  throw new AgentctlError("refused", message, { hint: "call it from elsewhere; nothing was ended" });
}

function exitCodeOf({ session, survivors, failure }: Stopped): number {
  if (failure !== null) return exitCodes[failure.code];
  const status = session?.status ?? null;
  if (status?.state === "unknown") return exitCodes["cannot-tell"];
  const goesOn = status?.state === "running" && status.owner.kind === "process";
  return survivors.length > 0 || goesOn ? exitCodes["timed-out"] : 0;
}

const manyAtOnce = 3;

/** A weak link may mean the wrong process; many at once may be a slip of the keyboard. */
function askFirst(rows: readonly Row[], context: Context): void {
  for (const { session, ref } of rows) {
    const { status } = session;
    const link = status.state === "running" && status.owner.kind === "process" ? status.owner.link : "announced";
    if (link === "announced" || link === "assigned") continue;
    const pid = session.processes[0]?.identity.pid ?? "?";
    const sure =
      link === null
        ? "which session it has is not known"
        : `linked only by its ${link === "argv" ? "arguments" : "directory"}`;
    const what = `${ref} is pid ${pid}, ${sure}`;
    if (!canAsk()) throw new AgentctlError("refused", what, { hint: "-y ends it all the same" });
    if (!confirm(`${what}. End it?`, context)) throw new AgentctlError("refused", "nothing was ended");
  }
  const running = rows.filter(({ session }) => session.status.state === "running");
  if (running.length <= manyAtOnce || !canAsk()) return;
  if (!confirm(`End ${running.length} sessions?`, context)) throw new AgentctlError("refused", "nothing was ended");
}

function stopJson({ session, ended, leftovers, survivors, failure }: Stopped, row: Row) {
  return {
    ...sessionJson({ ...row, session: session ?? vanished(row.session) }),
    ended: ended.map(({ process }) => process.pid),
    leftovers: [...leftovers, ...survivors].map(leftoverJson),
    ...(failure === null ? {} : { failure: failure.message }),
  };
}

const leftoverJson = ({ row, why }: Leftover) => ({
  pid: row.identity.pid,
  command: row.detail?.argv?.join(" ") ?? row.name,
  why,
});

/** --json has them all. */
const mostLeft = 20;

function stopText(answer: Stopped, row: Row): string {
  const { leftovers, survivors } = answer;
  const left = [...survivors, ...leftovers].map(
    (each) => `left: pid ${each.row.identity.pid} ${oneLine(leftoverJson(each).command).slice(0, 60)}: ${each.why}`,
  );
  const below = [...someLines(left, mostLeft), ...(leftovers.length > 0 ? ["--leftovers ends them, too"] : [])];
  return [`${row.ref} ${headline(answer, row)}`, ...below.map((line) => `  ${line}`), ""].join("\n");
}

function headline({ session, ended, said, failure }: Stopped, row: Row): string {
  if (failure !== null) return `was not stopped: ${oneLine(failure.message)}`;
  const wasStopped = row.session.status.state === "stopped";
  const pids = ended.map(({ process, by }) => `pid ${process.pid}${by === null ? "" : ` by ${by}`}`).join(", ");
  if (wasStopped)
    return pids === ""
      ? `was stopped already (${statusWord(row.session)})`
      : `was stopped already; what it left is ended: ${pids}`;
  if (session === null) return `is stopped; nothing was recorded of it${pids === "" ? "" : ` (${pids})`}`;
  const word = statusWord(session);
  if (session.status.state === "running" && session.status.owner.kind === "host")
    return `stays loaded in its host, ${word}: ${said ?? "nothing was done"}; --host would end the host`;
  if (session.status.state === "running") return `is still running (${word})`;
  if (session.status.state === "unknown") return `cannot be told: ${session.status.why}`;
  return `is stopped: ${word}${pids === "" ? "" : ` (${pids})`}`;
}
