// agentctl attach: goes to where a session runs. Its tmux pane; else it says host, terminal and pid, and how to get there.
import { hostname } from "node:os";
import { findProgram } from "../control/binary.ts";
import { refuseInside } from "../control/guard.ts";
import { goToPane, isInTmux, paneOf } from "../control/tmux.ts";
import { AgentctlError } from "../core/problem.ts";
import { isHosted } from "../core/session.ts";
import { becomeProgram } from "../sys/exec.ts";
import { isTerminal } from "../sys/stdout.ts";
import type { Command, Context } from "./command.ts";
import type { Row } from "./sessions.ts";
import { shellWord } from "./shell-word.ts";
import { oneRow } from "./status.ts";

export const attach: Command = {
  usage: "agentctl attach <ref>",
  summary: "Goes to where a session runs: its tmux pane. Where that cannot be, says where it is and how to get there.",
  notes: "Exit code 5 where it could not go there.",
  flags: [],
  examples: [["agentctl attach painter", "inside of tmux or outside of it"]],
  async run(args, context) {
    const { row } = await oneRow(args.words, "attach", context);
    const { session, ref } = row;
    if (session.status.state === "unknown")
      throw new AgentctlError("cannot-tell", `cannot tell whether ${ref} is running: ${session.status.why}`, {
        hint: `agentctl why ${ref}`,
      });
    if (session.status.state !== "running") {
      const hint = `agentctl resume ${ref} reopens it here`;
      throw new AgentctlError("refused", `${ref} is not running: there is nowhere to go`, { hint });
    }
    for (const process of session.processes) {
      const pane = await paneOf(process, context.env);
      if (pane === null) continue;
      // It would take the person's terminal to another session.
      await refuseInside("attach", context.env);
      const command = await goToPane(pane, context.env);
      if (command === null) return 0;
      const line = command.map(shellWord).join(" ");
      if (isInTmux(context.env))
        throw new AgentctlError("refused", `${ref} is in tmux pane ${pane.name}, where this client cannot be taken`, {
          hint: `detach, then: ${line}`,
        });
      const tmux = findProgram("tmux", context.env);
      if (!isTerminal(0) || !isTerminal(1) || tmux === null)
        throw new AgentctlError("refused", `${ref} is in tmux pane ${pane.name}`, { hint: line });
      return becomeProgram(tmux, command.slice(1), definedOnly(context));
    }
    throw whereItIs(row, context);
  },
};

const definedOnly = ({ env }: Context): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));

function whereItIs({ session, ref }: Row, context: Context): AgentctlError {
  const [row] = session.processes;
  const pid = row === undefined ? "an unknown process" : `pid ${row.identity.pid}`;
  if (isHosted(session))
    return new AgentctlError(
      "refused",
      `${ref} is in a host on ${hostname()} (${pid}), without a terminal of its own`,
      {
        hint: `agentctl resume ${ref} opens an interface on it here`,
      },
    );
  if (row?.tty == null)
    return new AgentctlError("refused", `${ref} runs on ${hostname()} as ${pid}, without a terminal`, {
      hint: `agentctl logs -f ${ref} follows it; agentctl stop ${ref}, then resume, takes it over`,
    });
  const isInTmux = row.detail?.env?.["TMUX"] !== undefined;
  const hasTmux = findProgram("tmux", context.env) !== null;
  const problem = hasTmux ? "no tmux server that answers has it in a pane" : "there is no tmux in PATH";
  const what = isInTmux ? `started inside tmux, but ${problem}` : "which is no tmux pane";
  return new AgentctlError("refused", `${ref} runs on ${hostname()} at ${row.tty} (${pid}), ${what}`, {
    hint: `go to the window of ${row.tty}, or follow it here: agentctl logs -f ${ref}`,
  });
}
