// Whose a process of Linux is and where it lives: what its status file and its namespaces tell.
import { errorCode } from "./failure.ts";

/** Each is null where the kernel has no such namespaces, or it cannot be read. */
export interface Namespaces {
  pid: string | null;
  mnt: string | null;
  user: string | null;
}

/** Real, effective, saved and file system uid; null: not a status file. */
export function uidsIn(status: string): number[] | null {
  const uids = lineOf(status, "Uid:")?.trim().split(/\s+/).map(Number);
  return uids?.length === 4 && uids.every(Number.isInteger) ? uids : null;
}

export const namespacesOf = (folder: string, link: (path: string) => string | null): Namespaces => ({
  pid: link(`${folder}/ns/pid`),
  mnt: link(`${folder}/ns/mnt`),
  user: link(`${folder}/ns/user`),
});

export const ownNamespaces = (readLink: (path: string) => string): Namespaces =>
  namespacesOf("/proc/self", (path) => {
    try {
      return readLink(path);
    } catch (error) {
      if (errorCode(error) === "") throw error;
      return null;
    }
  });

/** A namespace that cannot be read may be another one. */
export const confinementIn = (spaces: Namespaces, own: Namespaces): string | null =>
  spaces.pid === own.pid && spaces.mnt === own.mnt && spaces.user === own.user
    ? null
    : `${spaces.pid} ${spaces.mnt} ${spaces.user}`;

/** The pid that a process knows itself by: the last one in its line. */
export function innermost(status: string): number | null {
  const inner = Number.parseInt(lineOf(status, "NSpid:")?.split("\t").pop() ?? "", 10);
  return Number.isNaN(inner) ? null : inner;
}

/** What stands behind the key at the beginning of a line. */
export function lineOf(text: string, key: string): string | undefined {
  const at = `\n${text}`.indexOf(`\n${key}`);
  if (at === -1) return undefined;
  const end = text.indexOf("\n", at);
  return text.slice(at + key.length, end === -1 ? text.length : end);
}
