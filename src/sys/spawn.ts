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
): Promise<{ status: number | null; text: string }> {
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
  return { status: child.exitCode, text: `${out}${err}` };
}
