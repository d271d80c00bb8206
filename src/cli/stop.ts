// agentctl stop: ends sessions, says what was ended and what was left alone.
import { callerOf, guardTarget } from "../control/guard.ts";
import { type Stopped, stopSessions } from "../control/stop.ts";
import type { Leftover } from "../core/family.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { oneLine } from "../lib/width.ts";
import { parseDuration } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { canAsk, confirm } from "./question.ts";
import { problemLines } from "./render.ts";
import { clean, sessionJson, statusWord } from "./session-json.ts";
import { lookAroundAtRows, type Row } from "./sessions.ts";
import { chooseRows, severalFlags } from "./several.ts";

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
    const all = await lookAroundAtRows(context);
    context.err(problemLines(all.problems));
    const rows = chooseRows(args, all, "stop", context).map(({ row }) => row);
    const caller = callerOf(all.around, context.env);
    for (const { session, ref } of rows) guardTarget(session, ref, caller, all.around, all.notes);
    for (const row of rows) checkKnown(row);
    if (!args.has("--yes")) askFirst(rows, context);
    const targets = rows.map(({ session }) => ({
      session,
      launches: all.notes
        .filter((note) => note.agent === session.agent && note.session === session.id)
        .map(({ id }) => id),
    }));
    const options = { graceMs, now: args.has("--now"), leftovers: args.has("--leftovers"), host: args.has("--host") };
    const answers = await stopSessions(targets, options, all.around, caller.pids, context.env);
    const told = answers.map((answer, index) => ({ answer, row: rows[index] })).filter(hasRow);
    if (args.has("--json")) {
      const json = told.map(({ answer, row }) => stopJson(answer, row));
      context.out(`${JSON.stringify(clean(rows.length === 1 ? json[0] : json))}\n`);
    } else for (const { answer, row } of told) context.out(stopText(answer, row));
    return Math.max(...told.map(({ answer }) => (answer.survivors.length > 0 ? exitCodes["timed-out"] : 0)));
  },
};

const hasRow = (each: { answer: Stopped; row: Row | undefined }): each is { answer: Stopped; row: Row } =>
  each.row !== undefined;

function checkKnown({ session, ref }: Row): void {
  if (session.status.state !== "unknown") return;
  const message = `cannot tell whether ${ref} is running: ${session.status.why}`;
  throw new AgentctlError("cannot-tell", message, { hint: `agentctl why ${ref}; nothing was done` });
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
  if (rows.length <= manyAtOnce || !canAsk()) return;
  if (!confirm(`End ${rows.length} sessions?`, context)) throw new AgentctlError("refused", "nothing was ended");
}

function stopJson({ session, ended, leftovers, survivors }: Stopped, row: Row) {
  return {
    ...sessionJson({ ...row, session: session ?? row.session }),
    ended: ended.map(({ process }) => process.pid),
    leftovers: [...leftovers, ...survivors.map(stuck)].map(leftoverJson),
  };
}

const stuck = (row: Leftover["row"]): Leftover => ({ row, why: `it did not end (state ${row.state})` });

const leftoverJson = ({ row, why }: Leftover) => ({
  pid: row.identity.pid,
  command: row.detail?.argv?.join(" ") ?? row.name,
  why,
});

function stopText({ session, ended, leftovers, survivors, said }: Stopped, row: Row): string {
  const lines = [`${row.ref} ${headline(session, ended, row, said)}`];
  const rest = [...survivors.map(stuck), ...leftovers];
  for (const { row: left, why } of rest)
    lines.push(
      `  left: pid ${left.identity.pid} ${oneLine(leftoverJson({ row: left, why }).command).slice(0, 60)}: ${why}`,
    );
  if (leftovers.length > 0) lines.push(`  --leftovers ends them, too`);
  return `${lines.join("\n")}\n`;
}

function headline(session: Stopped["session"], ended: Stopped["ended"], row: Row, said: string | null): string {
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
  return `is stopped: ${word}${pids === "" ? "" : ` (${pids})`}`;
}
