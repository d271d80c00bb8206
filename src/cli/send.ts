// agentctl send: one more message to a session.

import { jsonLine } from "../lib/width.ts";
import { send as sendMessage, servedJson } from "../service/send.ts";
import { statusWord } from "../service/session-json.ts";
import { requestAnswerText } from "../words/occupants.ts";
import { usage } from "./arguments.ts";
import type { Command } from "./command.ts";
import { interruptible } from "./interruption.ts";
import { tellStart } from "./launch.ts";
import { startRequestOf } from "./launch-order.ts";
import { promptFlags, readPrompt } from "./prompt.ts";
import { callOf } from "./service-call.ts";

export const send: Command = {
  usage: "agentctl send REF (TEXT | -p TEXT | -F FILE | -) [options] [-- AGENT ARGS…]",
  summary: "Send one more message to a session.",
  notes: [
    "A stopped session continues in the background, in its own directory. A session in a server gets the message through the",
    "server. send refuses if the session is live in its own process (exit code 5).",
    "Without --permission, a session keeps the permission that it was launched with, or the agent's own setting.",
  ].join("\n"),
  afterDashes: "handed on",
  flags: [
    ...promptFlags,
    { flag: "--model", value: "NAME", help: "model, as the agent names it" },
    { flag: "--permission", value: "P", help: "read, edit or bypass" },
    { flag: "--max-time", value: "T", help: "time limit after which the session is stopped (90s, 10m, 2h)" },
    { flag: "--share", help: "start even if another session is active in the directory" },
    { flag: "--start-timeout", value: "T", help: "time limit for the session to start (default: 60s)" },
    { flag: "--json", help: "JSON output" },
  ],
  examples: [
    ['agentctl send 3f2a1b9c "now write the tests"', "continue a stopped session"],
    ["agentctl send painter -F review.md && agentctl wait painter", "and wait until it is done"],
  ],
  async run(args, context) {
    const [reference, ...words] = args.words;
    if (reference === undefined) throw usage("send needs a session", "send");
    const request = { ...startRequestOf(args, readPrompt(args, words, "send"), "send"), reference };
    const answer = await interruptible((signal) => sendMessage(request, callOf(context, signal)));
    if (answer.kind === "started") await tellStart(answer.started, args.has("--json"), callOf(context), context);
    else if (args.has("--json")) context.out(jsonLine(servedJson(answer.row)));
    else {
      const { row, said } = answer;
      context.err(
        `agentctl: sent through its server: ${requestAnswerText(said)}; ${row.ref} is ${statusWord(row.session)}\n`,
      );
      context.out(`${row.session.id}\n`);
    }
    return 0;
  },
};
