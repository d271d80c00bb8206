// Runs cases, tells failures apart, and makes their input small.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Dice, seedOf } from "../truth/random.ts";
import { type Case, stopwatch, type Target } from "./target.ts";

export interface Failure {
  target: string;
  number: number;
  about: string;
  fault: string;
  stack: string | null;
  /** What failed, as small as it could be made. */
  path: string;
  bytes: number;
}

/** Every case has a number: with its target's name and the seed it can be made again. */
export const caseOf = (target: Target, seed: number, number: number): Case =>
  target.make(new Dice(seedOf(seedOf(seed, hashOf(target.name)), number)));

const hashOf = (text: string): number => [...text].reduce((hash, each) => (hash * 31 + each.charCodeAt(0)) >>> 0, 7);

interface Fault {
  fault: string;
  stack: string | null;
}

/** What does not hold for this input. */
async function faultsWith({ check, limitMs, limitMb }: Case, input: Buffer): Promise<Fault[]> {
  const found: Fault[] = [];
  const before = limitMb === null ? 0 : resetPeak();
  const elapsed = stopwatch();
  try {
    const faults = check(input);
    for (const fault of faults instanceof Promise ? await faults : faults) found.push({ fault, stack: null });
  } catch (error) {
    const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
    found.push({ fault: `threw ${name}: ${message.slice(0, 200)}`, stack: stack?.slice(0, 3_000) ?? null });
  }
  const tookMs = elapsed();
  if (tookMs > limitMs) found.push({ fault: `took ${Math.round(tookMs)} ms`, stack: null });
  const grownMb = limitMb === null ? 0 : peakMb() - before;
  if (limitMb !== null && grownMb > limitMb) found.push({ fault: `took ${Math.round(grownMb)} MB`, stack: null });
  return found;
}

/** The most memory since now, in MB; 0 where the kernel does not say. */
function resetPeak(): number {
  Bun.gc(true);
  try {
    writeFileSync("/proc/self/clear_refs", "5");
  } catch (error) {
    if (!(error instanceof Error)) throw error;
  }
  return peakMb();
}

function peakMb(): number {
  const [, kb = "0"] = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  return Number(kb) / 1024;
}

/** Two failures are the same if their words are, numbers and names aside. */
const kindOf = (fault: string): string =>
  fault.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+(\.\d+)?|"[^"]*"/g, "#").slice(0, 120);

const isSlow = (fault: string): boolean => /^took \d+ ms|^a look takes/.test(fault);

export class Engine {
  readonly failures: Failure[] = [];
  readonly counts = new Map<string, { cases: number; ms: number }>();
  private readonly seen = new Set<string>();

  constructor(
    private readonly seed: number,
    private readonly onFailure: (failure: Failure) => void,
  ) {}

  async run(target: Target, number: number): Promise<void> {
    const made = caseOf(target, this.seed, number);
    const started = performance.now();
    const faults = await faultsWith(made, made.input);
    const count = this.counts.get(target.name) ?? { cases: 0, ms: 0 };
    this.counts.set(target.name, { cases: count.cases + 1, ms: count.ms + performance.now() - started });
    for (const { fault, stack } of faults) {
      const key = `${target.name} ${kindOf(fault)}`;
      if (this.seen.has(key)) continue;
      // A busy machine is slow, too: only what is slow again counts.
      if (isSlow(fault) && !(await this.again(made, made.input, fault))) continue;
      this.seen.add(key);
      const small = made.limitMb === null ? await this.smaller(made, fault) : made.input;
      const path = written(`${target.name.replaceAll(":", "-")}-${this.seed}-${number}-${this.seen.size}`, small);
      const failure = { target: target.name, number, about: made.about, fault, stack, path, bytes: small.length };
      this.failures.push(failure);
      this.onFailure(failure);
    }
  }

  private async again(made: Case, input: Buffer, fault: string): Promise<boolean> {
    const faults = await faultsWith(made, input);
    return faults.some((other) => kindOf(other.fault) === kindOf(fault));
  }

  /** Leaves out piece after piece, lines first, then bytes, as long as the same thing goes wrong. */
  private async smaller(made: Case, fault: string): Promise<Buffer> {
    let best = made.input;
    const end = performance.now() + smallerMs;
    for (const cut of [cutLines, cutBytes]) {
      for (let size = 1 << 16; size >= 1; size = Math.floor(size / 2)) {
        for (let at = 0; ; ) {
          if (performance.now() > end) return best;
          const shorter = cut(best, at, size);
          if (shorter === null) break;
          if (await this.again(made, shorter, fault)) best = shorter;
          else at += size;
        }
      }
    }
    return best;
  }
}

const smallerMs = 3_000;

/** null: there is nothing there any more. */
function cutLines(bytes: Buffer, at: number, count: number): Buffer | null {
  const lines = bytes.toString("latin1").split("\n");
  return at >= lines.length ? null : Buffer.from(lines.toSpliced(at, count).join("\n"), "latin1");
}

const cutBytes = (bytes: Buffer, at: number, count: number): Buffer | null =>
  at >= bytes.length ? null : Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + count)]);

/** Where failing inputs are kept. */
export function written(name: string, bytes: Buffer): string {
  const folder = join(tmpdir(), "agentctl-fuzz");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}
