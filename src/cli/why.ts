// agentctl why: the evidence behind a status, the rule that used it, and what would change it.
import { oneLine } from "../lib/width.ts";
import type { SessionRow } from "../service/look.ts";
import { factText, ruleText, triggerText } from "../words/proofs.ts";
import { conflictText } from "../words/reasons.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative, paint, shortDuration, type Terminal, terminalOf } from "./render.ts";
import { headline, oneRow, statusJson, wholeRow } from "./status.ts";

export const why: Command = {
  usage: "agentctl why REF [--json]",
  summary: "Explain a status: the evidence, its source, the rule that used it, and what would change the status.",
  notes:
    "Every line names its source, so that you can check it, and the rule that used it (docs/truth.md describes all rules).",
  flags: [{ flag: "--json", help: "JSON output, the same as status --json" }],
  examples: [
    ["agentctl why 3f2a1b9c", "why is its status cut-off?"],
    ["agentctl why @self", "the session that this command runs in"],
  ],
  async run(args, context) {
    const { row, at } = await oneRow(args.words, "why", context);
    if (args.has("--json")) context.out(statusJson(await wholeRow(row, context)));
    else context.out(whyText(row, at, context, terminalOf(context)));
    return 0;
  },
};

function whyText(row: SessionRow, at: number, context: Context, terminal: Terminal): string {
  const { session } = row;
  const proofs = session.evidence.map((proof) => {
    const age = proof.at === null || proof.at >= at ? "" : `, ${shortDuration(at - proof.at)} ago`;
    const source = paint(`${homeRelative(oneLine(proof.source), context)}${age}`, "dim", terminal);
    const { fact, value } = factText(proof.fact);
    return `  ${paint(proof.rule.padEnd(3), "cyan", terminal)} ${fact}: ${oneLine(value)}\n      ${source}\n`;
  });
  const conflicts = session.conflicts.map(
    (each) => `  ${paint("!", "red", terminal)}   ${oneLine(conflictText(each))}\n`,
  );
  const used = [...new Set(session.evidence.map(({ rule }) => rule))];
  const legend = used.map((rule) => paint(`  ${rule.padEnd(3)} ${ruleText[rule]}\n`, "dim", terminal));
  const changes = session.wouldChange.map((trigger) => `  - ${triggerText(trigger)}\n`);
  return `${headline(row, terminal)}${proofs.join("")}${conflicts.join("")}What would change it:\n${changes.join("")}The rules:\n${legend.join("")}`;
}
