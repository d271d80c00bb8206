// The C library, opened once. A call returns its result and the name of its error. The address of errno is looked up before the
// call, and errno is read right after it: in between the runtime could overwrite it.
import { dlopen, read as peek } from "bun:ffi";

const everywhere = {
  flock: { args: ["i32", "i32"], returns: "i32" },
  signal: { args: ["i32", "u64"], returns: "u64" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
} as const;

const onLinux = {
  ...everywhere,
  fcntl: { args: ["i32", "i32", "ptr"], returns: "i32" },
  syscall: { args: ["i64", "i64", "i64", "i64", "i64"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  inotify_init1: { args: ["i32"], returns: "i32" },
  inotify_add_watch: { args: ["i32", "ptr", "u32"], returns: "i32" },
  inotify_rm_watch: { args: ["i32", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

const onDarwin = {
  ...everywhere,
  getpeereid: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  __error: { args: [], returns: "ptr" },
} as const;

const openLinux = (name: string) => dlopen(name, onLinux).symbols;
const openDarwin = () => dlopen("libSystem.B.dylib", onDarwin).symbols;

export type LinuxLibc = ReturnType<typeof openLinux>;
type DarwinLibc = ReturnType<typeof openDarwin>;
export type Libc = Pick<LinuxLibc, keyof typeof everywhere>;

interface Result {
  result: number;
  /** "" on success. */
  code: string;
}

/** null: the C library was not found. */
export const callLibc = (what: (libc: Libc) => number): Result | null => callLinux(what) ?? callDarwin(what);

/** null: not Linux, or the C library was not found. */
export function callLinux(what: (libc: LinuxLibc) => number): Result | null {
  const { linux } = load();
  return linux === null ? null : answer(linux.__errno_location(), () => what(linux));
}

/** null: not macOS. */
export function callDarwin(what: (libc: DarwinLibc) => number): Result | null {
  const { darwin } = load();
  return darwin === null ? null : answer(darwin.__error(), () => what(darwin));
}

function answer(errno: ReturnType<LinuxLibc["__errno_location"]>, call: () => number): Result {
  const result = call();
  return { result, code: result < 0 && errno !== null ? errorName(-peek.i32(errno)) : "" };
}

let loaded: { linux: LinuxLibc | null; darwin: ReturnType<typeof openDarwin> | null } | null = null;

function load(): NonNullable<typeof loaded> {
  // glibc, then musl.
  const names = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];
  loaded ??= {
    linux: process.platform === "linux" ? firstThatOpens(names.map((name) => () => openLinux(name))) : null,
    darwin: process.platform === "darwin" ? firstThatOpens([openDarwin]) : null,
  };
  return loaded;
}

function firstThatOpens<T>(openers: readonly (() => T)[]): T | null {
  for (const open of openers) {
    try {
      return open();
    } catch (error) {
      if (!(error instanceof Error)) throw error;
    }
  }
  return null;
}

/** Loaded only on an error: node:util takes a millisecond to load. */
const errorName = (code: number): string => process.getBuiltinModule("node:util").getSystemErrorName(code);
