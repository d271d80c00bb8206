// agentctl result: the final answer of the last turn.
import { jsonLine, oneLine, plainText } from "../lib/width.ts";
import { endingOf } from "../service/ending.ts";
import { countedJson } from "../service/session-json.ts";
import { readAnswer } from "../service/usage.ts";
import type { Command } from "./command.ts";
import { skippedText } from "./message-text.ts";
import { deniedText } from "./render.ts";
import { oneRow } from "./status.ts";

export const result: Command = {
  usage: "agentctl result REF [--json]",
  summary: "Print the final answer: the agent's last message of its last turn.",
  notes: [
    "Prints the answer alone on stdout and everything else on stderr. JSON: id, outcome (of the last turn), text, tokens,",
    "costUsd, costSource, denied. If the agent recorded no cost, it is estimated from a price list.",
    "Exit codes: 0 the turn completed; 10 it failed, was interrupted or cut off (prints the last message before that);",
    "6 the turn is still running: there is no final answer yet; 11 it waits for a person, or it continues under another id;",
    "8 cannot tell how the turn ended; 3 no such session, or it has written nothing.",
  ].join("\n"),
  flags: [{ flag: "--json", help: "JSON output" }],
  examples: [
    ["agentctl result 3f2a1b9c", "the final answer"],
    ["agentctl result @last >answer.md", "into a file"],
    ["agentctl result painter --json | jq .costUsd", "for scripts"],
  ],
  async run(args, context) {
    const { row } = await oneRow(args.words, "result", context);
    const { answer, broken, counted } = await readAnswer(row);
    const ending = endingOf(row.session);
    const text = ending.final ? answer : null;
    if (args.has("--json"))
      context.out(jsonLine({ id: row.session.id, outcome: ending.outcome, text, ...countedJson(counted) }));
    else if (text !== null) context.out(`${plainText(text).trimEnd()}\n`);
    if (ending.note !== null) context.err(`agentctl: ${row.ref} ${oneLine(ending.note)}\n`);
    else if (text === null) context.err(`agentctl: ${row.ref} ended its turn without an answer\n`);
    if (counted.denied) context.err(`agentctl: ${row.ref}: ${deniedText(counted.denied)}\n`);
    context.err(skippedText({ broken, unknown: 0, missing: null }));
    return ending.code;
  },
};
