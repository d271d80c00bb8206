// Is a folder on a file system that may hang when its server does? Decided from the mount table alone: asking the folder could hang.
import { readFileSync } from "node:fs";
import { isGone } from "./failure.ts";

const remoteTypes = new Set("nfs nfs4 cifs smb3 smbfs 9p ceph glusterfs lustre afs fuse virtiofs davfs".split(" "));

export function mountTable(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch (error) {
    if (isGone(error)) return "";
    throw error;
  }
}

interface Mount {
  path: string;
  isRemote: boolean;
}

/** The table is the same for every question of one look. */
let parsed: { text: string; mounts: Mount[]; hasRemote: boolean } = { text: "", mounts: [], hasRemote: false };

function mountsIn(text: string): typeof parsed {
  if (parsed.text === text) return parsed;
  const mounts = text.split("\n").flatMap((line): Mount[] => {
    const fields = line.split(" ");
    const separator = fields.indexOf("-");
    const [point, type] = [fields[4], fields[separator + 1]];
    if (separator === -1 || point === undefined || type === undefined) return [];
    const path = point.includes("\\") ? point.replace(/\\([0-7]{3})/g, asCharacter) : point;
    return [{ path, isRemote: remoteTypes.has(type) || type.startsWith("fuse.") }];
  });
  parsed = { text, mounts, hasRemote: mounts.some(({ isRemote }) => isRemote) };
  return parsed;
}

const asCharacter = (_: string, octal: string): string => String.fromCharCode(Number.parseInt(octal, 8));

/** The mount with the longest path above the folder decides; of two on one path the later one covers the earlier. */
export function mayHang(folder: string, mountinfo: string): boolean {
  const { mounts, hasRemote } = mountsIn(mountinfo);
  if (!hasRemote) return false;
  let longest = -1;
  let remote = false;
  for (const { path, isRemote } of mounts) {
    const above = path === "/" || folder === path || folder.startsWith(`${path}/`);
    if (!above || path.length < longest) continue;
    longest = path.length;
    remote = isRemote;
  }
  return remote;
}
