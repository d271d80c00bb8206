// Who listens on a unix socket, and whether that may be asked: the file is ours, and so is the process behind it.
import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Peer, peerOf } from "../sys/peer.ts";
import { errorCode, isGone } from "./failure.ts";
import { ownUid } from "./files.ts";
import { realHome } from "./homes.ts";
import { mayHang, mountTable } from "./mounts.ts";

export type Listener = Peer | { kind: "foreign" };

/** "foreign": the socket or its listener is not ours, so it must not be asked. */
export function listenerAt(path: string): Listener {
  const file = look(path, statSync);
  if (file === null) return { kind: "nobody" };
  if (!file.isSocket() || file.uid !== ownUid) return { kind: "foreign" };
  const peer = peerOf(path);
  return peer.kind === "listener" && peer.uid !== ownUid ? { kind: "foreign" } : peer;
}

/**
 * The real path of a socket that only we and root can put something else in place of; null: there is none, or others could. All folders
 * above it are ours or root's, and others may write there only where they cannot move what is not theirs (sticky).
 */
export function unswappablePath(path: string): string | null {
  const mounts = mountTable();
  const real = path.startsWith("/") ? realHome(path, mounts) : null;
  if (real === null || mayHang(real, mounts)) return null;
  for (let folder = dirname(real); ; folder = dirname(folder)) {
    const stat = look(folder, lstatSync);
    if (stat === null || !stat.isDirectory() || !trustedOwners().has(stat.uid)) return null;
    if ((stat.mode & writableByOthers) !== 0 && (stat.mode & sticky) === 0) return null;
    if (folder === "/") return real;
  }
}

const writableByOthers = 0o022;
const sticky = 0o1000;

let trusted: ReadonlySet<number> | null = null;

/** In a user namespace that does not know root, the folders of root belong to the overflow uid. */
function trustedOwners(): ReadonlySet<number> {
  trusted ??= new Set([0, ownUid, ...(isRootKnown() ? [] : [overflowUid()])]);
  return trusted;
}

/** The lines of a map: first uid inside, first uid outside, how many. The real root is 0 outside of every namespace. */
const isRootKnown = (): boolean => {
  const map = kernelText("/proc/self/uid_map");
  return map === null || map.split("\n").some((line) => /^\s*\d+\s+0\s/.test(line));
};

const overflowUid = (): number => Number(kernelText("/proc/sys/kernel/overflowuid") ?? "65534");

function kernelText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}

function look(path: string, ask: (path: string) => Stats): Stats | null {
  try {
    return ask(path);
  } catch (error) {
    if (!isGone(error) && errorCode(error) === "") throw error;
    return null;
  }
}
