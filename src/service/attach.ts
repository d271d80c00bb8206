// Where a session can be seen: its tmux pane, else the reason why there is nothing to attach to.
import { hostname } from "node:os";
import { findProgram } from "../control/agent-program.ts";
import { refuseInside } from "../control/guard.ts";
import { goToPane, isInTmux, paneOf } from "../control/tmux.ts";
import { Failure, type FailureFacts } from "../core/failure.ts";
import { isServed } from "../core/session.ts";
import type { Call } from "./call.ts";
import { lookAtRows, type SessionRow } from "./look.ts";
import { checkKnown } from "./policy.ts";
import { lookFor, resolve } from "./reference.ts";

/** The command that shows the pane in a terminal, and its tmux program. null: this terminal shows the pane now. */
export interface PaneCommand {
  ref: string;
  pane: string;
  command: readonly string[];
  /** The caller is inside a tmux client that cannot switch to the pane. */
  isInTmux: boolean;
  tmux: string | null;
}

export async function attach(reference: string, call: Call): Promise<PaneCommand | null> {
  const { env } = call;
  const { all } = await lookFor([reference], call, lookAtRows);
  call.onProblems(all.problems);
  const row = resolve(reference, all, call);
  const { session, ref } = row;
  checkKnown(row);
  if (session.status.state !== "running")
    throw new Failure("nothing-to-attach-to", { ref, host: hostname(), pid: null, tty: null, problem: "not-running" });
  for (const process of session.processes) {
    const pane = await paneOf(process, env);
    if (pane === null) continue;
    // An agent that attaches would switch the person's terminal to another session.
    await refuseInside("attach", call.caller, env);
    const command = await goToPane(pane, env);
    if (command === null) return null;
    return { ref, pane: pane.name, command, isInTmux: isInTmux(env), tmux: findProgram("tmux", env) };
  }
  throw nothingToAttachTo(row, call);
}

function nothingToAttachTo({ session, ref }: SessionRow, { env }: Call): Failure {
  const [process] = session.processes;
  const [pid, tty] = [process?.identity.pid ?? null, process?.tty ?? null];
  const because = (problem: FailureFacts["nothing-to-attach-to"]["problem"]) =>
    new Failure("nothing-to-attach-to", { ref, host: hostname(), pid, tty, problem });
  if (isServed(session)) return because("in-server");
  if (tty === null) return because("no-terminal");
  if (process?.detail?.env?.["TMUX"] === undefined) return because("outside-tmux");
  return because(findProgram("tmux", env) === null ? "tmux-not-installed" : "pane-not-found");
}
