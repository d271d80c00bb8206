// agentctl launch: starts an agent in the background and prints the id of its session.
import { Failure } from "../core/failure.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import type { Call } from "../service/call.ts";
import {
  cleanUpAfter,
  describeStart,
  launchJson,
  type StartedLaunch,
  launch as startSession,
} from "../service/launch.ts";
import { statusWord } from "../service/session-json.ts";
import { AnswerLost } from "../sys/stdout.ts";
import type { Command, Context } from "./command.ts";
import { interruptible } from "./interruption.ts";
import { launchRequestOf, orderFlags, orderNotes, sweepFlags } from "./launch-order.ts";
import { homeRelative } from "./render.ts";
import { callOf } from "./service-call.ts";

export const launch: Command = {
  usage: "agentctl launch [AGENT] (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary: "Start an agent in the background and print its session id.",
  notes: [
    orderNotes,
    "If the session does not begin, launch fails and leaves nothing running. If the id cannot be printed (a full disk), the",
    "error names the id, and the session keeps running.",
  ].join("\n"),
  afterDashes: "handed on",
  flags: [...orderFlags, ...sweepFlags],
  examples: [
    ['agentctl launch claude "fix the failing test" --permission edit', "in this directory"],
    ["agentctl launch codex -F task.md --cwd ../api --name api", "a prompt from a file, and a name"],
    ["id=$(git diff | agentctl launch claude - --permission read)", "a prompt from standard input, for scripts"],
    ["agentctl launch codex TEXT -- --skip-git-repo-check", "an option of the agent"],
    [
      'agentctl launch --agent claude --agent codex "speed up the parser" --group speed',
      "two agents, each in its own worktree",
    ],
    ["agentctl launch --matrix sweep.yaml --max-parallel 4", "one session per combination in the file"],
  ],
  async run(args, context) {
    if (args.has("--agent") || args.has("--matrix")) return await (await import("./sweep.ts")).sweep(args, context);
    const request = launchRequestOf(args, "launch");
    const started = await interruptible((signal) => startSession(request, callOf(context, signal)));
    await tellStart(started, args.has("--json"), callOf(context), context);
    return 0;
  },
};

/** stdout gets the id alone, as soon as it is known, or the JSON of the contract. */
export async function tellStart(started: StartedLaunch, json: boolean, call: Call, context: Context): Promise<void> {
  const { id } = started.launched;
  const answer = (text: string): void => {
    try {
      context.out(text);
    } catch (error) {
      if (!(error instanceof AnswerLost)) throw error;
      throw new Failure("answer-not-written", { id, detail: error.message }, { cause: error });
    }
  };
  if (!json) answer(`${id}\n`);
  const { ref, session, hookProblem } = await describeStart(started, call);
  if (hookProblem !== null) context.err(`agentctl: --on-start failed: ${oneLine(hookProblem)}\n`);
  if (json) answer(jsonLine(launchJson(started, { ref, session })));
  else {
    const word = session === null ? "started" : statusWord(session);
    const where = session?.cwd == null ? "" : ` in ${oneLine(homeRelative(session.cwd, context))}`;
    const pid = session?.processes[0]?.identity.pid;
    const process = pid === undefined ? "" : ` (pid ${pid})`;
    const next = session?.status.state === "stopped" ? "result" : "logs -f";
    context.err(`agentctl: ${ref} is ${word}${where}${process}; agentctl ${next} ${ref}\n`);
  }
  await cleanUpAfter([started], call);
}
