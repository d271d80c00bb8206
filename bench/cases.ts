// What is measured: homes of several sizes, who lives in them, and the commands that are asked there.
import type { Agent, HomeWish } from "./homes/home.ts";

export interface Case {
  name: string;
  about: string;
  home: HomeWish;
  /** Sessions with a process of their own. */
  live: number;
  /** Processes that are none of an agent's. */
  idle: number;
  /** Names of commands.ts. */
  commands: readonly string[];
}

/** One for each session in ten. */
const mixed: readonly Agent[] = [
  ...(["claude-code", "codex", "claude-code", "opencode", "claude-code"] as const),
  ...(["codex", "claude-code", "opencode", "claude-code", "codex"] as const),
];

/** In this order: what is cold leaves a cache for what follows. */
const baseline = ["C list", "Bun list", "ps -ef", "empty", "list cold", "list"];
const questions = [
  ...["status LIVE", "why LIVE", "status DEAD", "statusline"],
  ...["C list -a", "Bun list -a", "list -a cold", "list -a warm"],
];
const megabyte = 1024 * 1024;

/** Ten thousand records of full size would be three gigabytes for each home: there those older than a week are an eighth. */
const homeOf = (name: string, agents: readonly Agent[], atRest: number): HomeWish => ({
  name,
  agents,
  atRest,
  shrunk: atRest > 5_000 ? 8 : 1,
});

function sizeCase(name: string, agents: readonly Agent[], atRest: number, commands: readonly string[]): Case {
  const full = `${name}-${atRest}`;
  const about = `${atRest.toLocaleString("en")} sessions at rest, 20 live`;
  return { name: full, about, home: homeOf(full, agents, atRest), live: 20, idle: 0, commands };
}

const single: readonly Agent[] = ["claude-code", "codex", "opencode"];

export const cases: readonly Case[] = [
  sizeCase("mixed", mixed, 10, [...baseline, "--version", "--help"]),
  sizeCase("mixed", mixed, 200, baseline),
  sizeCase("mixed", mixed, 2_000, [...baseline, ...questions]),
  sizeCase("mixed", mixed, 10_000, [...baseline, ...questions]),
  ...single.flatMap((agent) => [2_000, 10_000].map((atRest) => sizeCase(agent, [agent], atRest, baseline))),
  {
    name: "crowd",
    about: "200 sessions at rest, 200 live, among 2,000 other processes",
    home: homeOf("crowd", mixed, 200),
    live: 200,
    idle: 2_000,
    commands: baseline,
  },
  {
    name: "tokens",
    about: "one Claude Code record of 200 MB",
    home: { ...homeOf("tokens", ["claude-code"], 10), large: 200 * megabyte },
    live: 0,
    idle: 0,
    commands: [
      ...["C read", "Bun read 1 MB", "Bun read whole", "C tokens"],
      ...["ps -ef", "empty", "list", "status LARGE cold", "status LARGE warm"],
    ],
  },
  {
    name: "launch",
    about: "an empty home; the built-in agent",
    home: homeOf("launch", ["claude-code"], 0),
    live: 0,
    idle: 0,
    commands: ["ps -ef", "empty", "demo agent", "launch demo"],
  },
];

/** Its sessions are Claude Code's instead; none if it had no others. */
export function withoutOpenCode(each: Case): Case[] {
  const { home } = each;
  if (home.agents.every((agent) => agent === "opencode")) return [];
  const agents = home.agents.map((agent) => (agent === "opencode" ? "claude-code" : agent));
  return [{ ...each, home: { ...home, agents } }];
}

export const isLargeCase = ({ home }: Case): boolean => home.atRest > 5_000;
