// Child processes. A program that is run for its answer (`runCommand`) has a deadline and is ended with its whole process group.
// The other functions start what may run as long as it likes, and each says why.
import { holdGroup } from "./groups.ts";

export interface CommandOptions {
  cwd: string;
  /** Without it: our own. */
  env?: Readonly<Record<string, string | undefined>>;
  /** After this time the program is ended, with everything in its process group. */
  mostMs: number;
  /** A program that holds lock files gets SIGTERM first, and this time to remove them. */
  graceMs?: number;
  /** Of each of its two outputs. A program that prints more is ended. */
  mostBytes?: number;
  /** What it reads; nothing by default. */
  input?: string;
}

export interface CommandAnswer {
  /** null: it was ended, by us or by a signal. */
  status: number | null;
  out: string;
  /** Where we ended the program, the last line says why. */
  err: string;
  text: string;
  gaveUp: "late" | "too much output" | null;
}

const usualMostBytes = 64 * 1024 * 1024;
/** The last output is in the pipe when a program exits, and is read at once. */
const silentRounds = 10;
const roundMs = 20;
/** A process that waits for a dead disk or server does not even hear SIGKILL. */
const dieMs = 100;

/**
 * Runs another program to its end, without a terminal, and returns what it printed. A grandchild that left the group and keeps
 * a pipe open holds us for a moment only, and so does a program that cannot be killed.
 */
export async function runCommand(command: readonly string[], options: CommandOptions): Promise<CommandAnswer> {
  const { cwd, env, mostMs, graceMs = 0, mostBytes = usualMostBytes, input } = options;
  const stdin = input === undefined ? "ignore" : new TextEncoder().encode(input);
  const group = holdGroup(
    () =>
      Bun.spawn([...command], {
        cwd,
        ...(env === undefined ? {} : { env }),
        detached: true,
        stdin,
        stdout: "pipe",
        stderr: "pipe",
      }),
    graceMs,
  );
  const { child } = group;
  child.unref();
  const { promise: unwanted, resolve: giveUp } = Promise.withResolvers<"late" | "too much output">();
  const timer = setTimeout(() => giveUp("late"), mostMs);
  const [out, err] = [child.stdout, child.stderr].map((stream) => new Intake(stream, mostBytes, giveUp));
  try {
    const exited = child.exited.then(() => null);
    const gaveUp = await Promise.race([exited, unwanted]);
    if (gaveUp !== null) {
      group.end();
      await Promise.race([exited, Bun.sleep(graceMs + dieMs)]);
    } else await Promise.all([out?.drained(), err?.drained()]);
    return answerOf(out?.text() ?? "", err?.text() ?? "", gaveUp, child.exitCode, options);
  } finally {
    clearTimeout(timer);
    group.release();
    out?.letGo();
    err?.letGo();
  }
}

function answerOf(
  out: string,
  said: string,
  gaveUp: CommandAnswer["gaveUp"],
  exitCode: number | null,
  { mostMs, mostBytes = usualMostBytes }: CommandOptions,
): CommandAnswer {
  const why = {
    late: `no answer within ${Math.round(mostMs / 100) / 10} s`,
    "too much output": `more than ${Math.round(mostBytes / 1024 / 1024)} MB of output`,
  };
  const err = gaveUp === null ? said : `${said}${said === "" || said.endsWith("\n") ? "" : "\n"}${why[gaveUp]}\n`;
  return { status: gaveUp === null ? exitCode : null, out, err, text: `${out}${err}`, gaveUp };
}

/** Collects one output of a child. */
class Intake {
  readonly done: Promise<void>;
  private readonly chunks: Uint8Array[] = [];
  private readonly reader;

  constructor(stream: ReadableStream<Uint8Array>, mostBytes: number, giveUp: (why: "too much output") => void) {
    this.reader = stream.getReader();
    this.done = this.collect(mostBytes, giveUp);
  }

  text(): string {
    return new TextDecoder().decode(Buffer.concat(this.chunks));
  }

  letGo(): void {
    this.reader.cancel().catch(ignoreClosedPipe);
  }

  /** Everything has come, or the pipe has been open and silent for a while: a grandchild keeps it. */
  async drained(): Promise<void> {
    let before = -1;
    for (let silent = 0; silent < silentRounds; silent += 1) {
      // Round by round, so that a machine that let us sleep for long cannot make us overlook what is waiting in the pipe.
      const isOver = await Promise.race([this.done.then(() => true), Bun.sleep(roundMs)]);
      if (isOver === true) return;
      if (this.chunks.length !== before) silent = 0;
      before = this.chunks.length;
    }
  }

  private async collect(mostBytes: number, giveUp: (why: "too much output") => void): Promise<void> {
    let left = mostBytes;
    for (let part = await this.reader.read(); !part.done; part = await this.reader.read()) {
      this.chunks.push(part.value.subarray(0, left));
      left -= part.value.length;
      if (left < 0) return giveUp("too much output");
    }
  }
}

