// One case inside its pid namespace: the home, its live sessions, and everything that the commands need.
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
  /** The work of `list` in Bun. */
  bare: string;
  read: string;
}

export interface Stage {
  bin: string;
  tools: Tools;
  /** Everything of this case. */
  folder: string;
  cache: string;
  cwd: string;
  env: Record<string, string>;
  home: Home;
  live: Live[];
  /** What was added to the large record since it was made. */
  appended: { turns: number; tokens: TokenSum };
}

export async function setStage(
  bin: string,
  tools: Tools,
  folder: string,
  { home: wish, live, idle }: Case,
): Promise<Stage> {
  const home = makeHome(folder, wish);
  const cache = join(folder, "cache");
  const cwd = join(folder, "work/here");
  const runtime = join(folder, "runtime");
  const own = join(folder, "agentctl-home");
  // What earlier launches left would make each one slower.
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
  const stage: Stage = { bin, tools, folder, cache, cwd, env, home, live: [], appended };
  forgetAppended(stage);
  writeFileSync(join(folder, "prompt"), demoPrompt);
  mkdirSync(announcements(stage), { recursive: true });
  if (idle > 0) await startCrowd(tools.sleeper, idle);
  stage.live = await startLive(tools.sleeper, folder, wish.agents, live);
  return stage;
}
