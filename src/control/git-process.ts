// One run of git: what its environment holds, how long it may take.
import { AgentctlError } from "../core/problem.ts";
import { errorCode } from "../observe/failure.ts";
import type { Environment } from "../observe/homes.ts";
import { runCommand } from "../sys/spawn.ts";

/** A large repository on a slow disk takes its time. One that never answers, like a pipe for a configuration, is given up. */
export const lookingMs = 60_000;
/** A checkout may fetch large files through a filter. */
export const actingMs = 10 * 60_000;
/** For commands that hold lock files. */
export const graceMs = 1_000;

export interface GitAnswer {
  ok: boolean;
  out: string;
  /** What it said about it, for people. */
  err: string;
}

export interface GitOrder {
  place: string;
  args: readonly string[];
  env: Environment;
  mostMs: number;
  /** Between SIGTERM, at which git removes its lock files, and SIGKILL; 0 for a command that takes no lock. */
  graceMs?: number;
  /** Beat the settings of every file. Unlike `-c`, names may hold any character. */
  settings?: readonly (readonly [key: string, value: string])[];
  more?: Readonly<Record<string, string>>;
  input?: string;
}

/** As in the person's own shell: filters and hooks run. Nobody is asked for a password. */
export const askGitAsPerson = (order: GitOrder): Promise<GitAnswer> => askGit(order, { GIT_TERMINAL_PROMPT: "0" });

const quiet = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  // No protocol is allowed, so nothing is fetched. Git before 2.44 knows only this way to forbid the lazy fetch of partial clones.
  GIT_ALLOW_PROTOCOL: "",
  GIT_NO_LAZY_FETCH: "1",
};

const quietSettings = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  // gpg.program would check signatures.
  ["log.showSignature", "false"],
  ["submodule.recurse", "false"],
  ["diff.autoRefreshIndex", "false"],
] as const;

/** Without hooks, without the file system monitor, without the network. */
export const askGitQuietly = (order: GitOrder): Promise<GitAnswer> =>
  askGit({ ...order, settings: [...quietSettings, ...(order.settings ?? [])] }, quiet);

async function askGit(order: GitOrder, own: Readonly<Record<string, string>>): Promise<GitAnswer> {
  const { place, args, env, mostMs, graceMs = 0, settings = [], more = {}, input } = order;
  const kept = Object.entries(env).filter(([key]) => !key.startsWith("GIT_"));
  const set = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  try {
    const { status, out, err } = await runCommand(["git", "-C", place, ...args], {
      cwd: "/",
      env: {
        ...Object.fromEntries([...kept, ...set]),
        ...{ LC_ALL: "C", GIT_CONFIG_COUNT: String(settings.length) },
        ...own,
        ...more,
      },
      ...{ mostMs, graceMs },
      ...(input === undefined ? {} : { input }),
    });
    return { ok: status === 0, out, err: err.trim() };
  } catch (error) {
    if (errorCode(error) === "ENOENT") throw new AgentctlError("failed", "git is not installed", { cause: error });
    throw error;
  }
}

/** What it answered, without the newline at its end; an error with its own words if it refused. */
export function textOf(args: readonly string[], { ok, out, err }: GitAnswer): string {
  if (!ok) throw new AgentctlError("failed", `git ${commandIn(args).command}: ${err || "failed"}`);
  return out.replace(/\n$/, "");
}

/** Options of git itself stand before the command, and `-c` takes a value. */
export function commandIn(args: readonly string[]): { options: readonly string[]; command: string; words: string[] } {
  let at = 0;
  while (args[at]?.startsWith("-")) at += args[at] === "-c" ? 2 : 1;
  return { options: args.slice(0, at), command: args[at] ?? "", words: args.slice(at + 1) };
}
