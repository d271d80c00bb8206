// Runs the shell command of a hook: in its own kernel session, with a time limit, and with its output kept up to a size limit.
import { closeSync, constants, fstatSync, openSync, writeSync } from "node:fs";
import { isLive } from "../../core/process.ts";
import { deadlineIn, within } from "../../lib/deadline.ts";
import { isGone, tryOr } from "../../lib/errors.ts";
import { noDetails } from "../../observe/process-query.ts";
import { readProcesses } from "../../observe/processes.ts";
import { spawnPiped } from "../../sys/spawn.ts";
import { endInRounds } from "../end-processes.ts";

export interface HookCommand {
  command: string;
  cwd: string;
  env: Readonly<Record<string, string>>;
  log: string;
  maxBytes: number;
  limitMs: number;
  /** Between SIGTERM and SIGKILL. */
  graceMs: number;
}

export interface HookEnd {
  /** The exit status of its shell. null: it could not be ended. */
  status: number | null;
  timedOut: boolean;
  /** Settles when all output is kept: processes that the hook left running may write until the time limit. */
  drained: Promise<void>;
}

export async function runHookCommand(order: HookCommand, onStarted: (pid: number) => void): Promise<HookEnd> {
  const deadline = deadlineIn(order.limitMs);
  const log = new Log(order.log, order.maxBytes);
  const child = begin(order, log);
  onStarted(child.pid);
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
    // The rest of the output is lost; the exit status is not.
    if (!(error instanceof Error)) throw error;
  }
}

function begin({ command, cwd, env }: HookCommand, log: Log): ReturnType<typeof spawnPiped> {
  try {
    // One pipe for stdout and stderr keeps their lines in order.
    return spawnPiped(["/bin/sh", "-c", 'exec /bin/sh -c "$0" 2>&1', command], { cwd, env });
  } catch (error) {
    log.close();
    throw error;
  }
}

/** The id of a kernel session is not reused while a process is in it. */
async function endKernelSession(session: number, graceMs: number): Promise<void> {
  await endInRounds(() => {
    const table = readProcesses(noDetails);
    if (table.ok) return table.value.rows.filter((row) => row.session === session && isLive(row));
    // The members are not known: kill at least the command itself, whose pid cannot be reused before we reap it.
    tryOr(false, () => process.kill(-session, "SIGKILL"), isGone);
    return [];
  }, graceMs);
}

const killPatienceMs = 2_000;

/** Keeps the first bytes of an output, and appends a note if the rest was dropped. */
class Log {
  private readonly fd: number;
  private left: number;
  private dropped = 0;
  private isClosed = false;

  constructor(path: string, maxBytes: number) {
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
    this.fd = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600);
    if (!fstatSync(this.fd).isFile()) throw Object.assign(new Error("not a regular file"), { code: "ENXIO" });
    this.left = maxBytes - noticeBytes;
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
      // On a full disk the output is lost; the hook goes on.
      if (!(error instanceof Error)) throw error;
      this.left = 0;
    }
  }
}

const noticeBytes = 100;
