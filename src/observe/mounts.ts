// Is a folder on a file system that may hang when its server does? Decided from the mount table alone: asking the folder could hang.
import { readFileSync } from "node:fs";
import { isGone } from "./failure.ts";

const remoteTypes = /^(nfs4?|cifs|smb3|smbfs|9p|ceph|glusterfs|lustre|afs|fuse(\..+)?|virtiofs|davfs)$/;

export function mountTable(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch (error) {
    if (isGone(error)) return "";
    throw error;
  }
}

/** The mount with the longest path above the folder decides; of two on one path the later one covers the earlier. */
export function mayHang(folder: string, mountinfo: string): boolean {
  let longest = -1;
  let remote = false;
  for (const line of mountinfo.split("\n")) {
    const fields = line.split(" ");
    const separator = fields.indexOf("-");
    const [point, type] = [fields[4], fields[separator + 1]];
    if (separator === -1 || point === undefined || type === undefined) continue;
    const path = point.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    const above = path === "/" || folder === path || folder.startsWith(`${path}/`);
    if (!above || path.length < longest) continue;
    longest = path.length;
    remote = remoteTypes.test(type);
  }
  return remote;
}
