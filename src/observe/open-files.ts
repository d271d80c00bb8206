// The files that a process has open, and those that it has mapped into its memory. Linux only; elsewhere there are none.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { ProcessRow } from "../core/process.ts";
import { tryOr } from "../lib/errors.ts";

/** The targets of its descriptors, as far as they can be read. */
export function* openTargets(pid: number): Generator<string> {
  for (const fd of tryOr([], () => readdirSync(`/proc/${pid}/fd`)))
    yield* tryOr([], () => [readlinkSync(`/proc/${pid}/fd/${fd}`)]);
}

/** The first file in or below the folder that a process has open. null: none, or the files cannot be read. */
export const openBelow = (folder: string, pid: number): string | null =>
  openTargets(pid).find((target) => `${target}/`.startsWith(`${folder}/`) && !target.endsWith(" (deleted)")) ?? null;

/** The text of /proc/PID/maps. Empty: the process is gone or not ours. */
export const readMaps = ({ identity }: ProcessRow): string =>
  process.platform === "linux" ? tryOr("", () => readFileSync(`/proc/${identity.pid}/maps`, "latin1")) : "";