/** We have all that we wanted of it. */
const ignoreClosedPipe = (): void => {};

/**
 * A child of ours in a kernel session of its own. As long as we have not reaped it, its pid cannot be another's. No deadline: the
 * demo's agents and their tools run as long as their scripts say, and whoever starts them ends them.
 */
export interface DetachedProcess {
  pid: number;
  exited: Promise<number>;
  kill(signal: NodeJS.Signals): void;
}

export function spawnDetached(
  command: readonly string[],
  options: { cwd: string; env: Readonly<Record<string, string | undefined>> },
): DetachedProcess {
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ["ignore", "ignore", "ignore"],
  });
  return { pid: child.pid, exited: child.exited, kill: (signal) => child.kill(signal) };
}

/**
 * The same, with its standard output in our hands. Signals are as at the start of a session, whatever we ignore. The deadline of
 * a hook is kept by control/perform-hook.ts, which knows how to end a whole kernel session gently.
 */
export function spawnPiped(
  command: readonly string[],
  options: { cwd: string; env: Readonly<Record<string, string>> },
): { pid: number; exited: Promise<number>; output: AsyncIterable<Uint8Array> } {
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  return { pid: child.pid, exited: child.exited, output: child.stdout };
}

/**
 * In a kernel session of its own, and nothing that we wait for. Its descriptor 3 is ours, with the lock that is on it. No deadline
 * here: it is the runner of a hook, which keeps the hook's time limit itself and outlives us on purpose.
 */
export function spawnFree(
  command: readonly string[],
  options: { env: Readonly<Record<string, string>>; inherits: number | null },
): void {
  const { env, inherits } = options;
  const stdio = ["ignore", "ignore", "ignore", ...(inherits === null ? [] : [inherits])] as const;
  Bun.spawn([...command], { cwd: "/", env, detached: true, stdio: [...stdio] }).unref();
}

/** Runs a command of our own to its end, in the foreground: Ctrl-C reaches it, too. */
export async function showCommand(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  mostMs: number,
): Promise<void> {
  const stdio = ["ignore", "inherit", "inherit"] as const;
  await Bun.spawn([...command], { env, stdio: [...stdio], timeout: mostMs, killSignal: "SIGKILL" }).exited;
}

export interface HeldFiles {
  /** null: /dev/null. */
  stdin: number | null;
  stdout: number;
  stderr: number;
}

export interface SpawnedHolder {
  pid: number;
  exited: Promise<number>;
}

/**
 * In a kernel session of its own, and nothing that we wait for. Tied: its descriptor 4 is closed when we are gone. No deadline: it
 * is the holder of an agent, which lives as long as its agent, and keeps the time limit that a person may have set.
 */
export function spawnHolder(
  command: readonly string[],
  options: { cwd: string; env: Readonly<Record<string, string | undefined>>; files: HeldFiles; tied: boolean },
): SpawnedHolder {
  const { stdin, stdout, stderr } = options.files;
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: [stdin ?? "ignore", stdout, stderr, ...(options.tied ? (["ignore", "pipe"] as const) : [])],
  });
  child.unref();
  return { pid: child.pid, exited: child.exited };
}

export interface ShellEnd {
  /** null: a signal ended it. */
  status: number | null;
  signal: string | null;
  /** The end of what it said. */
  text: string;
}

/**
 * A person's shell command, in a kernel session of its own. No deadline: the person waits for it, and only the person knows how
 * long it may take. control/person-command.ts ends it at Ctrl-C.
 */
export function spawnShell(
  command: string,
  options: { cwd: string; env: Readonly<Record<string, string | undefined>> },
): { pid: number; ended: Promise<ShellEnd> } {
  const child = Bun.spawn(["/bin/sh", "-c", `exec 2>&1\n${command}`], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  let text = "";
  const listen = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) text = `${text}${decoder.decode(chunk, { stream: true })}`.slice(-mostText);
  };
  const end = async (): Promise<ShellEnd> => {
    const heard = listen();
    await child.exited;
    // What it left in the background may keep its output open for ever.
    await Promise.race([heard, Bun.sleep(drainMs)]);
    return { status: child.exitCode, signal: child.signalCode === null ? null : String(child.signalCode), text };
  };
  return { pid: child.pid, ended: end() };
}

const mostText = 1024 * 1024;
const drainMs = 200;

/**
 * Somebody who does nothing but stand in a folder, for others to see; until told to go, or until we are gone: then its input
 * ends, and with it the shell. That is its deadline.
 */
export function standIn(folder: string): { leave(): void } {
  const words = ["/bin/sh", "-c", "read -r _", "agentctl: a launch is about to begin here"];
  const child = Bun.spawn(words, { cwd: folder, env: {}, detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  return { leave: () => child.kill("SIGKILL") };
}
