// Interprets the process table of macOS: the status of every process, and details of those that the query selects. Written from
// the documented layouts, never run on a Mac. sys/darwin.ts makes the system calls.
import { type Problem, type ProblemDetail, type ProcessPart, type Reading, read, unread } from "../core/problem.ts";
import type { ProcessDetail, ProcessRow, ProcessTable } from "../core/process.ts";
import type { DarwinSystem, Raw } from "../sys/darwin.ts";
import { type ProcessQuery, unreadableProcess as problem } from "./process-query.ts";

export function readDarwinProcesses(query: ProcessQuery, system: DarwinSystem): Reading<ProcessTable> {
  const boot = readBoot(system);
  const refused = (source: string, why: string): Reading<ProcessTable> =>
    unread({ ...problem(source, systemError(why)), code: "processes-unreadable" });
  if (!boot.ok) return refused("kern.bootsessionuuid", boot.why);
  const pids = system.pids();
  if (!pids.ok) return refused("proc_listallpids", pids.why);
  const rows: ProcessRow[] = [];
  const gaps: Problem[] = [];
  const hidden: number[] = [];
  const selected: SelectedProcess[] = [];
  // Announced pids are added: processes that started while the kernel made its list may be missing from it.
  for (const pid of [...new Set([...pids.value, ...query.pids])].sort((a, b) => a - b)) {
    if (pid <= 0) continue; // kernel_task
    const status = readStatus(pid, system);
    if (status === "gone") continue;
    if ("code" in status) {
      gaps.push(status);
      if (query.pids.has(pid)) hidden.push(pid);
      continue;
    }
    const seen = selectProcess(status, boot.value, query, system);
    if (seen === "gone") continue;
    if ("row" in seen) selected.push(seen);
    else rows.push(seen);
  }
  const files = readOpenFiles(selected, query, system);
  for (const process of selected) {
    const row = finish(process, files, system);
    if (row !== "gone") rows.push(row);
  }
  rows.sort((a, b) => a.identity.pid - b.identity.pid);
  return read({ boot: boot.value, uid: system.uid, namespace: { id: null, initial: true }, rows, gaps, hidden });
}

/** The boot time changes when the clock is set. Then identities no longer match, and agentctl refuses to act, which is safe. */
function readBoot(system: DarwinSystem): Raw<string> {
  const session = system.bootSession();
  if (session.ok && session.value !== "") return session;
  const time = system.bootTime();
  if (!time.ok || time.value.length < 8) return { ok: false, why: time.ok ? "kern.boottime: too short" : time.why };
  return { ok: true, value: `boottime-${view(time.value).getBigInt64(0, true)}` };
}

type PartReading<T> = { ok: true; value: T } | { ok: false; detail: ProblemDetail };

interface DarwinStatus {
  pid: number;
  parent: number;
  /** Effective, real and saved. */
  uids: readonly number[];
  state: string;
  /** The long name first, then the one of 16 bytes. */
  names: string[];
  tty: string | null;
  start: string;
  startedAt: number;
}

/** proc_pidinfo refuses processes of other users. kinfo_proc shows all processes, and tells which ones are gone. */
function readStatus(pid: number, system: DarwinSystem): DarwinStatus | Problem | "gone" {
  const info = system.bsdInfo(pid);
  const status = info.ok ? parseBsdInfo(info.value) : null;
  if (status?.pid === pid) return status;
  const kinfo = system.kinfo(pid);
  if (kinfo.ok && kinfo.value.length === 0) return "gone";
  const general = kinfo.ok ? parseKinfo(kinfo.value) : null;
  if (general?.pid === pid) return general;
  const why = [info, kinfo].flatMap((raw) => (raw.ok ? [] : [raw.why]));
  return problem(`pid ${pid}`, why.length === 0 ? { code: "unknown-shape" } : systemError(why.join("; ")));
}

/** A setuid program that another user runs has our effective uid but the real uid of that user. */
const isOurs = ({ uids }: DarwinStatus, { uid }: DarwinSystem): boolean => uids.every((each) => each === uid);

/** struct proc_bsdinfo, <sys/proc_info.h>, 136 bytes. */
function parseBsdInfo(bytes: Uint8Array): DarwinStatus | null {
  if (bytes.length !== 136) return null;
  const at = view(bytes);
  return {
    pid: at.getUint32(12, true),
    parent: at.getUint32(16, true),
    uids: [at.getUint32(20, true), at.getUint32(28, true), at.getUint32(36, true)],
    state: stateLetter(at.getUint32(4, true)),
    names: [text(bytes.subarray(64, 96)), text(bytes.subarray(48, 64))].filter((name) => name !== ""),
    tty: ttyName(at.getUint32(108, true)),
    ...startOf(at.getBigUint64(120, true), at.getBigUint64(128, true)),
  };
}

