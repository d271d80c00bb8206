// Which stores processes of other hosts may write to, and how this host is called in the agents' announcements.
import { join } from "node:path";
import type { Adapter } from "../adapters/adapter.ts";
import { errorCode } from "./failure.ts";
import { readText } from "./files.ts";
import { realHome } from "./homes.ts";
import { hasShared, isShared } from "./mounts.ts";

/** The store, or a folder of it behind a link, is on a file system that processes of other hosts may write to. */
export function isSharedStore({ records, claims }: Adapter, home: string, mounts: string): boolean {
  if (!hasShared(mounts)) return false;
  const links = new Map<string, string | null>();
  const folders = [...records, ...(claims === null ? [] : [claims])].map(({ folder }) => folder.replace(/\*.*$/, ""));
  return ["", ...folders].some((folder) => isShared(realHome(join(home, folder), mounts, links), mounts));
}

/** null: this machine has none, or it cannot be read. */
export function readMachineId(): string | null {
  try {
    const id = readText("/etc/machine-id").trim();
    return /^[0-9a-f]{32}$/.test(id) ? id : null;
  } catch (error) {
    if (errorCode(error) === "") throw error;
    return null;
  }
}
