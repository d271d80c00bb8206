// The harness's own reading of /proc for what agentctl starts: agents, the shells that hold them, their tools.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { absentAsNull, isLive, readProcStat, until } from "./proc.ts";
import type { Started, Twin } from "./twin.ts";
import type { World } from "./world.ts";

export interface Kin extends Started {
  parent: number;
  state: string;
  cwd: string;
  argv: string[];
  env: Map<string, string>;
}

/** Everything alive of this world: its HOME is in its environment. */
export function kinOf(world: World): Kin[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readKin(Number(name)) ?? [])
    .filter(({ env }) => env.get("HOME") === world.userHome);
}

function readKin(pid: number): Kin | null {
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

export function isHolder({ argv }: Kin): boolean {
  return argv[3] === "agentctl-holder";
}

export function isDemoAgent({ argv }: Kin): boolean {
  return argv[1] === "demo-agent";
}

/** The agent's own mark in what its tools start. */
export function toolsOf(world: World, session: string): Kin[] {
  return kinOf(world).filter(({ env }) => env.get("DEMO_AGENT_SESSION") === session);
}

export function holderOf(world: World, twin: Twin): Kin | null {
  const all = kinOf(world);
  const sid = all.find(({ pid }) => pid === twin.pid)?.env.get("AGENTCTL_TAG_SID");
  return all.find((each) => isHolder(each) && String(each.pid) === sid) ?? null;
}

/** Between a launched agent and its holder. */
export function wrapperOf(world: World, twin: Twin): Kin | null {
  const all = kinOf(world);
  const parent = all.find(({ pid }) => pid === all.find((each) => each.pid === twin.pid)?.parent);
  return parent === undefined || isHolder(parent) ? null : parent;
}

/** A holder whose agent has ended writes its last file: until then the world is not at rest. */
export async function settle(world: World): Promise<void> {
  await until("the last act of a holder", () => {
    const holders = kinOf(world).filter(isHolder);
    if (holders.length === 0) return true;
    const parents = new Set(kinOf(world).map(({ parent }) => parent));
    return holders.every(({ pid, state }) => state === "T" || parents.has(pid));
  });
}

export async function endKin(world: World): Promise<void> {
  for (let left = kinOf(world); left.length > 0; left = kinOf(world)) {
    for (const each of left) sendSignal(each, "SIGKILL");
    await Bun.sleep(1);
  }
}

export function sendSignal({ pid, start }: Started, name: NodeJS.Signals): void {
  if (readProcStat(pid)?.start === start) absentAsNull(() => process.kill(pid, name));
}