/** struct kinfo_proc, <sys/sysctl.h> with struct extern_proc of <sys/proc.h>, 648 bytes in a 64-bit process. */
function parseKinfo(bytes: Uint8Array): DarwinStatus | null {
  if (bytes.length !== 648) return null;
  const at = view(bytes);
  return {
    pid: at.getUint32(40, true),
    parent: at.getUint32(560, true),
    uids: [at.getUint32(420, true), at.getUint32(392, true), at.getUint32(396, true)],
    state: stateLetter(at.getUint8(36)),
    names: [text(bytes.subarray(243, 260))].filter((name) => name !== ""),
    tty: ttyName(at.getUint32(572, true)),
    ...startOf(at.getBigUint64(0, true), BigInt(at.getUint32(8, true))),
  };
}

const startOf = (seconds: bigint, microseconds: bigint): { start: string; startedAt: number } => {
  const start = seconds * 1_000_000n + microseconds;
  return { start: String(start), startedAt: Number(start / 1000n) };
};

/** SIDL to SZOMB of <sys/proc.h>. Nearly all processes show SRUN, because on macOS only threads sleep. */
const stateLetter = (status: number): string => ["R", "R", "R", "S", "T", "Z"][status] ?? "R";

/** major and minor of <sys/types.h>; bsd/kern/tty_ptmx.c gets 16 for its terminals (15 is ptmx). NODEV is -1. */
function ttyName(device: number): string | null {
  if (device === 0xffffffff) return null;
  const major = device >>> 24;
  const minor = device & 0xffffff;
  return major === 16 ? `/dev/ttys${String(minor).padStart(3, "0")}` : `/dev/tty(${major}:${minor})`;
}

interface SelectedProcess {
  row: ProcessRow;
  status: DarwinStatus;
  args: PartReading<ProcessArguments>;
}

/**
 * The kernel names a process after the resolved file: Claude's native build is "2.1.34" (anthropics/claude-code #24398).
 * So the path and argv[0] of our processes count as names, too, if they can be read.
 */
function selectProcess(
  status: DarwinStatus,
  boot: string,
  query: ProcessQuery,
  system: DarwinSystem,
): ProcessRow | SelectedProcess | "gone" {
  const { pid, parent, state, tty, start, startedAt } = status;
  const name = status.names[0] ?? "";
  const identity = { pid, start, boot };
  const row: ProcessRow = { identity, parent, session: 0, state, name, tty, startedAt, detail: null };
  if (state === "Z") return row;
  const session = system.session(pid);
  if (!session.ok) return "gone";
  row.session = session.value;
  const args: PartReading<ProcessArguments> = isOurs(status, system)
    ? readArguments(pid, query, system)
    : { ok: false, detail: { code: "other-users-process" } };
  const started = args.ok ? [args.value.path, args.value.argv[0] ?? ""].map(baseName) : [];
  const known = [...status.names, ...started].find((each) => query.names.has(each));
  if (known === undefined && !query.pids.has(pid) && query.also === undefined) return row;
  return { row: { ...row, name: known ?? name }, status, args };
}

/** Reads the status again: the details count only if the process is still alive and runs the same program. */
function finish(
  { row, status, args }: SelectedProcess,
  files: Raw<Map<number, OpenFiles>>,
  system: DarwinSystem,
): ProcessRow | "gone" {
  const { pid } = status;
  const ours = isOurs(status, system);
  const nothing = {
    ...{ argv: null, exe: null, cwd: null, env: null, lockedFiles: [] },
    ...{ namespace: null, innerPid: null, sameFiles: true, confinement: null },
  };
  const [first = null] = status.uids;
  const uid = status.uids.every((each) => each === first) ? first : null;
  const detail: ProcessDetail = { uid, ours, ...nothing, unread: [] };
  const missed = (part: ProcessPart, why: ProblemDetail) =>
    detail.unread.push(problem(`pid ${pid}`, { code: "part-unread", part, detail: why }));

  const path = system.executable(pid);
  detail.exe = path.ok ? path.value : args.ok ? args.value.path : null;
  if (ours) {
    if (args.ok) {
      detail.argv = args.value.argv;
      detail.env = args.value.env;
      if (detail.env === null) missed("environment", { code: "environment-hidden" });
    } else missed("arguments", args.detail);
    const open = files.ok ? files.value.get(pid) : undefined;
    detail.cwd = open?.cwd ?? null;
    detail.lockedFiles = open?.locked ?? [];
    if (!files.ok) missed("open-files", systemError(files.why));
    else if (detail.cwd === null) {
      const shown = open?.cwdProblem ?? null;
      missed("working-directory", shown === null ? { code: "not-shown-by-lsof" } : systemError(shown));
    }
  }

  const again = readStatus(pid, system);
  if (again === "gone") return "gone";
  if ("code" in again) return { ...row, detail: { ...detail, unread: ours ? [...detail.unread, again] : [] } };
  if (again.start !== status.start) return "gone";
  if (again.state === "Z") return { ...row, state: "Z", detail: null };
  if (ours && again.names[0] !== status.names[0]) missed("program", { code: "changed-while-read" });
  return { ...row, state: again.state, detail };
}

