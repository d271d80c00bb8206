import { Failure } from "../core/failure.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { isOne } from "../service/chosen-sessions.ts";
import type { SessionRow } from "../service/look.ts";
import { sessionJson, statusWord } from "../service/session-json.ts";
import { type Until, untils, type WaitedSession, wait as waitForSessions } from "../service/wait.ts";
import { shownReason } from "../words/reasons.ts";
import { parseDuration, usage } from "./arguments.ts";
import type { Command } from "./command.ts";
import { choiceOf, severalFlags } from "./filter-flags.ts";
import { countingFor, deniedText } from "./render.ts";
import { callOf } from "./service-call.ts";

export const wait: Command = {
  usage: "agentctl wait REF… [--until done|stopped|idle|waiting] [--any] [--timeout T] [--json]",
  summary: "Wait until sessions are done, stopped, idle or waiting for a person.",
  notes: [
    "Done means: stopped, waiting for a person, or idle without background work. A session that stops always ends the wait.",
    "If a session continues under another id, its name refers to the new id.",
    "Exit codes: 0 completed, idle, or in the state of --until; 10 the session failed, was interrupted or was cut off;",
    "11 it needs a person, or continues under another id; 6 timed out.",
    "For several sessions: 10 if one of them ended with 10, else the highest code; with --any the lowest code.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--until", value: "STATE", help: "done (default), stopped, idle or waiting" },
    { flag: "--any", help: "end when the first session has reached the state" },
    { flag: "--timeout", value: "T", help: "time limit (90s, 10m, 2h)" },
    { flag: "--json", help: "JSON output: the sessions at the end of the wait" },
  ],
  examples: [
    ["agentctl wait @last && agentctl result @last", "the answer of the newest launch"],
    ["agentctl wait --group nightly --timeout 2h", "all sessions of a group"],
    ["agentctl wait painter --until waiting", "until it asks something"],
  ],
  async run(args, context) {
    const until = untilOf(args.one("--until") ?? "done");
    const timeout = args.one("--timeout");
    const timeoutMs = timeout === null ? null : parseDuration(timeout, "wait");
    const sessions = choiceOf(args, "wait", context);
    const request = { sessions, until, any: args.has("--any"), timeoutMs };
    const { waited, isEnough, exitCode } = await waitForSessions(request, callOf(context));
    const { count } = await import("../service/usage.ts");
    const counted: SessionRow[] = [];
    for (const { row, last } of waited) counted.push(await count(row ?? last, countingFor(context)));
    if (args.has("--json")) {
      const json = counted.map(sessionJson);
      context.out(jsonLine(isOne(sessions) ? json[0] : json));
    } else
      for (const [index, each] of waited.entries())
        if (each.isOver)
          context.out(`${oneLine(each.called)} ${endText(each, counted[index]?.counted?.denied ?? 0)}\n`);
    if (isEnough) return exitCode;
    const left = waited
      .filter((each) => !each.isOver)
      .map(({ called, row }) => ({ called, status: row === null ? null : statusWord(row.session) }));
    throw new Failure("wait-timed-out", { until, timeout: timeout ?? "", sessions: left });
  },
};

function untilOf(text: string): Until {
  const known = untils.find((each) => each === text);
  if (known === undefined) throw usage(`--until takes ${untils.join(", ")}, not ${text}`, "wait");
  return known;
}

function endText({ row, last }: WaitedSession, denied: number): string {
  if (row === null) return last.session.id === null ? "exited before it named a session" : "is gone and left no record";
  const { status, continuedBy, reason, waiting } = row.session;
  if (status.state === "stopped" && continuedBy !== null) return `continues as ${continuedBy}`;
  const isAsking = status.state === "running" && status.activity === "waiting" && waiting?.text != null;
  const shown = shownReason(reason);
  const why = isAsking ? `: ${oneLine(waiting.text ?? "")}` : shown === null ? "" : ` (${oneLine(shown)})`;
  const calls = denied === 0 ? "" : `; ${deniedText(denied)}`;
  return `${statusWord(row.session)}${why}${calls}`;
}
