// The process table from /proc: the stat line of every process, details only of those that an agent asks for.
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { type Problem, type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "../core/process.ts";
import { bootedAt } from "../sys/clock.ts";
import { errorCode, failureText, isGone } from "./failure.ts";
import { mayHang, mountTable } from "./mounts.ts";
import type { ProcessWish } from "./process-wish.ts";
import {
  confinementIn,
  innermost,
  lineOf,
  type Namespaces,
  namespacesOf,
  ownNamespaces,
  uidsIn,
} from "./whose-process.ts";

/** The raw readings, so that a test can make any of them fail. Each throws as node:fs does. */
export interface ProcFs {
  list(path: string): string[];
  read(path: string): string;
  link(path: string): string;
  /** Whose file an open file of a process is, by its link and the path that it leads to; null: asking could hang. */
  owner(link: string, target: string): number | null;
  /** Does a process with this pid exist, even if /proc does not show it? */
  exists(pid: number): boolean;
  pid: number;
  uid: number;
  boot(): string;
  bootedAt(): number;
}

/** What is the same for every process of one look. */
interface Look {
  wish: ProcessWish;
  /** Those agents that lock files. */
  lockers: ProcessWish["lockedFiles"];
  proc: ProcFs;
  boot: string;
  bootedAt: number;
  /** Our own namespaces; null: not asked for yet. */
  own: Namespaces | null;
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
  const boot = proc.boot();
  const namespace = ownNamespace(proc);
  const lockers = wish.lockedFiles.filter(({ lockedFiles }) => lockedFiles !== null);
  const look: Look = { wish, lockers, proc, boot, bootedAt: proc.bootedAt(), own: null };

  const rows: ProcessRow[] = [];
  const gaps: Problem[] = [];
  const foreign = new Set<number>();
  for (const name of proc.list("/proc")) {
    const first = name.charCodeAt(0);
    if (first < 48 || first > 57) continue;
    const pid = Number(name);
    const row = readRow(pid, look);
    if (row === "gone") continue;
    if (row === "foreign") foreign.add(pid);
    else if ("code" in row) gaps.push(row);
    else rows.push(row);
  }
  const seen = new Set(rows.map((row) => row.identity.pid));
  const hidden = [...wish.pids].filter((pid) => foreign.has(pid) || (!seen.has(pid) && proc.exists(pid)));
  return { boot, uid: proc.uid, namespace, rows, gaps, hidden };
}

/** One process as it is this moment; null: gone. Throws where it cannot be told. */
export function readLinuxProcess(
  pid: number,
  details: "with details" | "without details",
  proc: ProcFs = realProcFs,
): ProcessRow | null {
  const wish = details === "with details" ? { ...noWish, pids: new Set([pid]) } : noWish;
  const row = readRow(pid, { wish, lockers: [], proc, boot: proc.boot(), bootedAt: 0, own: null });
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

function readRow(pid: number, look: Look): ProcessRow | Problem | "gone" | "foreign" {
  const { wish, proc, boot, bootedAt } = look;
  const path = `/proc/${pid}/stat`;
  for (let attempt = 1; ; attempt += 1) {
    const stat = readStat(path, proc);
    if (stat === "gone" || stat === "foreign" || "code" in stat) return stat;
    // A child between fork and exec still has its parent's name and arguments: it is not what it seems.
    const sought = wish.pids.has(pid) || (wish.names.has(stat.name) && !stat.forked);
    const wanted = sought || (wish.also === "ours" && !stat.kernel);
    const looked = wanted && !isDead(stat) ? readDetail(pid, stat.name, look) : null;
    if (looked !== null) {
      // The pid may have changed hands, or the process its program, between the two readings.
      const again = readStat(path, proc);
      if (again === "gone") return "gone";
      if (again === "foreign" || "code" in again) return again;
      // Whoever keeps changing is not an agent that we could speak of; but it is one that we did not see.
      if (attempt > mostAttempts)
        return { code: "process-unreadable", agent: null, source: path, message: "it keeps changing" };
      if (again.start !== stat.start || again.name !== stat.name || again.forked !== stat.forked) continue;
      // What it had it may have let go of before we looked for it.
      if (isDead(again)) continue;
      // In the middle of exec the new name is there before arguments and environment are.
      if (sought && looked.isHalfMade && attempt < patienceWith(stat, bootedAt)) continue;
    }
    const startedAt = startedAtOf(stat, bootedAt);
    const { parent, session, state, name, tty } = stat;
    const detail = looked === null ? null : looked.detail;
    return { identity: { pid, start: stat.start, boot }, parent, session, state, name, tty, startedAt, detail };
  }
}

const isDead = ({ state }: Stat): boolean => state === "Z" || state === "X";

const startedAtOf = ({ start }: Stat, bootedAt: number): number => bootedAt + (Number(start) / ticksPerSecond) * 1000;

const execAttempts = 20;
/** A young one may well be in the middle of its exec, and put aside there on a busy machine. */
const youngExecAttempts = 300;
const youngMs = 2_000;
const mostAttempts = 400;

const patienceWith = (stat: Stat, bootedAt: number): number =>
  Date.now() - startedAtOf(stat, bootedAt) < youngMs ? youngExecAttempts : execAttempts;

function readStat(path: string, proc: ProcFs): Stat | Problem | "gone" | "foreign" {
  try {
    const stat = parseStat(proc.read(path));
    if (stat !== null) return stat.exiting || stat.state === "Z" ? asItEnds(stat, path, proc) : stat;
    return { code: "process-unreadable", agent: null, source: path, message: "not a stat line" };
  } catch (error) {
    if (isGone(error)) return "gone";
    // hidepid=1 refuses the stat lines of other users, never our own.
    if (errorCode(error) === "EACCES" || errorCode(error) === "EPERM") return "foreign";
    return { code: "process-unreadable", agent: null, source: path, message: failureText(error) };
  }
}

/**
 * A process whose first thread has ended shows Z while others work on: not dead, unless those are on their way out, too. One that was
 * killed is on its way out for a while, without a program that could be looked at: nothing of its own will run again, so it is dead.
 */
function asItEnds(stat: Stat, path: string, proc: ProcFs): Stat {
  const works = stat.threads > 1 && hasWorkingThread(path.replace(/stat$/, "task"), proc);
  if (works) return isDead(stat) ? { ...stat, state: "S" } : stat;
  return isDead(stat) ? stat : { ...stat, state: "X" };
}

const hasWorkingThread = (folder: string, proc: ProcFs): boolean =>
  proc.list(folder).some((thread) => {
    try {
      const stat = parseStat(proc.read(`${folder}/${thread}/stat`));
      return stat !== null && stat.state !== "Z" && stat.state !== "X" && !stat.exiting;
    } catch (error) {
      if (!isGone(error)) throw error;
      return false;
    }
  });

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
export function parseStat(line: string): Stat | null {
  const open = line.indexOf("(");
  const close = line.lastIndexOf(")");
  if (open === -1 || close < open) return null;
  const fields = line.slice(close + 2).split(" ", lastField);
  const start = fields[19]?.trim() ?? "";
  if (!digits.test(start)) return null;
  const flags = Number(fields[6]);
  return {
    name: line.slice(open + 1, close),
    state: fields[0] ?? "",
    threads: Number(fields[17]),
    exiting: (flags & exitingFlag) !== 0,
    forked: (flags & forkedFlag) !== 0,
    kernel: (flags & kernelThreadFlag) !== 0,
    parent: Number(fields[1]),
    session: Number(fields[3]),
    tty: ttyName(Number(fields[4])),
    start,
  };
}

const lastField = 20;
const digits = /^\d+$/;

/** Field 7 packs the device number: major in bits 8-15, minor in the rest. */
function ttyName(device: number): string | null {
  if (!Number.isInteger(device) || device === 0) return null;
  const major = (device >>> 8) & 0xff;
  const minor = (device & 0xff) | ((device >>> 12) & 0xfff00);
  if (major >= 136 && major <= 143) return `/dev/pts/${(major - 136) * 256 + minor}`;
  if (major === 4) return minor < 64 ? `/dev/tty${minor}` : `/dev/ttyS${minor - 64}`;
  return `/dev/tty(${major}:${minor})`;
}

function readDetail(pid: number, name: string, look: Look): { detail: ProcessDetail; isHalfMade: boolean } {
  const { wish, proc } = look;
  const folder = `/proc/${pid}`;
  const unread: Problem[] = [];
  const part = <T>(path: string, reader: (path: string) => T): T | null => {
    try {
      return reader(path);
    } catch (error) {
      if (!isGone(error))
        unread.push({ code: "process-unreadable", agent: null, source: path, message: failureText(error) });
      return null;
    }
  };
  const status = part(`${folder}/status`, proc.read);
  const uids = status === null ? null : uidsIn(status);
  if (status !== null && uids === null)
    unread.push({ code: "process-unreadable", agent: null, source: `${folder}/status`, message: "no uids in it" });
  const uid = uids !== null && new Set(uids).size === 1 ? (uids[0] ?? null) : null;
  const ours = uid === proc.uid;
  // A process whose user cannot be read is not ours. But it may be, so what cannot be read of it is told.
  const mayBeOurs = ours || (uids === null && unread.length > 0);
  const cmdline = part(`${folder}/cmdline`, proc.read);
  const argv = cmdline === null ? null : splitNul(cmdline);
  const exe = part(`${folder}/exe`, proc.link);
  const cwd = part(`${folder}/cwd`, proc.link);
  // Another user's environment is none of our business, even where we may read it.
  const environ = ours ? part(`${folder}/environ`, proc.read) : null;
  const spaces = namespacesOf(folder, (path) => part(path, proc.link));
  look.own ??= ownNamespaces(proc.link);
  const isNeighbour = spaces.pid !== null && spaces.pid === look.own.pid;
  const detail: ProcessDetail = {
    uid,
    ours,
    argv,
    exe: exe === null ? null : withoutMark(exe),
    cwd: cwd === null ? null : withoutMark(cwd),
    env: environ === null ? null : pickEnvironment(environ, wish.environment),
    lockedFiles: [],
    namespace: spaces.pid,
    innerPid: isNeighbour ? pid : status === null ? null : innermost(status),
    sameFiles: spaces.mnt === null || spaces.mnt === look.own.mnt,
    confinement: confinementIn(spaces, look.own),
    unread: [],
  };
  // Which locks a process holds is no secret of its user's, and may prove that it has a session.
  const locks = look.lockers
    .filter(({ processNames, role }) => processNames.includes(name) && role(name, detail) !== null)
    .flatMap(({ lockedFiles }) => lockedFiles ?? []);
  if (locks.length > 0) detail.lockedFiles = part(`${folder}/fd`, () => lockedAmong(folder, locks, uid, proc)) ?? [];
  if (mayBeOurs) detail.unread = unread;
  return { detail, isHalfMade: environ === "" || argv?.every((word) => word === "") === true };
}

const deletedMark = " (deleted)";
const withoutMark = (path: string): string => (path.endsWith(deletedMark) ? path.slice(0, -deletedMark.length) : path);

const splitNul = (text: string): string[] => (text.endsWith("\0") ? text.slice(0, -1) : text).split("\0");

function pickEnvironment(text: string, keys: ReadonlySet<string>): Record<string, string> {
  const picked: Record<string, string> = {};
  for (const entry of text.split("\0")) {
    const equals = entry.indexOf("=");
    const key = entry.slice(0, equals);
    if (equals > 0 && keys.has(key) && !(key in picked)) picked[key] = entry.slice(equals + 1);
  }
  return picked;
}

/** A lock on a file that belongs neither to us nor to the process proves nothing: a link of somebody else may lead there. */
function lockedAmong(folder: string, patterns: readonly RegExp[], uid: number | null, proc: ProcFs): string[] {
  const locked: string[] = [];
  for (const fd of proc.list(`${folder}/fd`)) {
    try {
      const target = proc.link(`${folder}/fd/${fd}`);
      if (!patterns.some((pattern) => pattern.test(target))) continue;
      if (lineOf(proc.read(`${folder}/fdinfo/${fd}`), "lock:") === undefined) continue;
      const owner = proc.owner(`${folder}/fd/${fd}`, target);
      if (owner === null || owner === proc.uid || owner === uid) locked.push(target);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return locked;
}

/** Of this machine since it runs, and so of this process since it does. */
let ownBoot: string | null = null;

const realProcFs: ProcFs = {
  list: (path) => readdirSync(path),
  link: (path) => readlinkSync(path),
  read: (path) => readFileSync(path, "utf8"),
  owner: (link, target) => (mayHang(target, mountTable()) ? null : statSync(link).uid),
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
  boot() {
    ownBoot ??= realProcFs.read("/proc/sys/kernel/random/boot_id").trim();
    return ownBoot;
  },
  bootedAt: () => bootedAt() ?? Date.now() - Number.parseFloat(realProcFs.read("/proc/uptime")) * 1000,
};
