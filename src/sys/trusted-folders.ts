// Which folders no other user can put something else in the place of.
import { lstatSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

const writableByOthers = 0o022;
const sticky = 0o1000;

/**
 * `folder`: by its real path. It and all folders above it belong to us or to root, and others may write there only where they cannot
 * move what is not theirs (sticky). The owner of a sticky folder can move everything in it, so it must not be another user.
 */
export function isOnlyOurs(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isDirectory() || !trustedOwners().has(stat.uid)) return false;
  if ((stat.mode & writableByOthers) !== 0 && (stat.mode & sticky) === 0) return false;
  return folder === "/" || isOnlyOurs(dirname(folder));
}

let trusted: ReadonlySet<number> | null = null;

/** In a user namespace that does not know root, the folders of root belong to the overflow uid. */
function trustedOwners(): ReadonlySet<number> {
  trusted ??= new Set([0, process.getuid?.() ?? 0, ...(isRootKnown() ? [] : [overflowUid()])]);
  return trusted;
}

/** The lines of a map: first uid inside, first uid outside, how many. The real root is 0 outside of every namespace. */
function isRootKnown(): boolean {
  const map = kernelText("/proc/self/uid_map");
  return map === null || map.split("\n").some((line) => /^\s*\d+\s+0\s/.test(line));
}

const overflowUid = (): number => Number(kernelText("/proc/sys/kernel/overflowuid") ?? "65534");

function kernelText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    return null;
  }
}
