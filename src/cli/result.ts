// agentctl result: what the agent said at the end of its last turn.
import type { Outcome } from "../core/evidence.ts";
import { exitCodes } from "../core/problem.ts";
import type { Session } from "../core/session.ts";
import { jsonLine, oneLine, plainText } from "../lib/width.ts";
import { readTotals } from "../observe/totals.ts";
import type { Command } from "./command.ts";
import { countedFrom } from "./count.ts";
import { passedOver, readingOf, recordOf } from "./record-of.ts";
import { countedJson } from "./session-json.ts";
import { oneRow } from "./status.ts";

export const result: Command = {
  usage: "agentctl result <ref> [--json]",
  summary: "Prints the final answer: what the agent said last in its last turn.",
  notes: [
    "stdout is the answer alone; anything else is said on stderr. JSON: id, outcome (of the last turn), text, tokens, costUsd,",
    "costSource, denied. A cost that the agent did not write is estimated from a price list.",
    "Exit codes: 0 the turn completed; 10 it failed, was interrupted or cut off (text: what was said until then);",
    "6 the turn is still going on, or 11 it waits for a person: there is no final answer yet, and none is printed;",
    "11 also where the session goes on under another id: the answer is printed; 8 cannot tell how the turn ended;",
    "3 no such session, or it has written nothing.",
  ].join("\n"),
  flags: [{ flag: "--json", help: "print JSON" }],
  examples: [
    ["agentctl result 3f2a1b9c", "the final answer"],
    ["agentctl result @last >answer.md", "into a file"],
    ["agentctl result painter --json | jq .costUsd", "for scripts"],
  ],
  async run(args, context) {
    const { row } = await oneRow(args.words, "result", context);
    const totals = readingOf(row, () => readTotals(recordOf(row)));
    const ending = endingOf(row.session);
    const text = ending.final ? totals.answer : null;
    if (args.has("--json")) {
      const { tokens, costUsd, costSource, denied } = countedJson(await countedFrom(totals, row));
      const answer = { id: row.session.id, outcome: ending.outcome, text, tokens, costUsd, costSource, denied };
      context.out(jsonLine(answer));
    } else if (text !== null) context.out(`${plainText(text).trimEnd()}\n`);
    if (ending.note !== null) context.err(`agentctl: ${row.ref} ${oneLine(ending.note)}\n`);
    else if (text === null) context.err(`agentctl: ${row.ref} ended its turn without saying anything\n`);
    context.err(passedOver({ broken: totals.broken, unknown: 0 }, null));
    return ending.code;
  },
};

export interface Ending {
  code: number;
  outcome: Outcome | null;
  /** Is what was said last the last word of the turn? */
  final: boolean;
  note: string | null;
}

/**
 * How the last turn ended. A session that runs may have ended its turn, too: it is idle then. `said`: the agent's own last
 * word on its output, where its record does not say.
 */
export function endingOf({ status, record, waiting, continuedBy }: Session, said: Outcome | null = null): Ending {
  const turn = record?.turn ?? null;
  if (status.state === "unknown")
    return { code: exitCodes["cannot-tell"], outcome: null, final: true, note: `is unknown: ${status.why}` };
  if (status.state === "stopped") {
    const own = ended(status.outcome ?? said, "did not say how its turn ended");
    return continuedBy === null
      ? own
      : { ...own, code: exitCodes["needs-a-person"], note: `goes on as ${continuedBy}` };
  }
  if (status.activity === "waiting") {
    const note = `has no final answer yet, it waits for a person: ${waiting?.text ?? waiting?.kind ?? ""}`;
    return { code: exitCodes["needs-a-person"], outcome: null, final: false, note };
  }
  if (status.activity === "working" || turn?.state === "open" || (turn?.state === "closed" && turn.doubt !== undefined))
    return {
      code: exitCodes["timed-out"],
      outcome: null,
      final: false,
      note: "has no final answer yet, its turn is still going on",
    };
  if (turn?.state === "closed") return ended(turn.outcome, "did not say how its turn ended");
  const why = turn?.state === "unclear" ? `: ${turn.why}` : "";
  return { code: exitCodes["cannot-tell"], outcome: null, final: true, note: `is unclear${why}` };
}

function ended(outcome: Outcome | null, unsaid: string): Ending {
  if (outcome === "completed") return { code: 0, outcome, final: true, note: null };
  if (outcome === null) return { code: exitCodes["cannot-tell"], outcome, final: true, note: unsaid };
  const words = { failed: "failed", interrupted: "was interrupted", "cut-off": "was cut off" } as const;
  return {
    code: exitCodes["agent-failed"],
    outcome,
    final: true,
    note: `${words[outcome]}: this is not a final answer`,
  };
}
