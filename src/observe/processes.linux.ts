// The process table from /proc: the stat line of every process, details only of those that an agent asks for.
import { closeSync, openSync, readdirSync, readlinkSync, readSync } from "node:fs";
import { type Problem, type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "../core/process.ts";
import { bootedAt } from "../sys/clock.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import type { ProcessWish } from "./process-wish.ts";

/** The raw readings, so that a test can make any of them fail. Each throws as node:fs does. */
export interface ProcFs {
  list(path: string): string[];
  read(path: string): Buffer;
  link(path: string): string;
  /** Does a process with this pid exist, even if /proc does not show it? */
  exists(pid: number): boolean;
  pid: number;
  uid: number;
  bootedAt(): number;
}

/** USER_HZ: fixed at 100 in every Linux that /proc speaks of, whatever the kernel's own tick. */
const ticksPerSecond = 100;

const initialNamespace = "pid:[4026531836]";

export function readLinuxProcesses(wish: ProcessWish, proc: ProcFs = realProcFs): Reading<ProcessTable> {
  try {
    return read(readTable(wish, proc));
  } catch (error) {
    const message = failureText(error);
    return unread({ code: "processes-unreadable", agent: null, source: "/proc", message });
  }
}

function readTable(wish: ProcessWish, proc: ProcFs): ProcessTable {
  const self = proc.link("/proc/self");
  if (self !== String(proc.pid)) throw new Error(`/proc shows another pid namespace (we are ${proc.pid} and ${self})`);
  const boot = proc.read("/proc/sys/kernel/random/boot_id").toString("latin1").trim();
  const namespace = ownNamespace(proc);
  const bootedAt = proc.bootedAt();

  const rows: ProcessRow[] = [];
  const gaps: Problem[] = [];
  const foreign = new Set<number>();
  for (const name of proc.list("/proc")) {
    const first = name.charCodeAt(0);
    if (first < 48 || first > 57) continue;
    const pid = Number(name);
    const row = readRow(pid, boot, bootedAt, wish, proc);
    if (row === "gone") continue;
    if (row === "foreign") foreign.add(pid);
    else if ("code" in row) gaps.push(row);
    else rows.push(row);
  }
  const seen = new Set(rows.map((row) => row.identity.pid));
  const hidden = [...wish.pids].filter((pid) => foreign.has(pid) || (!seen.has(pid) && proc.exists(pid)));
  return { boot, namespace, rows, gaps, hidden };
}

/** One process as it is this moment, without details; null: gone. Throws where it cannot be told. */
export function readLinuxProcess(pid: number, proc: ProcFs = realProcFs): ProcessRow | null {
  const boot = proc.read("/proc/sys/kernel/random/boot_id").toString("latin1").trim();
  const row = readRow(pid, boot, 0, noWish, proc);
  if (row === "gone") return null;
  if (row === "foreign" || "code" in row) throw new Error(`/proc/${pid}/stat cannot be read`);
  return row;
}

const noWish: ProcessWish = { names: new Set(), pids: new Set(), environment: new Set(), lockedFiles: [] };

function ownNamespace(proc: ProcFs): ProcessTable["namespace"] {
  try {
    const id = proc.link("/proc/self/ns/pid");
    return { id, initial: id === initialNamespace };
  } catch (error) {
    // A kernel without namespaces has only one; anything else that hides the link means that we cannot tell.
    return { id: null, initial: isGone(error) };
  }
}

function readRow(
  pid: number,
  boot: string,
  bootedAt: number,
  wish: ProcessWish,
  proc: ProcFs,
): ProcessRow | Problem | "gone" | "foreign" {
  const path = `/proc/${pid}/stat`;
  for (let attempt = 1; ; attempt += 1) {
    const stat = readStat(path, proc);
    if (stat === "gone" || stat === "foreign" || "code" in stat) return stat;
    // A child between fork and exec still has its parent's name and arguments: it is not what it seems.
    const sought = wish.pids.has(pid) || (wish.names.has(stat.name) && !stat.forked);
    const wanted = sought || (wish.also === "ours" && !stat.kernel);
    const dead = stat.state === "Z" || stat.state === "X";
    const detail = wanted && !dead ? readDetail(pid, wish, proc) : null;
    if (detail !== null) {
      // The pid may have changed hands, or the process its program, between the two readings.
      const again = readStat(path, proc);
      if (again === "gone") return "gone";
      if (again === "foreign" || "code" in again) return again;
      // Whoever keeps changing is not an agent that we could speak of; but it is one that we did not see.
      if (attempt > mostAttempts)
        return { code: "process-unreadable", agent: null, source: path, message: "it keeps changing" };
      if (again.start !== stat.start || again.name !== stat.name || again.forked !== stat.forked) continue;
      // In the middle of exec the new name is there before arguments and environment are.
      const patience = Date.now() - startedAtOf(stat, bootedAt) < youngMs ? youngExecAttempts : execAttempts;
      if (sought && isHalfMade(detail) && attempt < patience) continue;
    }
    if (detail?.env != null) delete detail.env[emptyEnvironment];
    const startedAt = startedAtOf(stat, bootedAt);
    const { parent, session, state, name, tty } = stat;
    return { identity: { pid, start: stat.start, boot }, parent, session, state, name, tty, startedAt, detail };
  }
}

const startedAtOf = ({ start }: Stat, bootedAt: number): number => bootedAt + (Number(start) / ticksPerSecond) * 1000;

const execAttempts = 20;
/** A young one may well be in the middle of its exec, and put aside there on a busy machine. */
const youngExecAttempts = 300;
const youngMs = 2_000;
const mostAttempts = 400;

const isHalfMade = ({ argv, env }: ProcessDetail): boolean =>
  (argv !== null && argv.join("") === "") || (env !== null && env[emptyEnvironment] === "");

function readStat(path: string, proc: ProcFs): Stat | Problem | "gone" | "foreign" {
  try {
    const stat = parseStat(proc.read(path));
    if (stat !== null) return stat.state === "Z" && stat.threads > 1 ? withOtherThreads(stat, path, proc) : stat;
    return { code: "process-unreadable", agent: null, source: path, message: "not a stat line" };
  } catch (error) {
    if (isGone(error)) return "gone";
    // hidepid=1 refuses the stat lines of other users, never our own.
    if (errorCode(error) === "EACCES" || errorCode(error) === "EPERM") return "foreign";
    return { code: "process-unreadable", agent: null, source: path, message: failureText(error) };
  }
}

/** A process whose first thread has ended shows Z while others work on: not dead, unless those are on their way out, too. */
function withOtherThreads(stat: Stat, path: string, proc: ProcFs): Stat {
  const folder = path.replace(/stat$/, "task");
  const working = proc.list(folder).some((thread) => {
    const other = readStat(`${folder}/${thread}/stat`, proc);
    return (
      typeof other === "object" && "threads" in other && other.state !== "Z" && other.state !== "X" && !other.exiting
    );
  });
  return working ? { ...stat, state: "S" } : stat;
}

/** PF_EXITING, PF_FORKNOEXEC and PF_KTHREAD in the kernel's task flags. */
const exitingFlag = 0x4;
const forkedFlag = 0x40;
const kernelThreadFlag = 0x200000;

export interface Stat {
  name: string;
  state: string;
  threads: number;
  exiting: boolean;
  forked: boolean;
  /** A thread of the kernel's own. */
  kernel: boolean;
  parent: number;
  session: number;
  tty: string | null;
  start: string;
}

/** The name may hold spaces, parentheses and newlines: fields count from the last `)`. */
export function parseStat(bytes: Buffer): Stat | null {
  const open = bytes.indexOf(40);
  const close = bytes.lastIndexOf(41);
  if (open === -1 || close < open) return null;
  const fields = bytes.toString("latin1", close + 2).split(" ");
  const [state, parent, , session, tty] = fields;
  const threads = Number(fields[17]);
  const start = fields[19];
  if (state === undefined || session === undefined || start === undefined || !/^\d+$/.test(start.trim())) return null;
  return {
    name: bytes.toString("utf8", open + 1, close),
    state,
    threads,
    exiting: (Number(fields[6]) & exitingFlag) !== 0,
    forked: (Number(fields[6]) & forkedFlag) !== 0,
    kernel: (Number(fields[6]) & kernelThreadFlag) !== 0,
    parent: Number(parent),
    session: Number(session),
    tty: ttyName(Number(tty)),
    start: start.trim(),
  };
}

/** Field 7 packs the device number: major in bits 8-15, minor in the rest. */
function ttyName(device: number): string | null {
  if (!Number.isInteger(device) || device === 0) return null;
  const major = (device >>> 8) & 0xff;
  const minor = (device & 0xff) | ((device >>> 12) & 0xfff00);
  if (major >= 136 && major <= 143) return `/dev/pts/${(major - 136) * 256 + minor}`;
  if (major === 4) return minor < 64 ? `/dev/tty${minor}` : `/dev/ttyS${minor - 64}`;
  return `/dev/tty(${major}:${minor})`;
}

function readDetail(pid: number, wish: ProcessWish, proc: ProcFs): ProcessDetail {
  const unreadParts: Problem[] = [];
  const part = <T>(name: string, reader: (path: string) => T): T | null => {
    const path = `/proc/${pid}/${name}`;
    try {
      return reader(path);
    } catch (error) {
      if (!isGone(error))
        unreadParts.push({ code: "process-unreadable", agent: null, source: path, message: failureText(error) });
      return null;
    }
  };
  const { uid, innerPid } = part("status", (path) => parseStatus(proc.read(path))) ?? { uid: null, innerPid: null };
  const ours = uid === null || uid === proc.uid;
  const argv = part("cmdline", (path) => splitNul(proc.read(path)));
  const exe = part("exe", (path) => proc.link(path).replace(/ \(deleted\)$/, ""));
  const cwd = part("cwd", (path) => proc.link(path).replace(/ \(deleted\)$/, ""));
  // Another user's environment is none of our business, even where we may read it.
  const env = ours ? part("environ", (path) => pickEnvironment(proc.read(path), wish.environment)) : null;
  // Which locks a process holds is no secret of its user's, and may prove that it has a session.
  const lockedFiles = wish.lockedFiles.length > 0 ? part("fd", (path) => lockedAmong(path, pid, wish, proc)) : [];
  const namespace = part("ns/pid", (path) => proc.link(path));
  const mounts = part("ns/mnt", (path) => proc.link(path));
  const sameFiles = mounts === null || mounts === proc.link("/proc/self/ns/mnt");
  const locked = lockedFiles ?? [];
  const unread = ours ? unreadParts : [];
  return { uid, ours, argv, exe, cwd, env, lockedFiles: locked, namespace, innerPid, sameFiles, unread };
}

function parseStatus(bytes: Buffer): { uid: number | null; innerPid: number | null } {
  const text = bytes.toString("latin1");
  const uid = /^Uid:\s+(\d+)/m.exec(text)?.[1];
  const innerPid = /^NSpid:.*?(\d+)$/m.exec(text)?.[1];
  return { uid: uid === undefined ? null : Number(uid), innerPid: innerPid === undefined ? null : Number(innerPid) };
}

const splitNul = (bytes: Buffer): string[] => {
  const text = bytes.toString("utf8");
  return (text.endsWith("\0") ? text.slice(0, -1) : text).split("\0");
};

/** Marks an environment without a single entry; no variable can be called so. */
const emptyEnvironment = "";

function pickEnvironment(bytes: Buffer, keys: ReadonlySet<string>): Record<string, string> {
  if (bytes.length === 0) return { [emptyEnvironment]: "" };
  const picked: Record<string, string> = {};
  for (let from = 0; from < bytes.length; ) {
    const next = bytes.indexOf(0, from);
    const end = next === -1 ? bytes.length : next;
    const equals = bytes.indexOf(61, from);
    if (equals > from && equals < end && equals - from <= longestKey) {
      const key = bytes.toString("latin1", from, equals);
      if (keys.has(key) && !(key in picked)) picked[key] = bytes.toString("utf8", equals + 1, end);
    }
    from = end + 1;
  }
  return picked;
}

const longestKey = 64;

function lockedAmong(folder: string, pid: number, wish: ProcessWish, proc: ProcFs): string[] {
  const locked: string[] = [];
  for (const fd of proc.list(folder)) {
    try {
      const target = proc.link(`${folder}/${fd}`);
      if (!wish.lockedFiles.some((pattern) => pattern.test(target))) continue;
      if (/^lock:/m.test(proc.read(`/proc/${pid}/fdinfo/${fd}`).toString("latin1"))) locked.push(target);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return locked;
}

const buffer = Buffer.allocUnsafe(64 * 1024);

const realProcFs: ProcFs = {
  list: (path) => readdirSync(path),
  link: (path) => readlinkSync(path),
  read(path) {
    const fd = openSync(path, "r");
    try {
      let filled = readSync(fd, buffer, 0, buffer.length, null);
      if (filled < buffer.length) return buffer.subarray(0, filled);
      const chunks = [Buffer.from(buffer)];
      while (filled > 0) {
        filled = readSync(fd, buffer, 0, buffer.length, null);
        chunks.push(Buffer.from(buffer.subarray(0, filled)));
      }
      return Buffer.concat(chunks);
    } finally {
      closeSync(fd);
    }
  },
  exists(pid) {
    try {
      // Allowed to signal it, yet /proc did not show it: it started after we looked, so it is not the claimed one.
      process.kill(pid, 0);
      return false;
    } catch (error) {
      return errorCode(error) === "EPERM";
    }
  },
  pid: process.pid,
  uid: process.getuid?.() ?? -1,
  bootedAt: () =>
    bootedAt() ?? Date.now() - Number.parseFloat(realProcFs.read("/proc/uptime").toString("latin1")) * 1000,
};
