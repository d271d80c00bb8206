// Finds stores that processes of other hosts may write to, and the id of this host in announcements.
import { join } from "node:path";
import type { Adapter } from "../agents/adapter.ts";
import { tryOr } from "../lib/errors.ts";
import { readText } from "./files.ts";
import { realHome } from "./homes.ts";
import { hasShared, isShared } from "./mounts.ts";

/** The store, or a folder of it behind a link, is on a file system that processes of other hosts may write to. */
export function isSharedStore({ records, announcements }: Adapter, home: string, mounts: string): boolean {
  if (!hasShared(mounts)) return false;
  const links = new Map<string, string | null>();
  const folders = [...records, ...(announcements === undefined ? [] : [announcements])].map(({ folder }) =>
    folder.replace(/\*.*$/, ""),
  );
  return ["", ...folders].some((folder) => isShared(realHome(join(home, folder), mounts, links), mounts));
}

/** null: this host has no machine id, or it cannot be read. */
export function readMachineId(): string | null {
  const id = tryOr("", () => readText("/etc/machine-id").trim());
  return /^[0-9a-f]{32}$/.test(id) ? id : null;
}
