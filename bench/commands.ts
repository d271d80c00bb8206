// The commands that are measured, by the names that the tables show.
import { appendFileSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { Dice } from "../test/truth/random.ts";
import { claudeLines, type TokenSum } from "./homes/claude.ts";
import { userHome } from "./homes/home.ts";
import { Prose } from "./homes/prose.ts";
import { medianBytes } from "./homes/sizes.ts";
import type { Stage } from "./stage.ts";

export interface Command {
  argv(stage: Stage): string[];
  /** The C program that does the unavoidable part of it. */
  reference: "C list" | "C list -a" | "C tokens" | null;
  /** What must be so before it runs; not measured. */
  before?(stage: Stage): void | Promise<void>;
  /** When it counts as done, if not at its end. */
  until?: "line" | "file";
  /** A file to read from. */
  stdin?(stage: Stage): string;
}

const product = (reference: Command["reference"], ...words: string[]): Command => ({
  argv: ({ bin }) => [bin, ...words],
  reference,
});

const about = (word: string, id: (stage: Stage) => string): Command => ({
  argv: (stage) => [stage.bin, word, id(stage)],
  reference: "C list",
});

const tool = (argv: Command["argv"]): Command => ({ argv, reference: null });

export const commands: Readonly<Record<string, Command>> = {
  "C list": tool(({ tools, folder }) => [tools.list, userHome(folder)]),
  "Bun list": tool(({ tools, folder }) => [tools.bare, userHome(folder)]),
  "Bun list -a": tool(({ tools, folder }) => [tools.bare, "-a", userHome(folder)]),
  "C list -a": tool(({ tools, folder }) => [tools.list, "-a", userHome(folder)]),
  "C read": tool(({ tools, home }) => [tools.tokens, home.large?.path ?? ""]),
  "Bun read 1 MB": tool(({ tools, home }) => [tools.read, home.large?.path ?? ""]),
  "Bun read whole": tool(({ tools, home }) => [tools.read, "-w", home.large?.path ?? ""]),
  "C tokens": tool(({ tools, home }) => [tools.tokens, "-s", home.large?.path ?? ""]),
  "ps -ef": tool(() => ["ps", "-ef"]),
  empty: tool(({ tools }) => [tools.empty]),
  list: product("C list", "list"),
  "list cold": { ...product("C list", "list"), before: dropCache },
  "list -a cold": { ...product("C list -a", "list", "-a"), before: dropCache },
  "list -a warm": product("C list -a", "list", "-a"),
  "status LIVE": about("status", liveId),
  "why LIVE": about("why", liveId),
  "status DEAD": about("status", deadId),
  "--version": product(null, "--version"),
  "--help": product(null, "--help"),
  statusline: product("C list", "statusline"),
  "status LARGE cold": { ...about("status", largeId), reference: "C tokens", before: dropCache },
  "status LARGE warm": { ...about("status", largeId), reference: "C tokens", before: appendToLarge },
  "demo agent": {
    argv: ({ bin }) => [bin, "demo-agent", "-p", "--session-id", crypto.randomUUID()],
    reference: null,
    before: demoAgentsGone,
    until: "file",
    stdin: ({ folder }) => join(folder, "prompt"),
  },
  "launch demo": {
    argv: ({ bin }) => [bin, "launch", "demo", demoPrompt],
    reference: null,
    before: demoAgentsGone,
    until: "line",
  },
};

/** It stays long enough to be seen, and is gone before the next one. */
export const demoPrompt = "work:1";

export const announcements = (stage: Stage): string => join(userHome(stage.folder), ".demo-agent/live");

function liveId({ live }: Stage): string {
  return ordinary(live);
}

/** Older than what `list -a` shows. */
function deadId({ home }: Stage): string {
  return ordinary(home.sessions.filter(({ endedAt }) => endedAt < home.madeAt - 8 * 86_400_000));
}

/** Of Claude Code, whose totals are in no other place than its whole record; with a record of middle size. */
function ordinary(sessions: readonly { agent: string; id: string; bytes: number }[]): string {
  const fits = ({ bytes }: { bytes: number }) => Math.abs(bytes - medianBytes);
  const [chosen] = sessions.filter(({ agent }) => agent === "claude-code").sort((a, b) => fits(a) - fits(b));
  return chosen?.id ?? "";
}

function largeId({ home }: Stage): string {
  return home.large?.id ?? "";
}

function dropCache({ cache }: Stage): void {
  rmSync(join(cache, "agentctl"), { recursive: true, force: true });
}

const appendedBytes = 7_000;

/** As much as a turn of its agent, at the end. What an earlier run appended is gone since the stage was set. */
function appendToLarge(stage: Stage): void {
  const { large } = stage.home;
  if (large === null) return;
  const id = large.id;
  const prose = new Prose(new Dice(stage.appended.turns));
  const talk = { id, cwd: "/home/user/code/project-1", prompt: "go on", bytes: appendedBytes, endedAt: Date.now() };
  const lines = claudeLines({ ...talk, ending: "completed" }, prose, stage.appended.tokens);
  appendFileSync(large.path, [...lines].join(""));
  stage.appended.turns += 1;
}

export function forgetAppended({ home }: Stage): void {
  if (home.large !== null) truncateSync(home.large.path, home.large.bytes);
}

export function tokensOfLarge({ home, appended }: Stage): TokenSum | null {
  if (home.large === null) return null;
  const sum = { ...home.large.tokens };
  for (const key of ["input", "output", "cacheRead", "cacheWrite"] as const) sum[key] += appended.tokens[key];
  return sum;
}

async function demoAgentsGone(stage: Stage): Promise<void> {
  while (readdirSync(announcements(stage)).length > 0) await Bun.sleep(20);
}
