// agentctl run: runs an agent in the foreground. Progress on stderr, the final answer on stdout.
import { exitCodes } from "../core/problem.ts";
import { cut, jsonLine, oneLine, plainText } from "../lib/width.ts";
import { type RunEnd, type RunListener, run as runAgent, runJson } from "../service/run.ts";
import { statusWord } from "../service/session-json.ts";
import type { Command } from "./command.ts";
import { interruptible } from "./interruption.ts";
import { launchRequestOf, orderFlags, orderNotes } from "./launch-order.ts";
import { deniedText, terminalOf } from "./render.ts";
import { callOf } from "./service-call.ts";
import { tailText } from "./status.ts";

export const run: Command = {
  usage: "agentctl run [AGENT] (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary: "Run an agent in the foreground and print its final answer.",
  notes: [
    orderNotes,
    "Progress goes to stderr. Ctrl-C, SIGTERM, SIGHUP and --max-time stop the agent and the processes that its tools started;",
    "so does killing this command. A second Ctrl-C uses SIGKILL at once. JSON: the session after the run, and `result`,",
    "its final answer.",
    "Exit codes: 0 completed; 10 it failed, was interrupted or cut off; 11 it needs a person; 130 interrupted.",
  ].join("\n"),
  afterDashes: "handed on",
  flags: orderFlags,
  examples: [
    ['agentctl run claude "explain this repository" --permission read', "the answer on stdout"],
    ["agentctl run codex -F task.md --permission edit --max-time 30m --json", "in a CI job"],
  ],
  async run(args, context) {
    const request = launchRequestOf(args, "run");
    const timeLimit = args.one("--max-time") ?? "";
    const listener: RunListener = {
      onStart: (id) => context.err(`agentctl: started ${id} (agentctl status ${id})\n`),
      onMessage({ role, tool, text }) {
        if (role === "user" || role === "result") return;
        context.err(`${cut(oneLine(`${tool ?? role}: ${text}`), terminalOf(context).columns)}\n`);
      },
      onEnd(end) {
        if (args.has("--json")) context.out(jsonLine(runJson(end)));
        else if (end.text !== null) context.out(`${plainText(end.text).trimEnd()}\n`);
        context.err(endLines(end));
        if (end.isTimeUp && end.exitCode !== 0) context.err(`agentctl: stopped: --max-time ${timeLimit} was reached\n`);
      },
    };
    return await interruptible((signal, again) => runAgent(request, callOf(context, signal), again, listener));
  },
};

function endLines({ row, note, wasAsking, stderr, exitCode }: RunEnd): string {
  const { ref, session, launch, counted } = row;
  const hasFailed = exitCode === exitCodes["agent-failed"];
  const exit = hasFailed && launch?.exit != null ? ` (exit status ${launch.exit.status})` : "";
  // Only the turn of a session in a server was stopped: the session may still be running.
  const now = session.status.state === "stopped" ? "was stopped" : `is ${statusWord(session)} now`;
  const lines = [
    note === null ? "" : `agentctl: ${ref} ${oneLine(note)}${exit}\n`,
    tailText("its stderr", stderr),
    counted?.denied ? `agentctl: ${ref}: ${deniedText(counted.denied)}\n` : "",
    wasAsking ? `agentctl: no person can answer here: ${ref} ${now}\n` : "",
  ];
  return lines.join("");
}
