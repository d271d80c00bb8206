// Workers run in a pid namespace in which only their processes exist, with files in a folder that agentctl trusts there.
import { realpathSync, statSync } from "node:fs";
import { tmpdir } from "node:os";

// As root no user namespace is needed. The shell is pid 1: it reaps orphans while it waits.
const unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"].concat(
  process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"],
);
const firstProcess = ["/bin/sh", "-c", '"$@"; exit $?', "sh"];
/** The words before a command that start it in a new pid namespace. */
export const intoNamespace = [...unshare, ...firstProcess];

export async function whyNoNamespace(): Promise<string | null> {
  if (process.platform !== "linux") return "pid namespaces exist on Linux only.";
  const child = Bun.spawn([...unshare, "true"], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [text, exit] = await Promise.all([child.stderr.text(), child.exited]);
  return exit === 0
    ? null
    : `a pid namespace is not permitted here (${text.trim()}). Run as root, or allow user namespaces.`;
}

// In a namespace, a store on another device than / may have invisible writers, so agentctl would answer unknown.
export function sameDeviceAsRoot(repository: string): string {
  const device = statSync("/").dev;
  const found = [tmpdir(), "/var/tmp", repository].find((folder) => statSync(folder).dev === device);
  if (found === undefined) throw new Error("no folder for throw-away files is on the device of /");
  return realpathSync(found);
}
