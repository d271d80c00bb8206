// The processes of a captured moment, as fixtures keep them: what an adapter may look at, and nothing else of an environment.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Adapter } from "../src/adapters/adapter.ts";
import { isGone } from "../src/observe/failure.ts";
import type { SeenProcess } from "../test/agents/rig.ts";
import type { CapturedProcess } from "../test/conformance/table.ts";

const tag = ["AGENTCTL_TAG", "AGENTCTL_TAG_SID", "AGENTCTL_TAG_SESSION"];

/** agentctl itself may be looking, and what it starts to look. */
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
    lockedFiles: lockedFiles === null ? [] : lockedBelow(seen.pid, `${home}/`, lockedFiles),
  });
  return processes
    .filter((seen) => !isOurs(seen))
    .flatMap((seen) => {
      try {
        return [looked(seen)];
      } catch (error) {
        // What a tool starts comes and goes.
        if (isGone(error)) return [];
        throw error;
      }
    });
}

/** The kernel counts the ticks since the boot; in a pid namespace as well. */
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

/** Files below the agent's data folder that the process has open with a kernel lock on them. */
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
