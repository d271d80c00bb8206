// Who listens on a unix socket, and whether that may be asked: the file is ours, and so is the process behind it.
import { lstatSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Peer, peerOf } from "../sys/peer.ts";
import { isOnlyOurs } from "../sys/trusted-folders.ts";
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
  return look(dirname(real), lstatSync) !== null && isOnlyOurs(dirname(real)) ? real : null;
}

function look(path: string, ask: (path: string) => Stats): Stats | null {
  try {
    return ask(path);
  } catch (error) {
    if (!isGone(error) && errorCode(error) === "") throw error;
    return null;
  }
}
