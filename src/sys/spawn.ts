// Child processes.

export function spawnForText(command: readonly string[]): { text: Promise<string>; kill(): void } {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "ignore" });
  // A child that we give up on must not keep us alive.
  child.unref();
  return { text: child.stdout.text(), kill: () => child.kill("SIGKILL") };
}

/** A child of ours in a kernel session of its own. As long as we have not reaped it, its pid cannot be another's. */
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

/** The same, with its standard output in our hands. Signals are as at the start of a session, whatever we ignore. */
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

/** In a kernel session of its own, and nothing that we wait for. Its descriptor 3 is ours, with the lock that is on it. */
export function spawnFree(
  command: readonly string[],
  options: { env: Readonly<Record<string, string>>; inherits: number | null },
): void {
  const { env, inherits } = options;
  const stdio = ["ignore", "ignore", "ignore", ...(inherits === null ? [] : [inherits])] as const;
  Bun.spawn([...command], { cwd: "/", env, detached: true, stdio: [...stdio] }).unref();
}

/** Runs a command to its end; its output goes to ours, or comes back as text. */
export async function runAndShow(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  mode: "show" | "capture",
): Promise<string> {
  const child = Bun.spawn([...command], {
    env,
    stdin: "ignore",
    stdout: mode === "show" ? "inherit" : "pipe",
    stderr: mode === "show" ? "inherit" : "ignore",
  });
  const text = child.stdout === undefined ? "" : await child.stdout.text();
  await child.exited;
  return text;
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

/** In a kernel session of its own, and nothing that we wait for. Tied: its descriptor 4 is closed when we are gone. */
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

/** Runs another program to its end, without a terminal; what it said comes back. */
export async function runCommand(
  command: readonly string[],
  options: { cwd: string; env: Readonly<Record<string, string | undefined>>; mostMs: number },
): Promise<{ status: number | null; out: string; err: string; text: string }> {
  const child = Bun.spawn([...command], {
    cwd: options.cwd,
    env: options.env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: options.mostMs,
  });
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  await child.exited;
  return { status: child.exitCode, out, err, text: `${out}${err}` };
}

export interface ShellEnd {
  /** null: a signal ended it. */
  status: number | null;
  signal: string | null;
  /** The end of what it said. */
  text: string;
}

/** A person's shell command, in a kernel session of its own. */
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

/** Somebody who does nothing but stand in a folder, for others to see; until told to go, or until we are gone. */
export function standIn(folder: string): { leave(): void } {
  const words = ["/bin/sh", "-c", "read -r _", "agentctl: a launch is about to begin here"];
  const child = Bun.spawn(words, { cwd: folder, env: {}, detached: true, stdio: ["pipe", "ignore", "ignore"] });
  child.unref();
  return { leave: () => child.kill("SIGKILL") };
}
