// Ends processes, with gentle signals first. Before every signal it opens a pidfd and checks the identity again, so that a reused
// pid is never signalled.
import { Failure } from "../core/failure.ts";
import type { Leftover } from "../core/family.ts";
import { isSuspended, type ProcessIdentity, type ProcessRow } from "../core/process.ts";
import type { SpareReason } from "../core/reason.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { errorCode } from "../lib/errors.ts";
import { readIfLive } from "../observe/processes.ts";
import { openChangeWatch } from "../sys/change-watch.ts";
import { openProcess } from "../sys/pidfd.ts";

export interface SignalStep {
  signal: NodeJS.Signals | null;
  patienceMs: number;
}

export interface ProcessToEnd {
  process: ProcessIdentity;
  /** The signals in order. Each is sent when the patience of the one before is over. */
  steps: readonly SignalStep[];
}

export interface EndReport {
  /** `by`: the last signal; null: the process exited before a signal was sent. */
  ended: { process: ProcessIdentity; by: NodeJS.Signals | null }[];
  survivors: Leftover[];
}

/** Ends several at once, each by its own steps. After an abort no more signals are sent. */
export async function endProcesses(targets: readonly ProcessToEnd[], signal?: AbortSignal): Promise<EndReport> {
  const report: EndReport = { ended: [], survivors: [] };
  const changes = openChangeWatch();
  try {
    let open = targets.map((target) => new EndCourse(target));
    for (const course of open) changes.process(course.process.pid);
    for (;;) {
      const still: EndCourse[] = [];
      for (const course of open) {
        const row = readIfLive(course.process);
        if (row === null) report.ended.push({ process: course.process, by: course.sent });
        else if (course.isOver()) report.survivors.push({ row, why: course.refusal ?? stuck(row) });
        else still.push(course);
      }
      signal?.throwIfAborted();
      for (const course of still) course.advance();
      open = still;
      if (open.length === 0) return report;
      const next = changes.next(Math.max(1, Math.min(...open.map((course) => course.dueInMs()))));
      await (signal === undefined ? next : unlessAborted(signal, next));
    }
  } finally {
    changes.close();
  }
}

const maxRounds = 5;

/** Ends what `find` returns, again until it returns nothing: a process may start others meanwhile. */
export async function endInRounds(find: () => readonly ProcessRow[], graceMs: number): Promise<void> {
  for (let round = 0; round < maxRounds; round += 1) {
    const found = find();
    if (found.length === 0) return;
    const steps = termThenKill(round === 0 ? graceMs : null, killPatienceMs);
    await endProcesses(found.map(({ identity }) => ({ process: identity, steps })));
  }
}

const killPatienceMs = 2_000;

/** No grace (null): SIGKILL at once. */
export const termThenKill = (graceMs: number | null, killMs: number): SignalStep[] => [
  ...(graceMs === null ? [] : [{ signal: "SIGTERM", patienceMs: graceMs } as const]),
  { signal: "SIGKILL", patienceMs: killMs },
];

export const stuck = ({ state }: ProcessRow): SpareReason => ({ code: "did-not-exit", state });

/** Returns false if the process is gone. */
export function signalProcess(process: ProcessIdentity, signal: NodeJS.Signals): boolean {
  const handle = openProcess(process.pid);
  if (handle === null) return false;
  try {
    const row = readIfLive(process);
    if (row === null) return false;
    const reached = handle.signal(signal);
    // A suspended process handles a signal only after SIGCONT.
    if (reached && isSuspended(row) && signal !== "SIGKILL") handle.signal("SIGCONT");
    return reached;
  } catch (error) {
    if (errorCode(error) !== "EPERM") throw error;
    throw new Failure("signal-not-permitted", { pid: process.pid }, { cause: error });
  } finally {
    handle.close();
  }
}

class EndCourse {
  sent: NodeJS.Signals | null = null;
  /** Set if the kernel refused the signal: a tool may have started the process with sudo. */
  refusal: SpareReason | null = null;
  private next = 0;
  private due = 0;

  constructor(private readonly target: ProcessToEnd) {}

  get process(): ProcessIdentity {
    return this.target.process;
  }

  isOver = (): boolean =>
    this.refusal !== null || (this.next >= this.target.steps.length && performance.now() >= this.due);

  dueInMs = (): number => this.due - performance.now();

  advance(): void {
    const step = this.target.steps[this.next];
    if (step === undefined || performance.now() < this.due) return;
    this.next += 1;
    this.due = performance.now() + step.patienceMs;
    if (step.signal === null) return;
    try {
      if (signalProcess(this.process, step.signal)) this.sent = step.signal;
    } catch (error) {
      if (!(error instanceof Failure && error.code === "signal-not-permitted")) throw error;
      this.refusal = { code: "signal-not-permitted", pid: this.process.pid };
      this.due = 0;
    }
  }
}
