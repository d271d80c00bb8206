// The commands that are measured, under the names that the tables show.
import { appendFileSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { Dice } from "../test/truth/random.ts";
import { claudeLines, type TokenSum } from "./homes/claude.ts";
import { userHome } from "./homes/home.ts";
import { Prose } from "./homes/prose.ts";
import { medianBytes } from "./homes/sizes.ts";
import type { PreparedCase } from "./prepared-case.ts";

export interface Command {
  argv(prepared: PreparedCase): string[];
  /** The C program that does the unavoidable part of this command. */
  reference: "C list" | "C list -a" | "C tokens" | null;
  /** Prepares a run; not measured. */
  before?(prepared: PreparedCase): void | Promise<void>;
  /** When the run counts as done: at its first line, or when a file appears. Default: when it exits. */
  until?: "line" | "file";
  stdin?(prepared: PreparedCase): string;
}

const product = (reference: Command["reference"], ...words: string[]): Command => ({
  argv: ({ bin }) => [bin, ...words],
  reference,
});

const about = (word: string, id: (prepared: PreparedCase) => string): Command => ({
  argv: (prepared) => [prepared.bin, word, id(prepared)],
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

/** The agent lives long enough to be seen, and exits before the next run. */
export const demoPrompt = "work:1";

export const announcements = (prepared: PreparedCase): string => join(userHome(prepared.folder), ".demo-agent/live");

function liveId({ live }: PreparedCase): string {
  return ordinary(live);
}

/** A session that is too old for `list -a`. */
function deadId({ home }: PreparedCase): string {
  return ordinary(home.sessions.filter(({ endedAt }) => endedAt < home.madeAt - 8 * 86_400_000));
}

/** A Claude Code session with a record of median size. Its totals need the whole record. */
function ordinary(sessions: readonly { agent: string; id: string; bytes: number }[]): string {
  const fits = ({ bytes }: { bytes: number }) => Math.abs(bytes - medianBytes);
  const [chosen] = sessions.filter(({ agent }) => agent === "claude-code").sort((a, b) => fits(a) - fits(b));
  return chosen?.id ?? "";
}

function largeId({ home }: PreparedCase): string {
  return home.large?.id ?? "";
}

function dropCache({ cache }: PreparedCase): void {
  rmSync(join(cache, "agentctl"), { recursive: true, force: true });
}

const appendedBytes = 7_000;

/** Appends one turn to the large record. */
function appendToLarge(prepared: PreparedCase): void {
  const { large } = prepared.home;
  if (large === null) return;
  const id = large.id;
  const prose = new Prose(new Dice(prepared.appended.turns));
  const talk = { id, cwd: "/home/user/code/project-1", prompt: "go on", bytes: appendedBytes, endedAt: Date.now() };
  const lines = claudeLines({ ...talk, ending: "completed" }, prose, prepared.appended.tokens);
  appendFileSync(large.path, [...lines].join(""));
  prepared.appended.turns += 1;
}

export function forgetAppended({ home }: PreparedCase): void {
  if (home.large !== null) truncateSync(home.large.path, home.large.bytes);
}

export function tokensOfLarge({ home, appended }: PreparedCase): TokenSum | null {
  if (home.large === null) return null;
  const sum = { ...home.large.tokens };
  for (const key of ["input", "output", "cacheRead", "cacheWrite"] as const) sum[key] += appended.tokens[key];
  return sum;
}

async function demoAgentsGone(prepared: PreparedCase): Promise<void> {
  while (readdirSync(announcements(prepared)).length > 0) await Bun.sleep(20);
}
