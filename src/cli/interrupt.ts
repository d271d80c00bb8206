// agentctl interrupt: ends the turn, keeps the session.
import { jsonLine } from "../lib/width.ts";
import { isOne } from "../service/chosen-sessions.ts";
import { interrupt as interruptSessions } from "../service/interrupt.ts";
import { sessionJson, statusWord } from "../service/session-json.ts";
import { parseDuration } from "./arguments.ts";
import type { Command } from "./command.ts";
import { confirming } from "./confirming.ts";
import { choiceOf, severalFlags } from "./filter-flags.ts";
import { callOf } from "./service-call.ts";

export const interrupt: Command = {
  usage: "agentctl interrupt REF… [--timeout T] [-y] [--json]",
  summary: "End the current turn and keep the session.",
  notes: [
    "A headless agent exits when its turn is interrupted; agentctl send continues its session. An interactive agent in a",
    "tmux pane gets the key that a person would press; outside tmux, interrupt refuses (exit code 5).",
    "Confirmation is required if agentctl knows the process of a session only by its arguments or its directory.",
    "Exit codes: 0 no turn is running now; 6 a turn is still running.",
  ].join("\n"),
  flags: [
    ...severalFlags,
    { flag: "--timeout", value: "T", help: "time limit for the turn to end (default: 15s)" },
    { flag: "--yes", short: "-y", help: "do not ask for confirmation" },
    { flag: "--json", help: "JSON output: the sessions as they are now" },
  ],
  examples: [["agentctl interrupt painter", "like Esc or Ctrl-C in its terminal"]],
  async run(args, context) {
    const timeoutMs = parseDuration(args.one("--timeout") ?? "15s", "interrupt");
    const sessions = choiceOf(args, "interrupt", context);
    const call = callOf(context);
    const { interrupted, exitCode } = await confirming(
      (confirmed) => interruptSessions({ sessions, timeoutMs, confirmed }, call),
      args.has("--yes"),
      context,
    );
    if (args.has("--json")) {
      const json = interrupted.map(({ now }) => (now === null ? null : sessionJson(now)));
      context.out(jsonLine(isOne(sessions) ? json[0] : json));
    } else
      for (const { before, now, hadTurn } of interrupted) {
        const word = now === null ? "gone" : statusWord(now.session);
        context.out(`${before.ref} is ${word}${hadTurn ? "" : ": no turn was running"}\n`);
      }
    return exitCode;
  },
};
