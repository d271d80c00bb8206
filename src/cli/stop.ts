// agentctl stop: ends sessions, says what was ended and what was left alone.

import { lookForDueHooks } from "../control/due-hooks.ts";
import { notesWhenOver } from "../control/exits.ts";
import { type Caller, callerOf, guardTarget } from "../control/guard.ts";
import { type Stopped, stopSessions } from "../control/stop.ts";
import { vanished } from "../core/derive.ts";
import type { Leftover } from "../core/family.ts";
import { AgentctlError, exitCodes } from "../core/problem.ts";
import { jsonLine, oneLine, someLines } from "../lib/width.ts";
import { checkKnown } from "./acted-row.ts";
import { parseDuration } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { canAsk, confirm } from "./question.ts";
import { problemLines } from "./render.ts";
import { sessionJson, statusWord } from "./session-json.ts";
import { lookAroundAtRows, type Row } from "./sessions.ts";
import { chooseRows, isOne, lookForAll, severalFlags } from "./several.ts";

export const stop: Command = {
  usage: "agentctl stop <ref>… [--grace 20s] [--now] [--leftovers] [--server] [-y] [--json]",
  summary: "Ends sessions: the agent's own way or the gentlest signal first, then what its tools left running.",
  notes: [
    "A signal goes to a process that is still the one we saw, never to a bare pid. Programs that a person may work in are",
    "left over: terminal emulators, multiplexers, browsers and editors with a window, whatever has a terminal that another",
    "program than the agent gave it; also other sessions and daemons. They are listed, and ended only with --leftovers.",
    "A session that lives in a server: its turn is interrupted, the server stays. --server ends the server, too: it names",
    "the other sessions that end with it and asks; without a terminal it needs -y.",
    "Exit codes: 0 stopped (also if it was before), or its turn was interrupted; 5 refused, or idle in a server: nothing",
    "was stopped; 6 something is still running; 8 cannot tell.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--grace", value: "T", help: "how long it may take to end by itself before SIGKILL (default: 20s)" },
    { flag: "--now", help: "SIGKILL at once" },
    { flag: "--leftovers", help: "end the leftovers, too" },
    { flag: "--server", help: "end the server of a session that lives in one, and every session in it" },
    { flag: "--yes", short: "-y", help: "do not ask" },
    { flag: "--json", help: "print JSON: the session as it is now, result, ended, leftovers" },
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
    const servers = args.has("--server") ? serversOf(rows, all.rows) : [];
    for (const { session, ref } of servers.flatMap(({ others }) => others))
      guardTarget(session, ref, caller, all.around, all.notes);
    const mayAsk = args.has("--yes") ? "no" : "yes";
    for (const server of servers) tellOthers(server, mayAsk, context);
    if (mayAsk === "yes") askFirst(rows, context);
    const targets = rows.map(({ session }) => ({
      session,
      launches: all.notes
        .filter(({ agent, home, session: id }) => agent === session.agent && home === session.home && id === session.id)
        .map(({ id }) => id),
    }));
    const options = {
      graceMs,
      now: args.has("--now"),
      leftovers: args.has("--leftovers"),
      server: args.has("--server"),
    };
    const answers = await stopSessions(targets, options, all.around, caller.pids, context.env);
    const fresh = await withExits(rows, answers, context);
    await lookForDueHooks(context.env, (text) => context.err(`agentctl: ${oneLine(text)}\n`));
    const told = answers.map((answer, index) => ({ answer, row: fresh[index] })).filter(hasRow);
    const failures = answers.flatMap(({ failure }) => failure ?? []);
    if (rows.length === 1 && failures[0] !== undefined) throw failures[0];
    if (args.has("--json")) {
      const json = told.map(({ answer, row }) => stopJson(answer, row));
      context.out(jsonLine(isOne(args) ? json[0] : json));
    } else for (const { answer, row } of told) context.out(stopText(answer, row, serversOf([row], all.rows)[0]));
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

const exitCodeFor: Readonly<Record<Exclude<Stopped["result"], "failed">, number>> = {
  stopped: 0,
  "already-stopped": 0,
  "turn-interrupted": 0,
  "tools-stopped": 0,
  "nothing-to-stop": exitCodes.refused,
  "still-running": exitCodes["timed-out"],
  unknown: exitCodes["cannot-tell"],
};

const exitCodeOf = ({ result, failure }: Stopped): number =>
  failure !== null ? exitCodes[failure.code] : result === "failed" ? exitCodes.failed : exitCodeFor[result];

interface Server {
  /** The first of the named sessions that live in it. */
  row: Row;
  /** How people know it: by its process, else by its address. */
  name: string;
  /** The sessions that live in it and were not named. */
  others: Row[];
}

/** The servers that these sessions live in, each once. */
function serversOf(rows: readonly Row[], all: readonly Row[]): Server[] {
  const servers = new Map<string, Server>();
  for (const row of rows) {
    const key = serverKey(row.session);
    if (key === null || servers.has(key)) continue;
    const others = all.filter((each) => serverKey(each.session) === key && !rows.some((own) => own.ref === each.ref));
    servers.set(key, { row, name: serverName(row.session), others });
  }
  return [...servers.values()];
}

function serverKey({ agent, home, status }: Row["session"]): string | null {
  if (status.state !== "running" || status.owner.kind !== "host") return null;
  const { process, address } = status.owner;
  return process === null ? `${agent}\0${home}\0${address}` : `${process.pid} ${process.start} ${process.boot}`;
}

function serverName({ status }: Row["session"]): string {
  if (status.state !== "running" || status.owner.kind !== "host") return "its server";
  const { process, address } = status.owner;
  return process === null ? address : `pid ${process.pid}`;
}

/** Names every other session that ends with the server; asks, unless nobody wants to be asked. */
function tellOthers({ row, name, others }: Server, mayAsk: "yes" | "no", context: Context): void {
  if (others.length === 0) return;
  const named = others.map(({ session, ref }) => `${session.agent} ${ref} (${statusWord(session)})`).join(", ");
  const what = `the server of ${row.ref} (${name}) serves ${otherSessions(others)}, which end with it: ${named}`;
  if (mayAsk === "no") {
    context.err(`agentctl: ${oneLine(what)}\n`);
    return;
  }
  if (!canAsk()) throw new AgentctlError("refused", what, { hint: "-y ends them all the same; nothing was ended" });
  if (!confirm(`${oneLine(what)}. End them all?`, context)) throw new AgentctlError("refused", "nothing was ended");
}

const otherSessions = ({ length }: readonly Row[]): string => `${length} other session${length === 1 ? "" : "s"}`;

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

function stopJson({ result, session, ended, leftovers, survivors, failure }: Stopped, row: Row) {
  return {
    ...sessionJson({ ...row, session: session ?? vanished(row.session) }),
    result,
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

function stopText(answer: Stopped, row: Row, server: Server | undefined): string {
  const { leftovers, survivors } = answer;
  const head = server === undefined ? `${row.ref} ${headline(answer, row)}` : servedHeadline(answer, row, server);
  const left = [...survivors, ...leftovers].map((each) =>
    oneLine(`left: pid ${each.row.identity.pid} ${oneLine(leftoverJson(each).command).slice(0, 60)}: ${each.why}`),
  );
  const below = [...someLines(left, mostLeft), ...(leftovers.length > 0 ? ["--leftovers ends them, too"] : [])];
  return [head, ...below.map((line) => `  ${line}`), ""].join("\n");
}

/** Of a session that lived in a server when the command began. */
function servedHeadline(answer: Stopped, row: Row, { name, others }: Server): string {
  const { result, session, said } = answer;
  const { ref } = row;
  if (session?.status.state !== "running" || result === "failed") return `${ref} ${headline(answer, row)}`;
  if (result === "nothing-to-stop") {
    const more = others.length === 0 ? "" : ` and ${otherSessions(others)}`;
    return `${ref} is idle in its server (${name}): nothing was stopped; --server ends the server${more}`;
  }
  const stays = `it stays ${statusWord(session)} in its server (${name}); --server ends that, too`;
  if (result === "tools-stopped") return `${ref}: what its tools left running was ended; ${stays}`;
  if (result === "turn-interrupted") return `${ref}: ${said ?? "its turn is over"}; ${stays}`;
  return `${ref} is still running in its server (${name}), ${statusWord(session)}: ${said ?? "it was not asked"}`;
}

function headline({ session, ended, failure }: Stopped, row: Row): string {
  if (failure !== null) return `was not stopped: ${oneLine(failure.message)}`;
  const wasStopped = row.session.status.state === "stopped";
  const pids = ended.map(({ process, by }) => `pid ${process.pid}${by === null ? "" : ` by ${by}`}`).join(", ");
  if (wasStopped)
    return pids === ""
      ? `was stopped already (${statusWord(row.session)})`
      : `was stopped already; what it left is ended: ${pids}`;
  if (session === null) return `is stopped; nothing was recorded of it${pids === "" ? "" : ` (${pids})`}`;
  const word = statusWord(session);
  if (session.status.state === "running") return `is still running (${word})`;
  if (session.status.state === "unknown") return `cannot be told: ${session.status.why}`;
  return `is stopped: ${word}${pids === "" ? "" : ` (${pids})`}`;
}
