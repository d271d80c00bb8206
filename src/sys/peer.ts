// Asks the kernel which process listens on a unix socket: its credentials from the moment when it began to listen.
import { closeSync } from "node:fs";
import { callDarwin, callLibc, callLinux } from "./libc.ts";

export type Peer =
  | { kind: "listener"; pid: number; uid: number }
  | { kind: "not-listening" }
  /** It accepts no more connections: it is suspended or overloaded. */
  | { kind: "busy" }
  | { kind: "unknown"; why: string };

/** Connects without waiting, asks the kernel, and closes the connection without sending anything. */
export function peerOf(path: string): Peer {
  const address = addressOf(path);
  if (address === null) return { kind: "unknown", why: "the path is too long for a socket" };
  const made = callLibc((libc) =>
    libc.socket(AF_UNIX, isLinux ? SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC : SOCK_STREAM, 0),
  );
  if (made === null) return { kind: "unknown", why: "the C library was not found" };
  if (made.result < 0) return { kind: "unknown", why: made.code };
  const fd = made.result;
  try {
    const connected = callLibc((libc) => libc.connect(fd, address.bytes, address.length));
    const code = connected?.code ?? "the C library was not found";
    if (code === "") return isLinux ? linuxPeer(fd) : darwinPeer(fd);
    if (["ECONNREFUSED", "ENOENT", "ENOTSOCK"].includes(code)) return { kind: "not-listening" };
    return code === "EAGAIN" ? { kind: "busy" } : { kind: "unknown", why: code };
  } finally {
    closeSync(fd);
  }
}

const isLinux = process.platform === "linux";

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_NONBLOCK = 0o4000;
const SOCK_CLOEXEC = 0o2000000;

/** Larger than needed: Bun may move small buffers during an ffi call. */
const memory = (): Uint8Array<ArrayBuffer> => new Uint8Array(new ArrayBuffer(4096));

/** struct sockaddr_un: two bytes for the family (macOS: length, then family), then the path with a NUL at its end. */
function addressOf(path: string): { bytes: Uint8Array<ArrayBuffer>; length: number } | null {
  const text = Buffer.from(path);
  const longest = isLinux ? 107 : 103;
  if (text.length > longest || text.includes(0)) return null;
  const bytes = memory();
  bytes.set(isLinux ? [AF_UNIX, 0] : [text.length + 3, AF_UNIX]);
  bytes.set(text, 2);
  return { bytes, length: text.length + 3 };
}

/** struct ucred of SO_PEERCRED: pid, uid, gid. */
function linuxPeer(fd: number): Peer {
  const credentials = memory();
  const length = new Uint32Array(new ArrayBuffer(4096));
  length[0] = 12;
  const asked = callLinux((libc) => libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length));
  if (asked?.result !== 0) return { kind: "unknown", why: asked?.code ?? "" };
  const at = new DataView(credentials.buffer);
  return { kind: "listener", pid: at.getInt32(0, true), uid: at.getUint32(4, true) };
}

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;

/** <sys/un.h>. Never run on a Mac. */
function darwinPeer(fd: number): Peer {
  const [uid, gid, pid, length] = [memory(), memory(), memory(), new Uint32Array(new ArrayBuffer(4096))];
  length[0] = 4;
  const asked = callDarwin((libc) => libc.getpeereid(fd, uid, gid));
  const named = callDarwin((libc) => libc.getsockopt(fd, SOL_LOCAL, LOCAL_PEERPID, pid, length));
  if (asked?.result !== 0 || named?.result !== 0) return { kind: "unknown", why: asked?.code || (named?.code ?? "") };
  const at = (bytes: Uint8Array<ArrayBuffer>): number => new DataView(bytes.buffer).getUint32(0, true);
  return { kind: "listener", pid: at(pid), uid: at(uid) };
}

const SOL_LOCAL = 0;
const LOCAL_PEERPID = 2;
