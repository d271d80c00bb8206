// Child processes. `runCommand` runs a program for its output, with a deadline at which the whole process group is killed.
// The other functions have no deadline; each says why.
import { holdGroup } from "./groups.ts";

export interface CommandOptions {
  cwd: string;
  /** Default: our own environment. */
  env?: Variables;
  /** The deadline: the program is killed with its process group. */
  maxMs: number;
  /** Time between SIGTERM and SIGKILL, for a program that must remove its lock files. */
  graceMs?: number;
  /** The limit for stdout, and for stderr. A program that prints more is killed. */
  maxBytes?: number;
  /** Default: /dev/null. */
  input?: string;
}

export interface CommandAnswer {
  /** null: it was killed, by us or by another signal. */
  status: number | null;
  out: string;
  /** If we killed the program, the last line says why. */
  err: string;
  text: string;
  gaveUp: "late" | "too much output" | null;
}

const defaultMaxBytes = 64 * 1024 * 1024;
/** How long a pipe may stay open and silent after the program exited. */
const silentRounds = 10;
const roundMs = 20;
/** How long to wait after SIGKILL: a process that waits for a dead disk does not die of it. */
const dieMs = 100;

/** Runs a program without a terminal. Does not wait for a grandchild that keeps a pipe open, nor for an unkillable program. */
export async function runCommand(command: readonly string[], options: CommandOptions): Promise<CommandAnswer> {
  const { cwd, env, maxMs, graceMs = 0, maxBytes = defaultMaxBytes, input } = options;
  const stdin = input === undefined ? "ignore" : new TextEncoder().encode(input);
  const settings = { cwd, ...(env === undefined ? {} : { env }), detached: true };
  const group = holdGroup(
    () => Bun.spawn([...command], { ...settings, stdin, stdout: "pipe", stderr: "pipe" }),
    graceMs,
  );
  const { child } = group;
  child.unref();
  const { promise: unwanted, resolve: giveUp } = Promise.withResolvers<"late" | "too much output">();
  const timer = setTimeout(() => giveUp("late"), maxMs);
  const stdout = new Intake(child.stdout, maxBytes, giveUp);
  const stderr = new Intake(child.stderr, maxBytes, giveUp);
  try {
    const exited = child.exited.then(() => null);
    const gaveUp = await Promise.race([exited, unwanted]);
    if (gaveUp !== null) {
      group.end();
      await Promise.race([exited, Bun.sleep(graceMs + dieMs)]);
    } else await Promise.all([stdout.drained(), stderr.drained()]);
    const [out, said] = [stdout.text(), stderr.text()];
    const why = {
      late: `no answer within ${Math.round(maxMs / 100) / 10} s`,
      "too much output": `more than ${Math.round(maxBytes / 1024 / 1024)} MB of output`,
    };
    const err = gaveUp === null ? said : `${said}${said === "" || said.endsWith("\n") ? "" : "\n"}${why[gaveUp]}\n`;
    return { status: gaveUp === null ? child.exitCode : null, out, err, text: `${out}${err}`, gaveUp };
  } finally {
    clearTimeout(timer);
    group.release();
    stdout.letGo();
    stderr.letGo();
  }
}

/** Collects stdout or stderr of a child. */
class Intake {
  readonly done: Promise<void>;
  private readonly chunks: Uint8Array[] = [];
  private readonly reader;

  constructor(stream: ReadableStream<Uint8Array>, maxBytes: number, giveUp: (why: "too much output") => void) {
    this.reader = stream.getReader();
    this.done = this.collect(maxBytes, giveUp);
  }

  text(): string {
    return new TextDecoder().decode(Buffer.concat(this.chunks));
  }

  letGo(): void {
    this.reader.cancel().catch(ignoreClosedPipe);
  }

  /** Resolves at the end of the output, or when the pipe was silent for a while because a grandchild keeps it open. */
  async drained(): Promise<void> {
    let before = -1;
    for (let silent = 0; silent < silentRounds; silent += 1) {
      // In short rounds: on a slow host one long sleep could end before the waiting output was read.
      const isOver = await Promise.race([this.done.then(() => true), Bun.sleep(roundMs)]);
      if (isOver === true) return;
      if (this.chunks.length !== before) silent = 0;
      before = this.chunks.length;
    }
  }

