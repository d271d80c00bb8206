// Twins: real processes that stand for demo agents. They only block; what they "write", the harness writes for them.
import { chmodSync, writeFileSync } from "node:fs";
import type { Subprocess } from "bun";
import { ignoresTerm, isLive, readProcArguments, readProcChildren, readProcName, readProcStat, until } from "./proc.ts";

const twinScript = `#!/bin/sh
# Blocks on its stdin and obeys single words; the end of stdin is its end.
while read -r order session fifo; do
  case $order in
    child) sleep 1000000 & ;;
    deaf) trap '' TERM INT HUP ;;
    nest) "$0" --session-id "$session" 0<>"$fifo" & ;;
    leave) exit 0 ;;
  esac
done
`;

// A parent that never waits: what dies under it stays a zombie. The shell would give a background job /dev/null as stdin.
const carelessParent = `exec 3<&0; "$@" <&3 3<&- & exec sleep 1000000 3<&-`;

/** A process that we started, by its identity. */
export interface Started {
  pid: number;
  start: string;
}

export interface Twin extends Started {
  cwd: string;
  /** Just before it was started: never later than the true start. */
  bornMs: number;
  /** The session that its argv names, or null. */
  argvSession: string | null;
  /** The session that it truly serves. */
  session: string;
  /** Reaped by us; under a parent that does not wait; or below another twin. */
  raised: "here" | "careless" | "nested";
  child: Subprocess<"pipe", "ignore", "ignore"> | null;
}

export interface Birth {
  script: string;
  arguments: string[];
  cwd: string;
  environment: Record<string, string>;
}

export function writeTwinScript(path: string): void {
  writeFileSync(path, twinScript);
  chmodSync(path, 0o755);
}

export function spawnQuiet(command: string[], cwd: string, env: Record<string, string>) {
  return Bun.spawn(command, { cwd, env, stdin: "pipe", stdout: "ignore", stderr: "ignore" });
}

export function identify(pid: number): Started {
  const stat = readProcStat(pid);
  if (stat === null) throw new Error(`harness: process ${pid} is gone right after its start`);
  return { pid, start: stat.start };
}

/** The pid of a new twin under a parent that never reaps it, and that parent. */
export async function spawnCareless(birth: Birth) {
  const command = ["/bin/sh", "-c", carelessParent, "sh", birth.script, ...birth.arguments];
  const child = spawnQuiet(command, birth.cwd, birth.environment);
  await until("a twin under a careless parent", () => readProcChildren(child.pid).some(isTwinByName));
  await until("the careless parent", () => readProcName(child.pid) === "sleep");
  const pid = readProcChildren(child.pid).find(isTwinByName);
  if (pid === undefined) throw new Error("harness: the twin under a careless parent is gone");
  return { pid, child };
}

export async function spawnNested(parent: Twin, session: string, fifo: string): Promise<number> {
  const find = () => readProcChildren(parent.pid).find((pid) => readProcArguments(pid).includes(session));
  await order(parent, `nest ${session} ${fifo}`);
  // Until its exec, the fork looks like the parent: same name, same argv.
  await until("a nested twin", () => find() !== undefined);
  const pid = find();
  if (pid === undefined) throw new Error("harness: the nested twin is gone");
  return pid;
}

export async function giveChild(twin: Twin): Promise<void> {
  // Not the number of children: the shell may reap an old one when it starts the new one.
  const before = readProcChildren(twin.pid);
  const isNew = (pid: number) => !before.includes(pid) && readProcName(pid) === "sleep";
  await order(twin, "child");
  await until("a child of a twin", () => readProcChildren(twin.pid).some(isNew));
}

export async function makeDeaf(twin: Twin): Promise<void> {
  await order(twin, "deaf");
  await until("a twin that ignores SIGTERM", () => ignoresTerm(twin.pid));
}

export async function leave(twin: Twin): Promise<void> {
  if (twin.child === null) process.kill(twin.pid, "SIGKILL");
  else await order(twin, "leave");
  await waitForDeath(twin);
}

export async function signal(twin: Twin, name: "SIGKILL" | "SIGTERM"): Promise<void> {
  process.kill(twin.pid, name);
  await waitForDeath(twin);
}

export async function suspend(twin: Twin): Promise<void> {
  process.kill(twin.pid, "SIGSTOP");
  await until("a suspended twin", () => isSuspended(twin));
}

export async function wake(twin: Twin): Promise<void> {
  process.kill(twin.pid, "SIGCONT");
  await until("a twin awake", () => !isSuspended(twin));
}

export function isAlive(process: Started): boolean {
  const stat = readProcStat(process.pid);
  return isLive(stat) && stat?.start === process.start;
}

export function isSuspended(twin: Twin): boolean {
  return isAlive(twin) && readProcStat(twin.pid)?.state === "T";
}

export function takesOrders(twin: Twin): boolean {
  return twin.child !== null && isAlive(twin) && !isSuspended(twin);
}

export function killIfSame(process_: Started): void {
  if (isAlive(process_)) process.kill(process_.pid, "SIGKILL");
}

async function order(twin: Twin, words: string): Promise<void> {
  if (twin.child === null) throw new Error("harness: this twin takes no orders");
  await twin.child.stdin.write(`${words}\n`);
  await twin.child.stdin.flush();
}

async function waitForDeath(twin: Twin): Promise<void> {
  if (twin.raised === "here" && twin.child !== null) await twin.child.exited;
  await until("the death of a twin", () => !isAlive(twin));
}

function isTwinByName(pid: number): boolean {
  return readProcName(pid) === "demo-agent";
}
