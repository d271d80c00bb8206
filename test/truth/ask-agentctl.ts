// Runs agentctl as a user would: one process per question, a clean environment, a time limit.
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { SimulatedHost } from "./simulated-host.ts";

export interface Reply {
  command: string;
  exit: number;
  tookMs: number;
  stdout: string;
  stderr: string;
}

export const slowMs = 3000;

export async function ask(bin: string, host: SimulatedHost, ...args: string[]): Promise<Reply> {
  const before = performance.now();
  const child = Bun.spawn([bin, ...args], {
    cwd: host.root,
    env: askEnvironment(host),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: slowMs * 3,
    killSignal: "SIGKILL",
  });
  const [stdout, stderr, exit] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { command: args.join(" "), exit, tookMs: performance.now() - before, stdout, stderr };
}

export function askEnvironment(host: SimulatedHost): Record<string, string> {
  return { ...host.environment, AGENTCTL_HOME: host.agentctlHome, XDG_CACHE_HOME: host.cache };
}

/** Shared memory in a file: the index of a database's log, to which readers write, too. */
export const isSharedMemory = (path: string): boolean => path.endsWith("-shm");

/** Names, sizes, times and inodes of all files below, to check that a question changed nothing. */
export function fingerprint(path: string): string {
  const stat = lstatSync(path, { bigint: true });
  const mark = `${path} ${stat.mode} ${stat.size} ${isSharedMemory(path) ? "" : stat.mtimeNs} ${stat.ino}`;
  // Not readdir's own recursion: Bun 1.4 follows links with it, also those that lead to themselves.
  const below = stat.isDirectory() ? readdirSync(path).sort() : [];
  return [mark, ...below.map((name) => fingerprint(join(path, name)))].join("\n");
}
