// Where workers run: a pid namespace in which only their processes exist, and a folder that agentctl trusts there.
import { realpathSync, statSync } from "node:fs";
import { tmpdir } from "node:os";

// As root no user namespace is needed. The shell is pid 1: it reaps orphans while it waits.
const unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"].concat(
  process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"],
);
const firstProcess = ["/bin/sh", "-c", '"$@"; exit $?', "sh"];
/** What stands before a command that is to run in a pid namespace of its own. */
export const intoNamespace = [...unshare, ...firstProcess];

export async function outputInNamespace(command: string[]): Promise<string> {
  const child = Bun.spawn([...intoNamespace, ...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  // With unshare dies the first process of the namespace, and with that all others in it.
  const end = () => child.kill("SIGKILL");
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(name, end);
  const [text, exit] = await Promise.all([child.stdout.text(), child.exited]);
  if (exit !== 0) throw new Error(`a worker ended with ${exit}`);
  return text;
}

export async function whyNoNamespace(): Promise<string | null> {
  if (process.platform !== "linux") return "pid namespaces exist on Linux only.";
  const child = Bun.spawn([...unshare, "true"], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [text, exit] = await Promise.all([child.stderr.text(), child.exited]);
  return exit === 0
    ? null
    : `a pid namespace is not permitted here (${text.trim()}). Run as root, or allow user namespaces.`;
}

// In a namespace, a store on another device than / may have writers that cannot be seen: agentctl would say unknown.
export function sameDeviceAsRoot(repository: string): string {
  const device = statSync("/").dev;
  const found = [tmpdir(), "/var/tmp", repository].find((folder) => statSync(folder).dev === device);
  if (found === undefined) throw new Error("no folder for throw-away files is on the device of /");
  return realpathSync(found);
}
