// Finds the process that listens on a unix socket. agentctl talks to it only if the file and the process are ours.
import { lstatSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { tryOr } from "../lib/errors.ts";
import { type Peer, peerOf } from "../sys/peer.ts";
import { isOnlyOurs } from "../sys/trusted-folders.ts";
import { ownUid } from "./files.ts";
import { realHome } from "./homes.ts";
import { mayHang, mountTable } from "./mounts.ts";

export type Listener = Peer | { kind: "foreign" };

/** "foreign": the socket or its listener belongs to another user. */
export function listenerAt(path: string): Listener {
  const file = tryOr(null, () => statSync(path));
  if (file === null) return { kind: "not-listening" };
  if (!file.isSocket() || file.uid !== ownUid) return { kind: "foreign" };
  const peer = peerOf(path);
  return peer.kind === "listener" && peer.uid !== ownUid ? { kind: "foreign" } : peer;
}

/** The real path of a socket that no other user except root can replace; null: it does not exist, or another user could. */
export function unswappablePath(path: string): string | null {
  const mounts = mountTable();
  const real = path.startsWith("/") ? realHome(path, mounts) : null;
  if (real === null || mayHang(real, mounts)) return null;
  return tryOr(false, () => lstatSync(dirname(real)) !== null && isOnlyOurs(dirname(real))) ? real : null;
}
