// The binary under test, run as a user runs it, and what that cost.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expectNow } from "./allowances.ts";
import { askEnvironment, type Reply } from "./ask.ts";
import { compareList } from "./compare.ts";
import type { Expected } from "./oracle.ts";
import { absentAsNull } from "./proc.ts";
import { judge, sideOf } from "./side.ts";
import type { World } from "./world.ts";

let binary = "";

export function useBinary(path: string): void {
  binary = path;
}

export function binaryUnderTest(): string {
  return binary;
}

interface Manner {
  env?: Record<string, string>;
  cwd?: string;
  timeoutMs?: number;
}

export interface Told extends Reply {
  /** Never below the true peak; above it where our own memory was larger (the kernel counts it until exec). */
  peakBytes: number;
}

export const listWords = ["list", "-a", "--since", "9999d", "--json"];

const patienceMs = 30_000;

export async function tell(world: World, words: string[], manner: Manner = {}): Promise<Told> {
  const { child, reply } = begin(world, words, manner);
  const answer = await reply;
  return { ...answer, peakBytes: child.resourceUsage()?.maxRSS ?? 0 };
}

export function begin(world: World, words: string[], { env, cwd, timeoutMs }: Manner = {}) {
  const before = performance.now();
  const child = Bun.spawn([binary, ...words], {
    cwd: cwd ?? world.root,
    env: { ...environment(world), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: timeoutMs ?? patienceMs,
    killSignal: "SIGKILL",
  });
  const whole = Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const reply = whole.then(
    ([stdout, stderr, exit]): Reply => ({
      command: words.join(" "),
      exit,
      tookMs: performance.now() - before,
      stdout,
      stderr,
    }),
  );
  return { child, reply };
}

/** A list, asked within a step and compared with what is true then. */
export async function askNow(
  world: World,
  expected: Expected = expectNow(world),
  manner: Manner = {},
  withoutPassers: (text: string) => string = (text) => text,
): Promise<void> {
  const told = await tell(world, listWords, manner);
  const side = sideOf(world);
  const seen = told.exit === 0 ? { ...told, stdout: withoutPassers(told.stdout) } : told;
  side.lies.push(...compareList(seen, expected, side.tally).lies);
  await judgeCost(world, told, words(told));
}

const words = ({ command }: Told): string[] => command.split(" ");

const mostBytes = 400 * 1024 * 1024;
const mostMs = 10_000;

/** The law of bounded memory and time, for a question that was just answered. */
export async function judgeCost(world: World, told: Told, again: string[]): Promise<void> {
  judge(world, told.tookMs < mostMs ? null : `${told.command} took ${Math.round(told.tookMs)} ms`);
  const peak = told.peakBytes < mostBytes ? told.peakBytes : await watchedPeak(world, again);
  judge(world, peak < mostBytes ? null : `${told.command} took ${Math.round(peak / 1e6)} MB of memory`);
}

/** Asked once more and watched: the kernel's own mark, which begins anew with exec. */
async function watchedPeak(world: World, again: string[]): Promise<number> {
  const { child, reply } = begin(world, again);
  let peak = 0;
  let over = false;
  const end = reply.finally(() => {
    over = true;
  });
  while (!over) {
    const status = absentAsNull(() => readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? "";
    peak = Math.max(peak, Number(/^VmHWM:\s*(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024);
    await Bun.sleep(1);
  }
  await end;
  return peak;
}

function environment(world: World): Record<string, string> {
  // A lock folder of its own: other workers launch at the same time. In the cache, which may change.
  const runtime = join(world.cache, "runtime");
  mkdirSync(runtime, { recursive: true, mode: 0o700 });
  return {
    ...askEnvironment(world),
    XDG_RUNTIME_DIR: runtime,
  };
}
