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
