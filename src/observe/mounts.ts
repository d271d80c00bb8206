// Is a folder on a file system that may hang when its server does? Decided from the mount table alone: asking the folder could hang.
import { readFileSync } from "node:fs";
import { isGone } from "./failure.ts";

/** The type stands behind the only lone dash; a blank inside of any field is written as \040. */
const remote = / - (?:nfs4?|cifs|smb3|smbfs|9p|ceph|glusterfs|lustre|afs|virtiofs|davfs|fuse(?:\.[^ ]*)?) /;

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

/** The table is the same for every question of one look, and almost always without anything remote. */
let parsed: { text: string; mounts: Mount[] } = { text: "", mounts: [] };

function mountsIn(text: string): Mount[] {
  if (parsed.text === text) return parsed.mounts;
  const lines = remote.test(text) ? text.split("\n") : [];
  const mounts = lines.flatMap((line): Mount[] => pointIn(line).map((path) => ({ path, isRemote: remote.test(line) })));
  parsed = { text, mounts };
  return mounts;
}

function pointIn(line: string): string[] {
  const point = line.split(" ", 5)[4];
  if (point === undefined) return [];
  return [point.includes("\\") ? point.replace(/\\([0-7]{3})/g, asCharacter) : point];
}

/** Every folder that something is mounted on. */
export const mountPoints = (): string[] => mountTable().split("\n").flatMap(pointIn);

const asCharacter = (_: string, octal: string): string => String.fromCharCode(Number.parseInt(octal, 8));

/** The mount with the longest path above the folder decides; of two on one path the later one covers the earlier. */
export function mayHang(folder: string, mountinfo: string): boolean {
  let longest = -1;
  let covered = false;
  for (const { path, isRemote } of mountsIn(mountinfo)) {
    const above = path === "/" || folder === path || folder.startsWith(`${path}/`);
    if (!above || path.length < longest) continue;
    longest = path.length;
    covered = isRemote;
  }
  return covered;
}
