// What the mount table tells about the file system of a folder: may it hang when its server does, may other hosts write to it?
// Decided from the table alone: asking the folder could hang.
import { readFileSync } from "node:fs";
import { isGone } from "./failure.ts";

/** The type stands behind the only lone dash; a blank inside of any field is written as \040. */
const remote =
  / - (?:nfs4?|cifs|smb3|smbfs|9p|ceph|glusterfs|lustre|afs|coda|beegfs|gpfs|orangefs|ocfs2|gfs2|virtiofs|vboxsf|prl_fs|davfs|fuse(?:\.[^ ]*)?) /;

/** FUSE file systems of this host alone. Others may lie over a network folder (bindfs, mergerfs) or be one (sshfs, rclone). */
const local = / - fuse\.(?:fuse-overlayfs|lxcfs|portal|snapfuse|squashfuse|squashfuse_ll|fuse2fs|ntfs-3g|exfat) /;

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
  mayHang: boolean;
  isShared: boolean;
}

/** The table is the same for every question of one look, and almost always without anything remote. */
let parsed: { text: string; mounts: Mount[] } = { text: "", mounts: [] };

function mountsIn(text: string): Mount[] {
  if (parsed.text === text) return parsed.mounts;
  const lines = remote.test(text) ? text.split("\n") : [];
  const mounts = lines.flatMap((line): Mount[] => {
    const isRemote = remote.test(line);
    return pointIn(line).map((path) => ({ path, mayHang: isRemote, isShared: isRemote && !local.test(line) }));
  });
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

/** The mount with the longest path above the folder; of two on one path the later one covers the earlier. null: not known, or nothing is remote. */
function mountOf(folder: string, mountinfo: string): Mount | null {
  let covering: Mount | null = null;
  for (const mount of mountsIn(mountinfo)) {
    const above = mount.path === "/" || folder === mount.path || folder.startsWith(`${mount.path}/`);
    if (above && mount.path.length >= (covering?.path.length ?? 0)) covering = mount;
  }
  return covering;
}

export const mayHang = (folder: string, mountinfo: string): boolean => mountOf(folder, mountinfo)?.mayHang ?? false;

/** May a process on another host write to this folder, by its real path, or to a mount below it? */
export const isShared = (folder: string, mountinfo: string): boolean =>
  mountOf(folder, mountinfo)?.isShared === true ||
  mountsIn(mountinfo).some((mount) => mount.isShared && mount.path.startsWith(`${folder === "/" ? "" : folder}/`));

/** Is there any such folder on this host? */
export const hasShared = (mountinfo: string): boolean => mountsIn(mountinfo).some((mount) => mount.isShared);

/** Does /proc show us only our own processes? It shows root all of them. */
export const hidesOthers = (mountinfo: string): boolean =>
  process.getuid?.() !== 0 && / \/proc .* - proc .*\bhidepid=(?!0\b|off\b)/.test(mountinfo);
