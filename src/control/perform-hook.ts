// Runs one command of a person's: in a kernel session of its own, with a time limit, and with its output kept up to a size.
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { isLive } from "../core/process.ts";
import { deadlineIn, within } from "../lib/deadline.ts";
import { isGone } from "../observe/failure.ts";
import { readProcesses } from "../observe/processes.ts";
import { spawnPiped } from "../sys/spawn.ts";
import { endProcesses } from "./end.ts";

export interface HookOrder {
  command: string;
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Where its output goes. */
  log: string;
  mostBytes: number;
  limitMs: number;
  /** Between SIGTERM and SIGKILL. */
  graceMs: number;
}

export interface HookEnd {
  /** The shell's word. null: it could not be ended. */
  status: number | null;
  timedOut: boolean;
  /** What it left running may still write; until its time is over that is kept, too. */
  drained: Promise<void>;
}

/** Throws where it cannot be begun; `tell` hears its pid. */
export async function performHook(order: HookOrder, tell: (pid: number) => void): Promise<HookEnd> {
  const deadline = deadlineIn(order.limitMs);
  const log = new Log(order.log, order.mostBytes);
  const child = begin(order, log);
  tell(child.pid);
  const drain = keepAll(child.output, log);
  const inTime = await within(deadline, child.exited);
  if (inTime === null) await endKernelSession(child.pid, order.graceMs);
  const status = inTime ?? (await within(deadlineIn(killPatienceMs), child.exited));
  const drained = (async () => {
    await within(deadlineIn(Math.max(deadline.remainingMs(), lastWordsMs)), drain);
    log.close();
  })();
  return { status, timedOut: inTime === null, drained };
}

const lastWordsMs = 500;

async function keepAll(output: AsyncIterable<Uint8Array>, log: Log): Promise<void> {
  try {
    for await (const chunk of output) log.take(chunk);
  } catch (error) {
    // What it says is lost then, not how it ends.
    if (!(error instanceof Error)) throw error;
  }
}

function begin({ command, cwd, env }: HookOrder, log: Log): ReturnType<typeof spawnPiped> {
  try {
    // One pipe for both: what it says stays in order.
    return spawnPiped(["/bin/sh", "-c", 'exec /bin/sh -c "$0" 2>&1', command], { cwd, env });
  } catch (error) {
    log.close();
    throw error;
  }
}

const mostRounds = 5;

/** Whoever is in it now, and whoever they start meanwhile. Its number is not used again while one of them lives. */
async function endKernelSession(session: number, graceMs: number): Promise<void> {
  for (let round = 0; round < mostRounds; round += 1) {
    const table = readProcesses({ names: new Set(), pids: new Set(), environment: new Set(), lockedFiles: [] });
    // Where nobody can say who is in it: at least the command itself, whose pid is ours until it has ended.
    if (!table.ok) return killGroup(session);
    const members = table.value.rows.filter((row) => row.session === session && isLive(row));
    if (members.length === 0) return;
    const gently = round === 0 ? [{ signal: "SIGTERM", patienceMs: graceMs } as const] : [];
    const steps = [...gently, { signal: "SIGKILL", patienceMs: killPatienceMs } as const];
    await endProcesses(members.map(({ identity }) => ({ process: identity, steps })));
  }
}

function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

const killPatienceMs = 2_000;

/** The first bytes of an output; at its end a word about the rest. */
class Log {
  private readonly fd: number;
  private left: number;
  private dropped = 0;
  private isClosed = false;

  constructor(path: string, mostBytes: number) {
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
    this.fd = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600);
    if (!fstatSync(this.fd).isFile()) throw Object.assign(new Error("not a regular file"), { code: "ENXIO" });
    this.left = mostBytes - noticeBytes;
  }

  take(chunk: Uint8Array): void {
    if (this.isClosed) return;
    const kept = chunk.subarray(0, this.left);
    this.write(kept);
    this.left -= kept.length;
    this.dropped += chunk.length - kept.length;
  }

  close(): void {
    if (this.dropped > 0)
      this.write(Buffer.from(`\nagentctl: cut off here; ${this.dropped} more bytes were not kept\n`));
    this.isClosed = true;
    closeSync(this.fd);
  }

  private write(bytes: Uint8Array): void {
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(this.fd, bytes, written);
    } catch (error) {
      // A full disk costs its words, not the hook.
      if (!(error instanceof Error)) throw error;
      this.left = 0;
    }
  }
}

const noticeBytes = 100;
