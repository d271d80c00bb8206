// How the command line calls the service: as its own process, with notices and problems on stderr.
import { oneLine } from "../lib/width.ts";
import type { Call } from "../service/call.ts";
import { ownCaller } from "../service/caller.ts";
import { noticeLines } from "../words/notices.ts";
import type { Context } from "./command.ts";
import { problemLines } from "./render.ts";

/** If the caller passes no signal, Ctrl-C ends the process at once. */
export function callOf(context: Context, signal: AbortSignal = new AbortController().signal): Call {
  const { env, err } = context;
  let shown = "";
  return {
    caller: ownCaller(env),
    env,
    get cwd() {
      return context.cwd;
    },
    signal,
    onNotice(notice) {
      for (const line of noticeLines(notice)) err(`agentctl: ${oneLine(line)}\n`);
    },
    onProblems(problems) {
      const lines = problemLines(problems);
      if (lines !== shown) err(lines);
      shown = lines;
    },
  };
}
