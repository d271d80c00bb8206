// Tells from the mount table whether reading a folder may hang, and whether other hosts may write to it. Does not touch the folder.
import { readFileSync } from "node:fs";
import { isGone, tryOr } from "../lib/errors.ts";

/** The type of the file system comes after " - ". */
const remote =
  / - (?:nfs4?|cifs|smb3|smbfs|9p|ceph|glusterfs|lustre|afs|coda|beegfs|gpfs|orangefs|ocfs2|gfs2|virtiofs|vboxsf|prl_fs|davfs|fuse(?:\.[^ ]*)?) /;

/** FUSE file systems without a network. Others may use it (sshfs, rclone), or show a network folder (bindfs, mergerfs). */
const local = / - fuse\.(?:fuse-overlayfs|lxcfs|portal|snapfuse|squashfuse|squashfuse_ll|fuse2fs|ntfs-3g|exfat) /;

export const mountTable = (): string => tryOr("", () => readFileSync("/proc/self/mountinfo", "utf8"), isGone);

interface Mount {
  path: string;
  mayHang: boolean;
  isShared: boolean;
}

/** Usually the table stays the same and contains nothing remote. */
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

export const mountPoints = (): string[] => mountTable().split("\n").flatMap(pointIn);

const asCharacter = (_: string, octal: string): string => String.fromCharCode(Number.parseInt(octal, 8));

/** The mount with the longest path above the folder. On the same path, a later mount covers an earlier one. null: nothing is remote. */
function mountOf(folder: string, mountinfo: string): Mount | null {
  let covering: Mount | null = null;
  for (const mount of mountsIn(mountinfo)) {
    const above = mount.path === "/" || folder === mount.path || folder.startsWith(`${mount.path}/`);
    if (above && mount.path.length >= (covering?.path.length ?? 0)) covering = mount;
  }
  return covering;
}

export const mayHang = (folder: string, mountinfo: string): boolean => mountOf(folder, mountinfo)?.mayHang ?? false;

/** Whether another host may write to this folder or to a mount below it. `folder` must be a real path. */
export const isShared = (folder: string, mountinfo: string): boolean =>
  mountOf(folder, mountinfo)?.isShared === true ||
  mountsIn(mountinfo).some((mount) => mount.isShared && mount.path.startsWith(`${folder === "/" ? "" : folder}/`));

export const hasShared = (mountinfo: string): boolean => mountsIn(mountinfo).some((mount) => mount.isShared);

/** Whether /proc shows us only our own processes. */
export const hidesOthers = (mountinfo: string): boolean =>
  process.getuid?.() !== 0 && / \/proc .* - proc .*\bhidepid=(?!0\b|off\b)/.test(mountinfo);
