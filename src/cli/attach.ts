// agentctl attach: goes to the tmux pane of a session, or says where the session is.
import { Failure } from "../core/failure.ts";
import { attach as findPane } from "../service/attach.ts";
import { becomeProgram } from "../sys/exec.ts";
import { isTerminal } from "../sys/stdout.ts";
import { referenceIn } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { callOf } from "./service-call.ts";
import { shellWord } from "./shell-word.ts";

export const attach: Command = {
  usage: "agentctl attach REF",
  summary: "Go to the tmux pane of a session.",
  notes: "If the session has no pane, the error says where it runs and how to get there (exit code 5).",
  flags: [],
  examples: [["agentctl attach painter", "inside or outside of tmux"]],
  async run(args, context) {
    const found = await findPane(referenceIn(args.words, "attach"), callOf(context));
    if (found === null) return 0;
    const { ref, pane, command, isInTmux, tmux } = found;
    const line = command.map(shellWord).join(" ");
    if (isInTmux || !isTerminal(0) || !isTerminal(1) || tmux === null)
      throw new Failure("pane-elsewhere", { ref, pane, command: line, isInTmux });
    return becomeProgram(tmux, command.slice(1), definedOnly(context));
  },
};

const definedOnly = ({ env }: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
