// Prepares one case inside its pid namespace: the home, its live sessions, and everything that the commands need.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Case } from "./cases.ts";
import { announcements, demoPrompt, forgetAppended } from "./commands.ts";
import type { TokenSum } from "./homes/claude.ts";
import { type Home, makeHome, userHome } from "./homes/home.ts";
import { type Live, startCrowd, startLive } from "./live.ts";

/** The programs that were built for the bench. */
export interface Tools {
  measure: string;
  list: string;
  tokens: string;
  sleeper: string;
  empty: string;
  /** Does the work of `list` in Bun. */
  bare: string;
  read: string;
}

export interface PreparedCase {
  bin: string;
  tools: Tools;
  /** Contains all files of this case. */
  folder: string;
  cache: string;
  cwd: string;
  env: Record<string, string>;
  home: Home;
  live: Live[];
  /** The turns that were appended to the large record. */
  appended: { turns: number; tokens: TokenSum };
}

export async function prepareCase(
  bin: string,
  tools: Tools,
  folder: string,
  { home: wish, live, idle }: Case,
): Promise<PreparedCase> {
  const home = makeHome(folder, wish);
  const cache = join(folder, "cache");
  const cwd = join(folder, "work/here");
  const runtime = join(folder, "runtime");
  const own = join(folder, "agentctl-home");
  // Files of earlier launches would make each launch slower.
  for (const path of [own, join(userHome(folder), ".demo-agent")]) rmSync(path, { recursive: true, force: true });
  for (const path of [cache, runtime, join(cwd, ".git")]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const env = {
    HOME: userHome(folder),
    PATH: "/usr/local/bin:/usr/bin:/bin",
    LANG: "C.UTF-8",
    XDG_CACHE_HOME: cache,
    XDG_RUNTIME_DIR: runtime,
    AGENTCTL_HOME: own,
  };
  const appended = { turns: 0, tokens: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  const prepared: PreparedCase = { bin, tools, folder, cache, cwd, env, home, live: [], appended };
  forgetAppended(prepared);
  writeFileSync(join(folder, "prompt"), demoPrompt);
  mkdirSync(announcements(prepared), { recursive: true });
  if (idle > 0) await startCrowd(tools.sleeper, idle);
  prepared.live = await startLive(tools.sleeper, folder, wish.agents, live);
  return prepared;
}
