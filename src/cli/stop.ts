// agentctl stop: stops sessions, and prints which processes were stopped and which were not.

import type { StopReport } from "../control/stop.ts";
import { jsonLine, oneLine, someLines } from "../lib/width.ts";
import { isOne } from "../service/chosen-sessions.ts";
import type { SessionRow } from "../service/look.ts";
import { statusWord } from "../service/session-json.ts";
import { leftoverJson, type Server, type StoppedSession, stopJson, stop as stopSessions } from "../service/stop.ts";
import { otherSessions } from "../words/confirmations.ts";
import { failureMessage } from "../words/failures.ts";
import { requestAnswerText } from "../words/occupants.ts";
import { reasonText, spareText } from "../words/reasons.ts";
import { parseDuration } from "./arguments.ts";
import type { Command } from "./command.ts";
import { confirming } from "./confirming.ts";
import { choiceOf, severalFlags } from "./filter-flags.ts";
import { callOf } from "./service-call.ts";

export const stop: Command = {
  usage: "agentctl stop REF… [--grace T] [--now] [--leftovers] [--server] [-y] [--json]",
  summary: "Stop sessions and the processes that their tools started.",
  notes: [
    "The agent gets its own stop command or its gentlest signal first, and SIGKILL after the grace time.",
    "Leftovers are processes that a person may be using: terminal emulators, multiplexers, browsers, editors with a window,",
    "programs with a terminal of their own, daemons and other sessions. They are listed and keep running, unless --leftovers",
    "is given. In a server, stop only interrupts the turn of the session; the server keeps running, unless --server is given.",
    "Confirmation is required to stop more than three sessions, to stop other sessions with --server, and if agentctl knows",
    "the process of a session only by its arguments or its directory.",
    "Exit codes: 0 it is stopped, or its turn was interrupted; 5 refused, or it is idle in a server, so nothing was",
    "stopped; 6 something is still running; 8 cannot tell.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--grace", value: "T", help: "time to exit before SIGKILL (default: 20s)" },
    { flag: "--now", help: "SIGKILL at once" },
    { flag: "--leftovers", help: "stop the leftovers, too" },
    { flag: "--server", help: "stop the server of a session, with every session in it" },
    { flag: "--yes", short: "-y", help: "do not ask for confirmation" },
    { flag: "--json", help: "JSON output: the session as it is now, result, ended, leftovers" },
  ],
  examples: [
    ["agentctl stop 3f2a1b9c", "one session"],
    ["agentctl stop --group nightly -y", "all sessions of a group"],
    ["agentctl stop painter --now", "without a grace time"],
  ],
  async run(args, context) {
    const request = {
      sessions: choiceOf(args, "stop", context),
      graceMs: parseDuration(args.one("--grace") ?? "20s", "stop"),
      now: args.has("--now"),
      leftovers: args.has("--leftovers"),
      server: args.has("--server"),
    };
    const call = callOf(context);
    const { stopped, exitCode } = await confirming(
      (confirmed) => stopSessions({ ...request, confirmed }, call),
      args.has("--yes"),
      context,
    );
    if (args.has("--json")) {
      const json = stopped.map(stopJson);
      context.out(jsonLine(isOne(request.sessions) ? json[0] : json));
    } else for (const each of stopped) context.out(stopText(each));
    return exitCode;
  },
};

/** The number of leftover processes that the text lists; the JSON lists all of them. */
const mostLeft = 20;

function stopText({ answer, row, server }: StoppedSession): string {
  const { leftovers, survivors } = answer;
  const head = server === null ? `${row.ref} ${headline(answer, row)}` : servedHeadline(answer, row, server);
  const left = [...survivors, ...leftovers].map((each) =>
    oneLine(
      `left: pid ${each.row.identity.pid} ${oneLine(leftoverJson(each).command).slice(0, 60)}: ${spareText(each.why)}`,
    ),
  );
  const below = [...someLines(left, mostLeft), ...(leftovers.length > 0 ? ["--leftovers stops them, too"] : [])];
  return [head, ...below.map((line) => `  ${line}`), ""].join("\n");
}

/** For a session that was in a server when the command began. */
function servedHeadline(answer: StopReport, row: SessionRow, { name, others }: Server): string {
  const { result, session, said } = answer;
  const { ref } = row;
  if (session?.status.state !== "running" || result === "failed") return `${ref} ${headline(answer, row)}`;
  if (result === "nothing-to-stop") {
    const more = others.length === 0 ? "" : ` and ${otherSessions(others)}`;
    return `${ref} is idle in its server (${name}): nothing was stopped; --server stops the server${more}`;
  }
  const stays = `it stays ${statusWord(session)} in its server (${name}); --server stops that, too`;
  if (result === "tools-stopped") return `${ref}: processes that its tools had left running were stopped; ${stays}`;
  if (result === "turn-interrupted")
    return `${ref}: ${said === null ? "its turn is over" : requestAnswerText(said)}; ${stays}`;
  return `${ref} is still running in its server (${name}), ${statusWord(session)}: ${said === null ? "it was not asked" : requestAnswerText(said)}`;
}

function headline({ session, ended, failure }: StopReport, row: SessionRow): string {
  if (failure !== null) return `was not stopped: ${oneLine(failureMessage(failure))}`;
  const wasStopped = row.session.status.state === "stopped";
  const pids = ended.map(({ process, by }) => `pid ${process.pid}${by === null ? "" : ` by ${by}`}`).join(", ");
  if (wasStopped)
    return pids === ""
      ? `was already stopped (${statusWord(row.session)})`
      : `was already stopped; processes that it had left running were stopped: ${pids}`;
  if (session === null) return `is stopped; it left no record${pids === "" ? "" : ` (${pids})`}`;
  const word = statusWord(session);
  if (session.status.state === "running") return `is still running (${word})`;
  if (session.status.state === "unknown") return `may still be running: ${reasonText(session.status.why)}`;
  return `${stoppedWord(word)}${pids === "" ? "" : ` (${pids})`}`;
}

const stoppedWord = (word: string): string =>
  word === "cut-off" ? "is stopped in the middle of a turn" : word === "stopped" ? "is stopped" : `is stopped: ${word}`;
