// agentctl launch: starts an agent and answers with its session's id. It works on when this command, and the terminal, are gone.
import type { Launched } from "../control/launch.ts";
import { type StartRequest, startSession } from "../control/start-session.ts";
import { oneLine } from "../lib/width.ts";
import type { Command, Context } from "./command.ts";
import { orderFlags, orderNotes, requestOf } from "./launch-order.ts";
import { homeRelative } from "./render.ts";
import { clean, statusWord } from "./session-json.ts";
import { lookAtRows, type Row } from "./sessions.ts";

export const launch: Command = {
  usage: "agentctl launch [AGENT] (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary:
    "Starts an agent in the background. Prints the session's id: the agent's own, or an error and nothing is left running.",
  notes: orderNotes,
  behindDashes: "handed on",
  flags: orderFlags,
  examples: [
    ['agentctl launch claude "fix the failing test" --permission edit', "in this directory"],
    ["agentctl launch codex -F task.md --cwd ../api --name api", "a prompt from a file, and a name"],
    ["id=$(git diff | agentctl launch claude - --permission read)", "a prompt from standard input, for scripts"],
    ["agentctl launch codex TEXT -- --skip-git-repo-check", "a flag of the agent's own"],
  ],
  async run(args, context) {
    const request = requestOf(args, context, "launch", false);
    const launched = await startSession(request);
    await tellStart(launched, request, args.has("--json"), context);
    return 0;
  },
};

/** stdout is the id alone, or the JSON of the contract; the rest is talk. */
export async function tellStart(
  launched: Launched,
  request: StartRequest,
  json: boolean,
  context: Context,
): Promise<void> {
  if (launched.problem !== null) context.err(`agentctl: ${launched.problem}\n`);
  const row = (await lookAtRows(context)).rows.find(({ launch: note }) => note?.id === launched.launch) ?? null;
  if (json) {
    context.out(`${JSON.stringify(clean(startJson(launched, request, row)))}\n`);
    return;
  }
  const ref = row?.ref ?? launched.id;
  const word = row === null ? "begun" : statusWord(row.session);
  const where = row?.session.cwd == null ? "" : ` in ${oneLine(homeRelative(row.session.cwd, context))}`;
  const pid = row?.session.processes[0]?.identity.pid;
  context.err(
    `agentctl: ${ref} is ${word}${where}${pid === undefined ? "" : ` (pid ${pid})`}; agentctl logs -f ${ref}\n`,
  );
  context.out(`${launched.id}\n`);
}

const startJson = (launched: Launched, { adapter, cwd, note, order }: StartRequest, row: Row | null) => ({
  id: launched.id,
  ref: row?.ref ?? launched.id,
  agent: adapter.agent,
  launch: launched.launch,
  process: row?.session.processes[0]?.identity ?? null,
  cwd: row?.session.cwd ?? cwd,
  group: note.group,
  permission: order.permission,
});
