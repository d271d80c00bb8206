// Ends processes, gently first. A signal goes to an identity: the kernel's handle is opened, the identity is read again
// through it, and only then it is signalled.
import { AgentctlError } from "../core/problem.ts";
import { isLive, isSuspended, type ProcessIdentity, type ProcessRow, sameProcess } from "../core/process.ts";
import { errorCode } from "../observe/failure.ts";
import { readProcess } from "../observe/processes.ts";
import { openChanges } from "../sys/changes.ts";
import { openProcess } from "../sys/pidfd.ts";

export interface Step {
  /** null: only waits. */
  signal: NodeJS.Signals | null;
  patienceMs: number;
}

export interface Ending {
  process: ProcessIdentity;
  /** In order, each after the patience of the one before is over. */
  steps: readonly Step[];
}

export interface Ended {
  process: ProcessIdentity;
  /** null: it was gone before anything was sent. */
  by: NodeJS.Signals | null;
}

/** Still there after everything was tried. */
export interface Survivor {
  row: ProcessRow;
  why: string;
}

export interface Outcome {
  ended: Ended[];
  survivors: Survivor[];
}

/** Several at once; each goes through its own steps. */
export async function endProcesses(endings: readonly Ending[]): Promise<Outcome> {
  const outcome: Outcome = { ended: [], survivors: [] };
  const changes = openChanges();
  try {
    let open = endings.map((ending) => new Course(ending));
    for (const course of open) changes.process(course.process.pid);
    for (;;) {
      const still: Course[] = [];
      for (const course of open) {
        const row = course.look();
        if (row === null) outcome.ended.push({ process: course.process, by: course.sent });
        else if (course.isOver()) outcome.survivors.push({ row, why: course.refusal ?? stuck(row) });
        else still.push(course);
      }
      for (const course of still) course.advance();
      open = still;
      if (open.length === 0) return outcome;
      await changes.next(Math.max(1, Math.min(...open.map((course) => course.dueInMs()))));
    }
  } finally {
    changes.close();
  }
}

export const stuck = (row: ProcessRow): string => `it did not end (state ${row.state})`;

/** Signals one process if it is still this one. false: it is gone. */
export function signalProcess(process: ProcessIdentity, signal: NodeJS.Signals): boolean {
  const handle = openProcess(process.pid);
  if (handle === null) return false;
  try {
    const row = readProcess(process.pid);
    if (row === null || !sameProcess(row.identity, process) || !isLive(row)) return false;
    const reached = handle.signal(signal);
    // A suspended process takes a signal in only when it goes on.
    if (reached && isSuspended(row) && signal !== "SIGKILL") handle.signal("SIGCONT");
    return reached;
  } catch (error) {
    if (errorCode(error) !== "EPERM") throw error;
    throw new AgentctlError("refused", `not permitted to signal pid ${process.pid}`, { cause: error });
  } finally {
    handle.close();
  }
}

class Course {
  sent: NodeJS.Signals | null = null;
  /** It is not ours to signal: what a tool started with sudo, say. */
  refusal: string | null = null;
  private next = 0;
  private due = 0;

  constructor(private readonly ending: Ending) {}

  get process(): ProcessIdentity {
    return this.ending.process;
  }

  /** The process, if it still lives and is still the same. */
  look(): ProcessRow | null {
    const row = readProcess(this.process.pid);
    return row !== null && isLive(row) && sameProcess(row.identity, this.process) ? row : null;
  }

  isOver = (): boolean =>
    this.refusal !== null || (this.next >= this.ending.steps.length && performance.now() >= this.due);

  dueInMs = (): number => this.due - performance.now();

  /** Sends what is due. */
  advance(): void {
    const step = this.ending.steps[this.next];
    if (step === undefined || performance.now() < this.due) return;
    this.next += 1;
    this.due = performance.now() + step.patienceMs;
    if (step.signal === null) return;
    try {
      if (signalProcess(this.process, step.signal)) this.sent = step.signal;
    } catch (error) {
      if (!(error instanceof AgentctlError && error.code === "refused")) throw error;
      this.refusal = error.message;
      this.due = 0;
    }
  }
}
