// Fake agents (the type FakeAgent): real processes that only block. The harness writes their files for them.
// A kernel lock cannot be taken for another process, so they take it themselves.
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
import { applyDisguise, standIn } from "./disguise.ts";
import type { Format, Word } from "./format.ts";
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
const fakeScript = `#!/bin/sh
# Blocks on its stdin and obeys single words; the end of stdin is its end.
while read -r order place words; do
  case $order in
    child) sleep 1000000 8<&- 9<&- & ;;
    deaf) trap '' TERM INT HUP ;;
    nest) setsid "\${FAKE_PROGRAM:-$0}" $words 0<>"$place" 8<&- 9<&- & ;;
    lock) exec 9<>"$place"; flock -n 9; : >"$words" ;;
    lock-also) exec 8<>"$place"; flock -n 8 9<&-; : >"$words" ;;
    leave) exit 0 ;;
  esac
done
exit 0
`;

// A parent that never waits: its dead children stay zombies. The shell would give a background job /dev/null as stdin.
const carelessParent = `exec 3<&0; "$@" <&3 3<&- & exec sleep 1000000 3<&-`;

/** A process that we started, by its identity. */
export interface Started {
  pid: number;
  start: string;
}

export interface FakeAgent extends Started {
  format: Format;
  argv: string[];
  cwd: string;
  /** Just before it was started: never later than the true start. */
  bornMs: number;
  /** When the kernel says that it was started. */
  startMs: number;
  argvSession: string | null;
  /** The session that it truly serves. */
  session: string;
  /** An earlier session that it still holds. */
  also: string | null;
  /** Of a server: the ids of its sessions. */
  served: Set<string> | null;
  /** Of a gateway: the file with its planned answers, and its command line. */
  memory: { path: string; hasLock: boolean; tokenIn: "environment" | "settings" } | null;
  /** The values in its announcement. */
  word: Word;
  /** Reaped by us, below a parent that does not wait, or below another fake agent. */
  raised: "here" | "careless" | "nested";
  /** Its parent process, which is not an agent. */
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

/** A program under the agent's name, and the environment that makes it a fake agent. */
export function makeFakeProgram(path: string, format: Format): Record<string, string> {
  const script = format.program === "script" ? path : `${path}.sh`;
  writeFileSync(script, fakeScript);
  chmodSync(script, 0o755);
  if (format.program === "script") return { FAKE_PROGRAM: path };
  // As a script it would have /bin/sh as its first argument. Bash runs this file before it looks for its script.
  symlinkSync("/bin/bash", path);
  return { FAKE_PROGRAM: path, BASH_ENV: script };
}

export function spawnQuiet(command: string[], cwd: string, env: Record<string, string>, detached = false) {
  return Bun.spawn(command, { cwd, env, stdin: "pipe", stdout: "ignore", stderr: "ignore", detached });
}

export function identify(pid: number): Started & Pick<FakeAgent, "startMs"> {
  const stat = readProcStat(pid);
  if (stat === null) throw new Error(`harness: process ${pid} is gone right after its start`);
  return { pid, start: stat.start, startMs: wallTimeOf(stat) };
}

/** The pid of a new fake agent below a parent that never reaps it, and that parent. */
export async function spawnCareless(birth: Birth) {
  const command = ["/bin/sh", "-c", carelessParent, "sh", birth.program, ...birth.arguments];
  const child = spawnQuiet(command, birth.cwd, birth.environment);
  const isFake = (pid: number) => readProcName(pid) === basename(birth.program);
  await until("a fake agent under a careless parent", () => readProcChildren(child.pid).some(isFake));
  await until("the careless parent", () => readProcName(child.pid) === "sleep");
  const pid = readProcChildren(child.pid).find(isFake);
  if (pid === undefined) throw new Error("harness: the fake agent under a careless parent is gone");
  return { pid, child };
}

/** `words` holds one that is in no other argv. */
export async function spawnNested(parent: FakeAgent, words: string[], fifo: string): Promise<number> {
  const { program } = parent.format;
  const disguise = typeof program === "string" ? null : program.agent;
  const shown = disguise === null ? words : [standIn(disguise, words, "y")];
  const mark = shown.at(-1) ?? "";
  const isIt = (argv: string[]) => argv.includes(mark) && (disguise === null || argv[0] === "n");
  const find = () => readProcChildren(parent.pid).find((pid) => isIt(readProcArguments(pid)));
  await order(parent, `nest ${fifo} ${shown.join(" ")}`);
  // Until its exec, the fork looks like the parent: same name, same argv.
  await until("a nested fake agent", () => find() !== undefined);
  const pid = find();
  if (pid === undefined) throw new Error("harness: the nested fake agent is gone");
  if (disguise !== null) await applyDisguise(pid, disguise, words, mark);
  // Tools run in their own kernel sessions.
  else await until("a nested fake agent under its own name", () => readProcName(pid) === parent.format.command);
  return pid;
}

/** Tries to take the kernel lock on a file, as an agent does that announces itself in this way. */
export async function tryLock(fake: FakeAgent, path: string, which: "lock" | "lock-also", sign: string): Promise<void> {
  rmSync(sign, { force: true });
  await order(fake, `${which} ${path} ${sign}`);
  // Until flock(1) is gone, it and the fork before it look like agents with the same lock.
  await until("a fake agent that has tried a lock", () => existsSync(sign));
}

export function holdsLock(fake: Started, path: string): boolean {
  const fd = openLock(fake, path);
  const info = fd === null ? null : absentAsNull(() => readFileSync(`/proc/${fake.pid}/fdinfo/${fd}`, "utf8"));
  return info !== null && /^lock:/m.test(info);
}

function openLock(fake: Started, path: string): string | null {
  const leadsThere = (fd: string) => absentAsNull(() => readlinkSync(`/proc/${fake.pid}/fd/${fd}`)) === path;
  return ["8", "9"].find(leadsThere) ?? null;
}

export async function giveChild(fake: FakeAgent): Promise<void> {
  // Not the number of children: the shell may reap an old one when it starts the new one.
  const before = readProcChildren(fake.pid);
  const isNew = (pid: number) => !before.includes(pid) && readProcName(pid) === "sleep";
  await order(fake, "child");
  await until("a child of a fake agent", () => readProcChildren(fake.pid).some(isNew));
}

export async function makeDeaf(fake: FakeAgent): Promise<void> {
  await order(fake, "deaf");
  await until("a fake agent that ignores SIGTERM", () => ignoresTerm(fake.pid));
}

export async function leave(fake: FakeAgent): Promise<void> {
  if (fake.child === null && fake.orders === null) process.kill(fake.pid, "SIGKILL");
  else await order(fake, "leave");
  await waitForDeath(fake);
}

export async function signal(fake: FakeAgent, name: "SIGKILL" | "SIGTERM"): Promise<void> {
  process.kill(fake.pid, name);
  await waitForDeath(fake);
}

export async function suspend(fake: FakeAgent): Promise<void> {
  process.kill(fake.pid, "SIGSTOP");
  await until("a suspended fake agent", () => isSuspended(fake));
}

export async function wake(fake: FakeAgent): Promise<void> {
  process.kill(fake.pid, "SIGCONT");
  await until("a fake agent awake", () => !isSuspended(fake));
}

export function isAlive(process: Started): boolean {
  const stat = readProcStat(process.pid);
  return isLive(stat) && stat?.start === process.start;
}

export function isSuspended(fake: FakeAgent): boolean {
  return isAlive(fake) && readProcStat(fake.pid)?.state === "T";
}

export function takesOrders(fake: FakeAgent): boolean {
  return (fake.child !== null || fake.orders !== null) && isAlive(fake) && !isSuspended(fake);
}

export function serves(fake: FakeAgent, session: string): boolean {
  return fake.session === session || fake.also === session || fake.served?.has(session) === true;
}

export function killIfSame(process_: Started): void {
  if (isAlive(process_)) process.kill(process_.pid, "SIGKILL");
}

async function order(fake: FakeAgent, words: string): Promise<void> {
  if (fake.orders !== null) return appendFileSync(fake.orders, `${words}\n`);
  if (fake.child === null) throw new Error("harness: this fake agent takes no orders");
  await fake.child.stdin.write(`${words}\n`);
  await fake.child.stdin.flush();
}

async function waitForDeath(fake: FakeAgent): Promise<void> {
  if (fake.raised === "here" && fake.child !== null) await fake.child.exited;
  await until("the death of a fake agent", () => !isAlive(fake));
}
