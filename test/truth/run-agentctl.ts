// Runs the binary under test as a user does, and measures its cost.
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expectNow } from "./allowed-answers.ts";
import { askEnvironment, type Reply } from "./ask-agentctl.ts";
import { compareList } from "./compare.ts";
import type { Expected } from "./oracle.ts";
import { absentAsNull } from "./proc.ts";
import type { SimulatedHost } from "./simulated-host.ts";
import { findingsOf, judge } from "./step-findings.ts";

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

export async function tell(host: SimulatedHost, words: string[], manner: Manner = {}): Promise<Told> {
  const { child, reply } = begin(host, words, manner);
  const answer = await reply;
  return { ...answer, peakBytes: child.resourceUsage()?.maxRSS ?? 0 };
}

export function begin(host: SimulatedHost, words: string[], { env, cwd, timeoutMs }: Manner = {}) {
  const before = performance.now();
  const child = Bun.spawn([binary, ...words], {
    cwd: cwd ?? host.root,
    env: { ...environment(host), ...env },
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
  host: SimulatedHost,
  expected: Expected = expectNow(host),
  manner: Manner = {},
  withoutPassers: (text: string) => string = (text) => text,
): Promise<void> {
  const told = await tell(host, listWords, manner);
  const found = findingsOf(host);
  const seen = told.exit === 0 ? { ...told, stdout: withoutPassers(told.stdout) } : told;
  found.lies.push(...compareList(seen, expected, found.tally).lies);
  await judgeCost(host, told, words(told));
}

const words = ({ command }: Told): string[] => command.split(" ");

const maxBytes = 400 * 1024 * 1024;
const maxMs = 10_000;

/** The law of bounded memory and time, for a question that was just answered. */
export async function judgeCost(host: SimulatedHost, told: Told, again: string[]): Promise<void> {
  judge(host, told.tookMs < maxMs ? null : `${told.command} took ${Math.round(told.tookMs)} ms`);
  const peak = told.peakBytes < maxBytes ? told.peakBytes : await watchedPeak(host, again);
  judge(host, peak < maxBytes ? null : `${told.command} took ${Math.round(peak / 1e6)} MB of memory`);
}

/** Asks again and reads the kernel's peak, which starts at zero with exec. */
async function watchedPeak(host: SimulatedHost, again: string[]): Promise<number> {
  const { child, reply } = begin(host, again);
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

function environment(host: SimulatedHost): Record<string, string> {
  // A separate lock folder, because other workers launch at the same time. In the cache, which may change.
  const runtime = join(host.cache, "runtime");
  mkdirSync(runtime, { recursive: true, mode: 0o700 });
  return {
    ...askEnvironment(host),
    XDG_RUNTIME_DIR: runtime,
  };
}