interface ProcessArguments {
  path: string;
  argv: string[];
  env: Record<string, string> | null;
}

function readArguments(pid: number, query: ProcessQuery, system: DarwinSystem): PartReading<ProcessArguments> {
  const bytes = system.arguments(pid);
  if (!bytes.ok) return { ok: false, detail: systemError(bytes.why) };
  const parsed = parseArguments(bytes.value, query.environment);
  return parsed === null ? { ok: false, detail: { code: "unknown-shape" } } : { ok: true, value: parsed };
}

/**
 * KERN_PROCARGS2 (sysctl_procargsx in bsd/kern/kern_sysctl.c): argc, path, NULs up to a word, argv, environment, NULs, the loader's strings.
 * The search goes beyond the first empty string, because a process that sets its title leaves NULs there. If only NULs follow argv,
 * the kernel withheld the environment: otherwise the strings of the loader would follow.
 */
function parseArguments(bytes: Uint8Array, keys: ReadonlySet<string>): ProcessArguments | null {
  if (bytes.length < 5) return null;
  const argc = view(bytes).getInt32(0, true);
  let at = bytes.indexOf(0, 4);
  if (at < 0 || argc < 0) return null;
  const path = text(bytes.subarray(4, at));
  while (bytes[at] === 0) at += 1;
  const next = (): string => {
    const end = bytes.indexOf(0, at);
    const part = text(bytes.subarray(at, end < 0 ? bytes.length : end));
    at = end < 0 ? bytes.length : end + 1;
    return part;
  };
  const argv: string[] = [];
  while (argv.length < argc) {
    if (at >= bytes.length) return null;
    argv.push(next());
  }
  if (bytes.subarray(at).every((byte) => byte === 0)) return { path, argv, env: null };
  const env: Record<string, string> = {};
  while (at < bytes.length) {
    const entry = next();
    const key = entry.slice(0, Math.max(0, entry.indexOf("=")));
    if (keys.has(key) && !Object.hasOwn(env, key)) env[key] = entry.slice(key.length + 1);
  }
  return { path, argv, env };
}

interface OpenFiles {
  cwd: string | null;
  cwdProblem: string | null;
  locked: string[];
}

function readOpenFiles(
  selected: SelectedProcess[],
  query: ProcessQuery,
  system: DarwinSystem,
): Raw<Map<number, OpenFiles>> {
  const pids = selected.filter(({ status }) => isOurs(status, system)).map(({ status }) => status.pid);
  if (pids.length === 0) return { ok: true, value: new Map() };
  const patterns = query.lockedFiles.flatMap(({ lockedFiles }) => lockedFiles ?? []);
  const output = system.openFiles(pids, patterns.length === 0 ? "cwd" : "all");
  return output.ok ? { ok: true, value: parseLsof(output.value, patterns) } : output;
}

/** FWASLOCKED, bsd/sys/fcntl.h: "has or has had" a lock by flock(2); it stays after an unlock until the file is closed. */
const wasLocked = 0x4000;

/** `lsof -F` prints one field per line: `p` begins a process, `f` a file. Apple's lsof shows locks in the flags `G`, not in `l`. */
function parseLsof(output: string, wanted: readonly RegExp[]): Map<number, OpenFiles> {
  const found = new Map<number, OpenFiles>();
  let files: OpenFiles = { cwd: null, cwdProblem: null, locked: [] };
  let fd = "";
  let locked = false;
  for (const line of output.split("\n")) {
    const value = line.slice(1);
    if (line[0] === "p") {
      files = { cwd: null, cwdProblem: null, locked: [] };
      found.set(Number(value), files);
    } else if (line[0] === "f") {
      fd = value;
      locked = false;
    } else if (line[0] === "l") locked ||= value.trim() !== "";
    else if (line[0] === "G") locked ||= (Number.parseInt(value, 16) & wasLocked) !== 0;
    else if (line[0] === "n") {
      const name = unescapeName(value);
      if (fd === "cwd" && name.startsWith("/")) files.cwd = name;
      else if (fd === "cwd") files.cwdProblem = name;
      else if (locked && wanted.some((pattern) => pattern.test(name))) files.locked.push(name);
    }
  }
  return found;
}

/** safestrprt in lsof doubles backslashes, and writes bytes that its locale cannot print as \xNN. */
const unescapeName = (name: string): string =>
  name.replace(/\\\\|(?:\\x[0-9a-f]{2})+/g, (found) =>
    found === "\\\\" ? "\\" : text(Uint8Array.from(found.split("\\x").slice(1), (hex) => Number.parseInt(hex, 16))),
  );

/** The errno is unknown: the runtime may have overwritten it. */
const systemError = (text: string): ProblemDetail => ({ code: "system-error", errno: "", text });

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

const view = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const decoder = new TextDecoder();
function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
}
