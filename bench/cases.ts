// The cases: homes of several sizes, their live sessions, and the commands that are measured there.
import type { Agent, HomeWish } from "./homes/home.ts";

export interface Case {
  name: string;
  about: string;
  home: HomeWish;
  /** The number of sessions with a live process. */
  live: number;
  /** The number of processes that belong to no agent. */
  idle: number;
  /** Names in commands.ts. */
  commands: readonly string[];
}

/** The agents of ten sessions. */
const mixed: readonly Agent[] = [
  ...(["claude-code", "codex", "claude-code", "opencode", "claude-code"] as const),
  ...(["codex", "claude-code", "opencode", "claude-code", "codex"] as const),
];

/** The order matters: a cold command leaves a cache for the next one. */
const baseline = ["C list", "Bun list", "ps -ef", "empty", "list cold", "list"];
const questions = [
  ...["status LIVE", "why LIVE", "status DEAD", "statusline"],
  ...["C list -a", "Bun list -a", "list -a cold", "list -a warm"],
];
const megabyte = 1024 * 1024;

/** 10,000 records of full size would take 3 GB per home: there, records older than a week have an eighth of the size. */
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

/** The case with Claude Code in place of OpenCode; no case if it has only OpenCode. */
export function withoutOpenCode(each: Case): Case[] {
  const { home } = each;
  if (home.agents.every((agent) => agent === "opencode")) return [];
  const agents = home.agents.map((agent) => (agent === "opencode" ? "claude-code" : agent));
  return [{ ...each, home: { ...home, agents } }];
}

export const isLargeCase = ({ home }: Case): boolean => home.atRest > 5_000;
