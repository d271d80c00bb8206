// agentctl adapters: the agents that agentctl knows, or one of them in full.
import { jsonLine, plainText } from "../lib/width.ts";
import { type AgentFacts, describeAgent, listAgents } from "../service/installed-agents.ts";
import { effectText } from "../words/agent-start.ts";
import { unexpected } from "./arguments.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative, table, terminalOf } from "./render.ts";

export const adapters: Command = {
  usage: "agentctl adapters [AGENT] [--json]",
  summary: "Show the supported agents, or one of them in full.",
  notes:
    "For one agent: its program and version, its data directories, the versions that agentctl was tested with, what its\npermissions allow, how its sessions are matched to processes, and what cannot be known about it.",
  flags: [{ flag: "--json", help: "JSON output, always in full" }],
  examples: [
    ["agentctl adapters", "all agents, one line each"],
    ["agentctl adapters claude", "one agent in full"],
  ],
  async run(args, context) {
    const [name, more] = args.words;
    if (more !== undefined) throw unexpected(more, "adapters");
    const found = name === undefined ? listAgents(context.env) : [describeAgent(name, context.env)];
    const agents = found.map(withWords);
    if (args.has("--json")) context.out(jsonLine(name === undefined ? agents : agents[0]));
    else
      context.out(
        name === undefined ? agentTable(agents, context) : agents.map((each) => agentText(each, context)).join(""),
      );
    return 0;
  },
};

function withWords(facts: AgentFacts) {
  const { read, edit, bypass } = facts.permissions;
  return { ...facts, permissions: { read: effectText(read), edit: effectText(edit), bypass: effectText(bypass) } };
}

type DescribedAgent = ReturnType<typeof withWords>;

function agentTable(agents: readonly DescribedAgent[], context: Context): string {
  const columns = [{ title: "AGENT" }, { title: "VERSION" }, { title: "PROGRAM" }];
  const rows = agents.map(({ agent, version, binary, install }) => [
    { text: agent },
    { text: version ?? (binary === null ? "-" : "?") },
    { text: binary === null ? `not installed; ${install}` : homeRelative(binary, context) },
  ]);
  return table(columns, rows, terminalOf(context));
}

function agentText(facts: DescribedAgent, context: Context): string {
  const homes = facts.homes.map(
    ({ path, exists }) =>
      `${homeRelative(path, context)}${exists === false ? " (missing)" : exists === null ? " (on a remote file system)" : ""}`,
  );
  const lines = [
    `${facts.agent}: ${facts.title}`,
    `  program      ${facts.binary === null ? `not installed; ${facts.install}` : homeRelative(facts.binary, context)}`,
    `  version      ${facts.version ?? "?"} (tested with ${facts.verified.join(", ")})`,
    `  data         ${homes.join(", ")}`,
    ...Object.entries(facts.permissions).map(([name, meaning]) => `  ${name.padEnd(12)} ${meaning}`),
    `  matched by   ${facts.ties}`,
    `  known        ${facts.knows}`,
    ...facts.unknowable.map((sentence) => `  cannot know  ${sentence}`),
  ];
  return `${lines.map((line) => plainText(line).replaceAll("\n", " ")).join("\n")}\n`;
}
