// agentctl why: the evidence behind a status, the rule that used it, and what would change it.
import { ruleWords } from "../core/rule-words.ts";
import { oneLine } from "../lib/width.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative, paint, shortDuration, type Terminal, terminalOf } from "./render.ts";
import type { Row } from "./sessions.ts";
import { headline, oneRow, statusJson, wholeRow } from "./status.ts";

export const why: Command = {
  usage: "agentctl why <ref> [--json]",
  summary: "Explains a status: what was seen, where, by which rule, and what would change it.",
  notes:
    "Every line names its source, where it can be checked by hand, and the rule that used it (docs/truth.md has all twelve).",
  flags: [{ flag: "--json", help: "print JSON, the same as status --json" }],
  examples: [
    ["agentctl why 3f2a1b9c", "why is it called cut-off?"],
    ["agentctl why @self", "what agentctl knows of the session it runs in"],
  ],
  async run(args, context) {
    const { row, at } = await oneRow(args.words, "why", context);
    if (args.has("--json")) context.out(statusJson(await wholeRow(row, context)));
    else context.out(whyText(row, at, context, terminalOf(context)));
    return 0;
  },
};

function whyText(row: Row, at: number, context: Context, terminal: Terminal): string {
  const { session } = row;
  const proofs = session.evidence.map((proof) => {
    const age = proof.at === null || proof.at >= at ? "" : `, ${shortDuration(at - proof.at)} ago`;
    const source = paint(`${homeRelative(oneLine(proof.source), context)}${age}`, "dim", terminal);
    return `  ${paint(proof.rule.padEnd(3), "cyan", terminal)} ${oneLine(proof.fact)}: ${oneLine(proof.value)}\n      ${source}\n`;
  });
  const conflicts = session.conflicts.map((text) => `  ${paint("!", "red", terminal)}   ${oneLine(text)}\n`);
  const used = [...new Set(session.evidence.map(({ rule }) => rule))].filter((rule) => ruleWords[rule] !== undefined);
  const legend = used.map((rule) => paint(`  ${rule.padEnd(3)} ${ruleWords[rule]}\n`, "dim", terminal));
  const changes = session.wouldChange.map((text) => `  - ${oneLine(text)}\n`);
  return `${headline(row, terminal)}${proofs.join("")}${conflicts.join("")}What would change it:\n${changes.join("")}The rules:\n${legend.join("")}`;
}
