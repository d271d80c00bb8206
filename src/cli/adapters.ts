// agentctl adapters: which agents we know, which are here, and what cannot be known about them.
import { existsSync } from "node:fs";
import type { Adapter } from "../adapters/adapter.ts";
import { adapters as known } from "../adapters/registry.ts";
import { findBinary, installedVersion } from "../control/binary.ts";
import { jsonLine, plainText } from "../lib/width.ts";
import { homesOf, readSettings, realHome } from "../observe/homes.ts";
import { mayHang, mountTable } from "../observe/mounts.ts";
import type { Command, Context } from "./command.ts";
import { homeRelative } from "./render.ts";

export const adapters: Command = {
  usage: "agentctl adapters [--json]",
  summary: "Shows the agents that agentctl knows: is it here, where its data is, what cannot be known about it.",
  words: "none",
  flags: [{ flag: "--json", help: "print JSON" }],
  examples: [["agentctl adapters", "all of them"]],
  async run(args, context) {
    const facts = known.map((adapter) => adapterFacts(adapter, context));
    if (args.has("--json")) context.out(jsonLine(facts));
    else context.out(facts.map((each) => adapterText(each, context)).join("\n"));
    return 0;
  },
};

export function adapterFacts(adapter: Adapter, { env }: Context) {
  const { settings } = readSettings(env);
  const homes = [...new Set(homesOf(adapter, env, settings))].map((path) => ({ path, exists: isThere(path) }));
  return {
    agent: adapter.agent,
    title: adapter.title,
    aliases: adapter.aliases,
    binary: findBinary(adapter, env),
    install: adapter.install,
    version: installedVersion(adapter, env),
    verified: adapter.verified,
    homes,
    ties: adapter.ties,
    knows: adapter.knows,
    unknowable: adapter.unknowable,
  };
}

/** null: on a file system whose server may not answer; asking could hang. */
const isThere = (path: string): boolean | null =>
  mayHang(realHome(path, mountTable()), mountTable()) ? null : existsSync(path);

function adapterText(facts: ReturnType<typeof adapterFacts>, context: Context): string {
  const homes = facts.homes.map(
    ({ path, exists }) =>
      `${homeRelative(path, context)}${exists === false ? " (not there)" : exists === null ? " (on a remote file system)" : ""}`,
  );
  const lines = [
    `${facts.agent}: ${facts.title}`,
    `  command   ${facts.binary === null ? `not installed: ${facts.install}` : homeRelative(facts.binary, context)}`,
    `  data      ${homes.join(", ")}`,
    `  verified  ${facts.verified.join(", ")}${facts.version === null ? "" : ` (here: ${facts.version})`}`,
    `  tied by   ${facts.ties}`,
    `  known     ${facts.knows}`,
    ...facts.unknowable.map((sentence) => `  cannot be known: ${sentence}`),
  ];
  return `${lines.map((line) => plainText(line).replaceAll("\n", " ")).join("\n")}\n`;
}
