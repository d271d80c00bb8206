// Reads the process table from /proc: the stat line of every process, and details of those that the query selects.
import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { type Problem, type ProblemDetail, type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "../core/process.ts";
import { bootedAt } from "../sys/clock.ts";
import { errorCode, failureOf, isGone } from "./failure.ts";
import { mayHang, mountTable } from "./mounts.ts";
import {
  confinementIn,
  innermost,
  lineOf,
  type Namespaces,
  namespacesOf,
  ownNamespaces,
  uidsIn,
} from "./process-owner.ts";
import { noDetails, type ProcessQuery } from "./process-query.ts";

/** The raw readings, so that a test can make any of them fail. Each throws as node:fs does. */
export interface ProcFs {
  list(path: string): string[];
  read(path: string): string;
  link(path: string): string;
  /** The owner of an open file, by its link in /proc and the target of the link; null: reading it may hang. */
  owner(link: string, target: string): number | null;
  /** Whether a process of another user exists that /proc does not show. */
  exists(pid: number): boolean;
  pid: number;
  uid: number;
  boot(): string;
  bootedAt(): number;
}

interface ProcessScan {
  query: ProcessQuery;
  /** The agents that lock files. */
  lockers: ProcessQuery["lockedFiles"];
  proc: ProcFs;
  boot: string;
  bootedAt: number;
  /** Our own namespaces; null: not read yet. */
  own: Namespaces | null;
}

/** USER_HZ is 100 in /proc of every Linux, whatever tick the kernel uses. */
const ticksPerSecond = 100;

const initialNamespace = "pid:[4026531836]";

export function readLinuxProcesses(query: ProcessQuery, proc: ProcFs = realProcFs): Reading<ProcessTable> {
  try {
    return read(readTable(query, proc));
  } catch (error) {
    return unread({ ...unreadable("/proc", failureOf(error)), code: "processes-unreadable" });
  }
}

function readTable(query: ProcessQuery, proc: ProcFs): ProcessTable {
  const self = proc.link("/proc/self");
  if (self !== String(proc.pid)) throw new Error(`/proc shows another pid namespace (we are ${proc.pid} and ${self})`);
  const boot = proc.boot();
  const lockers = query.lockedFiles.filter(({ lockedFiles }) => lockedFiles !== undefined);
  const scan: ProcessScan = { query, lockers, proc, boot, bootedAt: proc.bootedAt(), own: null };
  const rows: ProcessRow[] = [];
  const gaps: Problem[] = [];
  const foreign = new Set<number>();
  for (const name of proc.list("/proc")) {
    const first = name.charCodeAt(0);
    if (first < 48 || first > 57) continue;
    const pid = Number(name);
    const row = readRow(pid, scan);
    if (row === "gone") continue;
    if (row === "foreign") foreign.add(pid);
    else if ("code" in row) gaps.push(row);
    else rows.push(row);
  }
  const seen = new Set(rows.map((row) => row.identity.pid));
  const hidden = [...query.pids].filter((pid) => foreign.has(pid) || (!seen.has(pid) && proc.exists(pid)));
  return { boot, uid: proc.uid, namespace: ownNamespace(proc), rows, gaps, hidden };
}

/** One process as it is now; null: gone. Throws if it cannot be read. */
export function readLinuxProcess(
  pid: number,
  details: "with details" | "without details",
  proc: ProcFs = realProcFs,
): ProcessRow | null {
  const query = details === "with details" ? { ...noDetails, pids: new Set([pid]) } : noDetails;
  const row = readRow(pid, { query, lockers: [], proc, boot: proc.boot(), bootedAt: 0, own: null });
  if (row === "gone") return null;
  if (row === "foreign" || "code" in row) throw new Error(`/proc/${pid}/stat cannot be read`);
  return row;
}

function ownNamespace(proc: ProcFs): ProcessTable["namespace"] {
  try {
    const id = proc.link("/proc/self/ns/pid");
    return { id, initial: id === initialNamespace };
  } catch (error) {
    // A kernel without namespaces has no such link. After any other error the answer is unknown.
    return { id: null, initial: isGone(error) };
  }
}

function readRow(pid: number, scan: ProcessScan): ProcessRow | Problem | "gone" | "foreign" {
  const { query, proc, boot, bootedAt } = scan;
  const path = `/proc/${pid}/stat`;
  for (let attempt = 1; ; attempt += 1) {
    const stat = readStat(path, proc);
    if (stat === "gone" || stat === "foreign" || "code" in stat) return stat;
    // A child between fork and exec still has the name and arguments of its parent.
    const sought = query.pids.has(pid) || (query.names.has(stat.name) && !stat.forked);
    const wanted = sought || (query.also === "ours" && !stat.kernel);
    const looked = wanted && !isDead(stat) ? readDetail(pid, stat.name, scan) : null;
    if (looked !== null) {
      // Another process may have the pid now, or the process may run another program.
      const again = readStat(path, proc);
      if (again === "gone" || again === "foreign" || "code" in again) return again;
      if (attempt > mostAttempts) return unreadable(path, { code: "keeps-changing" });
      if (again.start !== stat.start || again.name !== stat.name || again.forked !== stat.forked) continue;
      // It may have released its locks before we read them.
      if (isDead(again)) continue;
      // During exec the new name appears before the arguments and the environment.
      if (sought && looked.isHalfMade && attempt < patienceWith(stat, bootedAt)) continue;
    }
    const { start, parent, session, state, name, tty } = stat;
    const times = { startedAt: startedAtOf(stat, bootedAt) };
    return {
      identity: { pid, start, boot },
      parent,
      session,
      state,
      name,
      tty,
      ...times,
      detail: looked?.detail ?? null,
    };
  }
}

const isDead = ({ state }: Stat): boolean => state === "Z" || state === "X";

const startedAtOf = ({ start }: Stat, bootedAt: number): number => bootedAt + (Number(start) / ticksPerSecond) * 1000;

const execAttempts = 20;
/** On a busy host a young process may stay in the middle of its exec for a while. */
const youngExecAttempts = 300;
const youngMs = 2_000;
const mostAttempts = 400;

const patienceWith = (stat: Stat, bootedAt: number): number =>
  Date.now() - startedAtOf(stat, bootedAt) < youngMs ? youngExecAttempts : execAttempts;

function readStat(path: string, proc: ProcFs): Stat | Problem | "gone" | "foreign" {
  try {
    const stat = parseStat(proc.read(path));
    if (stat !== null) return stat.exiting || stat.state === "Z" ? asItEnds(stat, path, proc) : stat;
    return unreadable(path, { code: "unknown-shape" });
  } catch (error) {
    if (isGone(error)) return "gone";
    // With hidepid=1 the kernel refuses the stat lines of other users' processes.
    if (errorCode(error) === "EACCES" || errorCode(error) === "EPERM") return "foreign";
    return unreadable(path, failureOf(error));
  }
}

const unreadable = (source: string, detail: ProblemDetail): Problem => ({
  ...{ code: "process-unreadable", agent: null, source, detail },
});

/**
 * A process whose first thread has exited shows Z while other threads run: it is dead only if all of them are exiting. A killed
 * process that is still exiting counts as dead, because none of its code will run again.
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
  /** A thread of the kernel. */
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

function readDetail(pid: number, name: string, scan: ProcessScan): { detail: ProcessDetail; isHalfMade: boolean } {
  const { query, proc } = scan;
  const folder = `/proc/${pid}`;
  const unread: Problem[] = [];
  const part = <T>(path: string, reader: (path: string) => T): T | null => {
    try {
      return reader(path);
    } catch (error) {
      if (!isGone(error)) unread.push(unreadable(path, failureOf(error)));
      return null;
    }
  };
  const status = part(`${folder}/status`, proc.read);
  const uids = status === null ? null : uidsIn(status);
  if (status !== null && uids === null) unread.push(unreadable(`${folder}/status`, { code: "no-uids" }));
  const uid = uids !== null && new Set(uids).size === 1 ? (uids[0] ?? null) : null;
  const ours = uid === proc.uid;
  // A process whose user cannot be read counts as not ours. It may be ours, so the failure is reported.
  const mayBeOurs = ours || (uids === null && unread.length > 0);
  const cmdline = part(`${folder}/cmdline`, proc.read);
  const argv = cmdline === null ? null : splitNul(cmdline);
  const exe = part(`${folder}/exe`, proc.link);
  const cwd = part(`${folder}/cwd`, proc.link);
  // The environment of another user stays private even if we (root) could read it.
  const environ = ours ? part(`${folder}/environ`, proc.read) : null;
  const spaces = namespacesOf(folder, (path) => part(path, proc.link));
  scan.own ??= ownNamespaces(proc.link);
  const isNeighbour = spaces.pid !== null && spaces.pid === scan.own.pid;
  const detail: ProcessDetail = {
    uid,
    ours,
    argv,
    exe: exe === null ? null : withoutMark(exe),
    cwd: cwd === null ? null : withoutMark(cwd),
    env: environ === null ? null : pickEnvironment(environ, query.environment),
    lockedFiles: [],
    namespace: spaces.pid,
    innerPid: isNeighbour ? pid : status === null ? null : innermost(status),
    sameFiles: spaces.mnt === null || spaces.mnt === scan.own.mnt,
    confinement: confinementIn(spaces, scan.own),
    unread: [],
  };
  // Locks are read for processes of all users: a lock may prove that the process has a session.
  const locks = scan.lockers
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

/** Ignores files that belong neither to us nor to the owner of the process: a link of another user may lead there. */
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

/** The boot id cannot change while this process runs. */
let ownBoot: string | null = null;

const realProcFs: ProcFs = {
  list: (path) => readdirSync(path),
  link: (path) => readlinkSync(path),
  read: (path) => readFileSync(path, "utf8"),
  owner: (link, target) => (mayHang(target, mountTable()) ? null : statSync(link).uid),
  exists(pid) {
    try {
      // We may signal it, but /proc did not show it: it started after the scan, so it is not the announced process.
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
