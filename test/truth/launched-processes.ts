// Reads /proc for the processes that agentctl starts: agents, their holders, their tools.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { FakeAgent, Started } from "./fake-agent.ts";
import { absentAsNull, isLive, readProcStat, until } from "./proc.ts";
import type { SimulatedHost } from "./simulated-host.ts";

export interface HostProcess extends Started {
  parent: number;
  state: string;
  cwd: string;
  argv: string[];
  env: Map<string, string>;
}

/** Everything alive of this host: its HOME is in its environment. */
export function processesOf(host: SimulatedHost): HostProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readHostProcess(Number(name)) ?? [])
    .filter(({ env }) => env.get("HOME") === host.userHome);
}

function readHostProcess(pid: number): HostProcess | null {
  const stat = readProcStat(pid);
  if (stat === null || !isLive(stat)) return null;
  return absentAsNull(() => {
    const text = (name: string) => readFileSync(`/proc/${pid}/${name}`, "utf8");
    const env = text("environ")
      .split("\0")
      .map((each): [string, string] => [each.split("=", 1)[0] ?? "", each.slice(each.indexOf("=") + 1)]);
    const parent = Number(/^PPid:\s*(\d+)/m.exec(text("status"))?.[1]);
    const argv = text("cmdline").split("\0").slice(0, -1);
    const cwd = readlinkSync(`/proc/${pid}/cwd`);
    return { pid, start: stat.start, state: stat.state, parent, cwd, argv, env: new Map(env) };
  });
}

export function isHolder({ argv }: HostProcess): boolean {
  return argv[3] === "agentctl-holder";
}

export function isDemoAgent({ argv }: HostProcess): boolean {
  return argv[1] === "demo-agent";
}

/** The agent's own mark in what its tools start. */
export function toolsOf(host: SimulatedHost, session: string): HostProcess[] {
  return processesOf(host).filter(({ env }) => env.get("DEMO_AGENT_SESSION") === session);
}

export function holderOf(host: SimulatedHost, fake: FakeAgent): HostProcess | null {
  const all = processesOf(host);
  const sid = all.find(({ pid }) => pid === fake.pid)?.env.get("AGENTCTL_TAG_SID");
  return all.find((each) => isHolder(each) && String(each.pid) === sid) ?? null;
}

/** Between a launched agent and its holder. */
export function wrapperOf(host: SimulatedHost, fake: FakeAgent): HostProcess | null {
  const all = processesOf(host);
  const parent = all.find(({ pid }) => pid === all.find((each) => each.pid === fake.pid)?.parent);
  return parent === undefined || isHolder(parent) ? null : parent;
}

/** A holder whose agent has ended writes its last file: until then the host is not at rest. */
export async function settle(host: SimulatedHost): Promise<void> {
  await until("the last act of a holder", () => {
    const holders = processesOf(host).filter(isHolder);
    if (holders.length === 0) return true;
    const parents = new Set(processesOf(host).map(({ parent }) => parent));
    return holders.every(({ pid, state }) => state === "T" || parents.has(pid));
  });
}

export async function endProcesses(host: SimulatedHost): Promise<void> {
  for (let left = processesOf(host); left.length > 0; left = processesOf(host)) {
    for (const each of left) sendSignal(each, "SIGKILL");
    await Bun.sleep(1);
  }
}

export function sendSignal({ pid, start }: Started, name: NodeJS.Signals): void {
  if (readProcStat(pid)?.start === start) absentAsNull(() => process.kill(pid, name));
}
