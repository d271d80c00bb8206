// Plain git, asked with arguments. The caller's environment must not turn it to another repository.
import { AgentctlError } from "../core/problem.ts";
import type { Environment } from "../observe/homes.ts";
import { runCommand } from "../sys/spawn.ts";

export interface GitAnswer {
  ok: boolean;
  out: string;
  /** What it said about it, for people. */
  err: string;
}

const mostMs = 10 * 60_000;

/** A repository's own settings name programs that git would run for us just because we look. */
const harmless = ["-c", "core.fsmonitor=false"];

/** `place`: where it is asked. Reading takes no lock, and nobody is asked for a password. */
export async function git(
  place: string,
  args: readonly string[],
  env: Environment,
  more: Readonly<Record<string, string>> = {},
): Promise<GitAnswer> {
  const kept = Object.entries(env).filter(([key]) => !key.startsWith("GIT_"));
  const own = { LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0" };
  try {
    const { status, out, err } = await runCommand(["git", "-C", place, ...harmless, ...args], {
      cwd: "/",
      env: { ...Object.fromEntries(kept), ...own, ...more },
      mostMs,
    });
    return { ok: status === 0, out, err: err.trim() };
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      throw new AgentctlError("failed", "git is not installed", { cause: error });
    throw error;
  }
}

/** What it answered, without the newline at its end; an error with its own words if it refused. */
export async function gitText(place: string, args: readonly string[], env: Environment): Promise<string> {
  const { ok, out, err } = await git(place, args, env);
  if (!ok) throw new AgentctlError("failed", `git ${args[0]}: ${err || "failed"}`);
  return out.replace(/\n$/, "");
}
