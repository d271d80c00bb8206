// agentctl launch: starts an agent and answers with its session's id. It works on when this command, and the terminal, are gone.
import { adapters } from "../adapters/registry.ts";
import type { Launched } from "../control/launch.ts";
import { readNote } from "../control/notes.ts";
import { startWhere } from "../control/start-in-worktree.ts";
import type { StartRequest } from "../control/start-session.ts";
import { tidyUp } from "../control/tidy.ts";
import { AgentctlError } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { jsonLine, oneLine } from "../lib/width.ts";
import { lookAtSessions } from "../observe/observe.ts";
import { withIds } from "../observe/wanted.ts";
import { AnswerLost } from "../sys/stdout.ts";
import type { Command, Context } from "./command.ts";
import { orderFlags, orderNotes, requestOf, startJson, sweepFlags, worktreeOf } from "./launch-order.ts";
import { homeRelative } from "./render.ts";
import { statusWord } from "./session-json.ts";
import { shortestRef } from "./sessions.ts";

export const launch: Command = {
  usage: "agentctl launch [AGENT] (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary:
    "Starts an agent in the background. Prints the session's id: the agent's own, or an error and nothing is left running.",
  notes: [orderNotes, "Where the id cannot be written (a full disk), the error names it: the session has begun."].join(
    "\n",
  ),
  behindDashes: "handed on",
  flags: [...orderFlags, ...sweepFlags],
  examples: [
    ['agentctl launch claude "fix the failing test" --permission edit', "in this directory"],
    ["agentctl launch codex -F task.md --cwd ../api --name api", "a prompt from a file, and a name"],
    ["id=$(git diff | agentctl launch claude - --permission read)", "a prompt from standard input, for scripts"],
    ["agentctl launch codex TEXT -- --skip-git-repo-check", "a flag of the agent's own"],
    ['agentctl launch --agent claude --agent codex "speed up the parser" --group speed', "two, each in its worktree"],
    ["agentctl launch --matrix sweep.yaml --max-parallel 4", "many"],
  ],
  async run(args, context) {
    if (args.has("--agent") || args.has("--matrix")) return await (await import("./sweep.ts")).sweep(args, context);
    const wanted = requestOf(args, context, "launch", false);
    const { launched, request } = await startWhere(wanted, worktreeOf(args, wanted.adapter.agent, "launch"));
    await tellStart(launched, request, args.has("--json"), context);
    return 0;
  },
};

/** stdout is the id alone, as soon as it is known, or the JSON of the contract; the rest is talk. */
export async function tellStart(
  launched: Launched,
  request: StartRequest,
  json: boolean,
  context: Context,
): Promise<void> {
  const { id, launch: number, problem } = launched;
  const answer = (text: string): void => {
    try {
      context.out(text);
    } catch (error) {
      if (!(error instanceof AnswerLost)) throw error;
      const message = `${error.message}; ${id} has begun all the same`;
      throw new AgentctlError("failed", message, { hint: `agentctl stop ${id} ends it`, cause: error });
    }
  };
  if (!json) answer(`${id}\n`);
  if (problem !== null) context.err(`agentctl: ${problem}\n`);
  const { ref, session } = await lookAtStarted(id, request);
  const hook = readNote(context.env, number)?.hookRuns.start ?? null;
  if (hook?.state === "ended" && hook.status !== 0)
    context.err(`agentctl: --on-start failed: ${oneLine(hook.problem ?? `exit status ${hook.status}`)}\n`);
  if (json) answer(jsonLine(startJson(launched, request, { ref, session })));
  else {
    const word = session === null ? "begun" : statusWord(session);
    const where = session?.cwd == null ? "" : ` in ${oneLine(homeRelative(session.cwd, context))}`;
    const pid = session?.processes[0]?.identity.pid;
    const who = pid === undefined ? "" : ` (pid ${pid})`;
    context.err(`agentctl: ${ref} is ${word}${where}${who}; agentctl logs -f ${ref}\n`);
  }
  await tidyUp([number], context.env, request.warn);
}

/** It runs, whatever comes of this look: that nobody could look is no failure of the launch. */
async function lookAtStarted(
  id: string,
  { env, home }: StartRequest,
): Promise<{ ref: string; session: Session | null }> {
  try {
    const list = await lookAtSessions({ adapters, env, wanted: withIds([id]) });
    const session = list.sessions.find((each) => each.id === id && each.home === home) ?? null;
    return { ref: shortestRef(id, list), session };
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return { ref: id, session: null };
  }
}
