// Runs agentctl until it exits or is killed, and finds every process that it leaves.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestRepository } from "./test-repository.ts";

export interface Command {
  words: string[];
  cwd: string;
  env: Record<string, string>;
  /** Kills it after so many milliseconds. */
  killAfterMs: number | null;
}

export interface Answer {
  code: number | null;
  out: string;
  err: string;
  isKilled: boolean;
  tookTooLong: boolean;
}

/** Every command ends within this time. */
export const maxMs = 20_000;

/** The shell writes its pid down and becomes agentctl: a script that wants to kill it can read the pid at the first git call. */
const begin = 'echo $$ >"$1"; shift; exec "$@"';

export async function runAgentctl(world: TestRepository, { words, cwd, env, killAfterMs }: Command): Promise<Answer> {
  const child = Bun.spawn(["/bin/sh", "-c", begin, "sh", join(world.hook, "pid"), world.binary, ...words], {
    cwd,
    env: { ...agentctlEnvironment(world), ...env, PATH: `${join(world.root, "bin")}:${world.environment["PATH"]}` },
    detached: true,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let tookTooLong = false;
  let closed = (): void => {};
  // What a killed command leaves may keep its output open.
  const patience = new Promise<string[]>((resolve) => {
    closed = () => resolve([]);
  });
  const timers = [
    setTimeout(() => {
      tookTooLong = true;
      kill(-child.pid);
      closed();
    }, maxMs),
    ...(killAfterMs === null ? [] : [setTimeout(() => kill(-child.pid), killAfterMs)]),
  ];
  const output = Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  const isKilled = child.signalCode !== null;
  if (isKilled) timers.push(setTimeout(closed, 200));
  const [out = "", err = ""] = await Promise.race([output, patience]);
  for (const timer of timers) clearTimeout(timer);
  return { code: child.exitCode, out, err, isKilled, tookTooLong };
}

export const agentctlEnvironment = (world: TestRepository): Record<string, string> => ({
  ...world.environment,
  AGENTCTL_HOME: join(world.home, ".agentctl"),
  DEMO_AGENT_HOME: join(world.home, "demo"),
});

/** All live processes of this pid namespace beside its first one and ourselves. */
export const processes = (): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== 1 && pid !== process.pid && isAlive(pid));

function isAlive(pid: number): boolean {
  const stat = readProc(pid, "stat");
  return stat !== "" && !/\) [ZX] /.test(stat);
}

/** Empty: the process is gone. */
function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && ["ENOENT", "ESRCH"].includes(String(error.code))) return "";
    throw error;
  }
}

const patienceMs = 10_000;

/** Waits until no new process is left; kills those that do not exit, and names them. */
export async function settle(before: ReadonlySet<number>): Promise<string[]> {
  const fresh = () => processes().filter((pid) => !before.has(pid));
  const end = performance.now() + patienceMs;
  while (fresh().length > 0 && performance.now() < end) await Bun.sleep(5);
  const left = fresh();
  const told = left.map((pid) => readProc(pid, "cmdline").replaceAll("\0", " "));
  for (const pid of left) kill(pid);
  return told;
}

/** A negative number: the process group. */
export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
