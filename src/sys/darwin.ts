// Reads processes on macOS, as raw bytes and text; observe/processes.darwin.ts interprets them.
// Written from the documented layouts; never run on a Mac. Importing this file on another system does nothing.
// Checked against xnu-11417: libsyscall/wrappers/libproc/libproc.c, bsd/kern/{proc_info,kern_sysctl}.c, bsd/sys/{sysctl,proc_info}.h.
import { dlopen, read as peek } from "bun:ffi";

/** `why` is text for people only: the runtime may overwrite errno before this code reads it. */
export type Raw<T> = { ok: true; value: T } | { ok: false; why: string };

export interface DarwinSystem {
  uid: number;
  /** kern.bootsessionuuid */
  bootSession(): Raw<string>;
  /** struct timeval of kern.boottime */
  bootTime(): Raw<Uint8Array>;
  pids(): Raw<Iterable<number>>;
  /** struct proc_bsdinfo. Refused (EPERM) for other users' processes. */
  bsdInfo(pid: number): Raw<Uint8Array>;
  /** struct kinfo_proc, of any user's process. Empty: there is no such process. */
  kinfo(pid: number): Raw<Uint8Array>;
  /** getsid(2) fails only if the process does not exist. */
  session(pid: number): Raw<number>;
  /** KERN_PROCARGS2. EINVAL means: no such process, a zombie, a process inside exec, or another user's process. */
  arguments(pid: number): Raw<Uint8Array>;
  /** The resolved path of the running file. Fails after that file was deleted (a self-update does that). */
  executable(pid: number): Raw<string>;
  /** The output of `lsof -F pfGln`; with "cwd" without open files. */
  openFiles(pids: readonly number[], want: "cwd" | "all"): Raw<string>;
}

export const darwinSystem: DarwinSystem = {
  uid: process.getuid?.() ?? -1,
  bootSession() {
    const name = sysctlByName("kern.bootsessionuuid", 64);
    return name.ok ? { ok: true, value: cString(name.value) } : name;
  },
  bootTime: () => sysctlByName("kern.boottime", 16),
  pids: listPids,
  bsdInfo(pid) {
    const info = memory(BSD_INFO_BYTES);
    // arg 1: zombies too; without it they look gone (proc_pidinfo in bsd/kern/proc_info.c).
    const got = libSystem().proc_pidinfo(pid, PROC_PIDTBSDINFO, 1, info, info.length);
    return got === info.length ? { ok: true, value: info } : failed("proc_pidinfo");
  },
  kinfo: (pid) => sysctl([CTL_KERN, KERN_PROC, KERN_PROC_PID, pid], memory(KINFO_BYTES)),
  session(pid) {
    const session = libSystem().getsid(pid);
    return session > 0 ? { ok: true, value: session } : failed("getsid");
  },
  arguments(pid) {
    argumentBuffer ??= memory(ARG_MAX);
    const got = sysctl([CTL_KERN, KERN_PROCARGS2, pid], argumentBuffer);
    if (!got.ok) return got;
    // If the buffer is too small, the kernel returns only the end of the strings, without an error.
    if (got.value.length >= ARG_MAX) return { ok: false, why: "the arguments do not fit into ARG_MAX" };
    return { ok: true, value: got.value.slice() };
  },
  executable(pid) {
    const path = memory(PATH_BYTES);
    return libSystem().proc_pidpath(pid, path, path.length) > 0
      ? { ok: true, value: cString(path) }
      : failed("proc_pidpath");
  },
  openFiles,
};

const CTL_KERN = 1;
const KERN_PROC = 14;
const KERN_PROC_PID = 1;
const KERN_PROCARGS2 = 49;
const PROC_PIDTBSDINFO = 3;
const BSD_INFO_BYTES = 136;
const KINFO_BYTES = 648;
/** bsd/sys/syslimits.h. KERN_PROCARGS2 answers EINVAL to a buffer much larger than this. */
const ARG_MAX = 1024 * 1024;
/** PROC_PIDPATHINFO_MAXSIZE */
const PATH_BYTES = 4096;
const LSOF_MS = 5000;
const LSOF_BYTES = 64 * 1024 * 1024;

let argumentBuffer: Uint8Array<ArrayBuffer> | null = null;

