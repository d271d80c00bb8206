// agentctl name and agentctl label: names and labels that a person gives to any session.
import { jsonLine, oneLine } from "../lib/width.ts";
import { type Annotation, annotate } from "../service/annotate.ts";
import { sessionJson } from "../service/session-json.ts";
import { type Arguments, checkName, unexpected, usage } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { callOf } from "./service-call.ts";

const keptNote =
  "Works for sessions that you started yourself, too. Names and labels are kept in $AGENTCTL_HOME until 30 days after the session\nstopped (agentctl prune deletes them earlier); no status depends on them.";

export const name: Command = {
  usage: "agentctl name REF NAME | agentctl name REF --remove",
  summary: "Give a session a name that works as a reference, or remove its name.",
  notes: keptNote,
  flags: [
    { flag: "--remove", help: "remove the name" },
    { flag: "--json", help: "JSON output: the session" },
  ],
  examples: [
    ["agentctl name 3f2a1b9c painter", "now agentctl status painter works"],
    ["agentctl name painter --remove", "remove its name"],
  ],
  async run(args, context) {
    const [reference, given, more] = args.words;
    if (more !== undefined) throw unexpected(more, "name");
    if (reference === undefined) throw usage("name needs a session", "name");
    if ((given === undefined) !== args.has("--remove")) throw usage("give a NAME, or --remove", "name");
    if (given !== undefined) checkName(given, "NAME", "name");
    return await apply(reference, { name: given ?? null, labels: {} }, args, context);
  },
};

export const label: Command = {
  usage: "agentctl label REF KEY=VALUE… | KEY-…",
  summary: "Set labels of a session; KEY- removes one.",
  notes: keptNote,
  flags: [{ flag: "--json", help: "JSON output: the session" }],
  examples: [
    ["agentctl label 3f2a1b9c team=web ticket=42", "then: agentctl list --label team=web"],
    ["agentctl label 3f2a1b9c ticket-", "removes the label ticket"],
  ],
  async run(args, context) {
    const [reference, ...given] = args.words;
    if (reference === undefined) throw usage("label needs a session", "label");
    if (given.length === 0) throw usage("give labels: KEY=VALUE, or KEY- to remove one", "label");
    const labels = given.map((word): [string, string | null] => {
      const [, key, value] = /^([^=\s]+)=([\s\S]*)$/.exec(word) ?? [];
      if (key !== undefined && value !== undefined) return [key, value];
      const [, removed] = /^([^=\s]+)-$/.exec(word) ?? [];
      if (removed === undefined) throw usage(`not a label: ${word} (like key=value, or key- to remove it)`, "label");
      return [removed, null];
    });
    return await apply(reference, { labels: Object.fromEntries(labels) }, args, context);
  },
};

async function apply(reference: string, annotation: Annotation, args: Arguments, context: Context): Promise<number> {
  const row = await annotate(reference, annotation, callOf(context));
  const json = sessionJson(row);
  if (args.has("--json")) context.out(jsonLine(json));
  else {
    const labels = Object.entries(json.labels).map(([key, value]) => `${key}=${value}`);
    const parts = [json.name === null ? "no name" : `name ${json.name}`, ...labels];
    context.out(`${row.ref}: ${oneLine(parts.join(", "))}\n`);
  }
  return 0;
}