  private async collect(maxBytes: number, giveUp: (why: "too much output") => void): Promise<void> {
    let left = maxBytes;
    for (let part = await this.reader.read(); !part.done; part = await this.reader.read()) {
      this.chunks.push(part.value.subarray(0, left));
      left -= part.value.length;
      if (left < 0) return giveUp("too much output");
    }
  }
}

const ignoreClosedPipe = (): void => {};

type Variables = Readonly<Record<string, string | undefined>>;

interface ChildPlace {
  cwd: string;
  env: Variables;
}

export interface SpawnedHolder {
  pid: number;
  exited: Promise<number>;
}

/** A child in its own kernel session. No deadline: the demo ends its agents and their tools. */
export interface DetachedProcess extends SpawnedHolder {
  kill(signal: NodeJS.Signals): void;
}

export const spawnDetached = (command: readonly string[], place: ChildPlace): DetachedProcess =>
  Bun.spawn([...command], { ...place, detached: true, stdio: ["ignore", "ignore", "ignore"] });

/** The same, with a pipe for its output. No deadline: it is a hook, and the caller ends its kernel session at its time limit. */
export function spawnPiped(
  command: readonly string[],
  place: ChildPlace,
): SpawnedHolder & { output: AsyncIterable<Uint8Array> } {
  const child = Bun.spawn([...command], { ...place, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  return { pid: child.pid, exited: child.exited, output: child.stdout };
}

/** A hook that outlives us and keeps its time limit itself: no deadline. It inherits our descriptor as number 3, with its lock. */
export function spawnFree(command: readonly string[], options: { env: Variables; inherits: number | null }): void {
  const { env, inherits } = options;
  const inherited = inherits === null ? [] : [inherits];
  const child = Bun.spawn([...command], {
    ...{ cwd: "/", env, detached: true },
    stdio: ["ignore", "ignore", "ignore", ...inherited],
  });
  child.unref();
}

/** Runs an agentctl command in the foreground, where Ctrl-C reaches it, and waits for its exit. */
export async function showCommand(command: readonly string[], env: Variables, maxMs: number): Promise<void> {
  const limits = { timeout: maxMs, killSignal: "SIGKILL" } as const;
  await Bun.spawn([...command], { env, stdio: ["ignore", "inherit", "inherit"], ...limits }).exited;
}

export interface HeldFiles {
  /** null: /dev/null. */
  stdin: number | null;
  stdout: number;
  stderr: number;
}

/** No deadline: a holder lives as long as its agent, and enforces `--max-time`. `tied`: its descriptor 4 closes when we exit. */
export function spawnHolder(
  command: readonly string[],
  { files, tied, ...place }: ChildPlace & { files: HeldFiles; tied: boolean },
): SpawnedHolder {
  const tie = tied ? (["ignore", "pipe"] as const) : [];
  const child = Bun.spawn([...command], {
    ...{ ...place, detached: true },
    stdio: [files.stdin ?? "ignore", files.stdout, files.stderr, ...tie],
  });
  child.unref();
  return child;
}

export interface ShellEnd {
  /** null: killed by a signal. */
  status: number | null;
  signal: string | null;
  /** The last part of its output. */
  text: string;
}

/** A person's shell command. No deadline: only the person knows how long it may take. The caller ends it at Ctrl-C. */
export function spawnShell(command: string, place: ChildPlace): { pid: number; ended: Promise<ShellEnd> } {
  const shell = ["/bin/sh", "-c", `exec 2>&1\n${command}`];
  const child = Bun.spawn(shell, { ...place, detached: true, stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  const listen = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) text = `${text}${decoder.decode(chunk, { stream: true })}`.slice(-maxText);
  };
  const end = async (): Promise<ShellEnd> => {
    const heard = listen();
    await child.exited;
    // A background process of the command may keep its output open forever.
    await Promise.race([heard, Bun.sleep(drainMs)]);
    return { status: child.exitCode, signal: child.signalCode === null ? null : String(child.signalCode), text };
  };
  return { pid: child.pid, ended: end() };
}

const maxText = 1024 * 1024;
const drainMs = 200;

/** A shell that works in the folder, so that others see that it is in use. It exits on `leave`, or when we exit. */
export function standIn(folder: string): { leave(): void } {
  const words = ["/bin/sh", "-c", "read -r _", "agentctl: a launch is about to start here"];
  const child = Bun.spawn(words, { cwd: folder, env: {}, detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  return { leave: () => child.kill("SIGKILL") };
}