const open = () =>
  dlopen("/usr/lib/libSystem.B.dylib", {
    proc_listallpids: { args: ["ptr", "i32"], returns: "i32" },
    proc_pidinfo: { args: ["i32", "i32", "u64", "ptr", "i32"], returns: "i32" },
    proc_pidpath: { args: ["i32", "ptr", "u32"], returns: "i32" },
    getsid: { args: ["i32"], returns: "i32" },
    sysctl: { args: ["ptr", "u32", "ptr", "ptr", "ptr", "u64"], returns: "i32" },
    sysctlbyname: { args: ["ptr", "ptr", "ptr", "ptr", "u64"], returns: "i32" },
    __error: { args: [], returns: "ptr" },
  }).symbols;
let symbols: ReturnType<typeof open> | null = null;
function libSystem(): ReturnType<typeof open> {
  symbols ??= open();
  return symbols;
}

/** Bun may move a small typed array during an ffi call, unless it is a view of an explicit ArrayBuffer. */
const memory = (bytes: number): Uint8Array<ArrayBuffer> => new Uint8Array(new ArrayBuffer(bytes));

/** The kernel silently truncates a list that does not fit: if the buffer is full, ask again with a larger one. */
function listPids(): Raw<Iterable<number>> {
  for (let capacity = 4096; capacity <= 1 << 20; capacity *= 4) {
    const pids = new Int32Array(new ArrayBuffer(capacity * 4));
    const count = libSystem().proc_listallpids(pids, pids.byteLength);
    // libproc turns the kernel's -1 into 0.
    if (count <= 0) return failed("proc_listallpids");
    if (count < capacity) return { ok: true, value: pids.subarray(0, count) };
  }
  return { ok: false, why: "proc_listallpids: more processes than a system can have" };
}

function sysctl(name: readonly number[], into: Uint8Array<ArrayBuffer>): Raw<Uint8Array> {
  const path = new Int32Array(new ArrayBuffer(name.length * 4));
  path.set(name);
  const length = new BigUint64Array(new ArrayBuffer(8)).fill(BigInt(into.length));
  const code = libSystem().sysctl(path, name.length, into, length, null, 0);
  return code === 0 ? { ok: true, value: into.subarray(0, Number(length[0])) } : failed(`sysctl ${name.join(".")}`);
}

function sysctlByName(name: string, bytes: number): Raw<Uint8Array> {
  const into = memory(bytes);
  const path = memory(name.length + 1);
  new TextEncoder().encodeInto(name, path);
  const length = new BigUint64Array(new ArrayBuffer(8)).fill(BigInt(bytes));
  const code = libSystem().sysctlbyname(path, into, length, null, 0);
  return code === 0 ? { ok: true, value: into.subarray(0, Number(length[0])) } : failed(`sysctl ${name}`);
}

/** lsof exits with 1 if any of the pids does not exist, so only its output counts. It can hang on a dead network mount. */
function openFiles(pids: readonly number[], want: "cwd" | "all"): Raw<string> {
  const only = want === "cwd" ? ["-d", "cwd"] : [];
  const args = ["-w", "-n", "-P", "-a", ...only, "-p", pids.join(","), "-F", "pfGln"];
  const run = start(["/usr/sbin/lsof", ...args]);
  if (typeof run === "string") return { ok: false, why: `lsof: ${run}` };
  if (run.signalCode) return { ok: false, why: `lsof: ended by ${run.signalCode} (limit ${LSOF_MS} ms)` };
  const output = run.stdout.toString();
  if (output === "" && run.exitCode !== 0)
    return { ok: false, why: `lsof: ${run.stderr.toString().trim() || "no output"}` };
  return { ok: true, value: output };
}

/** Returns a string if the command could not be started: the reason. */
function start(command: string[]): Bun.SyncSubprocess<"pipe", "pipe"> | string {
  try {
    // In the C locale lsof would write every byte of "é" as \xNN.
    const env = { LC_ALL: "en_US.UTF-8" };
    const limits = { timeout: LSOF_MS, killSignal: "SIGKILL", maxBuffer: LSOF_BYTES } as const;
    return Bun.spawnSync(command, { env, stdin: "ignore", stderr: "pipe", ...limits });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function failed(call: string): { ok: false; why: string } {
  const at = libSystem().__error();
  return { ok: false, why: `${call}: errno ${at === null ? "unknown" : peek.i32(at)}` };
}

function cString(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}
