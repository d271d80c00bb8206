// Twins: real processes that stand for agents. They only block; what they "write", the harness writes for them.
// A kernel lock cannot be taken for somebody else: that they do themselves.
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename } from "node:path";
import type { Subprocess } from "bun";
import type { Format, Word } from "./format.ts";
import { dress, standIn } from "./guise.ts";
import {
  absentAsNull,
  ignoresTerm,
  isLive,
  readProcArguments,
  readProcChildren,
  readProcName,
  readProcStat,
  until,
  wallTimeOf,
} from "./proc.ts";

// Descriptors 8 and 9 are its locks. Its children must not have them: Codex opens them close-on-exec.
const twinScript = `#!/bin/sh
# Blocks on its stdin and obeys single words; the end of stdin is its end.
while read -r order place words; do
  case $order in
    child) sleep 1000000 8<&- 9<&- & ;;
    deaf) trap '' TERM INT HUP ;;
    nest) setsid "\${TWIN_PROGRAM:-$0}" $words 0<>"$place" 8<&- 9<&- & ;;
    lock) exec 9<>"$place"; flock -n 9; : >"$words" ;;
    lock-also) exec 8<>"$place"; flock -n 8 9<&-; : >"$words" ;;
    leave) exit 0 ;;
  esac
done
exit 0
`;

// A parent that never waits: what dies under it stays a zombie. The shell would give a background job /dev/null as stdin.
const carelessParent = `exec 3<&0; "$@" <&3 3<&- & exec sleep 1000000 3<&-`;

/** A process that we started, by its identity. */
export interface Started {
  pid: number;
  start: string;
}

export interface Twin extends Started {
  format: Format;
  argv: string[];
  cwd: string;
  /** Just before it was started: never later than the true start. */
  bornMs: number;
  /** When the kernel says that it was started. */
  startMs: number;
  /** The session that its argv names, or null. */
  argvSession: string | null;
  /** The session that it truly serves. */
  session: string;
  /** One that it went on from, and still holds. */
  also: string | null;
  /** Of one that has sessions for others, and is none itself: their ids. */
  hosted: Set<string> | null;
  /** Of a gateway: where what it has in mind stands, and how it was started. */
  memory: { path: string; hasLock: boolean; tokenIn: "environment" | "settings" } | null;
  /** What it says of itself in its announcement. */
  word: Word;
  /** Reaped by us; under a parent that does not wait; or below another twin. */
  raised: "here" | "careless" | "nested";
  /** What started it and stays above it, and is no agent. */
  wrapper: Started | null;
  child: Subprocess<"pipe", "ignore", "ignore"> | null;
  /** A named pipe in place of its child's stdin. */
  orders: string | null;
}

export interface Birth {
  program: string;
  arguments: string[];
  cwd: string;
  environment: Record<string, string>;
}

/** A program under the agent's name, and the environment that makes it a twin. */
export function makeTwinProgram(path: string, format: Format): Record<string, string> {
  const script = format.program === "script" ? path : `${path}.sh`;
  writeFileSync(script, twinScript);
  chmodSync(script, 0o755);
  if (format.program === "script") return { TWIN_PROGRAM: path };
  // As a script it would have /bin/sh as its first argument. Bash runs this file before it looks for its script.
  symlinkSync("/bin/bash", path);
  return { TWIN_PROGRAM: path, BASH_ENV: script };
}

export function spawnQuiet(command: string[], cwd: string, env: Record<string, string>, detached = false) {
  return Bun.spawn(command, { cwd, env, stdin: "pipe", stdout: "ignore", stderr: "ignore", detached });
}

export function identify(pid: number): Started & Pick<Twin, "startMs"> {
  const stat = readProcStat(pid);
  if (stat === null) throw new Error(`harness: process ${pid} is gone right after its start`);
  return { pid, start: stat.start, startMs: wallTimeOf(stat) };
}

/** The pid of a new twin under a parent that never reaps it, and that parent. */
export async function spawnCareless(birth: Birth) {
  const command = ["/bin/sh", "-c", carelessParent, "sh", birth.program, ...birth.arguments];
  const child = spawnQuiet(command, birth.cwd, birth.environment);
  const isTwin = (pid: number) => readProcName(pid) === basename(birth.program);
  await until("a twin under a careless parent", () => readProcChildren(child.pid).some(isTwin));
  await until("the careless parent", () => readProcName(child.pid) === "sleep");
  const pid = readProcChildren(child.pid).find(isTwin);
  if (pid === undefined) throw new Error("harness: the twin under a careless parent is gone");
  return { pid, child };
}

/** `words` holds one that is in no other argv. */
export async function spawnNested(parent: Twin, words: string[], fifo: string): Promise<number> {
  const { program } = parent.format;
  const guise = typeof program === "string" ? null : program.agent;
  const shown = guise === null ? words : [standIn(guise, words, "y")];
  const mark = shown.at(-1) ?? "";
  const isIt = (argv: string[]) => argv.includes(mark) && (guise === null || argv[0] === "n");
  const find = () => readProcChildren(parent.pid).find((pid) => isIt(readProcArguments(pid)));
  await order(parent, `nest ${fifo} ${shown.join(" ")}`);
  // Until its exec, the fork looks like the parent: same name, same argv.
  await until("a nested twin", () => find() !== undefined);
  const pid = find();
  if (pid === undefined) throw new Error("harness: the nested twin is gone");
  if (guise !== null) await dress(pid, guise, words, mark);
  // Tools run in kernel sessions of their own.
  else await until("a nested twin under its own name", () => readProcName(pid) === parent.format.command);
  return pid;
}

/** Tries to take the kernel lock on a file, as an agent does that announces itself in this way. */
export async function tryLock(twin: Twin, path: string, which: "lock" | "lock-also", sign: string): Promise<void> {
  rmSync(sign, { force: true });
  await order(twin, `${which} ${path} ${sign}`);
  // Until flock(1) is gone, it and the fork before it look like agents with the same lock.
  await until("a twin that has tried a lock", () => existsSync(sign));
}

export function holdsLock(twin: Started, path: string): boolean {
  const fd = openLock(twin, path);
  const info = fd === null ? null : absentAsNull(() => readFileSync(`/proc/${twin.pid}/fdinfo/${fd}`, "utf8"));
  return info !== null && /^lock:/m.test(info);
}

function openLock(twin: Started, path: string): string | null {
  const leadsThere = (fd: string) => absentAsNull(() => readlinkSync(`/proc/${twin.pid}/fd/${fd}`)) === path;
  return ["8", "9"].find(leadsThere) ?? null;
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
  if (twin.child === null && twin.orders === null) process.kill(twin.pid, "SIGKILL");
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
  return (twin.child !== null || twin.orders !== null) && isAlive(twin) && !isSuspended(twin);
}

export function serves(twin: Twin, session: string): boolean {
  return twin.session === session || twin.also === session || twin.hosted?.has(session) === true;
}

export function killIfSame(process_: Started): void {
  if (isAlive(process_)) process.kill(process_.pid, "SIGKILL");
}

async function order(twin: Twin, words: string): Promise<void> {
  if (twin.orders !== null) return appendFileSync(twin.orders, `${words}\n`);
  if (twin.child === null) throw new Error("harness: this twin takes no orders");
  await twin.child.stdin.write(`${words}\n`);
  await twin.child.stdin.flush();
}

async function waitForDeath(twin: Twin): Promise<void> {
  if (twin.raised === "here" && twin.child !== null) await twin.child.exited;
  await until("the death of a twin", () => !isAlive(twin));
}
