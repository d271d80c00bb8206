// Describes the processes of a captured moment for a fixture: only what an adapter may read, and nothing else of an environment.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Adapter } from "../src/agents/adapter.ts";
import { isGone } from "../src/lib/errors.ts";
import type { SeenProcess } from "../test/agents/test-home.ts";
import type { CapturedProcess } from "../test/conformance/process-table.ts";

const tag = ["AGENTCTL_TAG", "AGENTCTL_TAG_SID", "AGENTCTL_TAG_SESSION"];

/** agentctl and the programs that it starts may run at this moment. */
const isOurs = ({ name }: SeenProcess): boolean => ["agentctl", "setsid", "git"].includes(name);

export function seenProcesses(
  processes: readonly SeenProcess[],
  home: string,
  { environment, lockedFiles }: Pick<Adapter, "environment" | "lockedFiles">,
): CapturedProcess[] {
  const looked = (seen: SeenProcess): CapturedProcess => ({
    ...seen,
    cwd: readlinkSync(`/proc/${seen.pid}/cwd`),
    tty: terminalOf(seen.pid),
    startedAt: startOf(seen.start),
    env: environmentOf(seen.pid, [...tag, ...environment]),
    lockedFiles: lockedFiles === undefined ? [] : lockedBelow(seen.pid, `${home}/`, lockedFiles),
  });
  return processes
    .filter((seen) => !isOurs(seen))
    .flatMap((seen) => {
      try {
        return [looked(seen)];
      } catch (error) {
        // Processes of tools may exit at any time.
        if (isGone(error)) return [];
        throw error;
      }
    });
}

/** The kernel counts ticks since boot, also inside a pid namespace. */
const startOf = (ticks: string): number => {
  const upMs = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
  return Math.round(Date.now() - upMs + Number(ticks) * 10);
};

function terminalOf(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const device = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[4]);
  return device === 0 ? null : `/dev/pts/${device & 0xff}`;
}

function environmentOf(pid: number, keys: readonly string[]): Record<string, string> {
  const pairs = readFileSync(`/proc/${pid}/environ`, "utf8")
    .split("\0")
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const);
  return Object.fromEntries(pairs.filter(([key]) => key !== "HOME" && keys.includes(key)));
}

/** The files below the agent's home that the process has open and locked. */
function lockedBelow(pid: number, home: string, worthALook: RegExp): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/${pid}/fd/${fd}`);
      if (!path.startsWith(home) || !worthALook.test(path)) return [];
      return readFileSync(`/proc/${pid}/fdinfo/${fd}`, "utf8").includes("lock:") ? [path.slice(home.length)] : [];
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
      throw error;
    }
  });
}
