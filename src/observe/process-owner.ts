// The owner and the namespaces of a Linux process, from /proc.
/** null: the kernel has no such namespaces, or the link cannot be read. */
export type Namespaces = Record<"pid" | "mnt" | "user", string | null>;

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

/** null: the process has our namespaces. A namespace that cannot be read counts as another one. */
export const confinementIn = (spaces: Namespaces, own: Namespaces): string | null =>
  spaces.pid === own.pid && spaces.mnt === own.mnt && spaces.user === own.user
    ? null
    : `${spaces.pid} ${spaces.mnt} ${spaces.user}`;

/** The pid of a process in its own pid namespace: the last number of the `NSpid:` line. */
export function innermost(status: string): number | null {
  const inner = Number.parseInt(lineOf(status, "NSpid:")?.split("\t").pop() ?? "", 10);
  return Number.isNaN(inner) ? null : inner;
}

/** The text after the key at the beginning of a line. */
export function lineOf(text: string, key: string): string | undefined {
  const at = `\n${text}`.indexOf(`\n${key}`);
  if (at === -1) return undefined;
  const end = text.indexOf("\n", at);
  return text.slice(at + key.length, end === -1 ? text.length : end);
}
