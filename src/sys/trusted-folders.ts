// Decides in which folders no other user can replace our files.
import { lstatSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { tryOr } from "../lib/errors.ts";

const writableByOthers = 0o022;
const sticky = 0o1000;

/** `folder` must be a real path. Root and we may own it and the folders above it. Others may write only where it is sticky. */
export function isOnlyOurs(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isDirectory() || !trustedOwners().has(stat.uid)) return false;
  if ((stat.mode & writableByOthers) !== 0 && (stat.mode & sticky) === 0) return false;
  return folder === "/" || isOnlyOurs(dirname(folder));
}

let trusted: ReadonlySet<number> | null = null;

/** In a user namespace without a mapping for root, the folders of root belong to the overflow uid. */
function trustedOwners(): ReadonlySet<number> {
  trusted ??= new Set([0, process.getuid?.() ?? 0, ...(isRootKnown() ? [] : [overflowUid()])]);
  return trusted;
}

/** A line of the map has the first uid inside, the first uid outside, and the count. Root is 0 outside. */
function isRootKnown(): boolean {
  const map = kernelText("/proc/self/uid_map");
  return map === null || map.split("\n").some((line) => /^\s*\d+\s+0\s/.test(line));
}

const overflowUid = (): number => Number(kernelText("/proc/sys/kernel/overflowuid") ?? "65534");

const kernelText = (path: string): string | null => tryOr(null, () => readFileSync(path, "utf8"));
